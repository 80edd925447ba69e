"""Normalised linear attention under test: o_t = S_tᵀ q_t / z_tᵀ q_t, where q and k are features, at least 0.

Features of one sign keep the denominator from cancelling: it is the sum of the absolute values of its terms, so its
relative error is small, and that of the quotient with it. Signed features have no such bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.linear_attention import DECLARATION as PLAIN
from isoform.derivations.normalized_linear_attention import DECLARATION

from . import oracle, strategies
from .bounds import OPERANDS, Bounds, additive, beside_truth, gamma, stored
from .memory import CAPABILITIES, keys
from .operator import Input, Instance, Operator, Reference
from .strategies import LARGE, SMALL, Case, normal
from .tensors import Precision, precision, rounded

Array = np.ndarray[Any, Any]
FEATURES = ">= 0, z_t q_t > 0"
INPUTS = (Input("q", "b t h k", FEATURES), Input("k", "b t h k", FEATURES), Input("v", "b t hv v"))
STRUCTURE = ("duplicate-keys", "orthonormal-keys", "constant", "zero")
HELD = "one-feature"
"""Structure in which each query has one feature."""


def draw(case: Case) -> Instance:
    """Features, values and a start of the case's structure; the queries see every key that there is."""
    b, t, h, k, v = (case.size(n) for n in ("b", "t", "h", "k", "v"))
    hv = h * case.size("groups")
    inputs = {"q": np.abs(normal(case, 0, b, t, h, k)), "k": np.abs(keys(case, b, t, h, k)), "v": normal(case, 2, b, t, hv, v)}
    if (case.has(HELD) or case.has("edge")) and not case.has("orthonormal-keys"):
        inputs["q"] *= np.eye(k)[case.rng(5).integers(0, k, (b, t, h))]
    if case.has("constant"):
        inputs["v"] = rounded(np.full_like(inputs["v"], 1.5 * case.unit), case.dtype)
    if case.has("zero"):
        inputs["v"] *= case.rng(3).integers(0, 2, (b, t, hv, 1))
    start = normal(case, 4, b, hv, k, v + 1, wide=True) if case.has("start") else None
    if start is not None:
        start[..., -1] = np.abs(start[..., -1])
    return Instance(inputs, start, {"chunk_size": case.size("chunk"), "feature_map": None}, case.dtype)


