"""The eigenvalues and eigenvectors of the matrix A of HiPPO-LegS.

Degrees, rows and columns are numbered from 0; ẋ = -A x + B u, so that S4's A is -A here. That -A is normal up to a term of rank
one is s4/nplr.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, NonZero, Statement
from ..kernel.scripts import Cases, Direct, Each, Exists, Hypothesis, Induction, Lemma, Rowwise, Using
from ..kernel.terms import (
    Entry,
    Ind,
    Num,
    Sqrt,
    Stack,
    Sum,
    Term,
    Where,
    indices,
    le,
    lt,
    named,
    recurrence,
)
from .polynomials import HIPPO, TRAIN, N, k, n, norm2
from .scaled import legs_matrix, row

m, d = indices("m d")

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
    title="(n + 1) e_n + Σ_{m<=k<n} (2k + 1) e_k = (m + 1) e_n, where e_m = 1 and (n - m) e_n = -(n + m) e_{n-1}: the coefficients of s^m "
    "in the P_n(2s - 1), up to a common factor",
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

CLAIMS = (ROWS, EIGENVALUES)
