"""The integrals H_n = (1/n!) ∫_0^1 e^{-zσ} (σ(1-σ))^n dσ, which the errors of the Padé approximants of e^{-z} are made of.

By Rodrigues' formula z^n H_n is the integral of e^{-zσ} P_n(1 - 2σ): what HiPPO-LegT is to keep of an exponential.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Ode, Part, Unfold, Using
from ..kernel.terms import Deriv, Exp, Ind, Integral, Num, Recurrence, Term, named, recurrence, scalar
from .polynomials import MINUS_ONE, SZEGO, every_degree, n, norm2, x

BAKER = "Baker, Graves-Morris, Padé Approximants, 2nd ed., 1996"
z, sigma = scalar("z", "complex"), scalar("sigma")
ONE = Num(1)
TO_ONE = {"x": ((), ONE)}


def bumps(of: Term) -> Recurrence:
    """The (s(1 - s))^n / n!."""
    # a factor 1 is not written: instances of a lemma drop it too
    factor = ONE + MINUS_ONE if of == ONE else of * (1 - of)
    return recurrence("g", ONE, lambda m, before: factor / Ind(m) * before)


def bump(at: Any, of: Term = sigma) -> Term:
    """(s(1 - s))^n / n!."""
    return named("g", bumps(of)[at], at, of)


def weighted(at: Any, to: Term = ONE) -> Term:
    """H_n, or the integral up to elsewhere."""
    return named("H", Integral(Exp(-(z * sigma)) * bump(at), sigma, 0, to), at, to)


def late(at: Any, to: Term = ONE) -> Term:
    """The same with a factor σ."""
    return Integral(Exp(-(z * sigma)) * (sigma * bump(at)), sigma, 0, to)


def slopes(turn: Any = 2) -> Formula:
    """The derivative, times the function and by itself."""
    tilt = 1 - turn * x
    return And(
        Equation(x * (1 - x) * Deriv(bump(n, x), x), Ind(n) * tilt * bump(n, x)),
        Equation(Deriv(bump(n + 1, x), x), tilt * bump(n, x)),
    )


sloping = Statement(slopes(), every_degree)

SLOPES = Claim(
    id="hippo/bump-slopes",
    title="the derivative of (x(1 - x))^{n+1} / (n+1)! is (1 - 2x) (x(1 - x))^n / n!",
    statement=sloping,
    sources=(Source(SZEGO, "section 4.3", "what Rodrigues' formula differentiates"),),
    proof=Each(
        (
            Induction(n, step=Direct((Using(Hypothesis(), left=x * (1 - x) / Ind(n + 1)),))),
            Direct((Unfold(bumps(x)[n + 1]), Using(Part(1), left=1 / Ind(n + 1)))),
        )
    ),
    near_misses=(
        variant(sloping, "1 - x", slopes(1)),
        variant(sloping, "no factorial", Equation(Deriv(bump(n + 1, x), x), Ind(n + 1) * (1 - 2 * x) * bump(n, x))),
    ),
)

# By parts, up to x -----------------------------------------------------------------------------------


def ended(at: Any) -> Term:
    """The integrand at the upper end."""
    return Exp(-(z * x)) * bump(at, x)


tilted = Integral(Exp(-(z * sigma)) * (1 - 2 * sigma), sigma, 0, x)


def by_parts(weight: Any = 2, twice: Any = 2) -> Formula:
    """Neighbours by one another, and the first two."""
    two_more = z**2 * weighted(n + 2, x) + z * ended(n + 2)
    return And(
        Equation(weighted(n, x), two_more + weight * norm2(n + 1) * weighted(n + 1, x) + (1 - 2 * x) * ended(n + 1)),
        Equation(weighted(n, x), z * weighted(n + 1, x) + twice * late(n, x) + ended(n + 1)),
        Equation(z * weighted(0, x), 1 - Exp(-(z * x))),
        Equation(z * weighted(1, x), tilted - ended(1)),
        Equation(z * tilted, 1 - (1 - 2 * x) * Exp(-(z * x)) - 2 * weighted(0, x)),
    )


parts = Statement(by_parts(), every_degree)
falls = Lemma("hippo/bump-slopes", part=1)
at_zero = bumps(Num(0))

PARTS = Claim(
    id="hippo/bump-parts",
    title="by parts: the integrals of e^{-zσ} (σ(1 - σ))^n / n! up to x, for neighbouring n",
    statement=parts,
    sources=(Source(SZEGO, "section 4.3", "the three-term recurrence, as it acts on e^{-zσ}"),),
    proof=Each(
        (
            Ode(x, by=(falls, Unfold(bumps(x)[n + 1]), Unfold(at_zero[n + 1]), Unfold(at_zero[n + 2]))),
            Ode(x, by=(falls, Unfold(at_zero[n + 1]))),
            Ode(x),
            Ode(x, by=(falls, Unfold(bumps(x)[1]), Unfold(at_zero[1]))),
            Ode(x),
        )
    ),
    near_misses=(
        variant(parts, "2n + 3 once", by_parts(1)),
        variant(parts, "σ once", by_parts(twice=1)),
        variant(parts, "nothing at the end", Equation(z * weighted(1, x), tilted)),
    ),
)


def over_unit(weight: Any = 2, twice: Any = 2) -> Formula:
    """The same over [0, 1], where the ends vanish."""
    return And(
        Equation(z * weighted(0), 1 - Exp(-z)),
        Equation(z**2 * weighted(1), 1 + Exp(-z) - 2 * weighted(0)),
        Equation(weighted(n), z**2 * weighted(n + 2) + weight * norm2(n + 1) * weighted(n + 1)),
        Equation(weighted(n) - z * weighted(n + 1), twice * late(n)),
    )


whole = Statement(over_unit(), every_degree)


def up_to_one(part: int, at: Any = n, left: Any = 1) -> Using:
    """A part of the claim before, at the upper end 1."""
    return Using(Lemma("hippo/bump-parts", part=part, at={n: at}, families=TO_ONE), left=left)


def gone(at: Any, left: Term) -> Using:
    """1 - σ vanishes at the upper end."""
    return Using(Unfold(bumps(ONE)[at]), left=left)


INTEGRALS = Claim(
    id="hippo/bump-integrals",
    title="H_n = z² H_{n+2} + 2 (2n + 3) H_{n+1}, H_n - z H_{n+1} = (2/n!) ∫_0^1 e^{-zσ} σ (σ(1-σ))^n dσ, and the first two",
    statement=whole,
    sources=(Source(BAKER, "section 1.2", "the integrals in the errors of the approximants of the exponential"),),
    proof=Each(
        (
            Direct((up_to_one(2, 0),)),
            Direct((up_to_one(3, 0, z), up_to_one(4, 0), gone(1, -z * Exp(-z)))),
            Direct((up_to_one(0), gone(n + 1, -Exp(-z)), gone(n + 2, z * Exp(-z)))),
            Direct((up_to_one(1), gone(n + 1, Exp(-z)))),
        )
    ),
    near_misses=(
        variant(whole, "2n + 3 once", over_unit(1)),
        variant(whole, "σ once", over_unit(twice=1)),
        variant(whole, "H_0 of the growing exponential", Equation(z * weighted(0), Exp(z) - 1)),
    ),
)

CLAIMS = (SLOPES, PARTS, INTEGRALS)
