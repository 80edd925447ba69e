"""Many writes: the state as a sum, and the products of transitions in closed form."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..delta_rule.operator import H0, ONE, beta, d_k, j, k, keeps, s, t, v
from ..delta_rule.operator import YANG as DELTANET
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Cases, Chain, Direct, Each, ForEach, Given, Hypothesis, Induction, Lemma, Link, Using
from ..kernel.terms import Eye, Family, Index, Prod, Stack, Sum, Term, entries, equal, indicator, indices, le, lt, named, scalars
from .operator import DECLARATION, YANG, H, gamma

n, m, N = indices("n m N")
T = scalars("T")


def fading(first: Index, last: Index = t) -> Term:
    """What the gates first..last leave."""
    return Prod(gamma[s], s, first, last)


def kept(first: Index, last: Index = t, *, decreasing: bool = False) -> Term:
    """What a range of tokens leaves of the memory, the earliest token's transition leftmost."""
    return Prod(gamma[s] * keeps(s), s, first, last, decreasing)


def write(at: Index) -> Term:
    """What a token writes."""
    return beta[at] * v[at] * k[at].T


def unrolled_by(gates: Term, transitions: Term, start: Term) -> Formula:
    """Gates apart from transitions, and the state as a sum of the writes, each times the transitions."""
    return And(
        Equation(kept(j + 1), gates * Prod(keeps(s), s, j + 1, t)),
        Equation(H[t], start + Sum(write(j) * transitions, j, 1, t)),
    )


unrolled = Statement(unrolled_by(fading(j + 1), kept(j + 1), H0 * kept(1)), le(0, j) & le(j, t))
one_more = Direct((Using(Hypothesis(), right=gamma[t + 1] * keeps(t + 1)),), "one more gate and transition")
right = Lemma("affine/right", part=1, families={"R": ((t,), gamma[t] * keeps(t)), "U": ((t,), write(t))})

UNROLLED = Claim(
    id="gated-delta-rule/unrolled",
    title="the state is the sum of the writes, each through the gates and transitions after it; the gates come out as a number",
    statement=unrolled,
    sources=(Source(YANG, "the recurrence, expanded", "there from the state at the start of a chunk"),),
    proof=Each((Induction(t, step=one_more, start=j), Direct((right,), "the transitions on the right"))),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "a write passes its own transition", unrolled_by(fading(j + 1), kept(j), H0 * kept(1))),
        variant(unrolled, "transitions in reversed order", unrolled_by(fading(j + 1), kept(j + 1, decreasing=True), H0 * kept(1))),
        variant(unrolled, "a gate too many comes out", unrolled_by(fading(j), kept(j + 1), H0 * kept(1))),
        variant(unrolled, "the start does not fade", unrolled_by(fading(j + 1), kept(j + 1), H0 * Prod(keeps(s), s, 1, t))),
    ),
)

# The UT transform ---------------------------------------------------------------------------------

# T solves (I + tril(diag(β) (K Kᵀ ⊙ D), -1)) T = diag(β) with D_nm the gates after m up to n, here row after row.


def substituted(row: Index, column: Index) -> Term:
    """An entry of T from the rows above it."""
    seen = fading(m + 1, row) * (k[row].T * k[m])
    return beta[row] * (indicator(equal(row, column)) - Sum(seen * T[m, column], m, 1, row - 1))


ut_transform = Assumption(
    "UT transform with decay",
    ForAll(ForAll(Equation(T[n, j], substituted(n, j)), j, 1, N), n, 1, N),
    solve={T[n, j]: substituted(n, j)},
)


def rows(family: Family, gate: Term = ONE) -> Term:
    """The matrix whose rows are the first t members, transposed, each times a gate."""
    return Stack(gate * family[j].T, j, 1, t)


V, T_t = named("V", rows(v)), named("T", entries(T[n, j], n, (1, t), j, (1, t)), t)
from_start = named("K'", rows(k, fading(1, j)), t)
to_end = named("K''", rows(k, fading(j + 1)), t)
triangular = ForAll(ForAll(Equation(T[n, j], 0), j, t + 1, N), n, 1, t)


