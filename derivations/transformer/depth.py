"""Prefix invariance at any depth: by induction on the layers, all rows of a prefix at once."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Lemma, Link, Unfold, Using
from ..kernel.terms import Apply, Ind, Index, Recurrence, Row, Stack, Sum, Term, Where, equal, indicator, indices, le,  scalar, substitute, vector, vectors
from .layers import NOTE, VASWANI, T, attend, causal, d, full, l, p, pointwise, r, s, stack, t, theta, token, x

Stacked = Callable[[Index], Recurrence]


def invariant(layers: Stacked) -> ForAll:
    """The first t rows of the stack on T tokens are those of the stack on t tokens."""
    return ForAll(Equation(Row(layers(T)[l], s), Row(layers(t)[l], s)), s, 1, t)


def by_layers(layers: Stacked) -> Induction:
    """Row s of each layer is its update of the rows below, and those are the same."""

    def update(length: Index) -> Term:
        return Row(layers(length)[l + 1].step_at(l + 1, layers(length)[l]), s)

    def unfolded(length: Index, sign: int) -> Using:
        return Using(Unfold(layers(length)[l + 1]), left=sign * Stack(indicator(equal(r, s)), r, 1, length).T)

    same = Link(update(t), (Hypothesis(),), "the rows up to s are the same in the layer below")
    step = Chain((Link(update(T), (unfolded(T, 1),), "row s of a layer"), same), (unfolded(t, -1),), "row s of the layer on the prefix")
    return Induction(l, ForEach(Direct(note="no layer: the tokens themselves")), ForEach(step))


def one_full_layer(X: Term, layer: Index, at: Index, length: Index) -> Term:
    """Only the first layer reads all tokens."""
    return Where(equal(layer, 1), full(X, layer, at, length), causal(X, layer, at, length))


def over_time(length: Index) -> Recurrence:
    """Each layer reads the mean of all tokens too, as a norm over time does."""

    def mixing(X: Term, layer: Index, at: Index, length: Index) -> Term:
        return causal(X, layer, at, length) + Sum(token(X, r), r, 1, length) / Ind(length)

    return stack(length, mixing)


depth = Statement(invariant(stack), le(0, l) & le(1, t) & le(t, T))

STACK = Claim(
    id="transformer/stack",
    title="a stack of masked attention and per-token layers, of any depth, leaves the rows of a prefix alone, so every layer may cache",
    statement=depth,
    sources=(
        Source(NOTE, "masked self-attention in each layer: old rows are not computed again"),
        Source(VASWANI, "section 3.1, decoder", "any functions of a token and of what it reads"),
    ),
    proof=by_layers(stack),
    near_misses=(
        variant(depth, "full attention", invariant(lambda length: stack(length, full))),
        variant(depth, "full attention in the first layer only", invariant(lambda length: stack(length, one_full_layer))),
        variant(depth, "a norm over time", invariant(over_time)),
    ),
)

CLAIMS = (STACK,)
