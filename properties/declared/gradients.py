"""Directional derivatives of a declared layer, and how far a backward pass may be from them.

The value runs the declaration over time in dual numbers (`Moving`), the bound in sizes and errors (`Rounded`), each with a complex
step in the sizes of the direction: the derivative of the sum of the absolute values of all terms, in any order, and of its error.
A backward pass evaluates the same terms with at most three times the forward roundings, and sums what is shared over tokens and
members of the batch; the slope in a direction is a sum over all entries, in float64. Where a product of decays is too small to be
held, what it multiplies is lost.
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
from .numbers import Floats, Moving, Rounded, Value, frame, value
from .token import held, spread

Array = np.ndarray[Any, Any]
BACKWARD = 3
"""The roundings of a backward pass for one of a forward pass."""


def derive(layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
    """The derivative of Re Σ weights* · o + Re Σ final* · S_T in a direction, and its bound."""
    with np.errstate(all="ignore"):
        (_, change), (_, last) = _run(layer, x, _moving(layer, x, toward, push), Moving())
    found = float(np.vdot(weights, change).real + np.vdot(final, last).real)
    try:
        return found, _bound(layer, x, toward, push, weights, final)
    except EvaluationError:  # a term whose roundings are not counted
        return found, np.inf


def _bound(layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> float:
    p, length, batch = precision(x.dtype, x.precision), layer.length(x), layer.lead(x)[0]
    p = replace(p, unit=p.unit * layer.roundings)
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
    (_, *outputs), (_, *last) = _run(layer, x, values, system)
    size, error = (float((weights * o.imag).sum() + (final * s.imag).sum()) / STEP for o, s in zip(outputs, last, strict=True))
    return size, error


def _run(layer: Layer, x: Instance, values: Mapping[str, Value], system: Floats) -> tuple[Value, Value]:
    """Outputs and last state as they are handed over, of every sequence and head."""
    length, t, lead = layer.length(x), layer.declaration.t, ((np.zeros((*layer.lead(x), 1, 1)),),)
    at = frame(system, values, layer.sizes(x), by_time=True)
    rows = [spread((value(layer.declaration.output, at),), lead)[0] for _ in at.each(t, range(1, length + 1))]
    ends = [spread((value(s[length], at),), lead)[0] for s in states(layer.declaration)]
    none = np.zeros((*layer.lead(x), 0, *layer.output_shape(x)))
    parts = zip(*rows, strict=True) if rows else ((),) * len(ends[0])
    outputs = tuple(layer.read_out(np.concatenate([none, *(p[:, :, None] for p in part)], 2)) for part in parts)
    return outputs, tuple(map(layer.handed, zip(*ends, strict=True)))


def _moving(layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None) -> dict[str, Value]:
    """Inputs and initial states with their change."""
    entered, along = layer.entered(x), layer.entered(x, toward)
    found: dict[str, Value] = {}
    for a in layer.arguments:
        given, change = held(entered[a.name]), along[a.name]
        here = (np.exp(given), np.exp(given) * change) if a.log else (given, change)
        found[a.atom] = here if a.sequence else (here[0][:, :, 0], here[1][:, :, 0])
    return found | {v.name: (s, d) for v, s, d in zip(layer.initial, layer.begun(x), layer.begun(replace(x, state=push)), strict=True)}


def _values(
    layer: Layer, x: Instance, toward: Mapping[str, Array], push: Array | None, system: Rounded, free: bool
) -> dict[str, Value]:
    """Inputs and initial states with their sizes, those of their change, and their errors."""
    entered, along = layer.entered(x), layer.entered(x, toward)
    decays = _decays(layer) if free else []
    found: dict[str, Value] = {}
    for a in layer.arguments:
        given, change = held(entered[a.name]), np.abs(along[a.name])
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
        found[v.name] = (s, np.abs(s) + 1j * STEP * np.abs(d), np.zeros(s.shape))
    return found
