"""Operators whose state is a matrix S (K x V) per head, written with keys and values and read with queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from . import oracle, strategies
from .bounds import EXACT, Bounds, gamma, stored
from .operator import Input, Instance, Operator, Reference
from .strategies import LARGE, SMALL, Case, normal
from .tensors import Precision, precision, rounded

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
HeadBound = Callable[[Head, Array, Precision, int], Bounds]

QKV = (Input("q", "b t h k"), Input("k", "b t h k"), Input("v", "b t hv v"))
KEYS = ("duplicate-keys", "orthonormal-keys", "constant", "zero", "dyadic")
CAPABILITIES = frozenset({"dyadic", "long", "causal", "state", "packing", "groups", "gradient", "sequence", "quarantine", "edges", "batch"})


def memory_operator(
    declaration: Declaration,
    bound: HeadBound,
    majorant: Callable[[Head], Head],
    gates: tuple[Input, ...] = (),
    draw_gates: Callable[[Case, dict[str, Array]], dict[str, Array]] = lambda case, inputs: inputs,
    flags: tuple[tuple[str, ...], ...] = (),
) -> Operator:
    """The operator of a declaration with inputs q, k, v and gates (b t hv …).

    ``bound`` bounds one head, given its inputs (queries scaled), true states, a precision and the chunk size.
    ``majorant`` makes of a head's inputs those on which the declaration computes the sum of the absolute values of all its terms.
    """
    shape = strategies.sizes(
        b=st.integers(1, 2),
        t=strategies.lengths,
        h=st.integers(1, 3),
        groups=st.integers(1, 3),
        k=st.integers(1, 5),
        v=st.integers(1, 5),
        chunk=strategies.chunks,
    )
    structure = strategies.flags(("start",), KEYS, strategies.SCALINGS, *flags)

    def refer(x: Instance) -> Reference:
        return _refer(declaration, bound, x)

    def derive(x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
        return _derive(declaration, majorant, x, toward, push, weights, final)

    return Operator(
        name=declaration.operator,
        declaration=declaration,
        inputs=(*QKV, *gates),
        state_axes="b hv k v",
        capabilities=CAPABILITIES,
        cases=strategies.cases(declaration.operator, shape, structure),
        corners=lambda: tuple(_corners(declaration.operator, flags)),
        draw=lambda case: _draw(case, draw_gates),
        refer=refer,
        derive=derive,
    )


def _corners(name: str, flags: tuple[tuple[str, ...], ...]) -> Iterator[Case]:
    """Cases that every run has: ragged chunks, a chunk longer than the sequence, groups, a long one for a fixed chunk size."""

    def case(t: int, chunk: int, scale: str, *given: str, dtype: str = "float32", **other: int) -> Case:
        shape = tuple(({"b": 1, "t": t, "h": 2, "groups": 2, "k": 3, "v": 2, "chunk": chunk} | other).items())
        return Case(name, shape, t, dtype, scale, given)

    yield case(11, 4, SMALL, "start")
    yield case(11, 4, LARGE, "start")
    yield case(5, 16, SMALL, "other-scale")
    yield case(70, 16, LARGE, dtype="bfloat16", h=1, groups=1, k=4)  # no float32 state that would hide short sums
    yield case(7, 3, LARGE, "constant", "start", k=2, v=4)
    yield case(133, 16, LARGE, "start", h=1, groups=1, k=4)
    yield case(70, 64, SMALL, "start", h=1, groups=1, k=4)
    yield case(9, 4, LARGE, "start", dtype="bfloat16")
    yield case(9, 2, SMALL, "start", dtype="float64")
    yield case(6, 4, LARGE, "start", h=5, groups=1, k=67, v=35)
    for group in flags:
        for word in group:
            yield case(10, 4, LARGE, "start", word)


def _draw(case: Case, draw_gates: Callable[[Case, dict[str, Array]], dict[str, Array]]) -> Instance:
    b, t, h, k, v = (case.size(n) for n in ("b", "t", "h", "k", "v"))
    hv = h * case.size("groups")
    inputs = {"q": normal(case, 0, b, t, h, k), "k": keys(case, b, t, h, k), "v": normal(case, 2, b, t, hv, v)}
    if case.has("constant"):
        inputs["v"] = rounded(np.full_like(inputs["v"], 1.5 * case.unit), case.dtype)
    if case.has("zero"):
        inputs["v"] *= case.rng(3).integers(0, 2, (b, t, hv, 1))
    inputs = draw_gates(case, inputs)
    options: dict[str, Any] = {"chunk_size": case.size("chunk"), **strategies.scaling(case)}
    return Instance(inputs, normal(case, 4, b, hv, k, v) if case.has("start") else None, options, case.dtype)


def keys(case: Case, b: int, t: int, h: int, k: int) -> Array:
    """Keys of the case's structure: independent, each one twice in a row, orthonormal (cyclically), or all equal."""
    drawn = normal(case, 1, b, t, h, k)
    if case.has("duplicate-keys"):
        return np.repeat(drawn[:, ::2], 2, axis=1)[:, :t]
    if case.has("orthonormal-keys"):
        return np.broadcast_to(np.eye(k)[np.arange(t) % k][None, :, None], (b, t, h, k)).copy()
    if case.has("constant"):
        return rounded(np.full_like(drawn, 0.75 * case.unit), case.dtype)
    return drawn


