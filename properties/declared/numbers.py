"""Number systems of float64 for the terms of a declaration, many matrices at once: plain, with derivatives, with rounding errors.

A value is a tuple of arrays (…, rows, cols): the numbers alone, real or complex; or with them their change in some direction; or
``size``, the sum of the absolute values of all terms, and ``error``, how far a form may be off that evaluates the term in any
order of its sums and products. Size and error, which are real, may have an imaginary part of a complex step, `STEP` times their
derivative in a direction of non-negative changes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
from scipy.linalg import expm
from sympy import Basic

from isoform.derivations.evaluate.errors import Singular, Undefined, UnsupportedTerm
from isoform.derivations.evaluate.frame import TOP, Frame
from isoform.derivations.evaluate.program import compiled
from isoform.derivations.evaluate.systems import Number, System, Truth
from isoform.derivations.kernel.terms import Apply, Named, Term, unnamed
from isoform.derivations.layer.functions import absolute, larger
from isoform.derivations.layer.torch_terms import is_complex

from ..bounds import EXPONENTIAL, SPLIT, gamma
from ..oracle import STEP

Array = np.ndarray[Any, Any]
Value = tuple[Array, ...]
Function = Callable[[Array], Array]
FUNCTION = EXPONENTIAL
"""Units in the last place of a function, its argument being right."""


@dataclass(frozen=True)
class Floats(System):
    """float64 matrices, or complex128 ones."""

    name: str = "float64, many at once"

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        return (np.array([[float(x) for x in r] for r in numbers]).reshape(rows, cols),)  # type: ignore[arg-type]

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        raise UnsupportedTerm("many matrices at once have no single entries")

    def shape(self, a: Value) -> tuple[int, int]:
        return a[0].shape[-2], a[0].shape[-1]

    def table(self, a: Value) -> list[list[Any]]:
        raise UnsupportedTerm("many matrices at once have no single entries")

    def entry_text(self, x: Any) -> str:
        return repr(x)

    def equal(self, a: Value, b: Value) -> Any:
        raise UnsupportedTerm("float64 decides nothing")

    def nonzero(self, a: Value) -> Truth:
        raise UnsupportedTerm("float64 decides nothing")

    invertible = nonzero

    # what moves entries about

    def conj(self, a: Value) -> Value:
        return (a[0].conj(), *a[1:])

    def transpose(self, a: Value) -> Value:
        return tuple(x.swapaxes(-1, -2) for x in a)

    def part(self, a: Value, top: int, bottom: int, left: int, right: int) -> Value:
        return tuple(x[..., top:bottom, left:right] for x in a)

    def stack(self, rows: Sequence[Value], cols: int) -> Value:
        return tuple(_joined(x, -2) for x in zip(*rows, strict=True)) if rows else self.zeros(0, cols)

    def block(self, grid: Sequence[Sequence[Value]]) -> Value:
        lines = [[_joined(x, -1) for x in zip(*row, strict=True)] for row in grid]
        return tuple(_joined(x, -2) for x in zip(*lines, strict=True))

    def diag(self, v: Value) -> Value:
        return tuple(x * np.eye(x.shape[-2]) for x in v)

    def reshape(self, a: Value, rows: int, cols: int) -> Value:
        return tuple(x.reshape(*x.shape[:-2], rows, cols) for x in a)

    def trace(self, a: Value) -> Value:
        ones = self.of(1, self.shape(a)[0], ((1,) * self.shape(a)[0],))
        return self.mul(self.mul(ones, self.hadamard(a, self.eye(self.shape(a)[0]))), self.transpose(ones))

    # arithmetic

    def add(self, a: Value, b: Value) -> Value:
        return (a[0] + b[0],)

    def mul(self, a: Value, b: Value) -> Value:
        return (a[0] @ b[0],)

    def scale(self, s: Value, a: Value) -> Value:
        return self.hadamard(s, a)

    def hadamard(self, a: Value, b: Value) -> Value:
        return (a[0] * b[0],)

    def inverse(self, a: Value) -> Value:
        if self.shape(a) != (1, 1):
            return self._inverse(a)
        return self._entries(a, lambda x: 1 / x, lambda x: -(x**-2), lambda x: 2 * x**-3)

    def exp(self, a: Value) -> Value:
        n = self.shape(a)[0]
        if n == 1:
            return self._entries(a, np.exp, np.exp, np.exp)
        kept = np.eye(n)
        if any(np.any(x * (1 - kept)) for x in a):
            return self._exponential(a)
        return tuple(x * kept for x in self._entries(a, np.exp, np.exp, np.exp))

    def log(self, a: Value) -> Value:
        return self._entries(a, np.log, lambda x: 1 / x, lambda x: -(x**-2))

    def sqrt(self, a: Value) -> Value:
        return self._entries(a, np.sqrt, lambda x: x**-0.5 / 2, lambda x: -(x**-1.5) / 4)

    def abs(self, a: Value) -> Value:
        """|x| of real numbers."""
        return (np.abs(a[0]),)

    def max(self, a: Value, b: Value) -> Value:
        """The larger of two real numbers."""
        return (np.maximum(np.real(a[0]), np.real(b[0])),)

    def _inverse(self, a: Value) -> Value:
        try:
            return (np.linalg.inv(a[0]),)
        except np.linalg.LinAlgError:
            raise Singular("the inverse of a singular matrix") from None

    def _exponential(self, a: Value) -> Value:
        return (expm(a[0]),)

    def _entries(self, a: Value, f: Function, slope: Function, bend: Function) -> Value:
        """A function of entries, with its two derivatives."""
        return (f(a[0]),)


@dataclass(frozen=True)
class Moving(Floats):
    """Numbers beside their change in a direction, or in many that are an axis in front of it: dual numbers."""

    name: str = "float64 beside its derivatives"

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        (x,) = super().of(rows, cols, numbers)
        return x, np.zeros_like(x)

    def conj(self, a: Value) -> Value:
        return a[0].conj(), a[1].conj()

    def add(self, a: Value, b: Value) -> Value:
        return a[0] + b[0], a[1] + b[1]

    def mul(self, a: Value, b: Value) -> Value:
        return a[0] @ b[0], a[1] @ b[0] + a[0] @ b[1]

    def hadamard(self, a: Value, b: Value) -> Value:
        return a[0] * b[0], a[1] * b[0] + a[0] * b[1]

    def abs(self, a: Value) -> Value:
        return np.abs(a[0]), np.sign(np.real(a[0])) * np.real(a[1])

    def max(self, a: Value, b: Value) -> Value:
        (found,) = super().max(a, b)
        return found, np.where(np.real(a[0]) >= np.real(b[0]), np.real(a[1]), np.real(b[1]))

    def _inverse(self, a: Value) -> Value:
        (inverse,) = super()._inverse(a[:1])
        return inverse, -inverse @ a[1] @ inverse

    def _exponential(self, a: Value) -> Value:
        """By the exponential of [[A, dA], [0, A]]."""
        n = a[0].shape[-1]
        both = expm(self.block(((a[:1], a[1:]), ((np.zeros_like(a[0]),), a[:1])))[0])
        return both[..., :n, :n], both[..., :n, n:]

    def _entries(self, a: Value, f: Function, slope: Function, bend: Function) -> Value:
        """What does not change has no derivative, at a corner too."""
        return f(a[0]), np.where(a[1] == 0, 0.0, slope(a[0]) * a[1])


@dataclass(frozen=True)
class Rounded(Floats):
    """Numbers beside their sizes and errors, in a precision; where all has to be ``smooth``, nothing is known beside a corner."""

    unit: float = 0.0
    tiny: float = 0.0
    smooth: bool = False
    name: str = "float64 beside its rounding errors"

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        (x,) = super().of(rows, cols, numbers)
        size = np.abs(x)
        short = np.array([[float(n) == n and abs(n) < 2**11 and n == int(n) for n in r] for r in numbers]).reshape(rows, cols)  # type: ignore[arg-type, operator]
        return x, size, np.where(short, 0.0, self.unit * size)

    def add(self, a: Value, b: Value) -> Value:
        size = a[1] + b[1]
        return a[0] + b[0], size, a[2] + b[2] + self.unit * size

    def mul(self, a: Value, b: Value) -> Value:
        """A product, on a tensor core (`SPLIT`) or not."""
        size = a[1] @ b[1]
        count = a[0].shape[-1]
        rounding = gamma(count + SPLIT, self.unit) * size + self._lost(size, count)
        return a[0] @ b[0], size, a[2] @ b[1] + a[1] @ b[2] + a[2] @ b[2] + rounding

    def hadamard(self, a: Value, b: Value) -> Value:
        size = a[1] * b[1]
        return a[0] * b[0], size, a[2] * b[1] + a[1] * b[2] + a[2] * b[2] + self.unit * size + self._lost(size, 1)

    def _lost(self, size: Array, count: int) -> Array:
        """What may be lost of products too small to be held, and of their derivatives."""
        lost = self.tiny * count * (1 + 1j * STEP) if np.iscomplexobj(size) else self.tiny * count
        return np.where(size != 0, lost, 0.0)

    def abs(self, a: Value) -> Value:
        """An error stays as large as it is."""
        x, size, error = a
        return np.abs(x), size, error + self._corner(np.abs(x), error, size)

    def max(self, a: Value, b: Value) -> Value:
        """The larger of two errors."""
        (found,) = super().max(a[:1], b[:1])
        size, error = _larger(a[1], b[1]), _larger(a[2], b[2])
        return found, size, error + self._corner(np.abs(a[0] - b[0]), a[2] + b[2], size)

    def _corner(self, distance: Array, error: Array, size: Array) -> Array:
        """What is not known where a corner is within reach: which of two derivatives."""
        lost = np.inf if self.smooth else 2j * np.imag(size) if np.iscomplexobj(size) else 0.0
        return np.where(distance <= np.real(error), lost, 0.0)

    def _inverse(self, a: Value) -> Value:
        """X = A⁻¹ by elimination with pivots: |X| (E + γ_3n |L||U|) |X|, where |L||U| <= n 2ⁿ⁻¹ max |A| (Higham, sections 9.3 and 14.1)."""
        (inverse,) = super()._inverse(a[:1])
        n, size = self.shape(a)[0], np.abs(inverse)
        wide = size + 1j * (size @ np.imag(a[1]) @ size) if np.iscomplexobj(a[1]) else size
        largest = a[1].real.max((-2, -1), keepdims=True)
        return inverse, wide, wide @ (a[2] + gamma(3 * n, self.unit) * n * 2.0 ** (n - 1) * largest) @ wide + self.tiny

    def _exponential(self, a: Value) -> Value:
        raise UnsupportedTerm("the exponential of a matrix that is not diagonal has no bound here")

    def _entries(self, a: Value, f: Function, slope: Function, bend: Function) -> Value:
        """f(x) to first order, with what an error of the argument costs its derivative."""
        x, size, error = a
        with np.errstate(all="ignore"):
            value, first, second = f(x), np.abs(slope(x)), np.abs(bend(x))
            moved = first * np.imag(size) * 1j if np.iscomplexobj(size) else 0.0
            more = second * np.imag(size) * np.real(error) * 1j if np.iscomplexobj(size) else second * error**2
            found = np.abs(value) + moved
            error = first * error + more
        return value, found, error + FUNCTION * self.unit * found + self.tiny


def _larger(x: Array, y: Array) -> Array:
    """Real and imaginary parts of which none is smaller."""
    found = np.maximum(np.real(x), np.real(y))
    return found + 1j * np.maximum(np.imag(x), np.imag(y)) if np.iscomplexobj(x) or np.iscomplexobj(y) else found


def _joined(parts: Sequence[Array], axis: int) -> Array:
    """Arrays one behind the other, whose leading axes are spread."""
    lead = np.broadcast_shapes(*(p.shape[:-2] for p in parts))
    return np.concatenate([np.broadcast_to(p, (*lead, *p.shape[-2:])) for p in parts], axis)


@dataclass(frozen=True)
class Atoms:
    """Values by name in a system; those of a sequence may have an axis of time, and are asked for at a time."""

    system: Floats
    values: Mapping[str, Value]
    by_time: bool = False

    def atom(self, name: str, indices: tuple[int, ...], rows: int, cols: int, field: str) -> Value:
        if name not in self.values:
            raise Undefined(f"{name} is no input of the declaration")
        found = self.values[name]
        return tuple(x[..., indices[0] - 1, :, :] for x in found) if self.by_time and indices else found

    def function(self, name: str, arguments: list[Value], rows: int, cols: int, field: str) -> Value:
        if name not in CORNERS:
            raise UnsupportedTerm(f"the uninterpreted function {name} cannot be run")
        found: Value = getattr(self.system, name)(*arguments)
        return found


def frame(system: Floats, values: Mapping[str, Value], sizes: Mapping[Basic, int], by_time: bool = False) -> Frame:
    """A frame over values by name, with the sizes of the axes."""
    return Frame(system, Atoms(system, values, by_time), sizes)


CORNERS: dict[str, Callable[..., Term]] = {"abs": absolute, "max": larger}
"""Functions that make no error larger; as they are spelled, by roots of squares, they seem to."""


@cache
def called(x: Basic) -> Basic:
    """A term in which those of `CORNERS` are called, and all else is what it stands for."""
    if isinstance(x, Named):
        given = [a for a in x.arguments if isinstance(a, Term)]
        known = x.label in CORNERS and len(given) == len(x.arguments) and not any(map(is_complex, given))
        known = known and unnamed(CORNERS[x.label](*given)) == unnamed(x)
        return Apply(x.label, [cast(Term, called(a)) for a in given], 1, 1) if known else called(x.body)
    args = [called(a) for a in x.args]
    return x if all(map(operator.is_, args, x.args)) else cast(Basic, x.func(*args))


def value(x: Term, at: Frame) -> Value:
    """The value of a term. Raises EvaluationError."""
    found: Value = compiled(cast(Term, called(x)), TOP)(at)
    return found
