"""H3 under test: a shift, products with values, a diagonal system, and a read-out by queries, of which the real part counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import signal

from isoform.derivations.h3 import DECLARATION

from . import oracle, strategies
from .bounds import SECOND_ORDER, Bounds, beside_truth, gamma, stored
from .operator import Input, Instance, Operator, Reference
from .state_space import bound as recurrence_bound
from .state_space import convolve
from .strategies import LARGE, SMALL, Case, normal
from .tensors import Precision, precision, rounded

Array = np.ndarray[Any, Any]
INPUTS = (
    Input("q", "b t h k"),
    Input("k", "b t h k"),
    Input("v", "b t h v"),
    Input("shift", "h k w"),
    Input("Abar", "h n", "|.| <= 1"),
    Input("Bbar", "h n"),
    Input("C", "h n"),
)
POLES = ("unit-poles", "zero-poles", "near-one")
SHIFTS = ("delay", "no-shift")


def draw(case: Case) -> Instance:
    """Tokens of the case's scale, taps and modes of size 1 at most, poles in the closed unit disk."""
    b, t, h, k, v, w, n = (case.size(a) for a in ("b", "t", "h", "k", "v", "w", "n"))
    taps = normal(case, 3, h, k, w, scaled=False) / 2
    if case.has("delay"):
        taps = np.broadcast_to(np.arange(w) == w - 1, (h, k, w)).astype(float)
    if case.has("no-shift"):
        taps = np.broadcast_to(np.arange(w) == 0, (h, k, w)).astype(float)
    inputs = {
        "q": normal(case, 0, b, t, h, k),
        "k": normal(case, 1, b, t, h, k),
        "v": normal(case, 2, b, t, h, v),
        "shift": rounded(taps, case.dtype),
        "Abar": rounded(poles(case, h, n), case.dtype),
        "Bbar": _parameter(case, 5, h, n),
        "C": _parameter(case, 6, h, n),
    }
    state = None
    if case.has("start"):
        modes: Array = normal(case, 7, b, h, k, n * v, wide=True) * case.unit
        if case.has("complex"):
            modes = modes + 1j * normal(case, 8, b, h, k, n * v, wide=True) * case.unit
        state = np.concatenate([normal(case, 9, b, h, k, w - 1), modes], -1)
    return Instance(inputs, state, {}, case.dtype)


def poles(case: Case, h: int, n: int) -> Array:
    """Ā (h, n)."""
    rng = case.rng(4)
    turn = np.exp(2j * np.pi * rng.random((h, n))) if case.has("complex") else rng.choice([-1.0, 1.0], (h, n))
    if case.has("near-one"):
        return np.full((h, n), 1 - 2.0**-6) * (turn if case.has("complex") else 1)
    if case.has("unit-poles") or case.has("edge"):
        return rng.choice([1.0, -1.0, 1j, -1j] if case.has("complex") else [1.0, -1.0], (h, n))
    found = rng.uniform(0.3, 0.95, (h, n)) * turn
    return found * rng.integers(0, 2, (h, n)) if case.has("zero-poles") else found


def _parameter(case: Case, purpose: int, *shape: int) -> Array:
    found = normal(case, purpose, *shape, scaled=False) / 2
    return found + 0.5j * normal(case, purpose + 10, *shape, scaled=False) if case.has("complex") else found


@dataclass(frozen=True)
class Head:
    """One head of one sequence: q, k (T, K), v (T, V), taps (K, W), modes (N), the last keys (K, W - 1) and the modes before (N, K, V)."""

    q: Array
    k: Array
    v: Array
    shift: Array
    a: Array
    b: Array
    c: Array
    keys: Array
    modes: Array


def head(x: Instance, row: int, h: int) -> Head:
    """Head h of sequence ``row``."""
    i = x.inputs
    n, taps, columns = i["Abar"].shape[1], i["shift"].shape[2], i["v"].shape[3]
    width = i["k"].shape[3]
    state = np.zeros((width, taps - 1 + n * columns)) if x.state is None else x.state[row, h]
    modes = state[:, taps - 1 :].reshape(width, n, columns).transpose(1, 0, 2)
    queries, keys, values = (i[name][row, :, h] for name in "qkv")
    return Head(queries, keys, values, i["shift"][h], i["Abar"][h], i["Bbar"][h], i["C"][h], state[:, : taps - 1].real, modes)


def given(of: Head, j: int) -> tuple[dict[str, Array], tuple[Array, Array]]:
    """The inputs and the start of the declaration for value feature j."""
    inputs = {"q": of.q, "k": of.k, "v": of.v[:, j], "taps": of.shift.T, "a": of.a, "b": of.b, "c": of.c}
    return inputs, (np.vstack([of.keys.T, np.zeros((1, len(of.shift)))]), of.modes[:, :, j])


