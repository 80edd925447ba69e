"""Associative recall with weights set by hand: the shift SSM puts every key beside the token that follows it.

Tokens come in pairs, a key and then its value. Value tokens have no key (W_K sends them to 0), keys are one-hot: as many as
fit into the head. With the tap of lag 1 alone and a diagonal SSM that is a sum,

    o_t = Σ_{j=2..t} (k_{j-1}ᵀ q_t) v_j
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Given, Lemma, Link
from ..kernel.terms import Add, Index, Num, Stack, Sum, Term, Var, equal, index, indicator, le, lt, vectors
from .layer import fresh_sums, is_output, keeps_all, single_tap, unit_gain, unrolled_sums
from .operator import DECLARATION, FU, NOTE, M, N, d, j, k, n, q, t, v
from .shift import fresh_keys

s, r = index("s"), index("r")
lag_one = single_tap(1, "SSM_shift reads lag 1")
by_hand = (fresh_keys, fresh_sums, lag_one, keeps_all, unit_gain)


def met(first: Index = 2, lag: int = 1) -> Term:
    """Every value, by how the query meets the key before it."""
    return Sum((k[j - lag].T * q[t]) * v[j], j, first, t)


three_tokens = {N: 2, M: 1, d: 1, t: 3}
pairs = Statement(is_output(met()), le(0, t) & le(2, N), by_hand)

PAIRS = Claim(
    id="h3/next-token-memory",
    title="with lag 1 for SSM_shift and a sum for SSM_diag, H3 adds up values by how the query meets the key before each",
    statement=pairs,
    sources=(Source(FU, "section 3.2, the mapping to associative recall", "what the layer computes with these weights, for any keys"),),
    proof=Chain(
        (unrolled_sums,),
        (Lemma("h3/shift-state"), Given(fresh_keys.name), Given(lag_one.name), Lemma("h3/sum")),
        "row 2 of the shift SSM is the key before",
    ),
    operator=DECLARATION,
    near_misses=(
        variant(pairs, "a start of the shift SSM", drop=fresh_keys.name),
        variant(pairs, "a start of the diagonal SSM", drop=fresh_sums.name),
        variant(pairs, "another shift SSM", drop=lag_one.name),
        variant(pairs, "a memory that fades", drop=keeps_all.name, at=three_tokens),
        variant(pairs, "another gain", drop=unit_gain.name, at=three_tokens),
        variant(pairs, "the token's own key", is_output(met(lag=0)), at=three_tokens),
        variant(pairs, "from the third token on", is_output(met(first=3)), at=three_tokens),
    ),
)

# Recall ------------------------------------------------------------------------------------------

other, axis = vectors("w", d), Stack(indicator(equal(n, 1)), n, 1, d)
apart = other[j] - axis * (axis.T * other[j])


def at(*places: Index) -> dict[Var, Term]:
    """A model of keys: a unit vector at the places, orthogonal ones elsewhere."""
    here = Add(*[indicator(equal(j, place)) for place in places])
    return {k[j]: here * axis + (Num(1) - here) * apart}


query = Assumption("the query is key s", Equation(q[t], k[s]), solve={q[t]: k[s]})
one_hot = Assumption("the key is a unit vector", Equation(k[s].T * k[s], 1), solve={k[s]: axis})
once = Assumption(
    "each key once, values without a key",
    ForAll(Equation(k[j].T * k[s], indicator(equal(j, s)) * (k[s].T * k[s])), j, 1, t - 1),
    solve=at(s),
)
before = le(1, s) & lt(s, t) & le(2, N)
small = {**three_tokens, s: 1}
recall = Statement(is_output(v[s + 1]), before, (*by_hand, query, one_hot, once))

RECALL = Claim(
    id="h3/associative-recall",
    title="with one-hot keys that occur once, H3 recalls the value that followed the key",
    statement=recall,
    as_written=Statement(recall.conclusion, recall.where, (*by_hand, query, one_hot)),
    as_written_at=small,
    expected="qualified",
    sources=(
        Source(FU, "section 3.2, the mapping to associative recall", "a key that occurs again, with another value: see h3/repeated-key"),
        Source(NOTE, "H3: SSM_shift and SSM_diag together solve associative recall"),
    ),
    proof=Chain(
        (Link(met(), (Lemma("h3/next-token-memory"),), "values by the keys before them"),),
        (Given(query.name), Given(one_hot.name), Given(once.name)),
        "only the key itself is met",
    ),
    operator=DECLARATION,
    near_misses=(
        variant(recall, "a start of the shift SSM", drop=fresh_keys.name),
        variant(recall, "a start of the diagonal SSM", drop=fresh_sums.name),
        variant(recall, "another shift SSM", drop=lag_one.name),
        variant(recall, "a memory that fades", drop=keeps_all.name, at=small),
        variant(recall, "another gain", drop=unit_gain.name),
        variant(recall, "another query", drop=query.name),
        variant(recall, "a key of another length", drop=one_hot.name, at={**small, k[1]: 2, k[2]: 0}),
        variant(recall, "keys that are met more than once", drop=once.name, at=small),
        variant(recall, "the token that is the key", is_output(v[s])),
    ),
)

twice = Assumption(
    "the key at s and at r",
    ForAll(Equation(k[j].T * q[t], indicator(equal(j, s)) + indicator(equal(j, r))), j, 1, t - 1),
    solve=at(s, r) | {q[t]: axis},
)


def both(*values: Term) -> Formula:
    """The sum of some values."""
    return is_output(Add(*values))


repeated = Statement(both(v[s + 1], v[r + 1]), le(1, s) & lt(s, r) & lt(r, t) & le(2, N), (*by_hand, twice))

REPEATED = Claim(
    id="h3/repeated-key",
    title="a key that occurs twice recalls the sum of the two values",
    statement=repeated,
    sources=(Source(FU, "section 3.2, the mapping to associative recall", "keys there may repeat, with the same value"),),
    proof=Chain(
        (Link(met(), (Lemma("h3/next-token-memory"),), "values by the keys before them"),),
        (Given(twice.name),),
        "the key is met twice",
    ),
    operator=DECLARATION,
    near_misses=(
        variant(repeated, "a start of the shift SSM", drop=fresh_keys.name),
        variant(repeated, "a start of the diagonal SSM", drop=fresh_sums.name),
        variant(repeated, "another shift SSM", drop=lag_one.name),
        variant(repeated, "a memory that fades", drop=keeps_all.name),
        variant(repeated, "another gain", drop=unit_gain.name),
        variant(repeated, "other keys", drop=twice.name, at={d: 1}),
        variant(repeated, "the later value", both(v[r + 1])),
        variant(repeated, "the earlier value", both(v[s + 1])),
    ),
)

CLAIMS = (PAIRS, RECALL, REPEATED)
