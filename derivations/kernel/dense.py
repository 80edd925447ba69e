"""Explicit matrices of enclosed numbers, with the labels of their first row and column.

An axis is numbered from 1, or by the index of a Stack; a label of None says that two numberings met on it, so that
none of its rows or columns can be asked for by number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import ceil

from mpmath import iv  # type: ignore[import-untyped]

from .enclosures import (
    ONE,
    ZERO,
    Element,
    NotPolynomial,
    NoValue,
    Number,
    Series,
    Truth,
    Undecided,
    base,
    constant,
    convolved,
    enclosed,
    ends,
    exact,
    exactly_zero,
    norm,
    numbers,
    orders,
    reciprocal,
    same,
    series,
    widened,
)  # fmt: skip

Label = int | None
HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of elements; ``cols`` says how wide a matrix without rows is."""

    rows: tuple[tuple[Element, ...], ...]
    cols: int
    top: Label = 1
    left: Label = 1

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def entries(self) -> list[Element]:
        return [e for r in self.rows for e in r]

    def mapped(self, f: Callable[[Element], Element]) -> Matrix:
        """The matrix of the values of a function."""
        return replace(self, rows=tuple(tuple(map(f, r)) for r in self.rows))

    def __add__(self, o: Matrix) -> Matrix:
        return combined(self, o, lambda a, b: a + b)

    def __mul__(self, o: Matrix) -> Matrix:
        columns = o.transposed.rows
        rows = tuple(tuple(_dot(r, c) for c in columns) for r in self.rows)
        return Matrix(rows, o.cols, self.top, o.left)

    def scaled(self, x: Element) -> Matrix:
        """The matrix times a number."""
        return self.mapped(lambda e: x * e)

    @property
    def transposed(self) -> Matrix:
        rows = tuple(tuple(r[j] for r in self.rows) for j in range(self.cols))
        return Matrix(rows, self.height, self.left, self.top)

    @property
    def unlabelled(self) -> Matrix:
        """The matrix where nothing but a numbering from 1 is passed on."""
        return replace(self, top=_common(self.top, 1), left=_common(self.left, 1))

    def part(self, rows: range, cols: range) -> Matrix:
        """The rows and columns with the given labels, numbered from 1. Raises NoValue where one is missing."""
        i, j = (_offset(first, span, n) for first, span, n in ((self.top, rows, self.height), (self.left, cols, self.cols)))
        return Matrix(tuple(r[j : j + len(cols)] for r in self.rows[i : i + len(rows)]), len(cols))


def _offset(first: Label, span: range, size: int) -> int:
    if not span:
        return 0
    if first is None:
        raise NoValue("rows or columns that are numbered in two ways")
    if span.start < first or span.stop > first + size:
        raise NoValue(f"row or column {span.start}..{span.stop - 1} of {first}..{first + size - 1}")
    return span.start - first


def _dot(a: Sequence[Element], b: Sequence[Element]) -> Element:
    return reduce(lambda x, y: x + y, (x * y for x, y in zip(a, b, strict=True)), ZERO)


def _common(a: Label, b: Label) -> Label:
    return a if a == b else None


def combined(a: Matrix, b: Matrix, f: Callable[[Element, Element], Element]) -> Matrix:
    """Two matrices of one shape, entry by entry."""
    rows = tuple(tuple(f(x, y) for x, y in zip(r, s, strict=True)) for r, s in zip(a.rows, b.rows, strict=True))
    return Matrix(rows, a.cols, _common(a.top, b.top), _common(a.left, b.left))


def zeros(rows: int, cols: int) -> Matrix:
    """The zero matrix."""
    return Matrix(((ZERO,) * cols,) * rows, cols)


def eye(n: int) -> Matrix:
    """The identity matrix."""
    return diagonal([ONE] * n)


def diagonal(found: Sequence[Element]) -> Matrix:
    """The diagonal matrix."""
    n = len(found)
    return Matrix(tuple(tuple(found[i] if i == j else ZERO for j in range(n)) for i in range(n)), n)


def single(x: Element) -> Matrix:
    """A 1 x 1 matrix."""
    return Matrix(((x,),), 1)


def stacked(parts: Iterable[Matrix], cols: int) -> Matrix:
    """Matrices one below the other, numbered from 1."""
    found = list(parts)
    left = reduce(_common, (p.left for p in found)) if found else 1
    return Matrix(tuple(r for p in found for r in p.rows), cols, 1, left)


def power(a: Matrix, n: int) -> Matrix:
    """An integer power. Raises NoValue for a negative one of a singular matrix."""
    factor = inverse(a) if n < 0 else a
    return reduce(lambda x, y: x * y, [factor] * abs(n), eye(a.height))


def _pivot(column: Sequence[Element]) -> int | None:
    """Where a column is certainly not 0, exact numbers first; None if all of it is 0. Raises Undecided."""
    found = [constant(x) for x in column]
    usable = [n for n, x in enumerate(found) if x.nonzero]
    if usable:
        return max(usable, key=lambda n: (found[n].exact, _smallest(found[n])))
    if any(not x.exact for x in found):
        raise Undecided("a matrix that may be singular")
    return None


