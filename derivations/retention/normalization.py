"""The norm over the channels of a head, after which the scale of a row is not seen.

    norm_ε(y) = (y - mean(y)) / √(var(y) + ε)

The scores are divided by √d_k, the decays by the root of their row sum, and the products of both by their own row sum or
by 1: three positive factors of each row, which is one token of one head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..claim import Claim, NearMiss, Source
from ..kernel.formulas import And, Assumption, Equation, Formula, Less, Statement
from ..kernel.scripts import Direct, Each, Given, Part, Using
from ..kernel.terms import Ind, Index, Num, Sqrt, Sum, Term, Where, indices, le, scalar, scalars
from .operator import SUN

WU = "Wu and He, Group Normalization, arXiv 1803.08494"

d, i, l, m, n, h = indices("d i l m n h")
weight, v = scalars("w"), scalars("v")
a, b, c, eps = scalar("a"), scalar("b"), scalar("c"), scalar("epsilon")
rho, sigma = scalar("rho"), scalar("sigma")
Row = Callable[[Index], Term]


def plain(at: Index) -> Term:
    """A channel of a row: the values, weighed by scores and decays."""
    return Sum(weight[m] * v[m, at], m, 1, n)


def normalized(at: Index) -> Term:
    """The same with the three factors."""
    return Sum(a * b * c * weight[m] * v[m, at], m, 1, n)


def mean(row: Row) -> Term:
    """The mean over the channels."""
    return Sum(row(i), i, 1, d) / Ind(d)


def variance(row: Row) -> Term:
    """The variance over the channels."""
    return Sum((row(i) - mean(row)) ** 2, i, 1, d) / Ind(d)


def norm(row: Row, root: Term, at: Index = l) -> Term:
    """A channel of a row under the norm."""
    return root * (row(at) - mean(row))


# 1/√x is the positive ρ with ρ²x = 1; there is one where x is positive, so with ε = 0 where the row is not constant.


def reciprocal_root(of: str, root: Term, x: Term) -> tuple[Assumption, Assumption]:
    """What makes a number the reciprocal root of another."""
    return (
        Assumption(f"{of}² is one over its variance", Equation(root * root * x, 1), solve={root: Num(1) / Sqrt(x)}),
        Assumption(f"{of} is positive", Less(0, root)),
    )


def roots(right: Term = eps, row: Row = normalized) -> tuple[Assumption, ...]:
    """ρ belongs to the plain row and ε, σ to the scaled row and an ε of its own."""
    return (*reciprocal_root("ρ", rho, variance(plain) + eps), *reciprocal_root("σ", sigma, variance(row) + right))


alpha = a * b * c
positive = Assumption(
    "the factors are positive",
    And(*[Less(0, x) for x in (a, b, c)]),
    solve={x: Num(1) + scalar(f"z_{x.name}") ** 2 for x in (a, b, c)},
)


def unseen(row: Row = normalized) -> Formula:
    """The reciprocal roots differ by the factor, and the rows under the norm not at all."""
    return And(Equation((sigma * alpha) ** 2, rho**2), Equation(sigma * alpha, rho), Equation(norm(row, sigma), norm(plain, rho)))


def by(*more: Using) -> Each:
    """Squares first; both roots are positive, so their sum is not 0."""
    square = {of: Given(f"{of}² is one over its variance") for of in "ρσ"}
    squares = (Using(square["ρ"], left=-((sigma * alpha) ** 2)), Using(square["σ"], left=rho**2), *more)
    return Each(
        (
            Direct(squares, "each square is one over its variance"),
            Direct((Using(Part(1), left=1 / (sigma * alpha + rho)),), "both are positive"),
            Direct((Using(Part(2), left=plain(l) - mean(plain)),), "the mean is scaled as the row is"),
        )
    )


def without(x: Assumption, statement: Statement) -> NearMiss:
    """An assumption left out; where it says that a root is positive, the model of that root is the negative one."""
    root = x.name.removesuffix(" is positive")
    kept = [turned(y) if y.name.startswith(f"{root}² ") else y for y in statement.assumptions if y != x]
    return NearMiss(f"not supposed: {x.name}", replace(statement, assumptions=tuple(kept)), x.name)


def turned(x: Assumption) -> Assumption:
    """An assumption whose model is the negative number."""
    return replace(x, solve={atom: -value for atom, value in x.solve.items()})


channel = le(1, l) & le(l, d) & le(0, n)
scaled = Statement(unseen(), channel, (positive, *roots(alpha**2 * eps)))

SCALED = Claim(
    id="retention/scaled-norm",
    title="norm_ε(αy) = norm_{ε/α²}(y) for α > 0, here with α²ε and ε",
    statement=scaled,
    sources=(Source(WU, "the norm over a group of channels", "without gain and bias"),),
    proof=by(),
    near_misses=(
        NearMiss("the same ε", replace(scaled, assumptions=(positive, *roots()))),
        *[without(x, scaled) for x in scaled.assumptions],
    ),
)

no_eps = Assumption("ε = 0", Equation(eps, 0), solve={eps: Num(0)})
written = Statement(unseen(), channel, (positive, *roots()))
normalization = replace(written, assumptions=(no_eps, *written.assumptions))


def two_heads(at: Index) -> Term:
    """A row of two heads: the channels after h have another factor of their own."""
    return Where(le(at, h), normalized(at), c * normalized(at))


NORMALIZATION = Claim(
    id="retention/normalization",
    title="the three normalisations of retention are positive factors of a row, which the norm of a head does not see if ε = 0",
    statement=normalization,
    sources=(
        Source(
            SUN,
            "section 2.1, the normalisation of retention scores",
            "a norm over each head of each token, ε = 0, rows that are not constant",
        ),
    ),
    proof=by(Using(Given("ε = 0"), left=(sigma * rho) ** 2 * (alpha**2 - 1))),
    expected="qualified",
    as_written=written,
    near_misses=(
        *[without(x, normalization) for x in normalization.assumptions],
        NearMiss("one norm over two heads", Statement(unseen(two_heads), channel, (no_eps, positive, *roots(row=two_heads)))),
    ),
)

CLAIMS = (SCALED, NORMALIZATION)
