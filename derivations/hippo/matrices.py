"""The matrix A of HiPPO-LegS: normal up to rank one, its eigenvalues and eigenvectors, and its flow without 1/t.

Degrees, rows and columns are numbered from 0; ẋ = -A x + B u, so that S4's A is -A here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, NonZero, Statement
from ..kernel.scripts import Cases, Direct, Each, Exists, ForEach, Hypothesis, Induction, Lemma, Rowwise, Using
from ..kernel.terms import (
    Entry,
    Ind,
    Num,
    Sqrt,
    Stack,
    Sum,
    Term,
    Where,
    entries,
    equal,
    indicator,
    indices,
    le,
    lt,
    named,
    recurrence,
)
from .polynomials import HIPPO, TRAIN, N, k, n, norm2
from .scaled import column, legs_input, legs_matrix, row

S4 = "Gu, Goel, Ré, Efficiently Modeling Long Sequences with Structured State Spaces, arXiv 2111.00396"
HALF = Num(Fraction(1, 2))
m, d = indices("m d")

identity = named("I", entries(indicator(equal(row, column)), row, (0, N - 1), column, (0, N - 1)))


def skewed(shift: Term = HALF, rank_one: Term = HALF, A: Term | None = None) -> Term:
    """-A + ½I + ½BBᵀ."""
    return (legs_matrix() if A is None else A) * Num(-1) + shift * identity + rank_one * (legs_input() * legs_input().T)


def is_skew(of: Term) -> Formula:
    """The diagonal is 0, and each entry is minus the one across it."""
    return And(Equation(Entry(of, n, n), 0), ForAll(Equation(Entry(of, n, k), -Entry(of, k, n)), k, 0, n - 1))


skew = Statement(is_skew(skewed()), le(0, n) & le(n, N - 1))

SKEW = Claim(
    id="hippo/legs-skew",
    title="-A + ½I + ½BBᵀ of HiPPO-LegS is skew, for every N: A is normal up to a term of rank one",
    statement=skew,
    sources=(
        Source(S4, "theorem 1 and appendix C.1", "for LegS; P is B up to a factor √½"),
        Source(HIPPO, "theorem 2", "A, there with the other sign"),
    ),
    proof=Each(
        (Direct(note="-(n + 1) + ½ + ½(2n + 1) = 0"), ForEach(Direct(note="half of √(2n+1) √(2k+1) is taken off below, and stands above")))
    ),
    near_misses=(
        variant(skew, "without the identity", is_skew(skewed(Num(0)))),
        variant(skew, "without the term of rank one", is_skew(skewed(rank_one=Num(0)))),
        variant(skew, "BBᵀ whole", is_skew(skewed(rank_one=Num(1)))),
        variant(skew, "A without its diagonal", is_skew(skewed(A=legs_matrix(Num(0))))),
    ),
)

# Eigenvectors: the coefficients of s^m in the P_n(2s - 1), each times √(2n+1), up to a factor.


def coefficient(at: Any, signed: int = -1) -> Term:
    """The coefficient of s^m in P_{m+d}(2s - 1) over that in P_m(2s - 1), at d."""
    made = recurrence("e", Num(1), lambda d, e: Ind(signed * (2 * m + d)) / Ind(d) * e)
    return named("e", made[at], at)


def summed(eigenvalue: Any = m + 1, signed: int = -1, last: Any = d - 1) -> Formula:
    """A row of the eigenvalue equation, with the square roots divided out."""
    lower = Sum(norm2(m + k) * coefficient(k, signed), k, 0, last)
    return Equation(Ind(m + d + 1) * coefficient(d, signed) + lower, Ind(eigenvalue) * coefficient(d, signed))


rows = Statement(summed(), le(0, m) & le(0, d))

ROWS = Claim(
    id="hippo/legs-coefficients",
    title="(n + 1) e_n + Σ_{k<n} (2k + 1) e_k = (m + 1) e_n, where e_n is the coefficient of s^m in P_n(2s - 1), n = m + d",
    statement=rows,
    sources=(
        Source(TRAIN, "section 3, LegS", "s d/ds s^m = m s^m, in the coefficients"),
        Source("Szegő, Orthogonal Polynomials, 4th ed.", "equation 4.21.2 at α = β = 0", "the coefficients of P_n(2s - 1)"),
    ),
    proof=Induction(d, step=Direct((Using(Hypothesis()),), "d e_{m+d} = -(2m + d) e_{m+d-1}")),
    near_misses=(
        variant(rows, "the eigenvalue m", summed(m)),
        variant(rows, "coefficients without signs", summed(signed=1)),
        variant(rows, "degree n counted twice", summed(last=d)),
    ),
)


def eigenvector(signed: int = -1) -> Term:
    """The column that is 0 above row m and √(2n+1) e_n from there on."""
    entry = Where(le(m, row), Sqrt(norm2(row)) * coefficient(row - m, signed), Num(0))
    return named("v", Stack(entry, row, 0, N - 1), m)


def eigen(A: Term, eigenvalue: Any = m + 1, v: Term | None = None) -> Formula:
    """An eigenvalue equation with a vector that is not 0."""
    of = eigenvector() if v is None else v
    return And(NonZero(Entry(of, m, 1)), Equation(A * of, Ind(eigenvalue) * of))


spectral = Statement(eigen(legs_matrix()), le(0, m) & le(m, N - 1))

EIGENVALUES = Claim(
    id="hippo/legs-eigenvalues",
    title="1, 2, ..., N are the eigenvalues of the N x N matrix A of HiPPO-LegS, each with its eigenvector",
    statement=spectral,
    sources=(
        Source(TRAIN, "section 3, LegS", "distinct and N in number, hence all; A is triangular"),
        Source(HIPPO, "theorem 2"),
    ),
    proof=Each(
        (
            Exists(),
            Rowwise(
                n,
                Cases(
                    (
                        (lt(n, m), Direct(note="above row m all is 0")),
                        (
                            le(m, n),
                            Direct(
                                (Using(Lemma("hippo/legs-coefficients", at={m: m, d: n - m}), left=Sqrt(norm2(n))),),
                                "√(2k+1) √(2k+1) = 2k + 1",
                            ),
                        ),
                    )
                ),
            ),
        )
    ),
    near_misses=(
        variant(spectral, "the eigenvalue m", eigen(legs_matrix(), m)),
        variant(spectral, "2n + 1 on the diagonal", eigen(legs_matrix(norm2(row)))),
        variant(spectral, "an eigenvector without signs", eigen(legs_matrix(), v=eigenvector(1))),
    ),
)

CLAIMS = (SKEW, ROWS, EIGENVALUES)