def scale_of(x: Instance) -> float:
    """The factor on the queries; without one K^-1/2."""
    given = x.options.get("scale")
    return float(x.inputs["q"].shape[-1] ** -0.5 if given is None else given)


def heads(x: Instance) -> Iterator[tuple[tuple[int, int], dict[str, Array], Array]]:
    """Every (batch, value head) with its inputs time first, queries scaled, and its start (K, V).

    Value head i reads query and key head i // (HV / H).
    """
    b, _, h, k = x.inputs["q"].shape
    hv, v = x.inputs["v"].shape[2:]
    groups = hv // h if h else 1
    for n in range(b):
        for i in range(hv):
            few = {m: x.inputs[m][n, :, i // groups] for m in ("q", "k")}
            many = {m: a[n, :, i] for m, a in x.inputs.items() if m not in few}
            start = np.zeros((k, v)) if x.state is None else x.state[n, i]
            yield (n, i), {**few, **many, "q": few["q"] * scale_of(x)}, start


def _refer(declaration: Declaration, bound: HeadBound, x: Instance) -> Reference:
    b, t = x.inputs["q"].shape[:2]
    hv, v = x.inputs["v"].shape[2:]
    k = x.inputs["q"].shape[3]
    p = precision(x.dtype)
    span = x.options["chunk_size"]
    out, sharp, terms = np.zeros((3, b, t, hv, v))
    states, states_bound = np.zeros((2, b, t + 1, hv, k, v))
    for (n, i), head, start in heads(x):
        out[n, :, i], states[n, :, i] = oracle.memory(declaration, head, start)
        found, own = (bound({**head, "start": start}, states[n, :, i], each, span) for each in (p, EXACT))
        sharp[n, :, i], terms[n, :, i] = found.output + own.output, found.terms
        states_bound[n, :, i] = found.states + own.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, states_bound)


def _derive(
    declaration: Declaration,
    majorant: Callable[[Head], Head],
    x: Instance,
    toward: Mapping[str, Array],
    push: Array | None,
    weights: Array,
    final: Array,
) -> tuple[float, float]:
    """The derivative of Σ weights · o + Σ final · S_T in a direction, and its bound.

    The bound is γ_N of the same derivative of the sum of the absolute values of all terms: a backward pass evaluates
    these terms with at most three times the forward roundings.
    """
    moves = Instance(toward, push, x.options, x.dtype)
    value, size = 0.0, 0.0
    for ((n, i), head, start), (_, move, shift) in zip(heads(x), heads(moves), strict=True):
        w, f = weights[n, :, i], final[n, i]
        d, e = oracle.slope(declaration, head, start, move, shift)
        value += float((w * d).sum() + (f * e).sum())
        above = majorant({m: np.abs(a) for m, a in head.items()})
        along = majorant({m: np.abs(a) for m, a in move.items()})
        d, e = oracle.slope(declaration, above, np.abs(start), along, np.abs(shift))
        size += float((np.abs(w) * d).sum() + (np.abs(f) * e).sum())
    steps, width = x.inputs["q"].shape[1], x.inputs["q"].shape[3]
    columns = x.inputs["v"].shape[3]
    return value, gamma(3 * (steps + 1) * (width + columns + 6), precision(x.dtype).unit) * size
