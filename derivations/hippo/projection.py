"""The coefficients of an orthonormal family are the best ones: least squares, for any number N of members.

An inner product ⟨x, y⟩ = (Lx)ᵀ (Ly), such as that of a measure; a history u and a family P_1, ..., P_N in its space of any size D.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, LessEqual, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, ForEach, Given, Product, Sign
from ..kernel.terms import (
    Apply,
    Eye,
    Ind,
    Integral,
    Num,
    Stack,
    Sum,
    Term,
    equal,
    indicator,
    indices,
    le,
    matrix,
    named,
    scalar,
    scalars,
    vector,
    vectors,
)
from .polynomials import HIPPO, NOTE, N

D = indices("D")[0]
n, m, i = indices("n m i")
L, history = matrix("L", D, D), vector("u", D)
P, a = vectors("P", D), scalars("a")


def inner(x: Term, y: Term) -> Term:
    """⟨x, y⟩."""
    return (L * x).T * (L * y)


def best(at: Any) -> Term:
    """c_n = ⟨u, P_n⟩."""
    return named("c", inner(history, P[at]), at)


def off(of: Any) -> Term:
    """The squared distance of u from a combination."""
    gap = history - Sum(of(n) * P[n], n, 1, N)
    return inner(gap, gap)


def gaps(weight: Any, c: Any = best) -> Term:
    """How far other coefficients are from the best ones."""
    return Sum(weight(n) * (a[n] - c(n)) ** 2, n, 1, N)


def optimal(weight: Any = lambda n: Num(1), c: Any = best) -> Formula:
    """Other coefficients are off by their own distance more, so never by less."""
    mine, other = named("E", off(c)), named("E_a", off(lambda n: a[n]))
    return And(Equation(other, mine + gaps(weight, c)), LessEqual(mine, other))


def gram(of: Any) -> Formula:
    """⟨P_n, P_m⟩ for all members."""
    return ForAll(ForAll(Equation(inner(P[n], P[m]), indicator(equal(n, m)) * of(n)), m, 1, N), n, 1, N)


# one member of length 2, and the coefficient that meets u = 1
TOO_LONG = {D: 1, N: 1, L: 1, history: 1, P[1]: 2, a[1]: Fraction(1, 2)}

units = {L: Eye(D), P[n]: Stack(indicator(equal(i, n)), i, 1, D)}
orthonormal = Assumption("P_1, ..., P_N are orthonormal", gram(lambda n: Num(1)), solve=units)
projected = Statement(optimal(), le(0, N) & le(N, D), (orthonormal,))


def of_squares(total: Term, given: Assumption) -> Sign:
    """The difference is the sum of squares that was found."""
    return Sign((Product((total,)),), by=(Given(given.name),))


lengths = scalars("r")
longer = {L: Eye(D), P[n]: lengths[n] * units[P[n]]}
orthogonal = Assumption("P_1, ..., P_N are orthogonal, of lengths r_n", gram(lambda n: lengths[n] ** 2), solve=longer)

PROJECTION = Claim(
    id="hippo/projection",
    title="c_n = ⟨u, P_n⟩ are the coefficients of least squares, and others miss by Σ (a_n - c_n)² more",
    statement=projected,
    as_written=Statement(projected.conclusion, projected.where),
    as_written_at=TOO_LONG,
    expected="qualified",
    sources=(
        Source(HIPPO, "section 2.2 and appendix C", "any measure; the state is the column c, not the function Σ c_n P_n"),
        Source(NOTE, "c_n = ⟨u, P_n⟩_ω", "needs P_n of length 1 too; the state is said to be Σ c_n P_n there"),
    ),
    proof=Each(
        (Direct((Given(orthonormal.name),), "all products of two members are 0 or 1"), of_squares(gaps(lambda n: Num(1)), orthonormal))
    ),
    near_misses=(
        variant(projected, "any family", drop=orthonormal.name, at=TOO_LONG),
        variant(projected, "merely orthogonal", drop=orthonormal.name, add=(orthogonal,)),
        variant(projected, "the distance of other coefficients halved", optimal(lambda n: Num(1) / 2)),
        variant(projected, "coefficients with the other sign", optimal(c=lambda n: -best(n))),
    ),
)

has_length = Assumption("no r_n is 0", ForAll(NonZero(lengths[n]), n, 1, N))


def divided(at: Any) -> Term:
    """⟨u, P_n⟩ / ‖P_n‖²."""
    return best(at) / lengths[at] ** 2


def weighted(at: Any) -> Term:
    """‖P_n‖²."""
    return lengths[at] ** 2


def exists(optimum: Formula) -> Formula:
    """What is divided by is not 0, and an optimum."""
    return And(ForAll(NonZero(lengths[n]), n, 1, N), *optimum.args)


stretched = Statement(exists(optimal(weighted, divided)), le(0, N) & le(N, D), (orthogonal, has_length))

ORTHOGONAL = Claim(
    id="hippo/projection-orthogonal",
    title="for an orthogonal family the coefficients of least squares are ⟨u, P_n⟩ / ‖P_n‖²",
    statement=stretched,
    sources=(Source(HIPPO, "appendix C.2", "orthogonal polynomials of any scaling"),),
    proof=Each(
        (
            ForEach(Exists()),
            Direct((Given(orthogonal.name),), "products of two members are 0 or ‖P_n‖²"),
            of_squares(gaps(weighted, divided), orthogonal),
        )
    ),
    near_misses=(
        variant(stretched, "any family", drop=orthogonal.name, at=TOO_LONG | {lengths[1]: 1}),
        variant(stretched, "a member of length 0", drop=has_length.name, at={N: 1, D: 1, lengths[1]: 0}),
        variant(stretched, "not divided", exists(optimal(weighted))),
        variant(stretched, "divided by the length", exists(optimal(weighted, lambda n: best(n) / lengths[n]))),
    ),
)

# With a measure: the error in numbers ------------------------------------------------------------------

s, lo, hi = scalar("s"), scalar("a_0"), scalar("b_0")


def function(name: str, *of: Term) -> Term:
    """A continuous function, of a degree too."""
    return Apply(name, (*of, s), 1, 1)


def weighed(of: Term) -> Term:
    """The integral against the measure."""
    return Integral(function("omega") * of, s, lo, hi)


def member(at: Any) -> Term:
    """P_n as a function."""
    return function("p", Ind(at))


def expanded(cross: Term, square: Term) -> Formula:
    """The squared error by the inner products."""
    gap = function("u") - Sum(a[n] * member(n), n, 1, N)
    return Equation(weighed(gap * gap), weighed(function("u") * function("u")) + cross + square)


mixed = Sum(a[n] * weighed(function("u") * member(n)), n, 1, N)
pairs = Sum(Sum(a[n] * a[m] * weighed(member(n) * member(m)), m, 1, N), n, 1, N)
alone = Sum(a[n] ** 2 * weighed(member(n) * member(n)), n, 1, N)
measured = Statement(expanded(Num(-2) * mixed, pairs), le(0, N))

MEASURED = Claim(
    id="hippo/squared-error",
    title="with a measure, the squared error of a combination is made of ⟨u, u⟩, ⟨u, P_n⟩ and ⟨P_n, P_m⟩ as in any inner product space",
    statement=measured,
    sources=(Source(HIPPO, "section 2.2", "a measure with a continuous density on an interval here"),),
    near_misses=(
        variant(measured, "once the mixed terms", expanded(Num(-1) * mixed, pairs)),
        variant(measured, "as if the members were orthogonal", expanded(Num(-2) * mixed, alone)),
        variant(measured, "mixed terms added", expanded(Num(2) * mixed, pairs)),
    ),
)

CLAIMS = (PROJECTION, ORTHOGONAL, MEASURED)
