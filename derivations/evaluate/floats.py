"""Double precision, for the oracle at sizes where exact arithmetic is too slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .balls import Balls
from .errors import Singular, UnsupportedTerm
from .systems import Comparison, Number, System, Truth, Value


def _float(x: Number) -> complex | float:
    return complex(float(x[0]), float(x[1])) if isinstance(x, tuple) else float(x)


@dataclass(frozen=True)
class Floats(System):
    """float64 matrices; complex128 ones where an entry is complex."""

    name: str = "float64"
    complex = True

    def of(self, rows: int, cols: int, numbers: Sequence[Sequence[Number]]) -> Value:
        return np.array([[_float(x) for x in r] for r in numbers]).reshape(rows, cols)

    def build(self, rows: int, cols: int, flat: list[Any]) -> Value:
        return np.array(flat, dtype=None if flat else float).reshape(rows, cols)

    def zeros(self, rows: int, cols: int) -> Value:
        return np.zeros((rows, cols))

    def eye(self, n: int) -> Value:
        return np.eye(n)

    def shape(self, a: Value) -> tuple[int, int]:
        return a.shape

    def table(self, a: Value) -> list[list[Any]]:
        return a.tolist()

    def mul(self, a: Value, b: Value) -> Value:
        return a @ b

    def scale(self, s: Value, a: Value) -> Value:
        return s * a

    def transpose(self, a: Value) -> Value:
        return a.T

    def conj(self, a: Value) -> Value:
        return a.conj()

    def hadamard(self, a: Value, b: Value) -> Value:
        return a * b

    def inverse(self, a: Value) -> Value:
        try:
            return np.linalg.inv(a)
        except np.linalg.LinAlgError:
            raise Singular("the inverse of a singular matrix") from None

    def stack(self, rows: Sequence[Value], cols: int) -> Value:
        return np.concatenate(list(rows)) if rows else np.zeros((0, cols))

    def exp(self, a: Value) -> Value:
        if a.shape == (1, 1):
            return np.exp(a)
        balls = Balls()
        with balls.context():
            exact = [[(float(x.real), float(x.imag)) for x in r] for r in balls.exp(_acb_mat(a)).tolist()]
        pairs = np.array(exact).reshape(*a.shape, 2)
        return pairs[..., 0] + 1j * pairs[..., 1] if np.iscomplexobj(a) else pairs[..., 0]

    def log(self, a: Value) -> Value:
        if not np.iscomplexobj(a) and a[0, 0] <= 0:
            raise Singular("the logarithm of a number that is not positive")
        return np.log(a)

    def sqrt(self, a: Value) -> Value:
        if not np.iscomplexobj(a) and a[0, 0] < 0:
            raise Singular("the square root of a negative number")
        return np.sqrt(a)

    def root_of_unity(self, n: int) -> Value:
        return np.exp(np.array([[2j * np.pi / n]]))

    def equal(self, a: Value, b: Value) -> Comparison:
        raise UnsupportedTerm("float64 decides nothing")

    def nonzero(self, a: Value) -> Truth:
        raise UnsupportedTerm("float64 decides nothing")

    invertible = nonzero

    def entry_text(self, x: Any) -> str:
        return repr(x)


def _acb_mat(a: Value) -> Value:
    from flint import acb, acb_mat

    return acb_mat(a.shape[0], a.shape[1], [acb(x.real, x.imag) for x in a.ravel().tolist()])
