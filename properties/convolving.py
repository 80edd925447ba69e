"""The causal convolution under test: y_t = Σ_j w_j x_{t-W+1+j} + bias, channel by channel; the state are the last W - 1 inputs.

Time is the last axis of the arguments, and the second one here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import signal, special

from isoform.derivations.evaluate import oracle
from isoform.derivations.kernel.formulas import Declaration

from .bounds import EXACT, SPLIT, Bounds, beside_truth, gamma, stored
from .operator import Input, Instance, Operator, Reference
from .selecting import SILU, Selective
from .strategies import Case, normal
from .tensors import Precision, precision

Array = np.ndarray[Any, Any]
INPUTS = (Input("x", "b d t"), Input("weight", "d w"), Input("bias", "d"))
STEEPEST = 1.1
"""The largest slope of y σ(y)."""


def draw(case: Case) -> Instance:
    """Inputs and a start of the case's scale, which is 1 in front of an activation: else that would be a ReLU."""
    b, d, t, w = (case.size(a) for a in ("b", "d", "t", "w"))
    bent = case.has("silu") and not case.has("dyadic")
    small = bent and not case.has("huge") and not case.has("vanishing")
    inputs = {"x": normal(case, 0, b, d, t, scaled=not small), "weight": normal(case, 1, d, w, scaled=False)}
    if case.has("constant"):
        inputs["x"] = np.full_like(inputs["x"], 1.5)
    if case.has("bias"):
        inputs["bias"] = normal(case, 2, d, scaled=not small)
    start = normal(case, 3, b, d, w - 1, scaled=not small) if case.has("start") else None
    return Instance(inputs, start, {"activation": "silu"} if bent else {}, case.dtype)


@dataclass(frozen=True)
class Channel:
    """One channel of one member of the batch: arrays (T,) and (W,), a number, and the start (W - 1,)."""

    x: Array
    weight: Array
    bias: Array
    start: Array

    @property
    def inputs(self) -> Array:
        """With the start before them."""
        return np.concatenate([self.start, self.x])


def channels(x: Instance) -> Iterator[tuple[tuple[int, int], Channel]]:
    """Every channel of every member of the batch."""
    b, d, _ = x.inputs["x"].shape
    bias = x.inputs.get("bias", np.zeros(d))
    for row, i in np.ndindex(b, d):
        start = np.zeros(x.inputs["weight"].shape[1] - 1) if x.state is None else x.state[row, i]
        yield (row, i), Channel(x.inputs["x"][row, i], x.inputs["weight"][i], bias[i], start)


def refer(declaration: Declaration, x: Instance) -> Reference:
    """The truth of every channel and its bound; a state is made of inputs, so it is exact."""
    b, d, t = x.inputs["x"].shape
    w = x.inputs["weight"].shape[1]
    p, bent = precision(x.dtype, x.precision), "activation" in x.options
    out, sharp, terms = np.zeros((3, b, t, d))
    states = np.zeros((b, t + 1, d, w - 1))
    for (row, i), c in channels(x):
        given = {"x": c.x, "weight": c.weight, "bias": c.bias}
        y, s = oracle(declaration, given, length=t, system="qq", initial_state=c.start)
        y = np.asarray(y, float).reshape(t)
        states[row, :, i] = np.asarray(s, float).reshape(t + 1, w - 1)
        out[row, :, i] = y * special.expit(y) if bent else y
        found = beside_truth(partial(bound, c, y, bent), p)
        sharp[row, :, i], terms[row, :, i] = found.output, found.terms
    return Reference(out, stored(sharp, out, terms, p), sharp, states, np.zeros_like(states))


def size(c: Channel) -> Array:
    """Σ |term| of every row."""
    return taps(np.abs(c.inputs), np.abs(c.weight)) + np.abs(c.bias)


