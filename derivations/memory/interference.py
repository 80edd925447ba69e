"""More unit keys than dimensions: some of them meet, so that linear attention mixes their values."""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, LessEqual, Statement
from ..kernel.scripts import Chain, Each, Given, Link, Part, Product, Sign, Using
from ..kernel.terms import Eye, Ind, Stack, Sum, Term, Trace, equal, indicator, indices, le, norm2, scalar, vectors
from ..linear_attention.operator import d_k, k
from .linear import NOTE

t, i, j, r = indices("t i j r")
m = scalar("m")
WELCH = "Welch, Lower bounds on the maximum cross correlation of signals, IEEE Trans. Inf. Theory 20, 1974"

mirrors = vectors("w", d_k)
first = Stack(indicator(equal(r, 1)), r, 1, d_k)
unit = Assumption(
    "unit keys",
    ForAll(Equation(norm2(k[i]), 1), i, 1, t),
    solve={k[i]: (Eye(d_k) - 2 / norm2(mirrors[i]) * mirrors[i] * mirrors[i].T) * first},
)


square = (k[i].T * k[j]) ** 2


def cross(term: Term) -> Term:
    """A sum over all pairs of different tokens."""
    return Sum(Sum(term, j, 1, i - 1) + Sum(term, j, i + 1, t), i, 1, t)


weak = LessEqual(square, m)
below = Assumption(
    "squared cross weights at most m",
    ForAll(And(ForAll(weak, j, 1, i - 1), ForAll(weak, j, i + 1, t)), i, 1, t),
    solve={m: cross(square)},
)
gram = Sum(k[i] * k[i].T, i, 1, t)
frame = Equation(Trace(gram * gram), Ind(t) + cross(square))


def excess(tokens: Term, weights: Term) -> Formula:
    """The squared cross weights of the keys, and what more keys than dimensions cost at least."""
    return And(frame, LessEqual(tokens, weights))


surplus = Ind(t - d_k)
least = m * Ind(d_k) * Ind(t - 1)
interference = Statement(excess(surplus, least), le(1, d_k) & le(1, t), (unit, below))

share = Ind(d_k) / Ind(t)
uneven = gram - Ind(t) / Ind(d_k) * Eye(d_k)
half = Equation(Trace(gram * gram), Ind(t) + cross(square) / 2)
proof = Each(
    (
        Chain(
            (Link(Sum(norm2(k[i]) ** 2, i, 1, t) + cross(square), note="i = j apart from the others"),),
            (Given("unit keys"),),
            "each key meets itself with weight 1",
        ),
        Sign(
            (Product((share, Trace(uneven.T * uneven))), Product((share, cross(m - square)))),
            (Given("unit keys"), Using(Part(1), left=-share)),
        ),
    )
)

PLANE = {
    ("k", (1,)): (1, 0),
    ("k", (2,)): (0, 1),
    ("k", (3,)): (Fraction(20, 29), Fraction(21, 29)),
    ("k", (4,)): (Fraction(-21, 29), Fraction(20, 29)),
    m: Fraction(21, 29) ** 2,
    "d_k": 2,
    "t": 4,
}

INTERFERENCE = Claim(
    id="memory/interference",
    title="of t > d_k unit keys some two have a cross weight |k_iᵀk_j| of at least √((t - d_k)/(d_k (t - 1)))",
    statement=interference,
    sources=(
        Source(NOTE, "section 1.3.3: at most d keys can be designed", "there without a bound"),
        Source(WELCH, "the bound for k = 1", "said here as: squared weights are at most m only if t - d <= m d (t - 1)"),
    ),
    proof=proof,
    near_misses=(
        variant(interference, "keys of any length", drop=unit.name),
        variant(interference, "any m", drop=below.name),
        variant(interference, "one token more", excess(Ind(t - d_k + 1), least), at={m: 1, "d_k": 1, "t": 2}),
        variant(interference, "a bound without the dimension", excess(surplus, m * Ind(t - 1)), at=PLANE),
        variant(interference, "pairs counted once", And(half, interference.conclusion.args[1])),
    ),
)

CLAIMS = (INTERFERENCE,)
