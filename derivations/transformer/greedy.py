"""Greedy decoding: what is chosen from cached rows is what a whole pass at every step chooses.

At step n each layer holds the rows that the steps before have left there: row j is that of the newest token in the pass of step j.
Row n alone is computed, from the rows of the layer below, and written. The choice c is any function of the last row: the
embedding of the most likely word, say, and of several that are equally likely the first. Arithmetic is exact. With and without
caches, the next token is then one function of the tokens so far: from one prompt follows one sequence.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import Equation, ForAll, Statement
from ..kernel.scripts import Chain, Direct, ForEach, Hypothesis, Induction, Lemma, Link, Unfold, Using
from ..kernel.terms import Apply, Ind, Index, Recurrence, Row, Stack, Sum, Term, Where, Zero, equal, indicator, indices, le, lt, recurrence
from .decoder import M, decoding, e, memory
from .layers import NOTE, VASWANI, T, d, j, l, n, r, s, t, token, x

L, P = indices("L P")  # layers; tokens of the prompt
Stored = Callable[[Index, Index], Term]
Chosen = Callable[[Index], Term]


def left(layer: Index, at: Index) -> Term:
    """The row that step ``at`` has left in the cache of a layer: that of its own token, in the pass over the tokens so far."""
    return Row(decoding(at)[layer], at)


def updated(layer: Index, X: Term, last: Index, at: Index) -> Term:
    """Row ``at`` of a layer, from the rows 1..last of the layer below."""
    own, number = token(X, at), Ind(layer)
    query = Apply("g", (number, own, Sum(Apply("a", (number, own, token(X, j)), e, 1), j, 1, last)), d, 1)
    return Apply("f", (number, query, Sum(Apply("b", (number, query, memory[j]), e, 1), j, 1, M)), d, 1)


def caches(step: Index, stored: Stored = left, late: Index = 0) -> Recurrence:
    """The rows in each layer at a step, once its own row is computed and written; layer 0 are the tokens."""

    def layer(at: Index, X: Term) -> Term:
        return Stack(Where(lt(t, step), stored(at, t), updated(at, X, step - late, step).T), t, 1, step)

    return recurrence("C", Stack(x[r].T, r, 1, step), layer)


def hold(held: Recurrence) -> ForAll:
    """After step n, the caches hold the rows of the pass over all tokens so far."""
    return ForAll(Equation(Row(held[l], s), Row(decoding(n)[l], s)), s, 1, n)


layer_caches = Statement(hold(caches(n)), le(1, n) & le(0, l) & le(0, M))
IN_CACHE, IN_PASS = caches(n), decoding(n)
OLD = lt(s, n)
unfolded = Using(Unfold(IN_CACHE[l + 1]), left=Stack(indicator(equal(t, s)), t, 1, n).T)
passed = Using(Unfold(IN_PASS[l + 1]), left=Where(OLD, Zero(1, n), -Stack(indicator(equal(r, n)), r, 1, n).T))
earlier = Using(Lemma("transformer/decoder", part=1, at={T: n, t: s, l: l + 1, M: M}, reverse=True), left=indicator(OLD))
kept, computed, in_pass = left(l + 1, s), updated(l + 1, IN_CACHE[l], n, n).T, updated(l + 1, IN_PASS[l], n, n).T
row = Chain(
    (
        Link(Where(OLD, kept, computed), (unfolded,), "row s < n is as step s has left it, row n is computed from the caches below"),
        Link(Where(OLD, kept, in_pass), (Hypothesis(),), "which hold the rows of the pass"),
        Link(Where(OLD, kept, Row(IN_PASS[l + 1], n)), (passed,), "so row n is that of the pass"),
    ),
    (earlier,),
    "and later tokens have not changed the others",
)

SMALL = {d: 1, e: 1, M: 1}  # counterexamples that can be read

LAYER_CACHES = Claim(
    id="transformer/layer-caches",
    title="where each layer keeps the rows that it has computed, one new row a layer and step is enough, in a decoder of any depth",
    statement=layer_caches,
    sources=(
        Source(NOTE, "masked self-attention: each layer computes one new row, and the old ones stay; KV cache"),
        Source(VASWANI, "sections 3.1 and 3.2.3", "any functions, as in transformer/decoder"),
    ),
    proof=Induction(l, ForEach(Direct(note="no layer: the tokens themselves")), ForEach(row)),
    near_misses=(
        variant(layer_caches, "the frontier is one token early", hold(caches(n, late=1)), at=SMALL),
        variant(
            layer_caches,
            "the caches are not updated",
            hold(caches(n, lambda layer, at: left(layer, 1))),
            at={**SMALL, n: 3, l: 1},
        ),
        variant(layer_caches, "the caches of the layer below", hold(caches(n, lambda layer, at: left(layer - 1, at))), at=SMALL),
    ),
)

# The choice of the next token -----------------------------------------------------------------------------


def choice(row: Term, by: str = "c") -> Term:
    """The token that is chosen from the last row."""
    return Apply(by, (row.T,), d, 1)


def cached(at: Index, late: Index = 0) -> Term:
    """The choice with caches."""
    return choice(Row(caches(at, late=late)[L], at))


def whole(at: Index, by: str = "c") -> Term:
    """The choice without: a pass over all tokens so far."""
    return choice(left(L, at), by)


def chosen(with_caches: Chosen = cached, without: Chosen = whole) -> ForAll:
    """After any tokens, the same one is chosen next, at every step from the prompt on."""
    return ForAll(Equation(with_caches(n), without(n)), n, P, T)


greedily = Statement(chosen(), le(0, L) & le(1, P) & le(0, M))

GREEDY_DECODING = Claim(
    id="transformer/greedy-decoding",
    title="greedy decoding with caches is greedy decoding without: after any tokens, the same one is chosen next",
    statement=greedily,
    sources=(
        Source(NOTE, "masked self-attention: KV cache, in all layers", "exact arithmetic; a choice that is a function of the last row"),
        Source(VASWANI, "section 3.1: each token is generated from those before", "any functions, as in transformer/decoder"),
    ),
    proof=ForEach(Direct((Lemma("transformer/layer-caches"),), "the caches hold the last row of the pass, so the choice is the same")),
    near_misses=(
        variant(greedily, "a choice from the row before", chosen(without=lambda at: choice(left(L, at - 1)))),
        variant(greedily, "the frontier is one token early", chosen(lambda at: cached(at, 1))),
        variant(greedily, "another rule for ties", chosen(without=lambda at: whole(at, "h"))),
    ),
)

CLAIMS = (LAYER_CACHES, GREEDY_DECODING)
