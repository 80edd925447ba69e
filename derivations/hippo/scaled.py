"""HiPPO-LegS: the coefficients of all of the past, c_n(t) = √(2n+1) (1/t) ∫₀ᵗ u(τ) P_n(2τ/t - 1) dτ, obey t ċ = -A c + B u.

    A_{nk} = √(2n+1) √(2k+1) for n > k,  n + 1 for n = k,  0 for n < k        B_n = √(2n+1)

Source: Gu, Dao, Ermon, Rudra, Ré, "HiPPO", arXiv 2008.07669, theorem 2. Degrees are numbered from 0.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, Integrands, Lemma, Part, Rowwise, Using
from ..kernel.terms import (
    Deriv,
    Ind,
    Integral,
    Num,
    Sqrt,
    Stack,
    Sum,
    Term,
    Where,
    entries,
    equal,
    indices,
    le,
    lt,
    named,
)
from .polynomials import HIPPO, NOTE, N, every_degree, k, legendre, n, norm2, started, stretched, t, tau, u


def moment(at: Any) -> Term:
    """(1/t) times the integral of u P_n(2τ/t - 1) over the past: c_n without its factor √(2n+1)."""
    return named("m", Integral(u(tau) * legendre(at, stretched()), tau, 0, t) / t, at)


def flow(diagonal: Any = n + 1, last: Any = n - 1, drive: Term | None = None) -> Term:
    """t times the derivative of the moment of degree n."""
    return (u(t) if drive is None else drive) - Ind(diagonal) * moment(n) - Sum(norm2(k) * moment(k), k, 0, last)


turned = Integral(u(tau) * Deriv(legendre(n, stretched()), t), tau, 0, t)
in_lower = (Ind(n) * legendre(n, stretched()) + Sum(norm2(k) * legendre(k, stretched()), k, 0, n - 1)) / t
spread = Integral(-(u(tau) * in_lower), tau, 0, t)


def moves(right: Term) -> Formula:
    """The integrals of the moving basis, and the moments' derivatives."""
    return And(NonZero(t), Equation(turned, spread), Equation(Deriv(moment(n), t), right / t))


moving = Statement(moves(flow()), every_degree, (started,))
at_past = {"x": ((), stretched())}

MOMENTS = Claim(
    id="hippo/legs-moments",
    title="the moments of all of the past move by those of lower degree, for every degree",
    statement=moving,
    sources=(Source(HIPPO, "appendix D.3", "the derivative of c_n, with the square roots divided out"),),
    proof=Each(
        (
            Exists(),
            Integrands(
                tau,
                Direct(
                    (
                        Using(Lemma("hippo/legendre-stretched", part=1, at={n: n}), left=u(tau)),
                        Using(Lemma("hippo/legendre-expansions", part=0, at={n: n}, families=at_past), left=-u(tau) / t),
                    ),
                    "2τ/t = 1 + (2τ/t - 1), and (1 + x) P'_n is a sum of lower degrees",
                ),
            ),
            Direct(
                (Lemma("hippo/legendre-stretched", part=3), Using(Part(2), left=1 / t)),
                "the Leibniz rule: P_n is 1 at the upper end",
            ),
        )
    ),
    near_misses=(
        variant(moving, "at the start", drop="t ≠ 0", at={n: 0, t: 0}),
        variant(moving, "n on the diagonal", moves(flow(n)), at={n: 0, t: 1}),
        variant(moving, "degree n counted twice", moves(flow(last=n)), at={n: 0, t: 1}),
        variant(moving, "the input is forgotten", moves(flow(drive=Num(0) * u(t))), at={n: 0, t: 1}),
    ),
)


# The matrices of the paper ------------------------------------------------------------------------

row, column = indices("i j")


def legs_entry(of_row: Any, of_column: Any, diagonal: Any = None) -> Term:
    """A_{nk} of HiPPO-LegS, in the sign of ẋ = -A x."""
    below = Sqrt(norm2(of_row)) * Sqrt(norm2(of_column))
    middle = Ind(of_row + 1) if diagonal is None else diagonal
    return Where(lt(of_column, of_row), below, Where(equal(of_column, of_row), middle, Num(0)))


def legs_matrix(diagonal: Any = None) -> Term:
    """The N x N matrix A of HiPPO-LegS, rows and columns numbered from 0, in the sign of ẋ = -A x."""
    return named("A", entries(legs_entry(row, column, diagonal), row, (0, N - 1), column, (0, N - 1)))


def legs_input() -> Term:
    """The N x 1 matrix B of HiPPO-LegS and HiPPO-LegT."""
    return named("B", Stack(Sqrt(norm2(row)), row, 0, N - 1))


def coefficients(of: Any) -> Term:
    """The column of √(2n+1) times the moments of degree n = 0..N-1."""
    return named("c", Stack(Sqrt(norm2(row)) * of(row), row, 0, N - 1))


c = coefficients(moment)


slower = Num(1) / t


def obeys(A: Term, B: Term, rate: Term = slower) -> Formula:
    """The coefficients exist, and follow their equation."""
    return And(NonZero(t), Equation(Deriv(c, t), rate * (B * u(t) - A * c)))


scaled = Statement(obeys(legs_matrix(), legs_input()), le(0, N), (started,))

LEGS = Claim(
    id="hippo/legs",
    title="HiPPO-LegS: the coefficients of all of the past in Legendre polynomials obey ċ = -(1/t) A c + (1/t) B u, for every N",
    statement=scaled,
    sources=(
        Source(HIPPO, "theorem 2, equation 3", "t > 0 there; any t ≠ 0 here"),
        Source(NOTE, "HiPPO-LegS: d/dt c(t) = -(1/t) A c(t) + (1/t) B u(t)"),
    ),
    proof=Each(
        (
            Exists(),
            Rowwise(
                n,
                Direct(
                    (Using(Lemma("hippo/legs-moments", part=2, at={n: n}), left=Sqrt(norm2(n))),),
                    "√(2n+1) times the moment of degree n; √(2k+1) √(2k+1) = 2k + 1",
                ),
            ),
        )
    ),
    near_misses=(
        variant(scaled, "at the start", drop="t ≠ 0", at={N: 1, t: 0}),
        variant(scaled, "2n + 1 on the diagonal", obeys(legs_matrix(norm2(row)), legs_input())),
        variant(scaled, "A without its diagonal", obeys(legs_matrix(Num(0)), legs_input())),
        variant(scaled, "without 1/t", obeys(legs_matrix(), legs_input(), Num(1))),
        variant(scaled, "B = 1", obeys(legs_matrix(), Stack(Num(1), row, 0, N - 1))),
    ),
)

CLAIMS = (MOMENTS, LEGS)
