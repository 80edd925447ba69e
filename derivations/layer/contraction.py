"""Transitions that are products of factors which make no vector longer: numbers, diagonal matrices, and corrections I - β k kᵀ.

Where each factor keeps within its bounds, the product makes no vector longer. That is sufficient, and not necessary: what one
factor stretches another may shorten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias, cast

from sympy import Symbol

from ..claim import Claim, Source, variant
from ..kernel import terms as tm
from ..kernel.formulas import And, Equation, ForAll, Formula, Implies, Less, LessEqual, Statement
from ..kernel.normal import Reader
from ..kernel.scripts import Direct, Each, Product, Sign, Suppose
from ..kernel.terms import Num, Row, Sum, Term, le, norm2
from .correction import divided
from .linear import factors, times, transposed
from .side import DIAGONAL, Side, any_number, entry_of, side
from .subject import Subject

MOST = 3  # corrections that are told apart in a transition that is written as a sum
ONE = Num(1)


@dataclass(frozen=True)
class Bound:
    """What keeps a factor from making anything longer, and what it says of which term."""

    formula: Formula
    name: str
    of: Term


@dataclass(frozen=True)
class Scaled:
    """c I."""

    number: Term

    def moved(self, x: Term) -> Term:
        """What it makes of a column."""
        return times(self.number, x)

    def bounds(self, i: Symbol) -> tuple[Bound, ...]:
        """-1 <= c <= 1."""
        return (Bound(_within(self.number), f"{self.number} of any size", self.number),)

    def lost(self, x: Term, i: Symbol) -> Product:
        """|x|² less the squared length of what it makes of x."""
        return Product((ONE - self.number, ONE + self.number, norm2(x)))


@dataclass(frozen=True)
class Gated:
    """A diagonal matrix."""

    matrix: Term

    def moved(self, x: Term) -> Term:
        """What it makes of a column."""
        return times(self.matrix, x)

    def bounds(self, i: Symbol) -> tuple[Bound, ...]:
        """-1 <= e_i <= 1 for all entries."""
        e = cast(Term, entry_of(self.matrix, i))
        return (Bound(ForAll(_within(e), i, 1, self.matrix.rows), f"{self.matrix} of any size", e),)

    def lost(self, x: Term, i: Symbol) -> Product:
        """|x|² less the squared length of what it makes of x."""
        e = cast(Term, entry_of(self.matrix, i))
        return Product((Sum((ONE - e) * (ONE + e) * Row(x, i) ** 2, i, 1, self.matrix.rows),))


@dataclass(frozen=True)
class Corrected:
    """I - β k kᵀ."""

    key: Term
    rate: Term

    def moved(self, x: Term) -> Term:
        """What it makes of a column."""
        return x - times(self.rate, self.key, transposed(self.key) * x)

    def bounds(self, i: Symbol) -> tuple[Bound, ...]:
        """0 <= β, and β |k|² <= 2."""
        positive = Bound(LessEqual(0, self.rate), f"{self.rate} below 0", self.rate)
        return positive, Bound(LessEqual(self.rate * norm2(self.key), 2), f"{self.rate} of any size", self.rate)

    def lost(self, x: Term, i: Symbol) -> Product:
        """|x|² less the squared length of what it makes of x."""
        return Product((self.rate, 2 - self.rate * norm2(self.key), (transposed(self.key) * x) ** 2))


Factor: TypeAlias = Scaled | Gated | Corrected


def _within(x: Term) -> Formula:
    return And(LessEqual(Num(-1), x), LessEqual(x, 1))


# reading a transition ----------------------------------------------------------------------------


def factored(matrix: Term) -> tuple[Factor, ...] | None:
    """The factors of an n x n transition, from left to right; None where it is not read as such a product."""
    found: list[Factor] = []
    for f in factors(matrix) if isinstance(matrix, tm.Mul) else [matrix]:
        if f.is_scalar_term:
            found += [] if f == ONE else [Scaled(f)]
            continue
        part = _one(side(f, f.rows))
        if part is None:
            return None
        found += part
    return tuple(found)


def _one(s: Side) -> tuple[Factor, ...] | None:
    """The factors of a sum of a number or a diagonal matrix and matrices of rank one: those whose product it is."""
    if s.outers:
        return next((p for p in _candidates(s) if _same(s.matrix, p)), None)
    if s.kind == DIAGONAL:
        return (Gated(s.matrix),) if entry_of(s.matrix, tm.index("i")) is not None else None
    return None if s.number is None else () if s.number == ONE else (Scaled(s.number),)


def _candidates(s: Side) -> Iterator[tuple[Factor, ...]]:
    if s.number is not None:
        first: tuple[Factor, ...] = () if s.number == ONE else (Scaled(s.number),)
        rates = [(o.column, divided(times(Num(-1), o.scale), s.number)) for o in s.outers if o.row == transposed(o.column)]
        known = [Corrected(k, rate) for k, rate in rates if rate is not None]
        if len(known) <= MOST:
            yield from ((*first, *p) for p in permutations(known))
    elif s.diagonal is not None and len(s.outers) == 1 and entry_of(s.diagonal, tm.index("i")) is not None:
        (o,) = s.outers
        gate, rate = Gated(s.diagonal), times(Num(-1), o.scale)
        yield gate, Corrected(transposed(o.row), rate)
        yield Corrected(o.column, rate), gate


def _same(matrix: Term, product: Sequence[Factor]) -> bool:
    """Whether a matrix is a product, as far as the kernel can read it."""
    z = cast(Term, tm.fresh(tm.vector("z", matrix.rows), tm.free(matrix)))
    try:
        return not Reader().read(matrix * z - _passed(z, product[::-1])[-1])
    except ValueError:
        return False


# the claim ---------------------------------------------------------------------------------------


def contracting(s: Subject, matrix: Term, turned: bool, *sources: Source) -> Claim | None:
    """Within the bounds of its factors a transition makes no vector longer; ``turned`` where it acts from the left."""
    found = factored(matrix)
    if not found or any(isinstance(f, Scaled) and isinstance(f.number, Num) and abs(f.number.value) > 1 for f in found):
        return None
    acting = found[::-1] if turned else found
    i, z = s.names.index("i"), tm.vector(s.names.free("z"), matrix.rows)
    columns = _passed(z, acting)
    bounds = {b.formula: b for f in acting for b in f.bounds(i)}

    def says(moved: Term = columns[-1], relation: type[LessEqual] | type[Less] = LessEqual, without: Formula | None = None) -> Formula:
        product = Equation(matrix * z, moved) if turned else Equation(transposed(z) * matrix, transposed(moved))
        kept = And(*[b for b in bounds if b != without])
        return And(product, Implies(kept, relation(norm2(columns[-1]), norm2(z))))

    statement = Statement(says(), le(1, s.run.t))
    misses = [variant(statement, "it makes every vector shorter", says(relation=Less))]
    if not _same(matrix, found[::-1]):
        misses += [variant(statement, "the factors in reversed order", says(_passed(z, acting[::-1])[-1]))]
    misses += [variant(statement, b.name, says(without=b.formula)) for b in bounds.values() if _own(b, bounds.values())]
    parts = tuple(f.lost(x, i) for f, x in zip(acting, columns, strict=False))
    return s.claim(
        "stable",
        "the transition makes no vector longer where each of its factors keeps within its bounds, which is sufficient and not necessary",
        statement,
        Each((Direct(note="one factor after the other"), Suppose(Sign(parts)))),
        tuple(misses),
        *sources,
    )


def _own(b: Bound, bounds: Iterable[Bound]) -> bool:
    """Whether a bound is on what may be any number, and no other factor bounds a function of that."""
    number = b.of.args[0] if isinstance(b.of, Row) else b.of
    return any_number(b.of) and not any(other.of != b.of and number in tm.walk(other.of) for other in bounds)


def _passed(x: Term, acting: Sequence[Factor]) -> list[Term]:
    """A column, and what each factor makes of what those before it have made of it."""
    columns = [x]
    for f in acting:
        columns.append(f.moved(columns[-1]))
    return columns
