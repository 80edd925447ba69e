"""Legendre polynomials are orthogonal on [-1, 1], and the integral of P_n² is 2/(2n + 1), for every n.

So √(2n+1) P_n(2s - 1) is an orthonormal family on [0, 1], and what HiPPO keeps are coefficients of least squares.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Cases, Chain, Direct, Each, Hypothesis, Induction, Integrands, Lemma, Link, Ode, Part, Unfold, Using
from ..kernel.terms import Ind, Integral, Num, Term, indices, le
from .polynomials import HIPPO, MINUS_ONE, SZEGO, before, every_degree, legendre, members, n, norm2, slope, tau, x

m, j = indices("m j")


def product(i: Any, j: Any, up_to: Term, of: Term = tau, factor: Any = None) -> Term:
    """The integral of P_i P_j from -1 on."""
    first = legendre(i, of) if factor is None else factor * legendre(i, of)
    return Integral(first * legendre(j, of), of, -1, up_to)


def one_before(factor: Term) -> Formula:
    """The degree before by the slope."""
    return Equation(Ind(n) * before(n), Ind(n) * x * legendre(n) - factor * slope(n))


preceded = Statement(one_before(x**2 + MINUS_ONE), every_degree)

BEFORE = Claim(
    id="hippo/legendre-before",
    title="n P_{n-1} = n x P_n - (x² - 1) P'_n",
    statement=preceded,
    sources=(Source(SZEGO, "equation 4.7.27", "at λ = ½"),),
    proof=Direct((Using(Lemma("hippo/legendre-relations", part=1, at={n: n})),)),
    near_misses=(
        variant(preceded, "1 - x²", one_before(Num(1) - x**2)),
        variant(preceded, "x² alone", one_before(x**2)),
    ),
)


def between(at: Term, m: Any = m) -> Term:
    """n P_m (x P_n - P_{n-1}) - m P_n (x P_m - P_{m-1}): (x² - 1) times the Wronskian of P_n and P_m."""
    first = Ind(n) * legendre(m, at) * (at * legendre(n, at) - before(n, at))
    return first - Ind(m) * legendre(n, at) * (at * legendre(m, at) - before(m, at))


def integrated(factor: Term, of: Any = between) -> Formula:
    """A multiple of the integral of P_n P_m, without an integral."""
    return Equation(factor * product(n, m, x), of(x))


gap = Ind(n - m) * Ind(n + m + 1)
wronskian = Statement(integrated(gap), le(0, n) & le(0, m))
derivatives = tuple(Lemma("hippo/legendre-slopes", part=p) for p in (0, 1))
right_end, left_end = (tuple(Lemma("hippo/legendre-slopes", part=p) for p in pair) for pair in ((2, 3), (4, 5)))

WRONSKIAN = Claim(
    id="hippo/legendre-wronskian",
    title="(n - m)(n + m + 1) times the integral of P_n P_m up to x is (x² - 1) times their Wronskian at x",
    statement=wronskian,
    sources=(Source(SZEGO, "section 4.2", "the differential equation of each, times the other, subtracted"),),
    proof=Ode(
        x,
        start=-1,
        by=(*derivatives, Lemma("hippo/legendre-relations", part=0), Lemma("hippo/legendre-before"), *left_end),
    ),
    near_misses=(
        variant(wronskian, "n + m", integrated(Ind(n - m) * Ind(n + m))),
        variant(wronskian, "m - n", integrated(Num(-1) * gap)),
        variant(wronskian, "nothing at the end", integrated(gap, lambda at: Num(0) * at)),
    ),
)

apart = n + j + 1
distance = Ind(n - apart) * Ind(n + apart + 1)


def vanishes(total: Term) -> Formula:
    """An integral over the whole interval is 0."""
    return Equation(total, 0)


orthogonal = Statement(vanishes(product(n, apart, Num(1))), le(0, n) & le(0, j))

ORTHOGONAL = Claim(
    id="hippo/legendre-orthogonal",
    title="the integral of P_n P_m over [-1, 1] is 0 for n ≠ m (here m = n + 1 + j)",
    statement=orthogonal,
    sources=(Source(SZEGO, "section 4.1"), Source(HIPPO, "appendix B.1.1, equation 5")),
    proof=Chain(
        (
            Link(
                between(Num(1), apart) / distance,
                (Using(Lemma("hippo/legendre-wronskian", at={n: n, m: apart}, families={"x": ((), Num(1))}), left=1 / distance),),
                "the Wronskian at the other end",
            ),
        ),
        (*right_end, Using(Lemma("hippo/legendre-slopes", part=3, at={n: apart}), left=1 / distance)),
        "its factor vanishes there too",
    ),
    near_misses=(
        variant(orthogonal, "half of the interval", vanishes(product(n, apart, Num(0)))),
        variant(orthogonal, "with a weight x", vanishes(product(n, apart, Num(1), factor=tau))),
        variant(orthogonal, "the square", vanishes(product(n, n, Num(1)))),
    ),
)

# The norms, from one degree to the next --------------------------------------------------------------


def three_terms(weight: Any = 1) -> Formula:
    """The recurrence, tested against P_m."""
    left = Ind(n + 2) * legendre(n + 2, tau) + Ind(n + 1) * legendre(n, tau)
    right = weight * norm2(n + 1) * tau * legendre(n + 1, tau)
    return Equation(Integral(left * legendre(m, tau), tau, -1, 1), Integral(right * legendre(m, tau), tau, -1, 1))


tested = Statement(three_terms(), le(0, n) & le(0, m))

TESTED = Claim(
    id="hippo/legendre-tested",
    title="the three-term recurrence under the integral: (n + 2) P_{n+2} + (n + 1) P_n = (2n + 3) x P_{n+1} against P_m",
    statement=tested,
    sources=(Source(SZEGO, "equation 4.5.1 at α = β = 0"),),
    proof=Integrands(x, Direct((Unfold(members(n + 2, x)), Unfold(members(n + 1, x))))),
    near_misses=(
        variant(tested, "twice x", three_terms(2)),
        variant(tested, "x² in the place of x", three_terms(tau)),
    ),
)


def square(of: Any) -> Term:
    """The integral of P_n² over [-1, 1]."""
    return product(of, of, Num(1))


line = Integral(tau * tau, tau, -1, 1)


def stepped(of: Any, first: Any = 3) -> Formula:
    """The norms of neighbours, and the first of them."""
    return And(
        Equation(square(1), line),
        Equation(first * square(1), 2),
        Equation(of(n + 2) * square(n + 2), of(n + 1) * square(n + 1)),
    )


stepping = Statement(stepped(norm2), every_degree)


def against(lower: Any, of: Any, left: Term) -> Using:
    """The recurrence for degrees lower, lower + 1, lower + 2, tested against another."""
    return Using(Lemma("hippo/legendre-tested", at={n: lower, m: of}), left=left)


def at_distance_two(lower: Any, left: Term) -> Using:
    """Degrees lower and lower + 2 are orthogonal."""
    return Using(Lemma("hippo/legendre-orthogonal", at={n: lower, j: 1}), left=left)


STEPPED = Claim(
    id="hippo/legendre-norm-step",
    title="(2n + 5) times the integral of P_{n+2}² is (2n + 3) times that of P_{n+1}², and 3 times that of P_1² is 2",
    statement=stepping,
    sources=(Source(SZEGO, "section 3.2", "the recurrence against both neighbours"),),
    proof=Each(
        (
            Integrands(x, Direct((Unfold(members(1, x)),))),
            Direct((Using(Part(1), left=3),)),
            Direct(
                (
                    against(n, n + 2, norm2(n + 2) / Ind(n + 2)),
                    against(n + 1, n + 1, -norm2(n + 1) / Ind(n + 2)),
                    at_distance_two(n, -norm2(n + 2) * Ind(n + 1) / Ind(n + 2)),
                    at_distance_two(n + 1, norm2(n + 1) * Ind(n + 3) / Ind(n + 2)),
                ),
                "x P_{n+1} P_{n+2} twice",
            ),
        )
    ),
    near_misses=(
        variant(stepping, "equal norms", stepped(lambda n: Num(1))),
        variant(stepping, "2n - 1", stepped(lambda n: norm2(n - 1))),
        variant(stepping, "the first norm", stepped(norm2, 2)),
    ),
)


def normed(value: Term) -> Formula:
    """2n + 1 times the integral of P_n²."""
    return Equation(norm2(n) * square(n), value)


norms = Statement(normed(Num(2)), every_degree)

NORMS = Claim(
    id="hippo/legendre-norms",
    title="the integral of P_n² over [-1, 1] is 2/(2n + 1)",
    statement=norms,
    sources=(Source(SZEGO, "equation 4.3.3 at α = β = 0"), Source(HIPPO, "appendix B.1.1, equation 5")),
    proof=Cases(
        (
            (le(n, 0), Direct(note="2 is the length of the interval")),
            (
                le(1, n),
                Induction(
                    n,
                    start=1,
                    base=Direct((Using(Lemma("hippo/legendre-norm-step", part=1, at={n: 0})),)),
                    step=Direct((Using(Hypothesis()), Using(Lemma("hippo/legendre-norm-step", part=2, at={n: n - 1})))),
                ),
            ),
        )
    ),
    near_misses=(
        variant(norms, "on [0, 1]", normed(Num(1))),
        variant(norms, "as if orthonormal", Equation(square(n), 1)),
    ),
)

CLAIMS = (BEFORE, WRONSKIAN, ORTHOGONAL, TESTED, STEPPED, NORMS)
