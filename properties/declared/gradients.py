"""Directional derivatives of a declared layer, and how far a backward pass may be from them.

The value is a complex step through the declaration. The bound runs the declaration over time in sizes and errors (`Rounded`), each
with a complex step in the sizes of the direction: the derivative of the sum of the absolute values of all terms, in any order, and
of its error. A backward pass evaluates the same terms with at most three times the forward roundings, and sums what is shared over
tokens and members of the batch; the slope in a direction is a sum over all entries, in float64. Where a product of decays is too
small to be held, what it multiplies is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isoform.derivations.evaluate.errors import EvaluationError
from isoform.derivations.layer.classify import states

from ..bounds import EXACT, EXPONENTIAL, gamma
from ..operator import Instance
from ..oracle import STEP
from ..tensors import precision
from .layer import Layer
from .numbers import Rounded, Value, frame, value
from .token import NOTHING, spread

Array = np.ndarray[Any, Any]
BACKWARD = 3
"""The roundings of a backward pass for one of a forward pass."""


def derive(layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
    """The derivative of Σ weights · o + Σ final · S_T in a direction, and its bound."""
    out, last = layer.slope(x, toward, push)
    found = float((weights * layer.read_out(out)).sum() + (final * layer.handed(last)).sum())
    try:
        return found, _bound(layer, x, toward, push, weights, final)
    except EvaluationError:  # a term whose roundings are not counted
        return found, np.inf


def _bound(layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> float:
    p, length, batch = precision(x.dtype, x.precision), layer.length(x), layer.lead(x)[0]
    size, error = _sizes(layer, x, toward, push, np.abs(weights), np.abs(final), Rounded(unit=p.unit, tiny=p.tiny), free=False)
    lost, _ = _sizes(layer, x, toward, push, np.abs(weights), np.abs(final), Rounded(), free=True) if _decays(layer) else (0.0, 0.0)
    entries = sum(a.size for a in toward.values()) + (0 if push is None else push.size)
    shared = (gamma(batch * (length + 1), p.unit) + gamma(entries, EXACT.unit)) * size
    bound = BACKWARD * error + shared + p.tiny * BACKWARD * (length + 1) * lost
    return np.inf if np.isnan(bound) else bound


def _decays(layer: Layer) -> list[str]:
    return [a.name for a in layer.arguments if a.log or a.domain.high in (0, 1)]


def _sizes(
    layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array, system: Rounded, free: bool
) -> tuple[float, float]:
    """The sum of the absolute values of the terms of the derivative, and its error; ``free`` is without decays."""
    with np.errstate(all="ignore"):
        return _summed(layer, x, _values(layer, x, toward, push, system, free), weights, final, system)


def _summed(layer: Layer, x: Instance, values: Mapping[str, Value], weights: Array, final: Array, system: Rounded) -> tuple[float, float]:
    length = layer.length(x)
    at = frame(system, values, layer.sizes(x), by_time=True)
    t = layer.declaration.t
    lead = (*layer.lead(x), 1, 1)
    rows = [_wide(value(layer.declaration.output, at), lead) for _ in at.each(t, range(1, length + 1))]
    found = np.zeros(2)
    if rows:
        both = (np.stack(part, 2) for part in zip(*rows, strict=True))
        found += [float((weights * layer.read_out(part)).sum()) for part in both]
    ends = [_wide(value(s[length], at), lead) for s in states(layer.declaration)]
    found += [float((final * layer.handed(part)).sum()) for part in zip(*ends, strict=True)]
    return float(found[0]), float(found[1])


def _wide(found: Value, lead: tuple[int, ...]) -> tuple[Array, Array]:
    """The derivatives of size and error, for every sequence and head."""
    ((_, size, error),) = spread((found,), ((np.zeros(lead),),))
    return np.imag(size) / STEP, np.imag(error) / STEP


def _values(
    layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, system: Rounded, free: bool
) -> dict[str, Value]:
    """Inputs and initial states with their sizes, those of their change, and their errors."""
    entered, along = layer.entered(x), layer.entered(x, toward)
    decays = _decays(layer) if free else []
    found: dict[str, Value] = {}
    for a in layer.arguments:
        given, change = np.where(np.isneginf(entered[a.name]), NOTHING, entered[a.name]), np.abs(along[a.name])
        if a.name in decays:
            given = np.zeros_like(given) if a.log or a.domain.high == 0 else np.ones_like(given)
        summed = system.unit * (layer.length(x) + 3)  # a sum of logarithms over a range
        relative: Any = summed if a.domain.high == 0 else 0.0
        if a.log:
            relative = system.unit * EXPONENTIAL + summed * np.abs(given)
            given, change = np.exp(given), change * np.exp(given)
        size = np.abs(given) + 1j * STEP * change
        here = (given, size, size * relative)
        found[a.atom] = here if a.sequence else tuple(v[:, :, 0] for v in here)
    shift = layer.begun(replace(x, state=push))
    for v, s, d in zip(layer.initial, layer.begun(x), shift, strict=True):
        found[v.name] = (s, np.abs(s) + 1j * STEP * np.abs(d), np.zeros_like(s))
    return found