def closed(start: Term = from_start, end: Term = to_end, by: Term = T_t) -> Formula:
    """T is lower triangular; the product of the transitions, and the state, by T."""
    return And(
        triangular,
        Equation(kept(1), fading(1) * Eye(d_k) - (by * start).T * end),
        Equation(H[t], H0 * kept(1) + (by * V).T * end),
    )


wy = Statement(closed(), le(0, t) & le(t, N), (ut_transform,))


def rows_before(x: Callable[[Index], Term], with_column: bool = False) -> Term:
    """The sum of (row n of T with x) k_nᵀ over n <= t, faded up to t + 1; column t + 1 of T would add 0."""
    row = Sum(T[n, j] * x(j), j, 1, t)
    return Sum(fading(n + 1, t + 1) * (row + T[n, t + 1] * x(t + 1) if with_column else row) * k[n].T, n, 1, t)


def new_row(x: Callable[[Index], Term]) -> Term:
    """(Row t + 1 of T with x) k_{t+1}ᵀ."""
    return (Sum(T[t + 1, j] * x(j), j, 1, t) + T[t + 1, t + 1] * x(t + 1)) * k[t + 1].T


def key(at: Index) -> Term:
    """A key, faded by the gates up to it."""
    return fading(1, at) * k[at]


def value(at: Index) -> Term:
    """A value."""
    return v[at]


last = gamma[t + 1] * keeps(t + 1)
start = H0 * kept(1) * last
substitution = (Given("UT transform with decay", {n: t + 1}), Hypothesis())

WY = Claim(
    id="gated-delta-rule/wy",
    title="one UT transform T with decay gives the product of the transitions and the state",
    statement=wy,
    sources=(
        Source(YANG, "the extended WY representation", "one T, with the decays in it, for the values and for the keys"),
        Source(DELTANET, "sections 3.1 and 3.2", "the same without gates"),
    ),
    proof=Induction(
        t,
        Each((ForEach(ForEach(Direct())), Direct(note="t = 0: both are I"), Direct(note="t = 0: both are H_0"))),
        Each(
            (
                ForEach(
                    ForEach(
                        Cases(
                            (
                                (le(n, t), Direct((Hypothesis(),), "a row that was there")),
                                (
                                    lt(t, n),
                                    Direct((Given("UT transform with decay", {n: n, j: j}), Hypothesis()), "the new row, from those above"),
                                ),
                            )
                        )
                    )
                ),
                Chain(
                    (
                        Link(kept(1) * last, note="the last gate and transition"),
                        Link((fading(1) * Eye(d_k) - (T_t * from_start).T * to_end) * last, (Hypothesis(),), "the product before"),
                        Link(
                            fading(1, t + 1) * Eye(d_k) - rows_before(key) - new_row(key),
                            substitution,
                            "what the new transition changes is the new row of T",
                        ),
                        Link(
                            fading(1, t + 1) * Eye(d_k) - rows_before(key, True) - new_row(key),
                            (Hypothesis(),),
                            "the new column is 0 above the diagonal",
                        ),
                    ),
                    note="rows and columns up to t + 1",
                ),
                Chain(
                    (
                        Link(H[t] * last + write(t + 1), note="the update, as declared"),
                        Link((H0 * kept(1) + (T_t * V).T * to_end) * last + write(t + 1), (Hypothesis(),), "the state before"),
                        Link(start + rows_before(value) + new_row(value), substitution, "write and correction are the new row of TV"),
                        Link(start + rows_before(value, True) + new_row(value), (Hypothesis(),), "the new column is 0 above the diagonal"),
                    ),
                    note="rows and columns up to t + 1",
                ),
            )
        ),
    ),
    operator=DECLARATION,
    near_misses=(
        variant(wy, "T transposed", closed(by=T_t.T)),
        variant(wy, "the keys have not faded from the start", closed(start=rows(k))),
        variant(wy, "the writes pass their own gates", closed(end=rows(k, fading(j)))),
        variant(wy, "any T", drop="UT transform with decay"),
    ),
)

CLAIMS = (UNROLLED, WY)
