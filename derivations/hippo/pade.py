"""The Padé approximants of e^{-z}, of every degree: their polynomials by a three-term recurrence and term by term.

    D_n(z) = Σ_i (n+i)!/(i!(n-i)!) z^{n-i}        D_{n+1} = 2 (2n+1) D_n + z² D_{n-1}

D_n(-z) / D_n(z) is the approximant [n/n]; the one of degrees N - 1 over N is p/q with 2q(z) = D_N(z) + z D_{N-1}(z) and
2p(z) = D_N(-z) + z D_{N-1}(-z). The members of the recursion are columns (D_n, F_n), where F_n = z D_{n-1} and F_0 = 1.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Unfold, Using
from ..kernel.terms import Block, Exp, Ind, Num, Recurrence, Sum, Term, indices, le, named, recurrence
from .bumps import BAKER, weighted, z
from .polynomials import N, every_degree, k, n, norm2, sign

GROSSWALD = "Grosswald, Bessel Polynomials, Lecture Notes in Mathematics 698, 1978"
m, i = indices("m i")
FIRST, SECOND = Block((Num(1), Num(0))), Block((Num(0), Num(1)))
ONES = Block((Num(1),), (Num(1),))


def diagonal(of: Term) -> Recurrence:
    """The columns of D_n over F_n = z D_{n-1}."""

    def step(at: Any, before: Term) -> Term:
        value, earlier = FIRST * before, SECOND * before
        return Block((Num(2) * norm2(at - 1) * value + of * earlier,), (of * value,))

    return recurrence("d", ONES, step, field="complex")


def bessel(at: Any, of: Term = z) -> Term:
    """D_n, the Bessel polynomial in reverse."""
    return named("D", FIRST * diagonal(of)[at], at, of)


def bessel_before(at: Any, of: Term = z) -> Term:
    """z D_{n-1}, and 1 for n = 0."""
    return named("F", SECOND * diagonal(of)[at], at, of)


def missed(power: Any = 2 * n + 3, turned: Any = sign) -> Formula:
    """By how much D_n(-z) and z D_{n-1}(-z) are off, for n + 1."""
    off = turned(n) * z**power * weighted(n + 1)
    return And(
        Equation(bessel(n + 1, -z), Exp(-z) * bessel(n + 1) - off),
        Equation(bessel_before(n + 1, -z), -(Exp(-z) * bessel_before(n + 1)) - sign(n) * z ** (2 * n + 2) * weighted(n)),
    )


missing = Statement(missed(), every_degree)


def integrals(part: int, left: Any, at: Any = n) -> Using:
    """What is known of the H_n."""
    return Using(Lemma("hippo/bump-integrals", part=part, at={n: at}), left=left)


first_columns = (Unfold(diagonal(z)[1]), Unfold(diagonal(-z)[1]))

DIAGONAL = Claim(
    id="hippo/pade-diagonal",
    title="e^{-z} D_n(z) - D_n(-z) is z^{2n+1} times an integral: D_n(-z)/D_n(z) is the Padé approximant [n/n] of e^{-z}, n ≥ 1",
    statement=missing,
    sources=(Source(BAKER, "section 1.2", "the approximants of the exponential"), Source(GROSSWALD, "the approximants of the exponential")),
    proof=Induction(
        n,
        base=Each(
            (
                Direct((integrals(0, -2, 0), integrals(1, z, 0), *first_columns)),
                Direct((integrals(0, z, 0), *first_columns)),
            )
        ),
        step=Each((Direct((Hypothesis(), integrals(2, sign(n) * z ** (2 * n + 3)))), Direct((Hypothesis(),)))),
    ),
    near_misses=(
        variant(missing, "one order further", missed(2 * n + 4)),
        variant(missing, "one order less", missed(2 * n + 2)),
        variant(missing, "the error without signs", missed(turned=lambda n: Num(1))),
    ),
)

# Term by term ----------------------------------------------------------------------------------------


def terms(of: Any) -> Recurrence:
    """The coefficients of z^{n-i} in D_n: (n+i)!/(i!(n-i)!)."""
    return recurrence("e", Num(1), lambda at, before: Ind(of + at) * Ind(of - at + 1) / Ind(at) * before)


def term(of: Any, at: Any) -> Term:
    """The coefficient of z^{n-i} in D_n."""
    return named("e", terms(of)[at], of, at)


def neighbouring(up: Any = n + 1 + i) -> Formula:
    """Coefficients of neighbouring degrees; and a sum of them that begins with 1."""
    return And(
        Equation(Ind(n + 1 - i) * term(n + 1, i), Ind(up) * term(n, i)),
        Equation(Sum(term(n, k), k, 0, i), 1 + Sum(term(n, k), k, 1, i)),
    )


all_terms = le(0, n) & le(0, i)
neighbours = Statement(neighbouring(), all_terms)


def neighbour(of: Any, at: Any, left: Term) -> Using:
    """The same coefficient of degrees n and n + 1."""
    return Using(Lemma("hippo/pade-neighbours", at={n: of, i: at}), left=left)


def leading(of: Any, at: Any, left: Term) -> Using:
    """The first coefficient is 1."""
    return Using(Lemma("hippo/pade-neighbours", part=1, at={n: of, i: at}), left=left)


NEIGHBOURS = Claim(
    id="hippo/pade-neighbours",
    title="(n + 1 - i) e_{n+1,i} = (n + 1 + i) e_{n,i} for the coefficients e_{n,i} = (n+i)!/(i!(n-i)!), the first of which is 1",
    statement=neighbours,
    sources=(Source(GROSSWALD, "the coefficients of the Bessel polynomials"),),
    proof=Each(
        (
            Induction(i, step=Direct((Using(Hypothesis(), left=Ind(n - i) * Ind(n + 2 + i) / Ind(i + 1)),))),
            Induction(i, step=Direct((Using(Hypothesis()),))),
        )
    ),
    near_misses=(
        variant(neighbours, "n + i", neighbouring(n + i)),
        variant(neighbours, "as binomial coefficients", neighbouring(n + 1)),
    ),
)


def three_terms(weight: Any = 2) -> Formula:
    """The recurrence, coefficient by coefficient."""
    return Equation(term(n + 2, i + 1) - term(n, i + 1), weight * norm2(n + 1) * term(n + 1, i))


by_terms = Statement(three_terms(), all_terms)

TERMS = Claim(
    id="hippo/pade-terms",
    title="e_{n+2,i+1} - e_{n,i+1} = 2 (2n + 3) e_{n+1,i}",
    statement=by_terms,
    sources=(Source(GROSSWALD, "the three-term recurrence"),),
    proof=Direct(
        (
            Unfold(terms(n + 2)[i + 1]),
            Unfold(terms(n)[i + 1]),
            neighbour(n + 1, i, Ind(n + 3 + i) / Ind(i + 1)),
            neighbour(n, i, Ind(n - i) / Ind(i + 1)),
        )
    ),
    near_misses=(
        variant(by_terms, "2n + 3 once", three_terms(1)),
        variant(by_terms, "the sum of the two", Equation(term(n + 2, i + 1) + term(n, i + 1), 2 * norm2(n + 1) * term(n + 1, i))),
    ),
)


def partial(weight: Any = 2, last: Any = m - 1) -> Formula:
    """The first terms of the recurrence for the polynomials."""
    left = Sum((term(n + 2, i) - term(n, i)) * z ** (n + 2 - i), i, 0, m)
    return Equation(left, weight * norm2(n + 1) * Sum(term(n + 1, i) * z ** (n + 1 - i), i, 0, last))


partly = Statement(partial(), le(0, n) & le(0, m) & le(m, n + 2))

PARTIAL = Claim(
    id="hippo/pade-partial",
    title="the first terms of S_{n+2} - z² S_n are those of 2 (2n + 3) S_{n+1}, where S_n = Σ_i e_{n,i} z^{n-i}",
    statement=partly,
    sources=(Source(GROSSWALD, "the three-term recurrence"),),
    proof=Induction(m, step=Direct((Using(Hypothesis()), Using(Lemma("hippo/pade-terms", at={n: n, i: m}), left=z ** (n + 1 - m))))),
    near_misses=(
        variant(partly, "2n + 3 once", partial(1)),
        variant(partly, "one term more", partial(last=m), at={n: 0, m: 0, z: 1}),
    ),
)


def series(of: Any) -> Term:
    """Σ_i e_{n,i} z^{n-i}."""
    return named("S", Sum(term(of, i) * z ** (of - i), i, 0, of), of)


def recurring(weight: Any = 2, power: int = 2) -> Formula:
    """The recurrence for the polynomials."""
    return Equation(series(n + 2), weight * norm2(n + 1) * series(n + 1) + z**power * series(n))


recurs = Statement(recurring(), every_degree)

RECURS = Claim(
    id="hippo/pade-series",
    title="S_{n+2} = 2 (2n + 3) S_{n+1} + z² S_n",
    statement=recurs,
    sources=(Source(GROSSWALD, "the three-term recurrence"),),
    proof=Direct(
        (
            Using(Lemma("hippo/pade-partial", at={n: n, m: n + 2})),
            Using(Unfold(terms(n)[n + 1]), left=z - Ind(2 * n + 2) / Ind(n + 2)),
            Using(Unfold(terms(n)[n + 2])),
        ),
        "e_{n,n+1} and e_{n,n+2} are 0",
    ),
    near_misses=(
        variant(recurs, "2n + 3 once", recurring(1)),
        variant(recurs, "z in the place of z²", recurring(power=1)),
    ),
)


def spelled(late: Any = 1) -> Formula:
    """The polynomials, term by term."""
    return And(Equation(bessel(n + 1), series(n + 1)), Equation(bessel_before(n + 1), late * z * series(n)))


written = Statement(spelled(), every_degree)

EXPLICIT = Claim(
    id="hippo/pade-explicit",
    title="D_n(z) = Σ_i (n+i)!/(i!(n-i)!) z^{n-i}, for n ≥ 1",
    statement=written,
    sources=(
        Source(GROSSWALD, "the coefficients of the Bessel polynomials"),
        Source(BAKER, "section 1.2", "the denominators of the approximants [n/n]"),
    ),
    proof=Induction(
        n,
        base=Each(
            (
                Direct((Unfold(diagonal(z)[1]), Unfold(terms(1)[1]), leading(1, 1, -z))),
                Direct((Unfold(diagonal(z)[1]),)),
            )
        ),
        step=Each((Direct((Hypothesis(), Using(Lemma("hippo/pade-series", at={n: n}), left=-1))), Direct((Hypothesis(),)))),
    ),
    near_misses=(
        variant(written, "the degree before, twice", spelled(2)),
        variant(written, "without its last term", Equation(bessel(n + 1), Sum(term(n + 1, i) * z ** (n + 1 - i), i, 0, n))),
    ),
)

# Degrees N - 1 over N --------------------------------------------------------------------------------


def below(of: Any) -> Recurrence:
    """The coefficients of z^{N-i} in q: N (N+i-1)!/(i!(N-i)!)."""
    return recurrence("a", Num(1), lambda at, before: Ind(of + at - 1) * Ind(of - at + 1) / Ind(at) * before)


def above(of: Any) -> Recurrence:
    """The coefficients of (-z)^{N-1-i} in p: (N+i)!/(i!(N-1-i)!)."""
    return recurrence("b", Ind(of), lambda at, before: Ind(of + at) * Ind(of - at) / Ind(at) * before)


def means(apart: Any = 2) -> Formula:
    """Half of the sum, and of the difference, for N = n + 1."""
    a, b = (named(name, family(n + 1)[i], n + 1, i) for name, family in (("a", below), ("b", above)))
    return And(Equation(a, (term(n + 1, i) + term(n, i)) / 2), Equation(b, (term(n + 1, i + 1) - term(n, i + 1)) / apart))


middle = Statement(means(), all_terms)

MEANS = Claim(
    id="hippo/pade-means",
    title="N (N+i-1)!/(i!(N-i)!) is half of e_{N,i} + e_{N-1,i}, and (N+i)!/(i!(N-1-i)!) half of e_{N,i+1} - e_{N-1,i+1}",
    statement=middle,
    sources=(Source(BAKER, "section 1.2", "the coefficients of the approximants of the exponential"),),
    proof=Each(
        (
            Induction(
                i,
                step=Direct(
                    (Using(Hypothesis(), left=Ind(n + 1 + i) * Ind(n + 1 - i) / Ind(i + 1)), neighbour(n, i, Num(-1) / (2 * Ind(i + 1))))
                ),
            ),
            Induction(
                i,
                base=Direct((Unfold(terms(n + 1)[1]), Unfold(terms(n)[1]))),
                step=Direct(
                    (
                        Using(Hypothesis(), left=Ind(n + 2 + i) * Ind(n - i) / Ind(i + 1)),
                        neighbour(n, i + 1, (Ind(n + 2 + i) / Ind(i + 1) - Ind(n + 3 + i) / Ind(i + 2)) / 2),
                    )
                ),
            ),
        )
    ),
    near_misses=(
        variant(middle, "the whole difference", means(1)),
        variant(middle, "the sum itself", Equation(below(n + 1)[i], term(n + 1, i) + term(n, i))),
    ),
)


def denominator(last: Any = N, family: Any = below) -> Term:
    """q, of degree N."""
    return named("q", Sum(named("a", family(N)[i], N, i) * z ** (N - i), i, 0, last), z)


def numerator(of: Term = -z) -> Term:
    """p, of degree N - 1."""
    return named("p", Sum(named("b", above(N)[i], N, i) * of ** (N - 1 - i), i, 0, N - 1), z)


def halves(q: Term, p: Term) -> Formula:
    """Twice q and p, by neighbouring degrees."""
    return And(Equation(2 * q, bessel(N) + bessel_before(N)), Equation(2 * p, bessel(N, -z) - bessel_before(N, -z)))


halving = Statement(halves(denominator(), numerator()), le(1, N))
TURNED = {"z": ((), -z)}


def explicit(**families: Any) -> tuple[Lemma, ...]:
    """Both polynomials, term by term."""
    return tuple(Lemma("hippo/pade-explicit", part=p, at={n: N - 1}, **families) for p in (0, 1))


MIDDLE = Claim(
    id="hippo/pade-halves",
    title="2q(z) = D_N(z) + z D_{N-1}(z) and 2p(z) = D_N(-z) + z D_{N-1}(-z), with q of degree N and p of degree N - 1 term by term",
    statement=halving,
    sources=(Source(BAKER, "section 1.2", "the approximants [N-1/N] of the exponential"),),
    proof=Each(
        (
            Direct((*explicit(), Lemma("hippo/pade-means", at={n: N - 1}), Using(Unfold(terms(N - 1)[N])))),
            Direct(
                (
                    *explicit(families=TURNED),
                    Lemma("hippo/pade-means", part=1, at={n: N - 1}),
                    Using(Unfold(terms(N - 1)[N]), left=-1),
                    leading(N, N, -((-z) ** N)),
                    leading(N - 1, N, (-z) ** N),
                ),
                "the terms of degree N cancel",
            ),
        )
    ),
    near_misses=(
        variant(halving, "p at z", halves(denominator(), numerator(z))),
        variant(halving, "q without its last term", halves(denominator(N - 1), numerator())),
        variant(halving, "q of [N/N]", halves(denominator(family=terms), numerator())),
    ),
)

CLAIMS = (DIAGONAL, NEIGHBOURS, TERMS, PARTIAL, RECURS, EXPLICIT, MEANS, MIDDLE)
