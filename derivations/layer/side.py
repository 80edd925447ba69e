"""What kind of matrix a transition is, read as it is written: base + Σ scale · column · row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sympy import Symbol

from ..kernel import terms as tm
from ..kernel.terms import Eye, Index, Num, Term
from .linear import column_and_row, one, plus, times

IDENTITY, SCALAR, DIAGONAL, RANK_ONE, LOW_RANK, GENERAL = "identity", "scalar", "diagonal", "rank one", "low rank", "general"
KINDS = (IDENTITY, SCALAR, DIAGONAL, RANK_ONE, LOW_RANK, GENERAL)


@dataclass(frozen=True)
class Outer:
    """scale · column · row: a matrix of rank at most one."""

    scale: Term
    column: Term
    row: Term

    @property
    def term(self) -> Term:
        """The matrix written out."""
        return times(self.scale, self.column, self.row)


@dataclass(frozen=True)
class Side:
    """A transition, n x n, of one of `KINDS`.

    SCALAR: ``number`` times I. DIAGONAL: ``diagonal``. RANK_ONE and LOW_RANK: that, whichever is not None (0 if both are),
    plus the sum of ``outers``, of rank at most ``rank``. GENERAL: ``matrix`` alone says what it is.
    """

    matrix: Term
    kind: str
    number: Term | None = None
    diagonal: Term | None = None
    outers: tuple[Outer, ...] = ()

    @property
    def rank(self) -> int:
        """A bound on the rank of the sum of the outer products."""
        return min(len({o.column for o in self.outers}), len({o.row for o in self.outers}))

    def __str__(self) -> str:
        if not self.outers:
            return self.kind
        base = "diagonal plus " if self.diagonal is not None else "identity plus " if self.number == Num(1) else "scalar plus "
        return f"{base if self.diagonal is not None or self.number is not None else ''}{self.kind}"


def side(matrix: Term | None, n: Index) -> Side:
    """The kind of an n x n matrix; None is the identity. A number, where n is 1, is a scalar."""
    if matrix is None or matrix == one(n):
        return Side(one(n), IDENTITY, Num(1))
    if isinstance(matrix, tm.Zero):
        return Side(matrix, SCALAR, Num(0))
    numbers: list[Term] = []
    diagonals: list[Term] = []
    outers: list[Outer] = []
    for scale, factors in monomials(matrix):
        if n == 1 or not factors:
            numbers.append(times(scale, *factors))
        elif all(map(is_diagonal, factors)):
            diagonals.append(times(scale, *factors))
        elif (cut := column_and_row(tm.Mul(*factors))) is not None:
            outers.append(Outer(scale, *cut))
        else:
            return Side(matrix, GENERAL)
    number = plus(numbers) or (None if diagonals or outers else Num(0))
    if diagonals:
        diagonals += [] if number is None else [times(number, Eye(n))]
        number = None
    base = DIAGONAL if diagonals else IDENTITY if number == Num(1) else SCALAR
    found = Side(matrix, base, number, plus(diagonals), tuple(outers))
    kind = base if not outers else RANK_ONE if found.rank == 1 else LOW_RANK
    return Side(matrix, kind, found.number, found.diagonal, found.outers)


def monomials(x: Term) -> list[tuple[Term, tuple[Term, ...]]]:
    """A matrix as a sum of numbers times products of matrices without sums, identities left out."""
    x = cast(Term, tm.unnamed(x))
    if isinstance(x, tm.Zero) or x == Num(0):
        return []
    if x.is_scalar_term:
        return [(x, ())]
    if isinstance(x, Eye):
        return [(Num(1), ())]
    if isinstance(x, tm.Add):
        return [m for a in cast("tuple[Term, ...]", x.args) for m in monomials(a)]
    if not isinstance(x, tm.Mul):
        return [(Num(1), (x,))]
    found: list[tuple[Term, tuple[Term, ...]]] = [(Num(1), ())]
    for f in cast("tuple[Term, ...]", x.args):
        found = [(times(a, b), (*word, *more)) for a, word in found for b, more in monomials(f)]
    return found


def is_diagonal(x: Term) -> bool:
    """Whether a square matrix is diagonal, as it is written."""
    if isinstance(x, (tm.Diag, Eye)):
        return True
    if isinstance(x, (tm.Exp, tm.Inverse, tm.Power, tm.Transpose, tm.Conj)):
        return is_diagonal(cast(Term, x.args[0]))
    if isinstance(x, (tm.Add, tm.Mul)):
        return all(a.is_scalar_term or is_diagonal(a) for a in cast("tuple[Term, ...]", x.args))
    if isinstance(x, tm.Where):
        return all(map(is_diagonal, cast("tuple[Term, ...]", x.args[1:])))
    return False


def any_number(c: Term) -> bool:
    """Whether a number may have any value: it is an input, or an entry of one."""
    return isinstance(c.args[0] if isinstance(c, tm.Row) else c, tm.Var)


def entry_of(x: Term, i: Symbol) -> Term | None:
    """Entry i of the diagonal of a matrix that is written as a diagonal one."""
    if isinstance(x, tm.Diag):
        return tm.Row(cast(Term, x.args[0]), i)
    if isinstance(x, tm.Eye):
        return Num(1)
    if x.is_scalar_term:
        return x
    if isinstance(x, (tm.Exp, tm.Inverse)):
        inner = entry_of(cast(Term, x.args[0]), i)
        return None if inner is None else x.func(inner)
    if isinstance(x, (tm.Add, tm.Mul)):
        parts = [entry_of(cast(Term, a), i) for a in x.args]
        return None if None in parts else times(*cast("list[Term]", parts)) if isinstance(x, tm.Mul) else x.func(*parts)
    return None