def declared(of: Head, j: int) -> tuple[Array, Array, Array]:
    """Value feature j by the declaration: outputs (T,), the last keys (T + 1, K, W - 1) and modes (T + 1, N, K)."""
    out, keys, modes = oracle.two_systems(DECLARATION, *given(of, j))
    return out.real, keys[:, :-1].real.swapaxes(1, 2), modes


def driven(of: Head, i: int, j: int) -> dict[str, Array]:
    """The diagonal system of key feature i and value feature j as a time-invariant one, with what is written into it."""
    n, width, steps = len(of.a), of.shift.shape[1], len(of.k)
    keys = np.concatenate([of.keys[i][::-1], of.k[:, i]])
    shifted = sum((of.shift[i, lag] * keys[width - 1 - lag : width - 1 - lag + steps] for lag in range(width)), np.zeros(steps))
    u = shifted * of.v[:, j]
    return {"u": u[:, None], "Abar": np.diag(of.a), "Bbar": of.b.reshape(n, 1), "C": of.c.reshape(1, n), "D": np.zeros((1, 1))}


def refer(x: Instance) -> Reference:
    """The truth of every head and its bound; the last keys are handed out as they came in."""
    b, t, h, width = x.inputs["q"].shape
    columns, n, taps = x.inputs["v"].shape[3], x.inputs["Abar"].shape[1], x.inputs["shift"].shape[2]
    p = precision(x.dtype, x.precision)
    kind = complex if any(np.iscomplexobj(x.inputs[m]) for m in ("Abar", "Bbar", "C")) or np.iscomplexobj(x.state) else float
    out, sharp, terms = np.zeros((3, b, t, h, columns))
    states, wide = np.zeros((b, t + 1, h, width, taps - 1 + n * columns), kind), np.zeros((b, t + 1, h, width, taps - 1 + n * columns))
    for row, m in np.ndindex(b, h):
        of = head(x, row, m)
        for j in range(columns):
            out[row, :, m, j], states[row, :, m, :, : taps - 1], modes = declared(of, j)
            place = taps - 1 + j + columns * np.arange(n)
            states[row, :, m][:, :, place] = modes.swapaxes(1, 2)
            for i in range(width):
                found = beside_truth(partial(bound, of, i, j, driven(of, i, j), modes[:, :, i]), p)
                sharp[row, :, m, j] += found.output
                terms[row, :, m, j] += found.terms
                wide[row, :, m, i][:, place] = found.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, wide)


def bound(of: Head, i: int, j: int, system: Any, states: Array, p: Precision) -> Bounds:
    """The bounds of one term q_i · y of an output, and of the modes of features i and j.

    The input of the diagonal system is off by γ_{W+2} of the terms of the shift and of the product with v_j: that much comes out
    through the exact kernel. The products and sums with q are 3 + K roundings more.
    """
    found = recurrence_bound(system, states, p)
    width, features = of.shift.shape[1], of.k.shape[1]
    size = np.abs(np.concatenate([of.keys[i][::-1], of.k[:, i]]))
    sums = convolve(np.abs(np.pad(of.shift[i], (0, len(of.k)))), size)[width - 1 :] * np.abs(of.v[:, j])
    off = gamma(width + 2, p.unit) * sums + p.tiny * (1 + np.abs(of.v[:, j]))
    powers = np.abs(of.a[:, None] ** np.arange(len(of.k)) * of.b[:, None])
    kernel = np.abs((of.c[:, None] * of.a[:, None] ** np.arange(len(of.k)) * of.b[:, None]).sum(0))
    whole = np.abs(of.c) @ powers
    # a Fourier transform of the kernel and of what is written was bounded by the true product; here of its terms
    terms = found.terms + convolve(whole, sums)
    spread = np.stack([np.concatenate([[0.0], convolve(row, off)]) for row in powers], 1)
    output = found.output + convolve(kernel, off) + p.tiny
    q, y = np.abs(of.q[:, i]), (states[1:] @ of.c).real
    return Bounds(
        q * (output + gamma(features + 3, p.unit) * np.abs(y)) * SECOND_ORDER + p.tiny, found.states + spread * SECOND_ORDER, q * terms
    )


