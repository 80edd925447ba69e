"""The selective scan as attention: the weights that it hides, and with one rate for all entries, gated retention (SSD).

y_i = Σ_{j≤i} α_ij u_j        α_ij = C_iᵀ e^{Δ_i diag(A)} ... e^{Δ_{j+1} diag(A)} Δ_j B_j
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..discretization.operators import MAMBA
from ..kernel.formulas import And, Assumption, Equation, Formula, LessEqual, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Rowwise, Using
from ..kernel.terms import (
    Diag,
    Exp,
    Eye,
    Hadamard,
    Index,
    Num,
    Prod,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    entries,
    indices,
    le,
    recurrence,
    scalar,
)
from .operator import ALI, DAO, DECLARATION, H0, A, B, C, D, H, N, delta, t, u
from .scan import passed, total

c, d, i, j, n, r, s, L = indices("c d i j n r s L")

# Hidden weights ---------------------------------------------------------------------------------------------


def alpha(at: Index = t, of: Index = j, after: Index | None = None) -> Term:
    """The weight of an input in an output."""
    return C[at].T * passed(of + 1 if after is None else after, at) * (delta[of] * B[of])


def by_entries(rate: Index = n) -> Term:
    """The weight of input s as a sum over the entries of the state."""
    fade = Exp((total[t] - total[s]) * Row(A, rate))
    return Sum(Row(C[t], n) * fade * (delta[s] * Row(B[s], n)), n, 1, N)


fresh_start = Assumption("H_0 = 0", Equation(H0, Zero(N, 1)), solve={H0: Zero(N, 1)})
column = Stack(Row(C[t], n), n, 1, N)


def attends(weight: Term, entrywise: Term) -> Formula:
    """An output weighs the inputs so far; a weight is a sum over the entries of the state."""
    return And(
        Equation(DECLARATION.output, Sum(weight * u[j], j, 1, t) + D * u[t]),
        Equation(column, C[t]),
        Equation(alpha(of=s), entrywise),
    )


hidden = Statement(attends(alpha(), by_entries()), le(1, s) & le(s, t), (fresh_start,))
faded = Exp((total[t] - total[s]) * Diag(A)) * (delta[s] * B[s])

HIDDEN = Claim(
    id="mamba/hidden-attention",
    title="from the zero state an output weighs the inputs so far: α_ij = Σ_n C_in e^{A_n (Δ_{j+1} + ... + Δ_i)} Δ_j B_jn, beside D",
    statement=hidden,
    sources=(
        Source(ALI, "the hidden attention matrices", "with B̄ = ΔB; D and the start, which are not in it, apart"),
        Source(MAMBA, "algorithm 2"),
    ),
    proof=Each(
        (
            Direct((Lemma("mamba/unrolled"), Given("H_0 = 0")), "the state, unrolled"),
            Rowwise(r),
            Chain(
                (
                    Link(C[t].T * faded, (Lemma("mamba/segment-sums", part=1),), "one exponential for the transitions after s"),
                    Link(column.T * faded, (Using(Part(2), left=-faded.T),), "C as the column of its entries"),
                ),
                note="entry by entry",
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(hidden, "a state at the start", drop="H_0 = 0"),
        variant(hidden, "an input passes its own transition", attends(alpha(after=j), by_entries())),
        variant(hidden, "the weights of an output add up to 1", Equation(Sum(alpha(), j, 1, t), 1)),
        variant(hidden, "weights are not negative", LessEqual(0, alpha(of=s))),
        variant(hidden, "one rate for all entries", attends(alpha(), by_entries(1))),
    ),
)

# One rate: gated retention ------------------------------------------------------------------------------------

a = scalar("a")
one_rate = Assumption("A = a·1", Equation(Diag(A), a * Eye(N)), solve={A: Stack(a, n, 1, N)})


def memory(gate: Term, value: Term) -> Term:
    """Gated retention with keys B and values of size 1, from the same start."""

    def at(of: Term, time: Index) -> Term:
        return of.subs({t: time})

    return recurrence("H", H0.T, lambda time, M: at(gate, time) * M + at(value, time) * B[time].T)[t]


def gates(first: Index, last: Index) -> Term:
    """L: the gates of a range."""
    return Prod(Exp(delta[r] * a), r, first, last)


def rows(entry: Term) -> Term:
    """The column, or the matrix, of an entry at the times 1..L."""
    return Stack(entry, i, 1, L)


def dual(state: Term, first: Index = j + 1) -> Formula:
    """The scan is gated retention, and its outputs a masked matrix product of the C, the B and the inputs, beside the start."""
    lower = entries(Where(le(j, i), gates(first, i), Num(0)), i, (1, L), j, (1, L))
    product = Hadamard(rows(C[i].T) * rows(B[i].T).T, lower) * rows(delta[i] * u[i])
    return And(Equation(H[t].T, state), Equation(rows(C[i].T * H[i]), product + rows(gates(1, i) * (C[i].T * H0))))


is_retention = dual(memory(Exp(delta[t] * a), delta[t] * u[t]))
ssd = Statement(is_retention, le(0, t) & le(0, L), (one_rate,))
number = Given(one_rate.name)

SSD = Claim(
    id="mamba/ssd",
    title="one rate for all entries (Mamba-2): the scan is gated retention with γ_t = e^{aΔ_t}, keys B, queries C and values Δu, and "
    "Y = (L ⊙ C Bᵀ) ΔU with L the products of the gates",
    statement=ssd,
    sources=(Source(DAO, "state space duality: M = L ⊙ C Bᵀ", "one channel of a head, with B̄ = ΔB, a start, without D"),),
    proof=Each(
        (
            Induction(t, step=Direct((Hypothesis(), number), "the transitions are numbers")),
            Rowwise(s, Direct((Lemma("mamba/unrolled"), number), "row s")),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(ssd, "any rates", drop=one_rate.name),
        variant(ssd, "the values are not multiplied by Δ", dual(memory(Exp(delta[t] * a), u[t]))),
        variant(ssd, "the gate without Δ", dual(memory(Exp(a), delta[t] * u[t]))),
        variant(ssd, "an input passes its own gate", dual(memory(Exp(delta[t] * a), delta[t] * u[t]), j)),
    ),
)

CLAIMS = (HIDDEN, SSD)
