"""The Legendre memory unit: HiPPO-LegT in other coordinates.

    θ m' = A_L m + B_L u        (A_L)_{nk} = (2n+1) (-1 for n < k, (-1)^{n-k+1} for n >= k)        (B_L)_n = (2n+1) (-1)^n

Source: Voelker, Kajić, Eliasmith, "Legendre Memory Units", NeurIPS 2019, equations 1 and 2. m = T c, T = diag((-1)^n √(2n+1)).
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Cases, Direct, Each
from ..kernel.terms import Entry, Num, Sqrt, Stack, Term, Where, entries, equal, le, lt, named
from .polynomials import HIPPO, LMU, N, k, n, norm2, sign
from .scaled import column, legs_input, row
from .translated import legt_matrix


def table(entry: Term) -> Term:
    """The N x N matrix with this entry in row i and column j, from 0."""
    return entries(entry, row, (0, N - 1), column, (0, N - 1))


def lmu_matrix(turned: Any = sign) -> Term:
    """A of the Legendre memory unit."""
    return named("A_L", table(norm2(row) * Where(lt(row, column), Num(-1), turned(row - column + 1))))


lmu_input = named("B_L", Stack(norm2(row) * sign(row), row, 0, N - 1))


def diagonal(of: Any) -> Term:
    """The diagonal matrix with these entries."""
    return table(Where(equal(row, column), of(row), Num(0)))


def weight(at: Any) -> Term:
    """(-1)^n √(2n+1)."""
    return sign(at) * Sqrt(norm2(at))


def similar(A: Term, of: Any = weight) -> Formula:
    """T is invertible, and takes one system to the other."""
    T = named("T", diagonal(of))
    back = diagonal(lambda i: of(i) / norm2(i))
    return And(
        Equation(Entry(T * back, n, k), Where(equal(n, k), Num(1), Num(0))),
        Equation(Entry(T * (Num(-1) * legt_matrix()), n, k), Entry(A * T, n, k)),
        Equation(Entry(T * legs_input(), n, 1), Entry(lmu_input, n, 1)),
    )


inside = le(0, n) & le(n, N - 1) & le(0, k) & le(k, N - 1)
similarity = Statement(similar(lmu_matrix()), inside)
by_side = Cases(((lt(n, k), Direct()), (le(k, n), Direct())))

SIMILAR = Claim(
    id="hippo/lmu-similarity",
    title="the Legendre memory unit is HiPPO-LegT in the coordinates m = T c, T = diag((-1)^n √(2n+1)), for every N",
    statement=similarity,
    sources=(
        Source(LMU, "equations 1 and 2", "θ m' = A_L m + B_L u"),
        Source(HIPPO, "section 2.3 and appendix D.1", "the LMU is LegT"),
    ),
    proof=Each((Cases(((lt(n, k), Direct()), (equal(n, k), Direct()), (lt(k, n), Direct()))), by_side, Direct())),
    near_misses=(
        variant(similarity, "without signs in T", similar(lmu_matrix(), lambda n: Sqrt(norm2(n)))),
        variant(similarity, "2n + 1 in T", similar(lmu_matrix(), lambda n: sign(n) * norm2(n))),
        variant(similarity, "the sign on the diagonal", similar(lmu_matrix(lambda power: sign(power - 1)))),
    ),
)

CLAIMS = (SIMILAR,)