def derive(x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
    """The derivative of Σ weights · y + Σ final · state in a direction, and its bound.

    The bound is γ_N of the same derivative with all terms positive and, since a Fourier transform mixes all times, with the largest
    key, value, weight and direction at every time.
    """
    moves = replace(x, inputs={**x.inputs, **toward}, state=push)
    b, t, h, width = x.inputs["q"].shape
    columns, n, taps = x.inputs["v"].shape[3], x.inputs["Abar"].shape[1], x.inputs["shift"].shape[2]
    value = size = 0.0
    for row, m, j in np.ndindex(b, h, columns):
        at, along = given(head(x, row, m), j), given(head(moves, row, m), j)
        own = weights[row, :, m, j], final[row, m, :, : taps - 1].T, final[row, m][:, taps - 1 + j + columns * np.arange(n)].T
        value += _weighed(own, at, along, j)
        largest = np.full(t, np.abs(own[0]).max(initial=0.0)), np.abs(own[1]), np.abs(own[2])
        size += _weighed(largest, _flat(at), _flat(along), j)
    return value, gamma(3 * (t + 1) * (n + taps + width + 8) * 8, precision(x.dtype, x.precision).unit) * size


def _weighed(weights: tuple[Array, Array, Array], at: Any, along: Any, j: int) -> float:
    """The derivative of outputs and of both states in a direction, weighed; the last keys are the same for every value feature."""
    out, keys, modes = oracle.two_systems_slope(DECLARATION, *at, *along)
    return float(weights[0] @ out + (weights[1] * keys[:-1]).sum() * (j == 0) + (weights[2] * modes).sum())


def _flat(of: tuple[dict[str, Array], tuple[Array, Array]]) -> tuple[dict[str, Array], tuple[Array, Array]]:
    """Absolute values, and of keys, those before too, and values the largest of all times."""
    inputs, (keys, modes) = {n: np.abs(a) for n, a in of[0].items()}, map(np.abs, of[1])
    largest = np.maximum(inputs["k"].max(0, initial=0.0), keys.max(0))
    flat = {"k": np.broadcast_to(largest, inputs["k"].shape), "v": np.full_like(inputs["v"], inputs["v"].max(initial=0.0))}
    return inputs | flat, (np.broadcast_to(largest, keys.shape), modes)


def independent(x: Instance) -> Array:
    """Outputs (b, t, h, v) by SciPy's filters, one for each pole."""
    b, t, h, width = x.inputs["q"].shape
    columns = x.inputs["v"].shape[3]
    out = np.zeros((b, t, h, columns))
    for row, m in np.ndindex(b, h if t else 0):
        of = head(x, row, m)
        for i, j in np.ndindex(width, columns):
            before = of.keys[i]
            taps = of.shift[i]
            start = signal.lfiltic(taps, [1.0], [], before) if len(taps) > 1 else None
            keys = signal.lfilter(taps, [1.0], of.k[:, i]) if start is None else signal.lfilter(taps, [1.0], of.k[:, i], zi=start)[0]
            for a, drive, read, mode in zip(of.a, of.b, of.c, of.modes[:, i, j]):
                z = signal.lfilter([drive], [1.0, -a], keys * of.v[:, j], zi=np.array([a * mode]))[0]
                out[row, :, m, j] += of.q[:, i] * (read * z).real
    return out


SHAPE = strategies.sizes(
    b=st.integers(1, 2),
    t=strategies.lengths,
    h=st.integers(1, 2),
    k=st.integers(1, 2),
    v=st.integers(1, 2),
    w=st.integers(1, 4),
    n=st.integers(1, 3),
)


def corners() -> Iterator[Case]:
    """Cases that every run has."""
    for seed, (t, k, v, w, n, scale, dtype, flags) in enumerate(
        (
            (11, 2, 1, 2, 1, SMALL, "float32", ("start",)),
            (9, 1, 2, 3, 2, LARGE, "float32", ("start", "complex")),
            (8, 2, 2, 4, 2, LARGE, "float32", ("start", "unit-poles", "delay")),
            (7, 2, 1, 2, 2, SMALL, "float64", ("zero-poles", "start")),
            (33, 1, 1, 2, 1, SMALL, "float32", ("near-one", "start")),
            (9, 2, 2, 1, 2, LARGE, "float32", ("complex", "no-shift")),
            (6, 2, 2, 3, 2, LARGE, "bfloat16", ("start",)),
            (2, 1, 2, 4, 1, SMALL, "float32", ("start",)),
        )
    ):
        yield Case("h3", (("b", 1), ("t", t), ("h", 2), ("k", k), ("v", v), ("w", w), ("n", n)), seed, dtype, scale, flags)


OPERATORS = (
    Operator(
        name="h3",
        declaration=DECLARATION,
        inputs=INPUTS,
        state_axes="b h k s",
        capabilities=frozenset({"sequence", "causal", "state", "gradient", "edges", "batch", "quarantine"}),
        cases=strategies.cases("h3", SHAPE, strategies.flags(("start",), POLES, ("complex",), SHIFTS)),
        corners=lambda: tuple(corners()),
        draw=draw,
        refer=refer,
        derive=derive,
        independent=independent,
        silent=("k", "v"),
    ),
)
