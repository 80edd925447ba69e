"""Softmax attention as a memory: what limits it is the range of its logits, not the size of its keys.

    o(x) = Σ_j exp(xᵀk_j) v_j / Σ_j exp(xᵀk_j)

Values are seen along a vector z: what holds of zᵀo for every z holds of every norm of o.
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Less, LessEqual, Statement
from ..kernel.scripts import Each, Product, Sign
from ..kernel.terms import Exp, Eye, Ind, Index, Num, Sum, Term, Where, equal, indices, le, norm2, scalar, scalars, vector, vectors
from .linear import NOTE

d_k, d_v = indices("d_k d_v")
t, i, j, l = indices("t i j l")
k, v = vectors("k", d_k), vectors("v", d_v)
x, z = vector("x", d_k), vector("z", d_v)
R, delta, beta, B = map(scalar, ("R", "delta", "beta", "B"))
ONE = Num(1)
RAMSAUER = "Ramsauer et al., Hopfield Networks is All You Need, arXiv 2008.02217"


def weight(query: Term, token: Index) -> Term:
    """The share of a token in what a query reads."""
    return Exp(query.T * k[token]) / total(query)


def total(query: Term) -> Term:
    """The sum of the exponentials of a query's logits."""
    return Sum(Exp(query.T * k[l]), l, 1, t)


# A range of the logits bounds every weight; a margin between the keys bounds the error ---------------

in_range = Assumption(
    "logits in [-R, R]",
    And(ForAll(LessEqual(-R, x.T * k[j]), j, 1, t), ForAll(LessEqual(x.T * k[j], R), j, 1, t)),
    solve={R: Sum((x.T * k[j]) ** 2 + Fraction(1, 4), j, 1, t)},
)


def gap(token: Index) -> Term:
    """How much better key i fits itself than another key: 1 - k_iᵀk_j for unit keys."""
    return norm2(k[i]) - k[i].T * k[token]


def apart(formula: Formula) -> And:
    """A formula for every token j but i."""
    return And(ForAll(formula, j, 1, i - 1), ForAll(formula, j, i + 1, t))


a, b, w = vector("a", d_k), vectors("b", d_k), scalars("w")
beside = (Eye(d_k) - a * a.T / norm2(a)) * b[j]
margin = Assumption(
    "a margin δ around key i",
    apart(LessEqual(delta, gap(j))),
    solve={k[j]: Where(equal(j, i), a, a - (delta + w[j] ** 2) / norm2(a) * a + beside)},
)
scale = Assumption("a scale β >= 0", LessEqual(0, beta), solve={beta: scalar("c") ** 2})


def seen(token: Index) -> Term:
    """The difference of a value from v_i, seen along z."""
    return z.T * (v[token] - v[i])


values = Assumption(
    "values at most B from v_i",
    And(LessEqual(0, B), ForAll(LessEqual(-B, seen(j)), j, 1, t), ForAll(LessEqual(seen(j), B), j, 1, t)),
    solve={B: Sum(seen(j) ** 2 + Fraction(1, 4), j, 1, t)},
)

key = beta * k[i]
error = z.T * (Sum(weight(key, j) * v[j], j, 1, t) - v[i])
span = ONE + Ind(t - 1) * Exp(Num(-2) * R)


def capacity(weights: Term, errors: Term) -> Formula:
    """A bound of every weight, and one of the error of every value that is read with its own key."""
    return And(LessEqual(weight(x, i) * weights, 1), LessEqual(error, errors), LessEqual(-errors, error))


bound = Ind(t - 1) * Exp(-beta * delta) * B
nearest = Statement(capacity(span, bound), le(1, i) & le(i, t), (in_range, margin, scale, values))


def others(body: Term, index: Index = j) -> Term:
    """A sum over all tokens but i."""
    return Sum(body, index, 1, i - 1) + Sum(body, index, i + 1, t)


def room(side: int) -> Sign:
    """What the weights of the other tokens leave of the bound, on one side."""
    logit = key.T * k[j]
    return Sign(
        (
            Product((ONE / total(key), others(Exp(logit) * (B - side * seen(j))))),
            Product((ONE / total(key), B, Ind(t - 1), Exp(-beta * delta), others(Exp(logit)))),
            Product((ONE / total(key), B, others(Exp(logit) * (Exp(beta * (gap(j) - delta)) - 1)))),
        )
    )


at_most = Sign(
    (
        Product((ONE / total(x), others(Exp(-R) * (Exp(x.T * k[j] + R) - 1)))),
        Product((ONE / total(x), Ind(t - 1), Exp(Num(-2) * R), Exp(x.T * k[i]), Exp(R - x.T * k[i]) - 1)),
    )
)

# The limit of linear attention, said of softmax attention: not even to a part in a million -----------

unit = Assumption("unit keys", ForAll(Equation(norm2(k[j]), 1), j, 1, t))
lost = Sum(ONE - weight(beta * k[i], i), i, 1, t)
as_written = Statement(Less(Fraction(1, 10**6), lost), le(d_k + 1, t), (unit,))


def on_the_circle(n: int) -> tuple[Fraction, Fraction]:
    """The n-th of 64 rational points: 16 in each quarter of the unit circle."""
    slope = Fraction(n % 16, 16)
    x, y = (1 - slope**2) / (1 + slope**2), 2 * slope / (1 + slope**2)
    return ((x, y), (-y, x), (-x, -y), (y, -x))[n // 16]


CIRCLE = {("k", (n + 1,)): on_the_circle(n) for n in range(64)}
FAR_APART = {("k", (1,)): 1, ("k", (2,)): -1, "t": 2, "d_k": 1, "i": 1, x: 1, R: 1, delta: 2}

CAPACITY = Claim(
    id="memory/softmax-capacity",
    title="softmax attention is not limited by d_k: the range of the logits bounds its weights, the margin of the keys its errors",
    statement=nearest,
    as_written=as_written,
    as_written_at={**CIRCLE, beta: 12000, "t": 64, "d_k": 2},
    expected="refuted",
    sources=(
        Source(NOTE, "section 1.3.3: at most d keys can be designed", "said of linear attention; here of softmax too"),
        Source(RAMSAUER, "the separation of patterns and the retrieval error", "there with norms of the patterns, and other constants"),
    ),
    proof=Each((at_most, room(1), room(-1))),
    near_misses=(
        variant(nearest, "logits of any size", drop=in_range.name),
        variant(nearest, "keys without a margin", drop=margin.name),
        variant(nearest, "a negative scale", drop=scale.name),
        variant(nearest, "values of any size", drop=values.name),
        variant(nearest, "a range of R for 2R", capacity(ONE + Ind(t - 1) * Exp(-R), bound), at=FAR_APART),
        variant(nearest, "twice the margin", capacity(span, Ind(t - 1) * Exp(-beta * delta) ** 2 * B)),
    ),
)

CLAIMS = (CAPACITY,)
