"""A gate of rank one in the place of the factor γ: every row and every column of the memory fades by a factor of its own.

    H_t = (e_t s_tᵀ) ⊙ H_{t-1} + v_t k_tᵀ = diag(e_t) H_{t-1} diag(s_t) + v_t k_tᵀ
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part
from ..kernel.terms import Diag, Eye, Hadamard, Index, Num, Prod, Stack, Sum, Term, indices, le, matrix, recurrence, vectors
from .operator import H0, NOTE, H, d_k, d_v, gamma, k, t, v

YANG = "Yang et al., Gated Linear Attention Transformers with Hardware-Efficient Training, arXiv 2312.06635"

n, r, j, N, c = indices("n r j N c")
e, s = vectors("e", d_v), vectors("s", d_k)
X = matrix("X", d_v, d_k)


def write(at: Index) -> Term:
    """What a token writes."""
    return v[at] * k[at].T


gated = recurrence("H", H0, lambda t, H: Hadamard(e[t] * s[t].T, H) + write(t))
affine = recurrence("H", H0, lambda t, H: Diag(e[t]) * H * Diag(s[t]) + write(t))


def passed(x: Term, first: Index, last: Index = t) -> Term:
    """What the gates first..last leave of a term."""
    return Prod(Diag(e[r]), r, first, last, True) * x * Prod(Diag(s[r]), r, first, last)


def unrolled(first: Index = j + 1) -> Equation:
    """The state as a sum, write j through the gates from ``first`` on."""
    return Equation(gated[t], passed(H0, 1) + Sum(passed(write(j), first), j, 1, t))


# A gate 1 for every row is gated linear attention: each channel of the keys has a gate of its own.
rows = vectors("f", d_v)
one_sided = recurrence("H", H0, lambda t, H: Hadamard(rows[t] * s[t].T, H) + write(t))
linear = recurrence("H", H0, lambda t, H: H * Diag(s[t]) + write(t))
ones = Assumption(
    "f = 1",
    ForAll(Equation(Diag(rows[r]), Eye(d_v)), r, 1, N),
    solve={rows[r]: Stack(Num(1), c, 1, d_v)},
)
# The number γ for every column is retention.
columns = vectors("g", d_k)
constant = recurrence("H", H0, lambda t, H: H * Diag(columns[t]) + write(t))
gammas = Assumption(
    "g = γ",
    ForAll(Equation(Diag(columns[r]), gamma * Eye(d_k)), r, 1, N),
    solve={columns[r]: Stack(gamma, c, 1, d_k)},
)
diagonal = Equation(Hadamard(e[t] * s[t].T, X), Diag(e[t]) * X * Diag(s[t]))
same = Equation(gated[t], affine[t])
only_columns = And(Equation(one_sided[n], linear[n]), Equation(constant[n], H[n]))


def gate(scaled: Formula = diagonal, closed: Formula | None = None) -> Formula:
    """The gate as two diagonal factors, the state as an affine one and as a sum, and the gates on columns only."""
    return And(scaled, same, closed or unrolled(), *only_columns.args)


outer_product = Statement(gate(), le(0, t) & le(0, n) & le(n, N), (ones, gammas))
put = {"L": ((t,), Diag(e[t])), "R": ((t,), Diag(s[t])), "U": ((t,), write(t))}

OUTER_PRODUCT = Claim(
    id="retention/outer-product-gate",
    title="a gate e sᵀ is a diagonal factor on each side; with e = 1 it is that of gated linear attention, with a constant s = γ retention",
    statement=outer_product,
    sources=(
        Source(NOTE, "section 1.3.4, a more complex reflection: G_t = e_t s_tᵀ"),
        Source(YANG, "the recurrent form with G_t = α_tᵀ β_t, and with α_t alone", "the memory transposed"),
    ),
    proof=Each(
        (
            Direct(note="row and column factors"),
            Induction(t, Direct(note="the same start"), Direct((Hypothesis(),), "the same update")),
            Chain((Link(affine[t], (Part(2),), "the affine update"),), (Lemma("affine/unrolled", families=put),), "unrolled"),
            Induction(
                n,
                Direct(note="the same start"),
                Direct((Hypothesis(), Given("f = 1", {r: n + 1})), "the factor on the rows is the identity"),
            ),
            Induction(
                n,
                Direct(note="the same start"),
                Direct((Hypothesis(), Given("g = γ", {r: n + 1})), "the factor on the columns is γ"),
            ),
        )
    ),
    near_misses=(
        variant(outer_product, "the columns do not fade", gate(Equation(Hadamard(e[t] * s[t].T, X), Diag(e[t]) * X))),
        variant(outer_product, "a write passes its own gate", gate(closed=unrolled(j))),
        variant(outer_product, "any factor on the rows", drop="f = 1"),
        variant(outer_product, "any factor on the columns", drop="g = γ"),
    ),
)

CLAIMS = (OUTER_PRODUCT,)
