"""One token of a declared layer, every token of a run at once: its updates, its read-out, and their Jacobians."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Basic

from isoform.derivations.kernel.terms import Term

from ..bounds import EXPONENTIAL
from ..operator import Instance
from ..oracle import STEP
from .layer import Layer
from .numbers import Floats, Rounded, Value, frame, value

Array = np.ndarray[Any, Any]
NOTHING = -1e4
"""In the place of a logarithm of -∞: its exponential is 0."""


@dataclass(frozen=True)
class Token:
    """A layer's token, every token of a run at once: values (b, h, t, …) by the names of its terms."""

    layer: Layer
    sizes: Mapping[Basic, int]
    inputs: Mapping[str, Array]
    before: tuple[Array, ...]

    def updated(self, system: Floats, states: tuple[Value, ...]) -> tuple[Value, ...]:
        """The states after the token."""
        at = dict(self._values(system)) | {v.name: s for v, s in zip(self.layer.steps.before, states, strict=True)}
        found = []
        for v, update in zip(self.layer.steps.now, self.layer.steps.updates, strict=True):
            at[v.name] = value(update, self._frame(system, at))
            found.append(at[v.name])
        return tuple(found)

    def read(self, system: Floats, before: tuple[Value, ...], now: tuple[Value, ...]) -> Value:
        """The output."""
        names = [v.name for v in (*self.layer.steps.before, *self.layer.steps.now)]
        at = dict(self._values(system)) | dict(zip(names, (*before, *now), strict=True))
        return value(self.layer.steps.output, self._frame(system, at))

    def term(self, x: Term) -> Array:
        """The value of a term in the inputs."""
        return value(x, self._frame(Floats(), self._values(Floats())))[0]

    def _frame(self, system: Floats, values: Mapping[str, Value]) -> Any:
        return frame(system, values, {**self.sizes, self.layer.declaration.t: 1})

    def _values(self, system: Floats) -> Mapping[str, Value]:
        return {n: (a, np.abs(a), self._error(system, n, a)) if isinstance(system, Rounded) else (a,) for n, a in self.inputs.items()}

    def _error(self, system: Rounded, name: str, a: Array) -> Array:
        """An exponential is rounded, other inputs are what they are."""
        logs = {b.atom for b in self.layer.arguments if b.log}
        return EXPONENTIAL * system.unit * a + system.tiny if name in logs else np.zeros_like(a)


def token(layer: Layer, x: Instance, before: tuple[Array, ...]) -> Token:
    """The tokens of a call, with the states that they find."""
    entered = layer.entered(x)
    inputs = {}
    for a in layer.arguments:
        given = np.where(np.isneginf(entered[a.name]), NOTHING, entered[a.name])
        inputs[a.atom] = np.exp(given) if a.log else given
    return Token(layer, layer.sizes(x), inputs, before)


def flat(parts: tuple[Array, ...]) -> Array:
    """Matrices (…, rows, cols) as one vector (…, n)."""
    return np.concatenate([row(p) for p in parts], -1)


def row(x: Array) -> Array:
    """A matrix (…, rows, cols) as a vector."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def shaped(x: Array, like: tuple[Array, ...]) -> tuple[Array, ...]:
    """Undo `flat`."""
    ends = np.cumsum([p.shape[-2] * p.shape[-1] for p in like])[:-1]
    return tuple(v.reshape(*v.shape[:-1], *p.shape[-2:]) for v, p in zip(np.split(x, ends, -1), like, strict=True))


def directions(like: tuple[Array, ...]) -> tuple[Array, ...]:
    """One complex step for each entry of the states, in an axis in front."""
    n = sum(p.shape[-2] * p.shape[-1] for p in like)
    steps = shaped(1j * STEP * np.eye(n), like)
    return tuple(s.reshape(n, *(1,) * (p.ndim - 2), *p.shape[-2:]) for s, p in zip(steps, like, strict=True))


def slopes(found: Array) -> Array:
    """The matrix (…, m, n) of derivatives of vectors (n, …, m) that have a direction in front."""
    return np.moveaxis(np.imag(found) / STEP, 0, -1)


def jacobians(at: Token, states: tuple[Array, ...]) -> Array:
    """The derivatives (b, h, t, n, n) of the states after a token by those before it."""
    moved = tuple((s + d,) for s, d in zip(states, directions(states), strict=True))
    return slopes(flat(tuple(v[0] + 0j for v in spread(at.updated(Floats(), moved), moved))))


def spread(found: tuple[Value, ...], like: tuple[Value, ...]) -> tuple[Value, ...]:
    """Results with the leading axes of the states, on which they need not depend."""
    lead = np.broadcast_shapes(*(v[0].shape[:-2] for v in like))
    return tuple(tuple(np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in v) for v in found)