def _smallest(x: Number) -> Fraction:
    """A lower bound on the larger part's absolute value; only to choose a good pivot."""
    return max(max(lo, -hi, Fraction(0)) for lo, hi in (ends(x.re), ends(x.im)))


def _reduced(rows: list[list[Element]], n: int) -> bool:
    """Bring the first n columns to the identity, in place; False if they are certainly singular."""
    for k in range(n):
        found = _pivot([r[k] for r in rows[k:]])
        if found is None:
            return False
        rows[k], rows[k + found] = rows[k + found], rows[k]
        scale = reciprocal(rows[k][k])
        rows[k] = [scale * e for e in rows[k]]
        for i in range(n):
            if i != k and not exactly_zero(rows[i][k]):
                factor = -rows[i][k]
                rows[i] = [a + factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return True


def inverse(a: Matrix) -> Matrix:
    """The inverse. Raises NoValue if the matrix is singular, Undecided if it may be."""
    n = a.height
    rows = [[*r, *e] for r, e in zip(a.rows, eye(n).rows, strict=True)]
    if not _reduced(rows, n):
        raise NoValue("the inverse of a singular matrix" if n > 1 else "a division by 0")
    return Matrix(tuple(tuple(r[n:]) for r in rows), n, a.left, a.top).unlabelled


def invertible(a: Matrix) -> Truth:
    """Whether a matrix of numbers has an inverse."""
    try:
        return _reduced([list(r) for r in a.rows], a.height)
    except Undecided:
        return None


def equal(a: Matrix, b: Matrix) -> Truth:
    """Whether two matrices of numbers of one shape are equal; None where enclosures overlap."""
    if (a.height, a.cols) != (b.height, b.cols):
        raise NoValue(f"a comparison of a {a.height} x {a.cols} with a {b.height} x {b.cols} matrix")
    found = {same(x, y) for x, y in zip(a.entries, b.entries, strict=True)}
    return False if False in found else (None if None in found else True)


def exponential(a: Matrix) -> Matrix:
    """The exponential: exact where the matrix is nilpotent, else an enclosure by scaling, a Taylor sum and squaring.

    For |B| <= 1/2, in a norm with |XY| <= |X||Y|, the terms after B^m/m! add up to at most 2 |B|^(m+1)/(m+1)!.
    """
    if a.height == 1 and isinstance(a.rows[0][0], Series):
        return single(exponential_of_series(a.rows[0][0]))
    found = _nilpotent(a)
    if found is not None:
        return found.unlabelled
    bound = _row_norm(a)
    halvings = 0
    while bound > Fraction(1, 2):
        bound, halvings = bound / 2, halvings + 1
    if halvings > HALVINGS:
        raise Undecided("an exponential too large to enclose")
    total = _taylor(a.scaled(exact(Fraction(1, 2**halvings))), bound)
    for _ in range(halvings):
        total = total * total
    return total.unlabelled


def exponential_of(x: Element) -> Element:
    """The exponential of a number."""
    return exponential(single(x)).rows[0][0]


def exponential_of_series(x: Series) -> Element:
    """From y' = x' y: k y_k = sum of i x_i y_{k-i} over 0 < i <= k."""
    found = [exponential_of(x.coefficients[0])]
    weighted = [exact(i) * c for i, c in enumerate(x.coefficients)]
    for k in range(1, x.cut):
        found.append(exact(Fraction(1, k)) * convolved(weighted, found, k, 1))
    return series(x.level, x.order, found)


def _row_norm(a: Matrix) -> Fraction:
    return max((sum(map(norm, r), Fraction(0)) for r in a.rows), default=Fraction(0))


def _taylor(b: Matrix, bound: Fraction) -> Matrix:
    bound = Fraction(ceil(bound * 2**20), 2**20)
    terms, rest = 1, bound
    while 2 * rest * bound / (terms + 1) > Fraction(1, 2**iv.prec):
        terms += 1
        rest = rest * bound / terms
    error = 2 * rest * bound / (terms + 1)
    one, total = eye(b.height), eye(b.height)
    for k in range(terms, 0, -1):
        total = one + (b * total).mapped(enclosed).scaled(exact(Fraction(1, k)))
    variables = sorted(_variables(b).items(), reverse=True)
    real = all(n.real for e in b.entries for n in numbers(e))
    return total.mapped(lambda x: widened(x, error, real, variables))


def _variables(a: Matrix) -> dict[int, int]:
    found: dict[int, int] = {}
    for e in a.entries:
        for level, order in orders(e).items():
            if order is None:
                raise NotPolynomial("a variable of integration")
            found[level] = order
    return found


def _nilpotent(a: Matrix) -> Matrix | None:
    """The finite exponential of a matrix of exact elements, one of whose powers is 0; else None."""
    if not all(n.exact for e in a.entries for n in numbers(e)):
        return None
    if not _vanishes(power(a.mapped(base), a.height)):
        return None
    total, term, k = eye(a.height), a, 1
    while not _vanishes(term):
        total, k = total + term, k + 1
        term = (term * a).scaled(exact(Fraction(1, k)))
    return total


def _vanishes(a: Matrix) -> bool:
    return all(map(exactly_zero, a.entries))