def heads(x: Instance) -> Iterator[tuple[tuple[int, int], dict[str, Array], Array]]:
    """Every (batch, value head) with its inputs time first, and its start (K, V + 1)."""
    b, _, h, k = x.inputs["q"].shape
    hv, v = x.inputs["v"].shape[2:]
    for n in range(b):
        for i in range(hv):
            of = {m: a[n, :, i if m == "v" else i // (hv // h)] for m, a in x.inputs.items()}
            yield (n, i), of, np.zeros((k, v + 1)) if x.state is None else x.state[n, i]


def extended(head: Mapping[str, Array], one: float = 1.0) -> dict[str, Array]:
    """The head whose values have one more entry: a memory with the normaliser for its last column."""
    v = head["v"]
    return {**head, "v": np.concatenate([v, np.full((len(v), 1), one)], -1)}


def bound(head: Mapping[str, Array], start: Array, truth: Array, p: Precision) -> Bounds:
    """The bounds of one head.

    With errors e of the numerator a and f of the denominator d, (a + e) / (d + f) is off by (|e| + |a / d| |f|) / (d - |f|)
    at most, and is rounded once more. A 16-bit operand of a numerator costs its terms, one of the denominator the row.
    """
    v = np.abs(extended(head)["v"])
    both = additive(head["q"], head["k"][:, :, None] * v[:, None, :], start, p)
    below, off = both.terms[:, -1:], both.output[:, -1:]
    left = np.maximum(below - off, 0)
    with np.errstate(divide="ignore"):
        output = (both.output[:, :-1] + np.abs(truth) * off) / left + (p.unit * np.abs(truth) + p.tiny)
    return Bounds(output, both.states, both.terms[:, :-1] / below + np.abs(truth))


def refer(x: Instance) -> Reference:
    """The truth and its bounds."""
    b, t = x.inputs["q"].shape[:2]
    hv, v = x.inputs["v"].shape[2:]
    k = x.inputs["q"].shape[3]
    p = precision(x.dtype, x.precision)
    out, sharp, terms = np.zeros((3, b, t, hv, v))
    states, states_bound = np.zeros((2, b, t + 1, hv, k, v + 1))
    for (n, i), head, start in heads(x):
        out[n, :, i], states[n, :, i] = oracle.normalized(DECLARATION, head, start)
        found = beside_truth(partial(bound, head, start, out[n, :, i]), p)
        sharp[n, :, i], terms[n, :, i] = found.output, found.terms
        states_bound[n, :, i] = found.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, states_bound)


def derive(x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
    """The derivative of Σ weights · o + Σ final · [S, z]_T in a direction, and its bound.

    The derivative of a / d is a' / d - (a / d)(d' / d). Its bound is γ_N of the sum of the absolute values of all terms,
    those of a and d being sums themselves: a product of four such sums, each with at most three times the roundings that
    it has in a forward pass.
    """
    moves = Instance(toward, push, x.options, x.dtype)
    value, size = 0.0, 0.0
    for ((n, i), head, start), (_, move, shift) in zip(heads(x), heads(moves), strict=True):
        w, f = weights[n, :, i], final[n, i]
        slope, last = oracle.normalized_slope(DECLARATION, head, start, move, shift)
        value += float((w * slope).sum() + (f * last).sum())
        above = {m: np.abs(a) for m, a in extended(head).items()}
        along = {m: np.abs(a) for m, a in extended(move, 0.0).items()}
        whole, _ = oracle.memory(PLAIN, above, np.abs(start))
        change, last = oracle.slope(PLAIN, above, np.abs(start), along, np.abs(shift))
        below = whole[:, -1:]
        terms = (change[:, :-1] + whole[:, :-1] * change[:, -1:] / below) / below
        size += float((np.abs(w) * terms).sum() + (np.abs(f) * last).sum())
    steps, width = x.inputs["q"].shape[1], x.inputs["q"].shape[3]
    columns = x.inputs["v"].shape[3]
    p = precision(x.dtype, x.precision)
    return value, (gamma(4 * 3 * (steps + 1 + width + columns + 6), p.unit) + p.out * (1 + 2 * OPERANDS)) * size


def corners() -> tuple[Case, ...]:
    """Cases that every run has: ragged chunks, a chunk longer than the sequence, groups, a long one for a fixed chunk size."""

    def case(t: int, chunk: int, scale: str, *given: str, dtype: str = "float32", **other: int) -> Case:
        shape = tuple(({"b": 1, "t": t, "h": 2, "groups": 2, "k": 3, "v": 2, "chunk": chunk} | other).items())
        return Case(DECLARATION.operator, shape, t, dtype, scale, given)

    return (
        case(11, 4, SMALL, "start"),
        case(11, 4, LARGE, "start"),
        case(5, 16, SMALL),
        case(70, 16, LARGE, dtype="bfloat16", h=1, groups=1, k=4),
        case(7, 3, LARGE, "constant", "start", k=2, v=4),
        case(133, 16, LARGE, "start", h=1, groups=1, k=4),
        case(70, 64, SMALL, "start", h=1, groups=1, k=4),
        case(9, 4, LARGE, "start", dtype="bfloat16"),
        case(9, 2, SMALL, "start", dtype="float64"),
        case(6, 4, LARGE, "start", h=5, groups=1, k=131, v=133),
        case(10, 4, SMALL, HELD),
        case(10, 4, LARGE, HELD, "start"),
    )


OPERATORS = (
    Operator(
        name=DECLARATION.operator,
        declaration=DECLARATION,
        inputs=INPUTS,
        state_axes="b hv k v+1",
        capabilities=(CAPABILITIES | {"memory"}) - {"dyadic"},
        cases=strategies.cases(
            DECLARATION.operator,
            strategies.sizes(
                b=st.integers(1, 2),
                t=strategies.lengths,
                h=st.integers(1, 3),
                groups=st.integers(1, 3),
                k=st.integers(1, 5),
                v=st.integers(1, 5),
                chunk=strategies.chunks,
            ),
            strategies.flags(("start",), STRUCTURE, (HELD,)),
        ),
        corners=corners,
        draw=draw,
        refer=refer,
        derive=derive,
        optional=("chunk_size", "feature_map"),
    ),
)
