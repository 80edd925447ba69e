"""Structured state spaces under test: the rule of a discretisation, and the recurrence with what comes out of it.

The truth is two declarations one after the other: that of the rule in balls of 512 bits, for A = Λ - P P*, and that of the
recurrence, of which the real part is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.discretization import DECLARATIONS
from isoform.derivations.state_space import DECLARATION

from . import oracle, scipy_truth, strategies
from .bounds import EXACT, SECOND_ORDER, Bounds, beside_truth, carried, gamma, stored
from .holding import RULES, Slope
from .low_rank import Channel, kernel_errors, step_error
from .modes import Modes, majorant, pulls, roundings, transform_error
from .operator import Input, Instance, Operator, Reduction, Reference
from .state_space import bound as recurrence_bound
from .strategies import LARGE, SMALL, Case, normal
from .tensors import Precision, precision, rounded, values

Array = np.ndarray[Any, Any]
BY_RULE = {d.operator: d for d in DECLARATIONS}
CAPABILITIES = frozenset({"sequence", "causal", "state", "edges", "batch", "quarantine"})
PARAMETERS = (
    Input("B", "d n"),
    Input("C", "d n"),
    Input("D", "d"),
    Input("delta", "d", ">= 0"),
)
INPUTS = {
    "s4": (Input("u", "b d t"), Input("Lambda", "d n", "real part < 0"), Input("P", "d n"), *PARAMETERS),
    "s4d": (Input("u", "b d t"), Input("Lambda", "d n", "real part < 0"), *PARAMETERS),
}
POLES = ("stiff", "near-axis", "pairs")
STEPS = ("step-one", "step-two", "no-step")


def draw(case: Case) -> Instance:
    """Poles in the left half plane, parameters of size 1, steps from 0.02 to 0.5 or as the case says, inputs of the case's scale."""
    b, d, t, n = (case.size(a) for a in ("b", "d", "t", "n"))
    rng = case.rng(1)
    inputs = {
        "u": normal(case, 0, b, d, t),
        "Lambda": rounded(poles(case, rng, d, n), case.dtype),
        "P": _parameter(case, 2, d, n) * (not case.has("no-low-rank")),
        "B": _parameter(case, 3, d, n),
        "C": _parameter(case, 4, d, n),
        "delta": rounded(_steps(case, rng, d), case.dtype),
    }
    if case.operator == "s4d":
        del inputs["P"]
    if case.has("no-step"):
        del inputs["delta"]
    if not case.has("no-feedthrough"):
        inputs["D"] = normal(case, 5, d, scaled=False)
    state = None
    if case.has("start"):
        state = normal(case, 6, b, d, n) + (0 if case.has("real") else 1j * normal(case, 7, b, d, n))
    return Instance(inputs, state, {"rule": "bilinear"} if case.operator == "s4d" and case.has("bilinear") else {}, case.dtype)


def poles(case: Case, rng: np.random.Generator, d: int, n: int) -> Array:
    """Λ (d, n)."""
    real = -rng.uniform(0.2, 1.5, (d, n))
    if case.has("step-two"):
        real[:, :1] = -1.0  # 2/Δ less than nothing: there the bilinear rule has the pole 0
    if case.has("stiff") or case.has("edge"):
        real = np.where(np.arange(n) % 2, -0.01, -(1e4 if case.has("edge") else 30.0)) * np.ones((d, n))
    if case.has("near-axis"):
        real = np.full((d, n), -(2.0**-6))
    if case.has("real"):
        return real
    turn = rng.uniform(0.5, 6.0, (d, n))
    if case.has("step-two"):
        turn[:, :1] = 0.0
    if case.has("pairs"):
        half = np.arange(n) // 2
        return real[:, half] + 1j * np.where(np.arange(n) % 2, -1, 1) * turn[:, half]
    return real + 1j * turn


def _parameter(case: Case, purpose: int, *shape: int) -> Array:
    found = normal(case, purpose, *shape, scaled=False)
    return found if case.has("real") else found + 1j * normal(case, purpose + 10, *shape, scaled=False)


