"""Decoding with cached keys and values: the cache as a recursion, one token at a time, and several at once.

Slot j of a cache is empty (0) at the start; step t writes token t into slot t and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Chain, Direct, Each, Hypothesis, Induction, Lemma, Link, Rowwise, Unfold
from ..kernel.terms import Cond, Exp, Family, Index, NegInf, Recurrence, Row, Stack, Sum, Term, Where, Zero, equal, index, le, recurrence
from .operators import MASKED, NOTE, T, d_k, d_v, j, k, masked, q, row, softmax, t, v

SHAZEER = "Shazeer, Fast Transformer Decoding: One Write-Head is All You Need, arXiv 1911.02150"

Written = Callable[[Index, Index], Cond]


def slot(name: str, family: Family, size: Index, at: Index, written: Written = equal) -> Recurrence:
    """One slot of a cache over time: token n is stored where ``written(n, at)``, by default in slot n."""
    return recurrence(name, Zero(size, 1), lambda n, stored: Where(written(n, at), family[n], stored))


def key(at: Index) -> Recurrence:
    """A slot of the key cache."""
    return slot("K", k, d_k, at)


def value(at: Index) -> Recurrence:
    """A slot of the value cache."""
    return slot("V", v, d_v, at)


# What the cache holds -------------------------------------------------------------------------------------

contents = Statement(And(Equation(key(j)[t], k[j]), Equation(value(j)[t], v[j])), le(1, j) & le(j, t))


def writing(of: Recurrence) -> Induction:
    """Slot j is written at step j and left alone afterwards."""
    return Induction(
        t,
        start=j,
        base=Direct((Unfold(of[j]),), "step j writes token j"),
        step=Direct((Hypothesis(),), "step t + 1 > j leaves slot j alone"),
    )


def contents_with(written: Written) -> Equation:
    """The contents of the key cache under another rule of writing."""
    return Equation(slot("K", k, d_k, j, written)[t], k[j])


CACHE_CONTENTS = Claim(
    id="attention/cache-contents",
    title="slot j of the cache holds token j from step j on",
    statement=contents,
    sources=(Source(SHAZEER, "incremental multi-head attention", "each step appends a key and a value"),),
    proof=Each((writing(key(j)), writing(value(j)))),
    near_misses=(
        variant(contents, "every step overwrites the slots up to its own", contents_with(lambda n, at: le(at, n))),
        variant(contents, "a token is stored one slot late", contents_with(lambda n, at: equal(n + 1, at))),
        variant(contents, "slots hold the values of later tokens", Equation(value(j)[t], v[t])),
    ),
)

# Decoding -------------------------------------------------------------------------------------------------


def attend(query: Term, time: Index, last: Index) -> Term:
    """What a query reads from the slots 1..last of the caches at a time."""
    weights = Sum(Exp(query.T * key(j)[time]), j, 1, last)
    return Sum(Exp(query.T * key(j)[time]) * value(j)[time], j, 1, last) / weights


def decoded(output: Callable[[Index], Term]) -> Equation:
    """Token by token, ``output(t)`` at step t, all steps: the full masked pass."""
    return Equation(Stack(output(row).T, row, 1, T), masked(T))


S = index("S")  # the number of tokens once the last T have come in


def position(r: Index) -> Index:
    """Of the r-th new token among all S."""
    return r + S - T


def several(frontier: Callable[[Index], Index], time: Index = S) -> Equation:
    """T new tokens at once against the caches at a time; new token i sees the slots j ≤ frontier(i)."""

    def logit(r: Index, c: Index) -> Term:
        return Where(le(c, frontier(r)), q[position(r)].T * key(c)[time], NegInf())

    outputs = softmax(logit, T, S) * Stack(value(row)[time].T, row, 1, S)
    return Equation(outputs, Stack(Row(masked(S), position(row)), row, 1, T))


kv_cache = Statement(And(decoded(lambda n: attend(q[n], n, n)), several(position)), le(0, T) & le(T, S))
FROM_CACHE = (Lemma("attention/cache-contents"), Lemma("attention/cache-contents", part=1))
READ = MASKED.output.subs({t: position(t)})

KV_CACHE = Claim(
    id="attention/kv-cache",
    title="decoding from cached keys and values is the full masked pass, one token at a time or several at once",
    statement=kv_cache,
    sources=(
        Source(NOTE, "masked self-attention: only the new row is computed; KV cache"),
        Source(SHAZEER, "incremental multi-head attention"),
    ),
    proof=Each(
        (
            Rowwise(
                t,
                Chain(
                    (Link(MASKED.output.T, FROM_CACHE, "at step t the slots 1..t hold the tokens 1..t"),),
                    note="row t of the masked pass: the tokens after t weigh exp(-∞) = 0",
                ),
            ),
            Rowwise(
                t,
                Chain(
                    (Link(READ.T, FROM_CACHE, "new token t is token t + S - T; the frontier lets it see itself and all before"),),
                    note="the row of that token in the masked pass over all S",
                ),
            ),
        )
    ),
    operator=MASKED,
    near_misses=(
        variant(kv_cache, "frontier aligned top-left", several(lambda r: r)),
        variant(kv_cache, "several attend before they are cached", several(position, S - T)),
        variant(kv_cache, "attend before the new token is cached", decoded(lambda n: attend(q[n], n - 1, n))),
    ),
)

CLAIMS = (CACHE_CONTENTS, KV_CACHE)