def taps(inputs: Array, weight: Array) -> Array:
    """Σ_j w_j x_{t-W+1+j} for every t."""
    windows = np.lib.stride_tricks.sliding_window_view(inputs, len(weight)) if len(inputs) >= len(weight) else np.zeros((0, len(weight)))
    return np.asarray(windows @ weight)


def bound(c: Channel, y: Array, bent: bool, p: Precision) -> Bounds:
    """W products, as many sums, and the activation, which multiplies an error by its steepest slope at most."""
    terms = size(c)
    rows = gamma(len(c.weight) + 1 + SPLIT, p.unit) * terms + p.tiny * (len(c.weight) + 1)
    if bent:
        rows = STEEPEST * rows + gamma(SILU, p.unit) * np.abs(y * special.expit(y)) + p.tiny * (1 + np.abs(y))
        terms = STEEPEST * terms
    return Bounds(rows, np.zeros((len(y) + 1, len(c.start))), terms)


def derive(
    declaration: Declaration, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array
) -> tuple[float, float]:
    """The derivative of Σ weights · y + Σ final · state in a direction, and its bound.

    The output is linear in the inputs and in the weight, so the derivative is the declaration's value of each beside the
    direction of the other. The slope of the activation is off where the row is.
    """
    moves = replace(x, inputs={n: toward.get(n, np.zeros_like(a)) for n, a in x.inputs.items()}, state=push)
    p, bent, value, total = precision(x.dtype, x.precision), "activation" in x.options, 0.0, 0.0
    for ((row, i), c), (_, move) in zip(channels(x), channels(moves), strict=True):
        w, f, y = weights[row, :, i], final[row, i], taps(c.inputs, c.weight) + c.bias
        change = taps(move.inputs, c.weight) + taps(c.inputs, move.weight) + move.bias
        most = taps(np.abs(move.inputs), np.abs(c.weight)) + taps(np.abs(c.inputs), np.abs(move.weight)) + np.abs(move.bias)
        slope, loose = np.ones_like(y), np.zeros_like(y)
        if bent:
            sigma = special.expit(y)
            slope = sigma * (1 + y * (1 - sigma))
            loose = bound(c, y, False, p).output / 2 + gamma(2 * SILU, p.unit) * (1 + np.abs(y)) * sigma
        last = move.inputs[len(y) :]
        value += float(w @ (slope * change) + f @ last)
        count = gamma(x.inputs["x"].size + 3 * len(c.weight) + SPLIT + 4, p.unit) + gamma(4, EXACT.unit)
        total += float(np.abs(w) @ ((count * np.abs(slope) + loose) * most) + count * (np.abs(f) @ np.abs(last)))
    return value, total + p.tiny * (x.inputs["x"].size + 1)


def independent(x: Instance) -> Array:
    """The outputs (B, T, D) by SciPy's correlation."""
    b, d, t = x.inputs["x"].shape
    out = np.zeros((b, t, d))
    for (row, i), c in channels(x):
        if t:
            out[row, :, i] = signal.correlate(c.inputs, c.weight, mode="valid", method="direct") + c.bias
    return out * special.expit(out) if "activation" in x.options else out


def operator(declaration: Declaration, **more: Any) -> Operator:
    """The operator with this declaration."""
    call: Callable[..., Any] = partial(refer, declaration)
    return Filter(
        name=declaration.operator,
        declaration=declaration,
        inputs=INPUTS,
        state_axes="b d w-1",
        draw=draw,
        refer=call,
        derive=partial(derive, declaration),
        independent=independent,
        needed={"silu": "activation", "bias": "bias"},
        silent=("x",),
        state_argument="initial_states",
        final_argument="return_final_states",
        **more,
    )


@dataclass(frozen=True, eq=False)
class Filter(Selective):
    """A causal convolution, with time as the selective scan has it; its state are inputs, in their dtype."""

    def token(self, step: Callable[..., Any], x: Instance, t: int) -> dict[str, Any]:
        """The arguments of a step."""
        return Operator.token(self, step, x, t)
