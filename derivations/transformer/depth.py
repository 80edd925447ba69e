"""Prefix invariance at any depth: by induction on the layers, all rows of a prefix at once."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Lemma, Link, Part, Unfold, Using
from ..kernel.terms import (
    Apply,
    Ind,
    Index,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    equal,
    indicator,
    le,
    scalar,
    substitute,
    vector,
)
from .layers import NOTE, VASWANI, T, causal, full, l, p, r, s, stack, t, theta, token

Stacked = Callable[[Index], Recurrence]


def invariant(layers: Stacked) -> And:
    """The first t rows of the stack on T tokens are those of the stack on t tokens; among them row t."""
    rows = ForAll(Equation(Row(layers(T)[l], s), Row(layers(t)[l], s)), s, 1, t)
    return And(rows, Equation(Row(layers(T)[l], t), Row(layers(t)[l], t)))


def by_layers(layers: Stacked) -> Each:
    """Row s of each layer is its update of the rows below, and those are the same."""

    def update(length: Index) -> Term:
        return Row(layers(length)[l + 1].step_at(l + 1, layers(length)[l]), s)

    def unfolded(length: Index, sign: int) -> Using:
        return Using(Unfold(layers(length)[l + 1]), left=sign * Stack(indicator(equal(r, s)), r, 1, length).T)

    same = Link(update(t), (Hypothesis(),), "the rows up to s are the same in the layer below")
    step = Chain((Link(update(T), (unfolded(T, 1),), "row s of a layer"), same), (unfolded(t, -1),), "row s of the layer on the prefix")
    rows = Induction(l, ForEach(Direct(note="no layer: the tokens themselves")), ForEach(step))
    return Each((rows, Direct((Part(1),), "s = t")))


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

# One pass for all prefixes --------------------------------------------------------------------------------

eta, eps = vector("eta", p), scalar("epsilon")


def loss(at: Index, row: Term) -> Term:
    """The loss of a token's prediction: any function."""
    return Apply("c", (Ind(at), row.T), 1, 1)


def one_pass(layers: Stacked) -> Term:
    """The losses of all tokens, from one stack on all of them."""
    return Sum(loss(t, Row(layers(T)[l], t)), t, 1, T)


def prefixes(layers: Stacked) -> Term:
    """The losses of the last tokens of all prefixes, each from a stack of its own."""
    return Sum(loss(t, Row(layers(t)[l], t)), t, 1, T)


def change(x: Term) -> Term:
    """What a loss gains when the parameters move by εη."""
    return substitute(x, {theta: theta + eps * eta}) - x


def trained(layers: Stacked, other: Stacked = stack) -> And:
    """The losses agree, and so does what they gain from a move of the parameters."""
    return And(Equation(one_pass(layers), prefixes(other)), Equation(change(one_pass(layers)), change(prefixes(other))))


training = Statement(trained(stack), le(0, l) & le(0, T))
SAME = Lemma("transformer/stack", part=1, at={T: T}, reverse=True)
MOVED = Lemma("transformer/stack", part=1, at={T: T}, families={"theta": ((), theta + eps * eta)}, reverse=True)

ONE_PASS = Claim(
    id="transformer/one-pass-training",
    title="one masked pass gives the losses of all T prefixes, for all parameters; so both losses change alike in every direction",
    statement=training,
    sources=(
        Source(NOTE, "training: one pass over the whole sentence in the place of T passes over its prefixes"),
        Source(VASWANI, "section 3.1", "any loss of a token's row; equal changes for every step ε have equal derivatives"),
    ),
    proof=Each((Direct((SAME,), "row t of the whole is row t of the prefix"), Direct((SAME, MOVED), "and so it is for other parameters"))),
    near_misses=(
        variant(training, "full attention", trained(lambda length: stack(length, full), lambda length: stack(length, full))),
        variant(training, "the prefixes without masks", trained(stack, over_time)),
    ),
)

CLAIMS = (STACK, ONE_PASS)
