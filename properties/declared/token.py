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
from .layer import Layer
from .numbers import Floats, Moving, Rounded, Value, frame, value

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
        return {n: self._value(system, n, a) for n, a in self.inputs.items()}

    def _value(self, system: Floats, name: str, a: Array) -> Value:
        """An exponential is rounded, other inputs are what they are; none changes."""
        if isinstance(system, Moving):
            return a, np.zeros_like(a)
        if not isinstance(system, Rounded):
            return (a,)
        logs = {b.atom for b in self.layer.arguments if b.log}
        return a, np.abs(a), EXPONENTIAL * system.unit * a + system.tiny if name in logs else np.zeros(a.shape)


def token(layer: Layer, x: Instance, before: tuple[Array, ...]) -> Token:
    """The tokens of a call, with the states that they find."""
    entered = layer.entered(x)
    inputs = {}
    for a in layer.arguments:
        given = held(entered[a.name])
        inputs[a.atom] = np.exp(given) if a.log else given
    return Token(layer, layer.sizes(x), inputs, before)


def held(x: Array) -> Array:
    """Numbers that can be added and multiplied: -∞, the logarithm of 0, is `NOTHING`."""
    return x if np.iscomplexobj(x) else np.where(np.isneginf(x), NOTHING, x)


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
    """A unit vector for each entry of the states, in an axis in front."""
    n = sum(p.shape[-2] * p.shape[-1] for p in like)
    units = shaped(np.eye(n), like)
    return tuple(s.reshape(n, *(1,) * (p.ndim - 2), *p.shape[-2:]) for s, p in zip(units, like, strict=True))


def moved(states: tuple[Array, ...], by: complex = 1.0) -> tuple[Value, ...]:
    """States that change in every direction, times a number."""
    changes = (by * d for d in directions(states))
    return tuple((s, np.broadcast_to(d, np.broadcast_shapes(d.shape, s.shape))) for s, d in zip(states, changes, strict=True))


def columns(found: Array) -> Array:
    """The matrix (…, m, n) of derivatives of vectors (n, …, m) that have a direction in front."""
    return np.moveaxis(found, 0, -1)


def jacobians(at: Token, states: tuple[Array, ...]) -> Array:
    """The derivatives (b, h, t, n, n) of the states after a token by those before it, which it does not conjugate."""
    given = moved(states)
    return columns(flat(tuple(v[1] for v in spread(at.updated(Moving(), given), given))))


def spread(found: tuple[Value, ...], like: tuple[Value, ...]) -> tuple[Value, ...]:
    """Results with the leading axes of the states, on which they need not depend."""
    lead = np.broadcast_shapes(*(a.shape[:-2] for v in like for a in v))
    return tuple(tuple(np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in v) for v in found)
