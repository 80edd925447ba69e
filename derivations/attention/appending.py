"""What one more token costs, masked and full, in a stack of layers.

A masked layer computes the new row from its cache. A full layer whose inputs are as before moves each old row by a running softmax
(attention/append-update); but then all its rows have changed, and every layer above it is computed anew.
"""

from __future__ import annotations

from fractions import Fraction

from .. import cost
from ..claim import Claim, Source, variant
from ..kernel.base import Like
from ..kernel.formulas import And, Assumption, Equation, LessEqual, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Part, Product, Sign, Unfold
from ..kernel.terms import Exp, Ind, Num, Sum, Term, Zero, indices, le, named, recurrence
from . import kv_cache
from .operators import FULL, NOTE, VASWANI, T, d_k, d_v, full, i, k, normaliser, q, read, v

L = indices("L")[0]  # layers
tokens, width, height = Ind(T), Ind(d_k), Ind(d_v)

# An old row, moved ----------------------------------------------------------------------------------------

Z = recurrence("Z", Num(0), lambda n, Z: Z + Exp(q[i].T * k[n]))
O = recurrence("O", Zero(d_v, 1), lambda n, O: (Z[n - 1] * O + Exp(q[i].T * k[n]) * v[n]) / Z[n])
UPDATE = (Z.member.step_at(T, Z[T - 1]), O.member.step_at(T, O[T - 1]))
MOVED = "the row before the new token, and the new one"


def moved(row: Term) -> And:
    """A normaliser and a row of full attention, after the tokens 1..T."""
    return And(Equation(Z[T], normaliser(i, T)), Equation(O[T], row))


# Multiplications ------------------------------------------------------------------------------------------


def products(*computed: Term) -> Term:
    """The multiplications that it takes to compute some terms."""
    return named(cost.MULTIPLICATIONS, cost.operations(*computed)[cost.MULTIPLICATIONS], *computed)


NEW_ROW = named("New", products(kv_cache.attend(q[T], T, T)), T)
WHOLE = named("Whole", products(full(T)), T)
# one layer of full attention: old rows are moved, the new one is computed
FIRST = named("First", Sum(products(*UPDATE), i, 1, T - 1) + NEW_ROW, T)
masked_stack = Ind(L) * NEW_ROW
full_stack = FIRST + Ind(L - 1) * WHOLE

row_cost = Equation(NEW_ROW, tokens * (width + height))
one_layer = LessEqual(FIRST, 3 * NEW_ROW)


def dearer(times: Like, stack: Term = full_stack) -> LessEqual:
    """Full attention takes at least half of so many times the multiplications of masked attention."""
    return LessEqual(times * masked_stack, 2 * stack)


half_of_t, full_row = dearer(tokens), read(i, T)


def appended(comparison: LessEqual = half_of_t, first: LessEqual = one_layer, row: Term = full_row) -> And:
    """How a row is moved, what that costs in one layer, and the comparison of L layers."""
    return And(moved(row), row_cost, first, comparison)


deep = Assumption("two layers or more", LessEqual(2, Ind(L)))
as_written = Statement(appended(), le(1, i) & le(1, T) & le(1, L))
appending = Statement(appended(), as_written.where, (deep,))

MASKED_VS_FULL_COST = Claim(
    id="attention/masked-vs-full-cost",
    title="in two layers or more, a token appended to full attention costs at least T/2 times as much as with masks and caches; in one "
    "layer at most three times as much",
    statement=appending,
    as_written=as_written,
    as_written_at={L: 1, T: 8},
    expected="qualified",
    sources=(
        Source(
            NOTE,
            "full attention in the same notation: with caches, masked attention computes much less",
            "said there of one layer, where each old row is moved in d_k + 2d_v products; multiplications as they are written",
        ),
        Source(kv_cache.SHAZEER, "incremental multi-head attention"),
        Source(VASWANI, "section 4, table 1: complexity per layer"),
    ),
    proof=Each(
        (
            Induction(
                T,
                Each((Direct((Unfold(Z[1]),), "one token"), Direct((Unfold(O[1]), Unfold(Z[1])), "one token: its weight is 1"))),
                Each((Direct((Hypothesis(),), "one more weight"), Direct((Part(1), Hypothesis()), MOVED))),
                start=1,
            ),
            Direct(note="d_k products a score, d_v products a value"),
            Sign(),
            Sign((Product((Ind(L) - 2, tokens, tokens, width + height)), Product((FIRST,), Fraction(2)))),
        )
    ),
    operator=FULL,
    near_misses=(
        variant(appending, "in one layer too", drop=deep.name, at={L: 1, T: 8}),
        variant(appending, "T times as much", appended(dearer(2 * tokens))),
        variant(appending, "the layers above move their rows too", appended(dearer(tokens, Ind(L) * FIRST))),
        variant(appending, "one layer costs as much as with masks", appended(first=LessEqual(FIRST, NEW_ROW))),
        variant(appending, "an old row stays", appended(row=read(i, T - 1))),
    ),
)

CLAIMS = (MASKED_VS_FULL_COST,)
