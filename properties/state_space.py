"""Linear time-invariant systems under test: x_k = Ā x_{k-1} + B̄ u_k, y_k = C x_k + D u_k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.state_space import DECLARATION

from . import oracle, scipy_truth, strategies
from .bounds import Bounds, beside_truth, carried, gamma, stored
from .operator import Input, Instance, Operator, Reference
from .strategies import LARGE, SMALL, Case, normal
from .tensors import Precision, precision, rounded

Array = np.ndarray[Any, Any]
INPUTS = (
    Input("u", "b t"),
    Input("Abar", "n n|n", "any; (n) is a diagonal"),
    Input("Bbar", "n"),
    Input("C", "n"),
    Input("D", "|", "a number"),
)
SHAPES = ("diagonal",)
POLES = ("zero-poles", "unit-poles", "near-one", "nilpotent", "defective", "stiff")
ENTRIES = ("complex",)


def draw(case: Case) -> Instance:
    """A system of the case's structure with poles in the closed unit disk; inputs, start and D of the case's scale."""
    b, t, n = (case.size(a) for a in ("b", "t", "n"))
    inputs = {
        "u": normal(case, 0, b, t),
        "Abar": rounded(transition(case, n), case.dtype),
        "Bbar": _parameter(case, 2, n),
        "C": _parameter(case, 3, n),
    }
    if not case.has("no-feedthrough"):
        inputs["D"] = _parameter(case, 4)
    if case.has("constant"):
        inputs["u"] = rounded(np.full((b, t), 1.5 * case.unit), case.dtype)
    state = normal(case, 5, b, n) if case.has("start") else None
    if state is not None and case.has("complex"):
        state = state + 1j * normal(case, 6, b, n)
    return Instance(inputs, state, {}, case.dtype)


def _parameter(case: Case, purpose: int, *shape: int) -> Array:
    found = normal(case, purpose, *shape, scaled=False)
    return found + 1j * normal(case, purpose + 10, *shape, scaled=False) if case.has("complex") else found


def transition(case: Case, n: int) -> Array:
    """Ā (n, n), or its diagonal (n)."""
    rng = case.rng(1)
    poles = rng.uniform(0.2, 0.95, n) * (np.exp(2j * np.pi * rng.random(n)) if case.has("complex") else rng.choice([-1.0, 1.0], n))
    if case.has("zero-poles"):
        poles = poles * rng.integers(0, 2, n)
    if case.has("unit-poles") or case.has("edge"):
        poles = rng.choice([1.0, -1.0, 1j, -1j] if case.has("complex") else [1.0, -1.0], n)
    if case.has("near-one"):
        poles = np.full(n, 1 - 2.0**-12)
    if case.has("stiff"):
        poles = np.where(np.arange(n) % 2, 1e-4, 0.99)
    if case.has("diagonal"):
        return np.zeros(n) if case.has("nilpotent") else poles
    if case.has("nilpotent"):
        return np.triu(rng.standard_normal((n, n)), 1)
    if case.has("defective"):
        return 0.5 * np.eye(n) + np.eye(n, k=1)
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return basis @ np.diag(poles) @ basis.T


def declared(x: Instance, row: int) -> dict[str, Array]:
    """The inputs of the declaration for one row of the batch: one input, one output, a dense Ā."""
    a = x.inputs["Abar"]
    n = len(x.inputs["C"])
    return {
        "u": x.inputs["u"][row][:, None],
        "Abar": np.diag(a) if a.ndim == 1 else a,
        "Bbar": x.inputs["Bbar"].reshape(n, 1),
        "C": x.inputs["C"].reshape(1, n),
        "D": np.reshape(x.inputs.get("D", 0.0), (1, 1)),
    }


def start_of(x: Instance, row: int) -> Array:
    """The state before the first input; 0 if there is none."""
    return np.zeros(len(x.inputs["C"])) if x.state is None else x.state[row]


def refer(x: Instance) -> Reference:
    """The truth of every row of the batch and its bound."""
    b, t = x.inputs["u"].shape
    n = len(x.inputs["C"])
    p = precision(x.dtype, x.precision)
    kind = complex if any(np.iscomplexobj(a) for a in (*x.inputs.values(), start_of(x, 0) if b else 0.0)) else float
    out, states = np.zeros((b, t), kind), np.zeros((b, t + 1, n), kind)
    sharp, terms, states_bound = np.zeros((b, t)), np.zeros((b, t)), np.zeros((b, t + 1, n))
    for row in range(b):
        given = declared(x, row)
        out[row], states[row] = oracle.system(DECLARATION, given, start_of(x, row))
        found = beside_truth(partial(bound, given, states[row]), p)
        sharp[row], terms[row], states_bound[row] = found.output, found.terms, found.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, states_bound)


def bound(given: Mapping[str, Array], states: Array, precision: Precision) -> Bounds:
    """Bounds of one row for the recurrence and for the convolution.

    The recurrence rounds Ā x + B̄ u with γ_{N+2} at the true state, carried by the exact powers of Ā. The convolution
    uses powers that are products of earlier ones (`powers_error`), sums over time, and Fourier transforms, whose error
    is relative to the largest input of the row (Higham, section 24.1: 7u per level). D u is a term as those of C x are.
    """
    a, b, c, d = (given[m] for m in ("Abar", "Bbar", "C", "D"))
    u = given["u"][:, 0]
    steps, n = len(u), len(a)
    ops = 4 if any(map(np.iscomplexobj, (a, b, c, d, states))) else 1
    unit = precision.unit * ops
    local = gamma(n + 2, unit) * (np.abs(states[:-1]) @ np.abs(a).T + np.abs(u)[:, None] * np.abs(b[:, 0]))
    local = np.concatenate([unit * np.abs(states[:1]), local])
    found = carried(np.tile(c, (steps, 1)), states[:, :, None], local[:, :, None], gamma(n + 3, unit), lambda w, t: w @ a, precision)
    through = np.abs(d[0, 0] * u)
    feed = gamma(n + 3, unit) * through

    kernel, error = powers_error(a, c[0], b[:, 0], steps, unit)
    free, free_error = powers_error(a, c[0], states[0], steps + 1, unit)
    levels = np.log2(4 * steps + 4)
    size = np.abs(u)
    transform = gamma(7 * levels, unit) * (2 * np.abs(kernel).sum() * np.linalg.norm(size) + size.sum() * np.linalg.norm(kernel))
    output = found.output[:, 0] + feed + convolve(error, size) + free_error[1:] + transform * (steps > 0)

    terms = np.maximum(found.terms[:, 0], convolve(np.abs(kernel), size) + np.abs(free[1:])) + through

    rows = np.eye(n)
    _, write_error = powers_error(a, rows, b[:, 0], steps, unit)
    start, start_error = powers_error(a, rows, states[0], steps + 1, unit)
    sums = np.concatenate([[0.0], convolve(write_error, size)]) + start_error
    spread = gamma(steps + 1, unit) * np.concatenate([np.zeros((1, n)), _absolute_sums(a, b[:, 0], size)])
    return Bounds(output, found.states[:, :, 0] + sums[:, None] + spread + gamma(2, unit) * np.abs(start), terms)


def convolve(kernel: Array, u: Array) -> Array:
    """Causal sums Σ_l kernel_l u_{t-l}, both non-negative."""
    return np.convolve(kernel, u)[: len(u)] if len(u) else np.zeros(0)


def _absolute_sums(a: Array, b: Array, size: Array) -> Array:
    """Σ_l |Ā^l B̄| |u_{t-l}|, (T, N)."""
    columns = [b]
    for _ in range(len(size) - 1):
        columns.append(a @ columns[-1])
    found = [convolve(np.abs(np.array(columns)[: len(size), i]), size) for i in range(len(b))]
    return np.stack(found, 1) if len(size) else np.zeros((0, len(b)))


def powers_error(a: Array, c: Array, b: Array, count: int, unit: float) -> tuple[Array, Array]:
    """c Ā^l b for l < count (c a row or rows), and how wrong they may be when powers are products of powers, in any order.

    Each of the at most l products rounds γ_{N+2} |Ā^i||Ā^j|, whose entries are at most (largest row norm of Ā^i) ·
    (largest column norm of Ā^j); what stands to its left and right acts through exact powers, in the 1-norm. The
    largest such product over all splits of l counts.
    """
    n = len(a)
    power = np.eye(n, dtype=a.dtype)
    values, left, row, column, right = [], [], [], [], []
    for _ in range(count):
        values.append(c @ power @ b)
        left.append(np.abs(np.atleast_2d(c @ power)).sum(-1).max())
        right.append(np.abs(power @ b).sum())
        row.append(np.sqrt((np.abs(power) ** 2).sum(1).max()))
        column.append(np.sqrt((np.abs(power) ** 2).sum(0).max()))
        power = power @ a
    if not count:
        return np.zeros((0, *np.shape(c)[:-1])), np.zeros(0)
    split = _largest(_largest(np.array(left), np.array(row)), _largest(np.array(column), np.array(right)))
    error = gamma(n + 2, unit) * (np.arange(count) + 2) * split
    return np.array(values), error


def _largest(x: Array, y: Array) -> Array:
    """max over i + j = l of x_i y_j."""
    return np.array([(x[: l + 1] * y[l::-1]).max() for l in range(len(x))])


def derive(
    x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array
) -> tuple[float, float]:
    """The derivative of Σ weights · y + Σ final · x_T in a direction, and its bound.

    The bound is γ_N of the same derivative with all terms positive and, since a Fourier transform mixes all times, with
    the largest input, weight and direction at every time.
    """
    moves = replace(x, inputs={**x.inputs, **toward}, state=push)
    value = size = 0.0
    for row in range(len(x.inputs["u"])):
        at, along = declared(x, row), declared(moves, row)
        d, e = oracle.system_slope(DECLARATION, at, start_of(x, row), along, start_of(moves, row))
        value += float(weights[row] @ d + final[row] @ e)
        above, beside = ({m: _flat(m, a) for m, a in given.items()} for given in (at, along))
        d, e = oracle.system_slope(DECLARATION, above, np.abs(start_of(x, row)), beside, np.abs(start_of(moves, row)))
        size += float(np.abs(weights[row]).max(initial=0.0) * d.sum() + np.abs(final[row]) @ e)
    steps, n = x.inputs["u"].shape[1], len(x.inputs["C"])
    return value, gamma(3 * (steps + 1) * (n + 8) * 8, precision(x.dtype, x.precision).unit) * size


def _flat(name: str, a: Array) -> Array:
    return np.full_like(a, np.abs(a).max(initial=0.0)) if name == "u" else np.abs(a)


SHAPE = strategies.sizes(b=st.integers(1, 2), t=strategies.lengths, n=st.integers(1, 5))


def corners() -> Iterator[Case]:
    """Cases that every run has."""
    for t, n, scale, dtype, flags in (
        (11, 3, SMALL, "float32", ("start",)),
        (9, 4, LARGE, "float32", ("start", "complex", "diagonal")),
        (8, 3, LARGE, "float32", ("start", "unit-poles", "diagonal")),
        (13, 2, SMALL, "float32", ("start", "defective", "no-feedthrough")),
        (12, 4, LARGE, "float32", ("complex",)),
        (67, 2, LARGE, "float32", ("start", "near-one")),
        (10, 3, LARGE, "float32", ("nilpotent",)),
        (9, 3, SMALL, "float64", ("stiff", "start")),
        (9, 3, LARGE, "bfloat16", ("start",)),
        (7, 3, LARGE, "float32", ("zero-poles", "diagonal", "constant")),
        (67, 2, SMALL, "bfloat16", ("near-one", "diagonal", "constant", "no-feedthrough")),
    ):
        yield Case("lti", (("b", 1), ("t", t), ("n", n)), t, dtype, scale, tuple(flags))


OPERATORS = (
    Operator(
        name="lti",
        declaration=DECLARATION,
        inputs=INPUTS,
        state_axes="b n",
        capabilities=frozenset({"sequence", "causal", "state", "gradient", "edges", "batch", "quarantine"}),
        cases=strategies.cases(
            "lti", SHAPE, strategies.flags(("start",), SHAPES, POLES, ENTRIES, ("constant",), ("no-feedthrough",))
        ),
        corners=lambda: tuple(corners()),
        draw=draw,
        refer=refer,
        derive=derive,
        independent=scipy_truth.simulate,
        silent=("u",),
    ),
)
