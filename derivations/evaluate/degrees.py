"""Degrees: a system whose values bound the degrees of rational functions of the drawn entries.

A matrix N/D with one common denominator is the degree of N, and D as a product of the determinants that were divided by: a sum
is over their least common multiple. A false identity between two such values survives a uniform draw from GF(p) with
probability at most ``gap / p``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .systems import Comparison, Number, System, Truth, Value


@dataclass(frozen=True, eq=False)
class Divisor:
    """What was divided by, a polynomial of at most this degree; each division has its own."""

    degree: int


Divisors = Mapping[Divisor, int]
"""A product of divisors, each so many times."""


@dataclass(frozen=True)
class Degree:
    """The shape of a matrix, a bound on the degree of its numerators, and their common denominator."""

    rows: int
    cols: int
    num: int = 0
    divisors: Divisors = field(default_factory=dict)

    @property
    def den(self) -> int:
        """A bound on the degree of the denominator."""
        return _degree(self.divisors)


def gap(a: Degree, b: Degree) -> int:
    """A bound on the degree of the polynomial that vanishes where a = b."""
    return _common((a, b))[0]


def _degree(x: Divisors) -> int:
    return sum(d.degree * times for d, times in x.items())


def _common(parts: Iterable[Degree]) -> tuple[int, Divisors]:
    """Over the least common multiple of the denominators: a bound on the degree of the numerators, and it."""
    parts = list(parts)
    least: dict[Divisor, int] = {}
    for p in parts:
        least |= {d: max(times, least.get(d, 0)) for d, times in p.divisors.items()}
    return max((p.num + _degree(least) - p.den for p in parts), default=0), least


def _product(a: Divisors, b: Divisors) -> Divisors:
    return {**a, **{d: times + a.get(d, 0) for d, times in b.items()}}


@dataclass(frozen=True)
class Degrees(System):
    """Bounds on degrees, computed like values."""

    name: str = "degrees"
    complex = True

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        return Degree(rows, cols)

    def atom(self, rows: int, cols: int) -> Value:
        """A matrix of independently drawn entries."""
        return Degree(rows, cols, 1)

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        return Degree(rows, cols, *_common(flat))

    def shape(self, a: Value) -> tuple[int, int]:
        return a.rows, a.cols

    def table(self, a: Value) -> list[list[Any]]:
        raise NotImplementedError("a degree has no entries")

    def add(self, a: Value, b: Value) -> Value:
        return Degree(a.rows, a.cols, *_common((a, b)))

    def mul(self, a: Value, b: Value) -> Value:
        return Degree(a.rows, b.cols, a.num + b.num, _product(a.divisors, b.divisors))

    def scale(self, s: Value, a: Value) -> Value:
        return Degree(a.rows, a.cols, a.num + s.num, _product(a.divisors, s.divisors))

    def transpose(self, a: Value) -> Value:
        return Degree(a.cols, a.rows, a.num, a.divisors)

    def hadamard(self, a: Value, b: Value) -> Value:
        return self.scale(a, b)

    def inverse(self, a: Value) -> Value:
        return Degree(a.rows, a.cols, a.den + max(a.rows - 1, 0) * a.num, {Divisor(a.rows * a.num): 1})

    def trace(self, a: Value) -> Value:
        return Degree(1, 1, a.num, a.divisors)

    def part(self, a: Value, top: int, bottom: int, left: int, right: int) -> Value:
        return Degree(bottom - top, right - left, a.num, a.divisors)

    def stack(self, rows: Sequence[Value], cols: int) -> Value:
        return Degree(len(rows), cols, *_common(rows))

    def block(self, grid: Sequence[Sequence[Value]]) -> Value:
        rows, cols = sum(r[0].rows for r in grid), sum(b.cols for b in grid[0])
        return Degree(rows, cols, *_common([b for r in grid for b in r]))

    def diag(self, v: Value) -> Value:
        return Degree(v.rows, v.rows, v.num, v.divisors)

    def reshape(self, a: Value, rows: int, cols: int) -> Value:
        return Degree(rows, cols, a.num, a.divisors)

    def root_of_unity(self, n: int) -> Value:
        return Degree(1, 1)

    def equal(self, a: Value, b: Value) -> Comparison:
        return Comparison(None, float(min(gap(a, b), 2**62)))

    def nonzero(self, a: Value) -> Truth:
        return True

    def invertible(self, a: Value) -> Truth:
        return True

    def entry_text(self, x: Any) -> str:
        return str(x)
