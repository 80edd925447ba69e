"""The forms of gated retention: the unrolled sum, the masked matrix product, and the gates that are special."""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Implies, Less, LessEqual, Statement
from ..kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Lemma, Product, Rowwise, Sign, Suppose, Unfold
from ..kernel.terms import (
    Exp,
    Hadamard,
    Index,
    Num,
    Prod,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    entries,
    indices,
    le,
    scalar,
    substitute,
)
from ..retention.operator import H as RETENTION
from ..retention.operator import gamma as FACTOR
from .operator import DAO, DECLARATION, H0, NOTE, YOCO, H, d_k, d_v, gamma, k, q, t, v

s, r, j, i, l, n, N, T = indices("s r j i l n N T")


def decay(first: Index, last: Index) -> Term:
    """What is left after the steps first..last."""
    return Prod(gamma[r], r, first, last)


def written(weight: Term, at: Index = t) -> Term:
    """The sum of the writes up to a time, each with a weight."""
    return Sum(weight * v[j] * k[j].T, j, 1, at)


unrolled = Statement(Equation(H[t], decay(1, t) * H0 + written(decay(j + 1, t))), le(0, t))
scaled = Lemma("affine/scaled", part=1, families={"a": ((t,), gamma[t]), "U": ((t,), v[t] * k[t].T)})

UNROLLED = Claim(
    id="gated-retention/unrolled",
    title="the state is the sum of the writes, each faded by the gates after it",
    statement=unrolled,
    sources=(Source(YOCO, "gated retention, the recurrent representation"), Source(NOTE, "section 1.3.4, Gated Retention")),
    proof=Direct((scaled,), "numbers for transitions"),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "a write passes its own gate", Equation(H[t], decay(1, t) * H0 + written(decay(j, t)))),
        variant(unrolled, "the last gate is left out", Equation(H[t], decay(1, t) * H0 + written(decay(j + 1, t - 1)))),
        variant(unrolled, "the start passes no gate", Equation(H[t], H0 + written(decay(j + 1, t)))),
        variant(unrolled, "one gate to the power of the age", Equation(H[t], decay(1, t) * H0 + written(gamma[t] ** (t - j)))),
    ),
)


def rows(family: object) -> Term:
    """The matrix whose row i is the i-th member, transposed."""
    return Stack(family[i].T, i, 1, T)  # type: ignore[index]


def mask(first: Index = j + 1) -> Term:
    """D: the gates after token j up to query i, and 0 for tokens to come."""
    return entries(Where(le(j, i), decay(first, i), Num(0)), i, (1, T), j, (1, T))


Q, K, V = rows(q), rows(k), rows(v)
outputs = Stack((H[i] * q[i]).T, i, 1, T)
from_start = Stack(decay(1, i) * (H0 * q[i]).T, i, 1, T)


def parallel_form(masked: Term) -> Formula:
    """The masked matrix product, with what the start adds, is the recurrence."""
    return Equation(Hadamard(Q * K.T, masked) * V + from_start, outputs)


unmasked = entries(decay(j + 1, i), i, (1, T), j, (1, T))

# D is 1-semiseparable: its entries multiply along the way from j over l to n.
semiseparable = Equation(decay(j + 1, n), decay(l + 1, n) * decay(j + 1, l))
parallel = Statement(And(parallel_form(mask()), semiseparable), le(0, T) & le(0, j) & le(j, l) & le(l, n))

PARALLEL = Claim(
    id="gated-retention/parallel",
    title="(QKᵀ ⊙ D) V with D_tj the product of the gates after j computes the recurrence; D is 1-semiseparable",
    statement=parallel,
    sources=(
        Source(YOCO, "gated retention, the parallel representation"),
        Source(DAO, "1-semiseparable matrices: the scalar SSM recurrence"),
    ),
    proof=Each(
        (
            Rowwise(t, Direct((Lemma("gated-retention/unrolled"),), "row t: the mask cuts the sum at t")),
            Direct(note="adjacent ranges of gates"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(parallel, "a write passes its own gate", And(parallel_form(mask(j)), semiseparable)),
        variant(parallel, "no mask on the tokens to come", And(parallel_form(unmasked), semiseparable)),
        variant(parallel, "a state at the start is forgotten", Equation(Hadamard(Q * K.T, mask()) * V, outputs)),
        variant(
            parallel,
            "the gate at the cut is left out",
            And(parallel_form(mask()), Equation(decay(j + 1, n), decay(l + 1, n) * decay(j + 1, l - 1))),
        ),
    ),
)

# Special gates ------------------------------------------------------------------------------------

c = scalar("c")
at_rate_c = substitute(RETENTION[n], {FACTOR: c})
constant = ForAll(Equation(gamma[r], c), r, 1, N)
reset = Equation(gamma[s], 0)
logit = scalar("a")
sigmoid = 1 / (1 + Exp(-logit))
is_retention = Implies(constant, Equation(H[n], at_rate_c))
forgotten = Implies(reset, Equation(H[t], Sum(decay(j + 1, t) * v[j] * k[j].T, j, s, t)))
inside = And(Less(0, sigmoid), Less(sigmoid, 1))
limits = Statement(And(is_retention, forgotten, *inside.args), le(0, n) & le(n, N) & le(1, s) & le(s, t))

LIMITS = Claim(
    id="gated-retention/limits",
    title="constant gates are retention, a gate 0 forgets everything before it; a sigmoid reaches neither 0 nor 1",
    statement=limits,
    sources=(
        Source(NOTE, "section 1.3.4, Gated Retention: γ_t = sigmoid(W x_t)"),
        Source(YOCO, "gated retention", "there a sigmoid to a power 1/τ"),
    ),
    proof=Each(
        (
            Suppose(
                Induction(
                    n,
                    Direct(note="the same start"),
                    Direct((Hypothesis(), Given("premise")), "the same update"),
                )
            ),
            Suppose(
                Induction(
                    t,
                    Direct((Unfold(H[s]), Given("premise")), "t = s: nothing of the state before"),
                    Direct((Hypothesis(),), "every later gate fades what was written since"),
                    start=s,
                )
            ),
            Sign(),
            Sign((Product((Exp(-logit), sigmoid)),)),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(limits, "any gates are retention", And(Equation(H[n], at_rate_c), forgotten, *inside.args)),
        variant(limits, "a gate 0 forgets its own token", And(is_retention, Implies(reset, Equation(H[s], Zero(d_v, d_k))), *inside.args)),
        variant(limits, "any gate forgets", And(is_retention, forgotten.args[1], *inside.args)),
        variant(limits, "a sigmoid is at least 1/2", And(is_retention, forgotten, LessEqual(Fraction(1, 2), sigmoid), inside.args[1])),
    ),
)

CLAIMS = (UNROLLED, PARALLEL, LIMITS)
