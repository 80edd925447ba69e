"""Why scores are divided by √d_k: at random queries and keys, their variance is d_k.

A query takes the values q_1, …, q_m with the probabilities u_1, …, u_m, a key the values k_1, …, k_n with w_1, …, w_n. That they are
independent is that the probability of both values is u_a w_b. Entries that are all independent, with mean 0 and variance 1,
have E[q] = 0 and E[qqᵀ] = E[kkᵀ] = I, and no more than that is needed; nor that the keys have mean 0.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.base import Like
from ..kernel.formulas import And, Assumption, Equation, Statement
from ..kernel.scripts import Chain, Each, Given, Link, Part, Using
from ..kernel.terms import (
    Eye,
    Family,
    Ind,
    Index,
    Num,
    Sqrt,
    Stack,
    Sum,
    Term,
    Trace,
    Where,
    Zero,
    equal,
    indicator,
    indices,
    le,
    named,
    scalars,
)
from .operators import VASWANI, d_k, k, q

a, b, m, n, i = indices("a b m n i")
u, w = scalars("u"), scalars("w")
size = Ind(d_k)
Score = Callable[[Index, Index], Term]


def mean(of: Family, by: Family, at: Index, last: Index) -> Term:
    """E[x] of a query or a key."""
    return named(f"E[{of.name}]", Sum(by[at] * of[at], at, 1, last))


def moment(of: Family, by: Family, at: Index, last: Index) -> Term:
    """E[xxᵀ] of a query or a key."""
    return named(f"E[{of.name}{of.name}ᵀ]", Sum(by[at] * of[at] * of[at].T, at, 1, last))


def expected(of: Score) -> Term:
    """The mean of a function of a query and a key, independent of each other."""
    return Sum(Sum(u[a] * w[b] * of(a, b), b, 1, n), a, 1, m)


def score(query: Index, key: Index) -> Term:
    """qᵀk."""
    return q[query].T * k[key]


def variance(of: Score) -> Term:
    """E[s²] - E[s]²."""
    square = named("E[s²]", expected(lambda x, y: of(x, y) ** 2))
    return square - named("E[s]", expected(of)) ** 2


QUERY, KEY = mean(q, u, a, m), mean(k, w, b, n)
QUERIES, KEYS = moment(q, u, a, m), moment(k, w, b, n)

# Models: d_k times a unit vector, seldom enough for variance 1, or else 0; for queries, of either sign.


def axis(at: Index) -> Term:
    """d_k times the unit vector of a number, 0 if there is none of that number."""
    return Stack(size * indicator(equal(at, i)), i, 1, d_k)


def chance(at: Index, points: Index) -> Term:
    """The same probability for each of so many points, and what is left for one more."""
    return Where(le(at, points), Num(1) / (Ind(points) * size), Where(equal(at, points + 1), Num(1) - Num(1) / size, Num(0)))


either_sign = {q[a]: axis(a) - axis(a - d_k), u[a]: chance(a, 2 * d_k)}
no_mean = Assumption("mean of a query", Equation(QUERY, Zero(d_k, 1)), solve=either_sign)
white_queries = Assumption("second moments of a query", Equation(QUERIES, Eye(d_k)))
white_keys = Assumption("second moments of a key", Equation(KEYS, Eye(d_k)), solve={k[b]: axis(b), w[b]: chance(b, d_k)})


def scaled(query: Index, key: Index) -> Term:
    """qᵀk / √d_k, as qᵀk √(1/d_k)."""
    return score(query, key) * Sqrt(Num(1) / size)


def scores(plain: Like = size, divided: Like = 1, of: Score = scaled) -> And:
    """The variance of a score, before and after it is divided by √d_k."""
    return And(Equation(variance(score), plain), Equation(variance(of), divided))


random_scores = Statement(scores(), le(1, d_k) & le(0, m) & le(0, n), (no_mean, white_queries, white_keys))
same = Sum(u[a] * (q[a].T * q[a]) ** 2, a, 1, m) - Sum(u[a] * q[a].T * q[a], a, 1, m) ** 2  # of qᵀq
POINT = {d_k: 1, m: 1, n: 1, u[1]: 1, w[1]: 1}
MOMENTS = (
    Using(Given(white_queries.name), right=KEYS, trace=True),
    Using(Given(white_keys.name), trace=True),
    Using(Given(no_mean.name), left=-1 * KEY.T * QUERY * KEY.T),
)


SCALE_VARIANCE = Claim(
    id="attention/scale-variance",
    title="the score of an independent query and key, with uncorrelated entries of mean 0 and variance 1, has variance d_k; divided by "
    "√d_k it has variance 1",
    statement=random_scores,
    sources=(
        Source(
            VASWANI,
            "section 3.2.1, footnote 4",
            "there all entries are independent; any finite distributions, and uncorrelated entries are enough",
        ),
    ),
    proof=Each(
        (
            Chain(
                (Link(Trace(QUERIES * KEYS) - (QUERY.T * KEY) ** 2, note="E[s²] = tr(E[qqᵀ] E[kkᵀ]), and E[s] = E[q]ᵀ E[k]"),),
                MOMENTS,
                "E[q] = 0, and tr I = d_k",
            ),
            Chain((Link(variance(score) / size, note="a divisor comes out squared"),), (Using(Part(1), left=1 / size),), "d_k / d_k"),
        )
    ),
    near_misses=(
        variant(random_scores, "the score has variance 1 as it is", scores(plain=1)),
        variant(random_scores, "divided by d_k", scores(of=lambda x, y: score(x, y) / size)),
        variant(random_scores, "the key is the query", And(Equation(same, size), scores().args[1])),
        variant(random_scores, "queries and keys of mean 1", drop=no_mean.name, at={**POINT, q[1]: 1, k[1]: 1}),
        variant(random_scores, "queries that are all 0", drop=white_queries.name, at={q[a]: Zero(d_k, 1)}),
        variant(random_scores, "keys that are all 0", drop=white_keys.name, at={k[b]: Zero(d_k, 1)}),
    ),
)

CLAIMS = (SCALE_VARIANCE,)
