"""Arrays for a declared layer: every input drawn from its domain, with the structure of the case."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from sympy import Symbol

from isoform.derivations.evaluate.errors import EvaluationError
from isoform.derivations.evaluate.frame import index_code
from isoform.derivations.kernel.terms import Exp, Inverse, Log, Power, Sqrt, Var, walk
from isoform.derivations.layer.call import Argument, axis
from isoform.derivations.layer.side import DIAGONAL, IDENTITY, RANK_ONE, SCALAR

from .. import gates
from ..operator import Instance
from ..strategies import Case, normal
from ..tensors import rounded
from .layer import Layer
from .numbers import Floats
from .token import flat, jacobians, token

Array = np.ndarray[Any, Any]
ENDS = ("low-end", "high-end", "both-ends")
"""Structure in which what has a domain with two ends lies at them."""
VALUES = ("constant", "zero")
UNREAL = 100
"""What is added to the number of an input for the random numbers of its imaginary part or phase."""
CLOSE = 0.125
"""The part of a domain that a long case has, where an input corrects what a state holds."""
FUNCTIONS = (Exp, Log, Sqrt, Inverse, Power)
TRIED = (0.0, 1.0)
"""Values of inputs which may change nothing."""


def flags(layer: Layer) -> tuple[tuple[str, ...], ...]:
    """Groups of structure flags that say something about this layer."""
    fading = [a for a in layer.arguments if is_decay(a)]
    decays = (gates.IN_TIME if any("t" in a.axes(layer.heads) for a in fading) else gates.FLAGS,) if fading else ()
    ends = (ENDS,) if any(a.domain.low is not None and a.domain.high is not None and not is_decay(a) for a in layer.arguments) else ()
    return (VALUES, *decays, *ends)


def dyadic(layer: Layer) -> bool:
    """Whether sums of small integers stay small: polynomials, in which transitions depend on what is bounded alone."""
    scaled = _scaled(layer)
    bounded = {b.domain.times for b in layer.arguments} | {a.input for a in layer.arguments if a.name in scaled or not a.domain.free}
    return layer.polynomial and {a.input for a in layer.arguments} <= bounded


def remembers(layer: Layer) -> bool:
    """Whether many tokens can be held to a bound: decays close to 1 keep what was written, and no write is made of what is gone."""
    kinds = (IDENTITY, SCALAR, DIAGONAL, RANK_ONE)
    decays = {a.atom for a in layer.arguments if is_decay(a)}
    writes = [u.write for u in layer.classification.updates if u.write is not None]
    gone = any(isinstance(n, Var) and n.name in decays for w in writes for n in walk(w))
    return layer.classification.kind in kinds and not gone and len({e for a in layer.arguments for e in a.sizes}) <= 2


def is_decay(a: Argument) -> bool:
    """Whether an input is a number that something fades by, or the logarithm of one."""
    d = a.domain
    return a.log or (d.low == 0 and d.high == 1 and not d.times and not d.norm) or (d.low is None and d.high == 0)


def shapes(layer: Layer, case: Case) -> dict[str, tuple[int, ...]]:
    """The shapes of the arguments."""
    sizes = {e: case.size(axis(e)) for a in layer.arguments for e in a.sizes if isinstance(e, Symbol)}
    lead = {"b": case.size("b"), "t": case.size("t"), **({"h": case.size("h")} if layer.heads else {})}
    found = {}
    for a in layer.arguments:
        front = a.axes(layer.heads)[: -len(a.sizes) or None]
        found[a.name] = (*(lead[n] for n in front), *(index_code(e)(sizes) for e in a.sizes))
    return found


def draw(layer: Layer, case: Case) -> Instance:
    """The arrays of a case."""
    wanted, inputs = shapes(layer, case), {}
    scaled = _scaled(layer)
    for number, a in enumerate(layer.arguments):
        inputs[a.name] = _drawn(case, number, a, wanted[a.name], a.name in scaled, layer)
    for number, a in enumerate(layer.arguments):
        if a.domain.times:
            inputs |= _beside(case, number, a, layer, inputs)
    x = Instance(inputs, None, {"chunk_size": case.size("chunk"), "scale": 1.0}, case.dtype)
    start = layer.handed(layer.begun(x)).shape
    state = _normal(case, 50, start, layer.complex, scaled=layer.classification.affine, wide=True) if case.has("start") else None
    return Instance(inputs, state, x.options, case.dtype)


def _normal(case: Case, purpose: int, shape: tuple[int, ...], unreal: bool, **how: bool) -> Array:
    """Normal numbers, of which complex ones have two."""
    found = normal(case, purpose, *shape, **how)
    return found + 1j * normal(case, purpose + UNREAL, *shape, **how) if unreal else found


def _phase(case: Case, number: int, a: Argument, shape: tuple[int, ...]) -> Array:
    """Complex numbers of modulus 1 for a complex input, by quarters of a turn in a dyadic case; 1 for a real one."""
    if not a.complex:
        return np.ones(shape)
    rng = case.rng(number + UNREAL)
    return np.asarray(rng.choice((1, 1j, -1, -1j), shape) if case.has("dyadic") else np.exp(2j * np.pi * rng.random(shape)))


def _drawn(case: Case, number: int, a: Argument, shape: tuple[int, ...], scaled: bool, layer: Layer) -> Array:
    d, rng = a.domain, case.rng(number)
    if is_decay(a):
        axes = a.axes(layer.heads)
        logs = gates.logs(case, number, shape, time=axes.index("t") if "t" in axes else None)
        logs = logs if a.log or d.endless or d.low == 0 else np.where(np.isneginf(logs), -30.0, logs)
        return logs if a.log or d.low is None else rounded(np.exp(logs) * _phase(case, number, a, shape), case.dtype)
    drawn = _normal(case, number, shape, a.complex, scaled=scaled)
    if d.norm:
        return rounded(_of_length(drawn, a, float(d.high or 0), case, d.low == d.high), case.dtype)
    if d.low is not None and d.high is not None and not d.times:
        return rounded(between(case, rng, float(d.low), float(d.high), shape) * _phase(case, number, a, shape), case.dtype)
    if case.has("constant"):
        drawn = rounded(np.full(shape, (0.75 + 0.5j if a.complex else 0.75) * (case.unit if scaled else 1.0)), case.dtype)
    if case.has("zero") and d.free and number == len(layer.arguments) - 1:
        drawn = drawn * 0
    low, high = (0.0 if e is None else float(e) for e in (d.low, d.high))
    return rounded(low + np.abs(drawn) if d.low is not None else high - np.abs(drawn) if d.high is not None else drawn, case.dtype)


def between(case: Case, rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...]) -> Array:
    """Numbers between two ends, at them where the case says so, some outside of them where it says that."""
    ends = {"low-end": (low,), "high-end": (high,), "both-ends": (low, high), "edge": (low, high)}
    chosen = next((v for n, v in ends.items() if case.has(n)), ())
    if case.has("dyadic"):
        chosen = tuple(map(float, range(int(np.ceil(low)), int(high) + 1)))
    if case.has("outside"):
        chosen = (low - (high - low) / 8, (low + high) / 2, high + (high - low) / 8)
    if chosen:
        return np.asarray(rng.choice(chosen, shape))
    return rng.uniform(low, low + (high - low) * (CLOSE if case.has("weak") else 1), shape)


def _of_length(x: Array, a: Argument, high: float, case: Case, exactly: bool) -> Array:
    """Vectors of a length, matrices with a largest singular value; shorter ones where that is allowed; a dyadic case has 1 and 0."""
    if case.has("dyadic"):
        return _units(case, x.shape) if len(a.sizes) == 1 else np.broadcast_to(np.eye(*x.shape[-2:]), x.shape)
    if len(a.sizes) == 2:
        size = np.linalg.norm(x, 2, axis=(-2, -1), keepdims=True) if x.size else np.ones_like(x)
    else:
        size = np.linalg.norm(x, axis=-1, keepdims=True) if x.ndim else np.abs(x)
    shrink = 1.0 if exactly or case.has("high-end") else 1 - 2.0**-4
    return np.asarray(x / np.where(size > 0, size, 1) * high * shrink)


def _units(case: Case, shape: tuple[int, ...]) -> Array:
    """Unit vectors along an axis."""
    return np.eye(shape[-1])[case.rng(60).integers(0, shape[-1], shape[:-1])]


def _beside(case: Case, number: int, a: Argument, layer: Layer, inputs: dict[str, Array]) -> dict[str, Array]:
    """An input that lies somewhere once it is multiplied by the squared length of another, which is between 1/2 and 2."""
    other = next(b for b in layer.arguments if b.input == a.domain.times)
    x = inputs[other.name]
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    wide = 2.0 ** case.rng(61, number).uniform(-1, 1, length.shape)
    x = _units(case, x.shape) if case.has("dyadic") else rounded(x / np.where(length > 0, length, 1) * wide, case.dtype)
    squared = (np.abs(x) ** 2).sum(-1).reshape(*x.shape[:-1], *(1,) * len(a.sizes))
    low, high = float(a.domain.low or 0), float(a.domain.high or 0)
    wanted = between(case, case.rng(number), low, high, inputs[a.name].shape)
    return {other.name: x, a.name: rounded(wanted / np.where(squared > 0, squared, 1), case.dtype)}


@cache
def _random(layer: Layer, seed: int) -> tuple[Instance, tuple[Array, ...]]:
    """A few tokens of small integers, and states before them."""
    rng = np.random.default_rng(seed)
    symbols = sorted({e for a in layer.arguments for e in a.sizes if isinstance(e, Symbol)}, key=str)
    own = {axis(e): n + 2 for n, e in enumerate(symbols)}
    case = Case(layer.declaration.operator, tuple({"b": 1, "t": 2, "h": 1, "chunk": 1, **own}.items()))
    unreal = {a.name: a.complex for a in layer.arguments}
    inputs = {n: rng.integers(1, 4, shape) * (1 + 2j if unreal[n] else 1.0) for n, shape in shapes(layer, case).items()}
    x = Instance(inputs, None, {}, "float64")
    return x, tuple(rng.integers(1, 5, (1, 1, 2, *s)) * (2 - 1j if layer.complex else 1.0) for s in layer.state_shapes(x))


def _scaled(layer: Layer) -> frozenset[str]:
    """The inputs in which updates and read-out are polynomials, and on which no transition depends: those that may be of any size."""
    if not layer.classification.affine:
        return frozenset()
    inside = {v.name for x in layer.terms for f in walk(x) if isinstance(f, FUNCTIONS) for v in walk(f) if isinstance(v, Var)}
    free = [a for a in layer.arguments if a.domain.free and a.atom not in inside and not a.log]
    x, before = _random(layer, 1)
    step = jacobians(token(layer, x, before), before)
    found = set()
    for a in free:
        other = Instance({**x.inputs, a.name: x.inputs[a.name] + 1}, None, {}, x.dtype)
        if np.array_equal(jacobians(token(layer, other, before), before), step):
            found.add(a.name)
    return frozenset(found)


def neutral(layer: Layer) -> dict[tuple[str, ...], dict[str, float]]:
    """Inputs that, at these values, make a token change nothing, whatever the others are: the smallest choices of up to three."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    sequences = [a for a in layer.arguments if a.sequence]
    for count in (1, 2, 3):
        for chosen in combinations(sequences, count):
            names = tuple(a.name for a in chosen)
            if any(set(other) <= set(names) for other in found):
                continue
            for at in np.ndindex(*(2,) * count):
                values = dict(zip(names, (TRIED[n] for n in at), strict=True))
                if all(_changes_nothing(layer, values, seed) for seed in (1, 2)):
                    found[names] = values
    return found


def _changes_nothing(layer: Layer, values: dict[str, float], seed: int) -> bool:
    x, before = _random(layer, seed)
    inputs = {n: np.full_like(a, values[n]) if n in values else a for n, a in x.inputs.items()}
    try:
        with np.errstate(all="ignore"):
            after = token(layer, Instance(inputs, None, {}, x.dtype), before).updated(Floats(), tuple((s,) for s in before))
    except EvaluationError:  # no update there, of a matrix that cannot be inverted
        return False
    return bool(np.array_equal(flat(tuple(v[0] for v in after)), flat(before)))
