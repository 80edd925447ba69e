"""HiPPO matrices are normal plus low rank.

For HiPPO-LegS, in ẋ = A x + B u, the matrix A + ½I + ½BBᵀ is skew. What is skew up to a multiple of the identity is normal, and
so A = (A + ½BBᵀ) - P Pᵀ with P = B/√2 is normal less rank one. HiPPO-LegT needs rank two, and has a skew part alone.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..hippo.polynomials import norm2
from ..hippo.scaled import legs_input, legs_matrix
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Cases, Direct, Each, ForEach, Given, Using
from ..kernel.terms import (
    Diag,
    Entry,
    Eye,
    Num,
    Sqrt,
    Stack,
    Term,
    Where,
    Zero,
    entries,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrix,
    named,
    scalar,
    scalars,
    vector,
)
from .systems import GU, HALF, N

i, j, n, k = indices("i j n k")
A, B = legs_matrix(), legs_input()
ones = entries(indicator(equal(i, j)), i, (0, N - 1), j, (0, N - 1))


def everywhere(entry: Formula) -> Formula:
    """For all rows and columns, numbered from 0."""
    return ForAll(ForAll(entry, k, 0, N - 1), n, 0, N - 1)


def skew(of: Term) -> Formula:
    """A matrix with labelled rows and columns is the opposite of its transpose."""
    return everywhere(Equation(Entry(of, n, k) + Entry(of, k, n), 0))


def normal_less(correction: Any = HALF, diagonal: Term = HALF, matrix: Term = A) -> Formula:
    """-A, corrected by a matrix of rank one, is skew up to a multiple of the identity, and commutes with its transpose."""
    normal = correction * B * B.T - matrix
    commutes = Equation(Entry(normal * normal.T, n, k), Entry(normal.T * normal, n, k))
    return And(skew(normal + diagonal * ones), everywhere(commutes))


nplr = Statement(normal_less(), le(0, N))

commuting = Direct(note="products of rows and products of columns: (√(2j+1))² = 2j + 1, added up")

NPLR = Claim(
    id="s4/nplr",
    title="HiPPO-LegS is normal less rank one: A + ½BBᵀ commutes with its transpose, and is skew but for -½I, for every N",
    statement=nplr,
    sources=(Source(GU, "theorem 1 and appendix C.1, HiPPO-LegS", "the A of hippo/legs with its sign reversed, as in ẋ = A x + B u"),),
    proof=Each(
        (
            ForEach(ForEach(Direct(note="½√(2n+1)√(2k+1) above the diagonal, its opposite below, ½ - (n+1) + ½(2n+1) = 0 on it"))),
            ForEach(ForEach(Cases(((lt(k, n), commuting), (equal(k, n), commuting), (lt(n, k), commuting))))),
        )
    ),
    near_misses=(
        variant(nplr, "BBᵀ in the place of ½BBᵀ", normal_less(correction=1)),
        variant(nplr, "the identity in the place of ½I", normal_less(diagonal=Num(1))),
        variant(nplr, "subtracted", normal_less(correction=-HALF)),
        variant(nplr, "n on the diagonal of A", normal_less(matrix=legs_matrix(diagonal=Num(0)))),
    ),
)

# HiPPO-LegT has signs above the diagonal: (-1)^(n-k) = s_n s_k, with s_n = (-1)^n.
s = scalars("s")
signs = Assumption("s_n = ±1", ForAll(Equation(s[n] * s[n], 1), n, 0, N - 1), solve={s[n]: Num(-1) ** n})
root = Sqrt(norm2(i)) * Sqrt(norm2(j))
legt = named("A", entries(Where(le(j, i), root, s[i] * s[j] * root), i, (0, N - 1), j, (0, N - 1)))
signed = named("Bhat", Stack(s[i] * Sqrt(norm2(i)), i, 0, N - 1))


def legt_skew(first: Any = HALF, second: Any = HALF, matrix: Term = legt) -> Formula:
    """-A, corrected by two matrices of rank one, is skew."""
    return skew(first * B * B.T + second * signed * signed.T - matrix)


rank_two = Statement(legt_skew(), le(0, N), (signs,))

on_diagonal = Using(Given(signs.name, {n: n}), left=indicator(equal(n, k)) * norm2(n))

LEGT = Claim(
    id="s4/nplr-legt",
    title="HiPPO-LegT is skew less rank two: A + ½BBᵀ + ½B̂B̂ᵀ is skew, with B̂_n = (-1)^n B_n",
    statement=rank_two,
    sources=(
        Source(
            GU, "theorem 1 and appendix C.1, HiPPO-LegT", "A_nk = -√(2n+1)√(2k+1), times (-1)^(n-k) above the diagonal, in ẋ = A x + B u"
        ),
    ),
    proof=ForEach(ForEach(Direct((on_diagonal,), "½√(2n+1)√(2k+1)(1 - s_n s_k) above the diagonal, its opposite below, 0 on it"))),
    near_misses=(
        variant(rank_two, "other factors", drop=signs.name),
        variant(rank_two, "rank one only", legt_skew(second=Num(0))),
        variant(rank_two, "BBᵀ and no signs", legt_skew(Num(1), Num(0))),
        variant(rank_two, "the signs below the diagonal too", legt_skew(matrix=signed * signed.T)),
    ),
)

# A normal matrix commutes with its adjoint; here all is real.
Z, W, c = matrix("Z", N, N), matrix("W", N, N), scalar("c")
is_skew = Assumption("Z is skew", Equation(Z + Z.T, Zero(N, N)), solve={Z: W - W.T})


def commutes(of: Term) -> Formula:
    """A matrix commutes with its transpose."""
    return Equation(of * of.T, of.T * of)


shifted = Statement(commutes(Z + c * Eye(N)), assumptions=(is_skew,))
opposite = Using(Given(is_skew.name), left=Z), Using(Given(is_skew.name), left=-1, right=Z)

SHIFTED = Claim(
    id="s4/skew-is-normal",
    title="a skew matrix plus a multiple of the identity is normal: it commutes with its transpose",
    statement=shifted,
    sources=(Source(GU, "appendix C.1", "why A + ½BBᵀ of HiPPO-LegS is unitarily diagonalisable: it is such a matrix, see s4/nplr"),),
    proof=Direct(opposite, "Zᵀ = -Z commutes with Z"),
    near_misses=(
        variant(shifted, "any matrix", drop=is_skew.name),
        variant(shifted, "plus a matrix of rank one", commutes(Z + vector("P", N) * vector("P", N).T)),
        variant(shifted, "plus a diagonal matrix", commutes(Z + Diag(vector("P", N)))),
    ),
)

CLAIMS = (NPLR, LEGT, SHIFTED)
