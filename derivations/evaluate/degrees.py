"""Degrees: a system whose values bound the degrees of rational functions of the drawn entries.

A matrix N/D with one common denominator is (degree of N, degree of D). A false identity between two
such values survives a uniform draw from GF(p) with probability at most ``gap / p``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .systems import Comparison, Number, System, Truth, Value


class Degree(NamedTuple):
    """The shape of a matrix, and bounds on its degrees."""

    rows: int
    cols: int
    num: int = 0
    den: int = 0


def gap(a: Degree, b: Degree) -> int:
    """A bound on the degree of the polynomial that vanishes where a = b."""
    return max(a.num + b.den, b.num + a.den)


def _common(parts: Sequence[Degree]) -> tuple[int, int]:
    den = sum(p.den for p in parts)
    return max((p.num + den - p.den for p in parts), default=0), den


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
        return Degree(a.rows, b.cols, a.num + b.num, a.den + b.den)

    def scale(self, s: Value, a: Value) -> Value:
        return Degree(a.rows, a.cols, a.num + s.num, a.den + s.den)

    def transpose(self, a: Value) -> Value:
        return Degree(a.cols, a.rows, a.num, a.den)

    def hadamard(self, a: Value, b: Value) -> Value:
        return self.scale(a, b)

    def inverse(self, a: Value) -> Value:
        return Degree(a.rows, a.cols, a.den + max(a.rows - 1, 0) * a.num, a.rows * a.num)

    def trace(self, a: Value) -> Value:
        return Degree(1, 1, a.num, a.den)

    def part(self, a: Value, top: int, bottom: int, left: int, right: int) -> Value:
        return Degree(bottom - top, right - left, a.num, a.den)

    def stack(self, rows: Sequence[Value], cols: int) -> Value:
        return Degree(len(rows), cols, *_common(rows))

    def block(self, grid: Sequence[Sequence[Value]]) -> Value:
        rows, cols = sum(r[0].rows for r in grid), sum(b.cols for b in grid[0])
        return Degree(rows, cols, *_common([b for r in grid for b in r]))

    def diag(self, v: Value) -> Value:
        return Degree(v.rows, v.rows, v.num, v.den)

    def reshape(self, a: Value, rows: int, cols: int) -> Value:
        return Degree(rows, cols, a.num, a.den)

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