def _steps(case: Case, rng: np.random.Generator, d: int) -> Array:
    chosen = next((s for f, s in (("step-one", 1.0), ("step-two", 2.0)) if case.has(f)), None)
    if case.has("step-tiny"):
        return np.array([1e-8, 0.1] * d)[:d]
    return rng.uniform(0.02, 0.5, d) if chosen is None else np.full(d, chosen)


def channel(x: Instance, d: int) -> Channel:
    """Channel d, discretised by the declaration of its rule."""
    one = {n: x.inputs[n][d] for n in ("Lambda", "B", "C")}
    low = x.inputs["P"][d] if "P" in x.inputs else np.zeros_like(one["Lambda"])
    delta = step_of(x, d)
    rule = BY_RULE["bilinear" if "P" in x.inputs else x.options.get("rule", "zoh")]
    if "P" in x.inputs:
        both = oracle.pair(rule, np.diag(one["Lambda"]) - np.outer(low, low.conj()), one["B"], delta)
        a, b = both[:, :-1], both[:, -1]
    else:
        each = np.array([oracle.pair(rule, one["Lambda"][i : i + 1, None], one["B"][i : i + 1], delta)[0] for i in range(len(low))])
        a, b = np.diag(each[:, 0]), each[:, 1]
    feed = float(x.inputs["D"][d]) if "D" in x.inputs else 0.0
    return Channel(one["Lambda"], low, one["B"], one["C"], feed, delta, a, b)


def step_of(x: Instance, d: int) -> float:
    """Δ of a channel; 1 where there is none."""
    return float(x.inputs["delta"][d]) if "delta" in x.inputs else 1.0


def refer(x: Instance) -> Reference:
    """The truth, outputs (b, t, d) and states (b, t + 1, d, n), and its bound."""
    b, d, t = x.inputs["u"].shape
    n = x.inputs["C"].shape[1]
    p = precision(x.dtype, x.precision)
    kind = complex if any(np.iscomplexobj(a) for a in (*x.inputs.values(), x.state)) else float
    out, sharp, terms = np.zeros((3, b, t, d))
    states, wide = np.zeros((b, t + 1, d, n), kind), np.zeros((b, t + 1, d, n))
    for i in range(d):
        of = channel(x, i)
        for row in range(b):
            given = {"u": x.inputs["u"][row, i][:, None], "Abar": of.Abar, "Bbar": of.Bbar[:, None], "C": of.C[None]}
            given["D"] = np.full((1, 1), of.D)
            start = np.zeros(n) if x.state is None else x.state[row, i]
            y, states[row, :, i] = oracle.system(DECLARATION, given, start)
            out[row, :, i] = y.real
            found = beside_truth(partial(bound, of, given, states[row, :, i], "P" in x.inputs, x.options.get("rule", "zoh")), p)
            sharp[row, :, i], terms[row, :, i], wide[row, :, i] = found.output, found.terms, found.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, wide)


def bound(of: Channel, given: Any, states: Array, low_rank: bool, rule: str, p: Precision) -> Bounds:
    """The bounds of a recurrence with these Ā and B̄, more for how wrong they are, and for the kernel by Cauchy sums."""
    size, steps = np.abs(given["u"][:, 0]), len(given["u"])
    found = recurrence_bound(given, states, p)
    unit = replace(p, unit=p.unit * of.ops)
    matrix, drive = (step_error if low_rank else partial(pole_errors, rule))(of, unit)
    local = np.abs(states[:-1]) @ matrix.T + size[:, None] * drive
    local = np.concatenate([np.zeros_like(local[:1]) if steps else np.zeros((1, len(drive))), local])
    more = carried(np.tile(of.C[None], (steps, 1)), states[:, :, None], local[:, :, None], 0.0, lambda w, t: w @ of.Abar, p)
    output, wide = found.output + more.output[:, 0], found.states + more.states[:, :, 0]
    if low_rank and steps:
        output = output + kernel_errors(of, matrix, states, size, unit)
    return Bounds(output, wide, found.terms)


def pole_errors(rule: str, of: Channel, p: Precision) -> tuple[Array, Array]:
    """How wrong the entries of a diagonal Ā and of B̄ may be."""
    n = len(of.B)
    found = np.zeros((n, 2))
    for i in range(n):
        truth = np.array([[of.Abar[i, i], of.Bbar[i]]])
        found[i] = RULES[rule].pole(of.delta * of.Lambda[i : i + 1, None], of.delta * of.B[i : i + 1], truth, p)[0]
    return np.diag(found[:, 0]), found[:, 1]


def derive(x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
    """The derivative of Σ weights · y + Re Σ final* · x_T of diagonal systems in a direction, and its bound.

    The rule's derivative is put into the recurrence's. So a gradient is wrong by the roundings of its terms, by what errors of Ā and
    B̄ cost these, by Fourier transforms, and by the rule's own derivative, which meets the gradients by Ā and B̄.
    """
    moves = replace(x, inputs={**x.inputs, **toward}, state=push)
    rows, d, steps = x.inputs["u"].shape
    p, rule = precision(x.dtype, x.precision), x.options.get("rule", "zoh")
    value = size = 0.0
    for i in range(d):
        of = channel(x, i)
        change, unit = channel_slope(rule, of, moves, i), replace(p, unit=p.unit * of.ops)
        matrix, off_b = pole_errors(rule, of, unit)
        pull = np.zeros((2, len(of.B)), complex)
        for row in range(rows):
            at, along, w, f = modes(of, x, row, i), modes(change, moves, row, i), weights[row, :, i], final[row, i]
            y, last = oracle.system_slope(DECLARATION, at.declared(), at.start, along.declared(), along.start)
            value += float(w @ y.real + np.vdot(f, last).real)
            outputs, ends = majorant(at, along, np.diag(matrix), off_b)
            terms, off = outputs @ np.abs(w) + ends @ np.abs(f)
            size += gamma(roundings(steps, len(of.B), rows), unit.unit) * terms + off + transform_error(at, along, w, p.unit)
            pull += pulls(at, w, f)
        size += rule_error(rule, of, change, np.abs(pull), unit)
    lost = np.prod([1 + np.abs(a).sum() for a in (*x.inputs.values(), *toward.values(), weights, final)])
    return value, size * SECOND_ORDER * (1 + EXACT.unit / p.unit) + p.tiny * float(lost)


def channel_slope(rule: str, of: Channel, moves: Instance, d: int) -> Channel:
    """The derivative of channel d, diagonal, in a direction, that of its rule by the declaration."""
    to = {n: moves.inputs[n][d] for n in ("Lambda", "B", "C")}
    step = float(moves.inputs["delta"][d]) if "delta" in moves.inputs else 0.0
    poles = zip(of.Lambda.reshape(-1, 1, 1), of.B[:, None], to["Lambda"].reshape(-1, 1, 1), to["B"][:, None], strict=True)
    each = [oracle.pair_slope(BY_RULE[rule], (a, b, of.delta), (da, db, step))[0] for a, b, da, db in poles]
    a, b = np.array(each).T
    feed = float(moves.inputs["D"][d]) if "D" in moves.inputs else 0.0
    return Channel(to["Lambda"], of.P, to["B"], to["C"], feed, step, np.diag(a), b)


def modes(of: Channel, x: Instance, row: int, d: int) -> Modes:
    """A diagonal channel for one row of the batch."""
    start = np.zeros(len(of.C)) if x.state is None else x.state[row, d]
    return Modes(x.inputs["u"][row, d], np.diag(of.Abar), of.Bbar, of.C, of.D, start)


def rule_error(rule: str, of: Channel, change: Channel, pull: Array, p: Precision) -> float:
    """How wrong the derivative of a diagonal rule may be; that by Δ is a sum over the poles, n roundings beside eight or more."""
    n, error = len(of.B), 0.0
    for i in range(n):
        z, drive = of.delta * of.Lambda[i].reshape(1, 1), of.delta * of.B[i : i + 1]
        dz = change.delta * of.Lambda[i].reshape(1, 1) + of.delta * change.Lambda[i].reshape(1, 1)
        turn = change.delta * of.B[i : i + 1] + of.delta * change.B[i : i + 1]
        truth = np.array([[of.Abar[i, i], of.Bbar[i]]])
        error += RULES[rule].pole_slope(Slope(z, drive, truth, dz, turn, pull[:, i][None]), replace(p, unit=p.unit * (1 + n / 8)))
    return error


@dataclass(frozen=True, eq=False)
class Channelwise(Operator):
    """An operator whose outputs come as (b, d, t): they are compared with time first."""

    def arrays(self, out: Any, state: Any) -> tuple[Array, Any]:
        """(b, t, d), and the state."""
        found = values(out)
        return (found.swapaxes(1, 2) if np.ndim(found) == 3 else found), values(state)

    def weighed(self, out: Any, state: Any, weights: Array, final: Array | None) -> list[tuple[Any, Array]]:
        """The results beside their weights, in the axes of the call."""
        return super().weighed(out, state, weights.swapaxes(1, 2), final)


def independent(x: Instance) -> Array:
    """Outputs (b, t, d) by SciPy's rules and simulation."""
    b, d, t = x.inputs["u"].shape
    out = np.zeros((b, t, d))
    for i in range(d):
        low = x.inputs["P"][i] if "P" in x.inputs else np.zeros(1)
        a = np.diag(x.inputs["Lambda"][i]) - np.outer(low, low.conj())
        held = "P" not in x.inputs and x.options.get("rule", "zoh") == "zoh"
        rule = scipy_truth.hold if held else partial(scipy_truth.gbt, alpha=0.5)
        abar, bbar = rule(a, x.inputs["B"][i], step_of(x, i))
        parameters = {"u": x.inputs["u"][:, i], "Abar": abar, "Bbar": bbar, "C": x.inputs["C"][i]}
        if "D" in x.inputs:
            parameters["D"] = x.inputs["D"][i]
        one = Instance(parameters, None if x.state is None else x.state[:, i], {}, x.dtype)
        out[:, :, i] = scipy_truth.simulate(one).real
    return out


def without_low_rank(x: Instance) -> Instance:
    """The diagonal system of a case with P = 0."""
    return Instance({n: a for n, a in x.inputs.items() if n != "P"}, x.state, {"rule": "bilinear"}, x.dtype, x.precision)


SHAPE = strategies.sizes(b=st.integers(1, 2), d=st.integers(1, 2), t=strategies.lengths, n=st.integers(1, 4))


def corners(name: str) -> Iterator[Case]:
    """Cases that every run has."""
    for seed, (t, n, scale, dtype, flags) in enumerate(
        (
            (11, 3, SMALL, "float32", ("start",)),
            (8, 4, LARGE, "float32", ("start", "pairs")),
            (9, 4, LARGE, "float64", ("start", "stiff", "step-two")),
            (13, 2, SMALL, "float32", ("real", "start", "bilinear")),
            (12, 4, LARGE, "float32", ("near-axis", "step-one", "no-feedthrough")),
            (33, 3, SMALL, "float32", ("start",)),
            (9, 3, LARGE, "bfloat16", ("start", "real")),
            (16, 3, LARGE, "float32", ("pairs", "bilinear")),
            (7, 2, SMALL, "float32", ("start", "no-step")),
            (8, 2, LARGE, "float32", ("real", "start", "step-two", "bilinear")),
        )
    ):
        yield Case(name, (("b", 1 + seed % 2), ("d", 2), ("t", t), ("n", n)), seed, dtype, scale, flags)


def operator(name: str, flags: tuple[str, ...], reductions: tuple[Reduction, ...] = ()) -> Operator:
    """S4 or S4D."""
    structure = strategies.flags(("start",), POLES, ("real",), STEPS, ("no-feedthrough",), flags)
    return Channelwise(
        name=name,
        declaration=DECLARATION,
        inputs=INPUTS[name],
        state_axes="b d n",
        capabilities=CAPABILITIES | ({"gradient"} if name == "s4d" else set()),
        cases=strategies.cases(name, SHAPE, structure),
        corners=lambda: tuple(corners(name)),
        draw=draw,
        refer=refer,
        derive=derive if name == "s4d" else None,
        independent=independent,
        reductions=reductions,
        silent=("u",),
    )


OPERATORS = (
    operator("s4", (), (Reduction("no low rank", ("no-low-rank",), "s4d", without_low_rank),)),
    operator("s4d", ("bilinear", "step-tiny")),
)
