"""The selective scan under test, channel by channel: h_t = e^{Δ_t A} h_{t-1} + B̄_t u_t, y_t = C_tᵀ h_t + D u_t, then y · silu(z).

The declaration has the step Δ; a call may have it behind a bias and log(1 + e^x), and the result before a gate. Time is the
last axis of the arguments, and the second one here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, special

from isoform.derivations.evaluate import oracle
from isoform.derivations.kernel.formulas import Declaration

from .bounds import EXPONENTIAL, SECOND_ORDER, SPLIT, Bounds, beside_truth, fading, gamma, stored
from .gates import SETTLING, settling, softened
from .operator import Input, Instance, Operator, Reference
from .oracle import EXACT_WORK, STEP
from .remembering import truths
from .strategies import Case, normal
from .tensors import Precision, precision, rounded, tensor, values

Array = np.ndarray[Any, Any]
INPUTS = (
    Input("u", "b d t"),
    Input("delta", "b d t", "real"),
    Input("A", "d n", "<= 0"),
    Input("B", "b n t|b g n t|d n"),
    Input("C", "b n t|b gc n t|d n"),
    Input("D", "d"),
    Input("z", "b d t"),
    Input("delta_bias", "d"),
)
DECAYS = ("A-zero", "A-small", "stiff", "long-memory", "steps-zero", "time-invariant", SETTLING)
STEPS = ("softplus", "softplus-low")
WEIGHTS = ("grouped", "constant-weights", "grouped-writes", "other-groups")
NEEDED = {"softplus": "delta_softplus", "softplus-low": "delta_softplus", "bias": "delta_bias", "gate": "z"}
SOFTPLUS = 6
"""Units in the last place of log(1 + e^x) by an exponential, log1p and a sum, x being right."""
SILU = 6
"""Units of z σ(z): an exponential, a sum, a quotient and a product."""
QUOTIENT = 8
"""Units of (e^z - 1)/z: expm1, a quotient, and z rounded, which costs it no more than z itself."""


def draw(case: Case) -> Instance:
    """Inputs of the case's scale, and steps, poles and weights of its structure."""
    b, t, d, n = (case.size(a) for a in "btdn")
    g = next(g for g in range(min(d, case.size("g")), 0, -1) if d % g == 0)
    inputs = {"u": normal(case, 0, b, d, t), **steps(case, b, d, t), "A": rounded(poles(case, d, n), case.dtype)}
    if case.has("constant"):
        inputs["u"] = np.full_like(inputs["u"], 1.5 * case.unit)
    for purpose, name, grouped in ((4, "B", ("grouped", "grouped-writes", "other-groups")), (5, "C", ("grouped", "other-groups"))):
        many = d if case.has("other-groups") and name == "C" and g > 1 else g
        shape = (d, n) if case.has("constant-weights") else (b, many, n, t) if any(map(case.has, grouped)) else (b, n, t)
        inputs[name] = normal(case, purpose, *shape, scaled=False)
        if case.has("time-invariant") and len(shape) > 2:
            inputs[name] = np.repeat(inputs[name][..., :1], t, -1)
    if not case.has("no-feedthrough") and not case.has("softplus-low"):
        inputs["D"] = normal(case, 6, d, scaled=False)
    if case.has("gate") and not case.has("dyadic"):
        drawn = normal(case, 7, b, d, t, scaled=False) * 3
        extreme = case.rng(8).choice((-100.0, -30.0, 0.0, 30.0, 100.0), (b, d, t))
        inputs["z"] = rounded(np.where(case.rng(9).random((b, d, t)) < 0.2, extreme, drawn), case.dtype)
    options: dict[str, Any] = {"chunk_size": case.size("chunk")} | ({"delta_softplus": True} if soft(case) else {})
    return Instance(inputs, normal(case, 10, b, d, n, wide=True) if case.has("start") else None, options, case.dtype)


def soft(case: Case) -> bool:
    """Whether the steps are behind log(1 + e^x)."""
    return (case.has("softplus") or case.has("softplus-low")) and not case.has("dyadic")


def steps(case: Case, b: int, d: int, t: int) -> dict[str, Array]:
    """The argument delta, and the bias if there is one: positive, if there is no log(1 + e^x) to make steps positive."""
    rng, shape = case.rng(1), (b, d, t)
    if case.has("dyadic"):
        return {"delta": rng.integers(0, 3, shape).astype(float)}
    drawn = rng.standard_normal(shape) * 2 - 1 if soft(case) else case.plain(2.0 ** rng.uniform(-4, 1, shape))
    if case.has("softplus-low"):
        drawn = -17 - 10 * rng.random(shape)
    if case.has("long-memory"):
        drawn = np.zeros(shape) if soft(case) else np.ones(shape)
    if case.has(SETTLING):
        drawn = -settling(rng, shape, 2)
    if case.has("outside") and not soft(case):
        drawn = rng.choice((-0.5, 0.25, 1.0), shape)
    if case.has("time-invariant"):
        drawn = np.repeat(drawn[..., :1], t, -1)
    if case.has("steps-zero") or case.has("edge"):
        drawn = np.where(rng.random(shape) < 0.3, -np.inf if soft(case) else 0.0, drawn)
    found = {"delta": rounded(drawn, case.dtype)}
    if case.has("bias"):
        bias = rng.standard_normal(d)
        found["delta_bias"] = rounded(bias if soft(case) else np.abs(bias), case.dtype)
    return found


def poles(case: Case, d: int, n: int) -> Array:
    """A (d, n)."""
    rng = case.rng(2)
    drawn = case.plain(-(2.0 ** rng.uniform(-3, 2, (d, n))))
    if case.has("dyadic"):
        return drawn * 0
    if case.has("A-zero"):
        drawn *= rng.integers(0, 2, (d, n))
    if case.has("A-small"):
        drawn *= 2.0**-17
    if case.has("long-memory"):
        drawn = np.full((d, n), -1e-4)
    if case.has(SETTLING):
        drawn = -(2.0 ** rng.uniform(-0.5, 0.5, (d, n)))
    if case.has("outside"):
        drawn = rng.choice((-0.5, -0.05, 0.0, 0.05, 0.25), (d, n))
    if case.has("stiff") or case.has("edge"):
        drawn = rng.choice((-1e4, -100.0, -1.0, -1e-4, 0.0), (d, n))
    return drawn


@dataclass(frozen=True)
class Channel:
    """One channel of one member of the batch: arrays (T,), (N,) and (T, N), numbers, and the start (N,)."""

    u: Array
    delta: Array
    A: Array
    B: Array
    C: Array
    D: Array
    z: Array | None
    bias: Array
    start: Array
    soft: bool

    @property
    def argument(self) -> Array:
        """What Δ is, or log(1 + e^x) of what."""
        return self.delta + self.bias

    @property
    def step(self) -> Array:
        """Δ in float64."""
        return -special.log_expit(-self.argument) if self.soft else self.argument

    @property
    def slope(self) -> Array:
        """The derivative of Δ by the argument."""
        return special.expit(self.argument) if self.soft else np.ones_like(self.argument)

    @property
    def gate(self) -> Array:
        """silu(z), or 1."""
        return np.ones_like(self.u) if self.z is None else self.z * special.expit(self.z)

    @property
    def gate_slope(self) -> Array:
        """The derivative of the gate by z."""
        if self.z is None:
            return np.zeros_like(self.u)
        return special.expit(self.z) * (1 + self.z * special.expit(-self.z))

    def declared(self, exact: bool = False) -> dict[str, Any]:
        """The inputs of the declaration, Δ as a fraction of many digits if it must be exact."""
        step: Any = self.step
        if exact:
            sums = [Fraction(x) + Fraction(float(self.bias)) if np.isfinite(x) else x for x in self.delta]
            step = np.array([softened(x) if self.soft else x for x in sums], dtype=object)
        return {"u": self.u, "delta": step, "A": self.A, "B": self.B, "C": self.C, "D": self.D}


def channels(x: Instance) -> Iterator[tuple[tuple[int, int], Channel]]:
    """Every channel of every member of the batch; channel i reads B and C of group i // (d / g)."""
    b, d, t = x.inputs["u"].shape
    n = x.inputs["A"].shape[1]

    def weights(given: Array, row: int, i: int) -> Array:
        if given.ndim == 2:
            return np.tile(given[i], (t, 1))
        return (given[row] if given.ndim == 3 else given[row, i * given.shape[1] // d]).T

    for row in range(b):
        for i in range(d):
            yield (
                (row, i),
                Channel(
                    x.inputs["u"][row, i],
                    x.inputs["delta"][row, i],
                    x.inputs["A"][i],
                    weights(x.inputs["B"], row, i),
                    weights(x.inputs["C"], row, i),
                    x.inputs["D"][i] if "D" in x.inputs else np.zeros(()),
                    x.inputs["z"][row, i] if "z" in x.inputs else None,
                    x.inputs["delta_bias"][i] if "delta_bias" in x.inputs else np.zeros(()),
                    np.zeros(n) if x.state is None else x.state[row, i],
                    bool(x.options.get("delta_softplus")),
                ),
            )


def refer(declaration: Declaration, hold: bool, truth: Callable[[Instance], tuple[Array, Array]], x: Instance) -> Reference:
    """The truth of every channel and its bound."""
    b, d, t = x.inputs["u"].shape
    n = x.inputs["A"].shape[1]
    p = precision(x.dtype, x.precision)
    out, states = truth(replace(x, options={"delta_softplus": bool(x.options.get("delta_softplus"))}, dtype="", precision=""))
    sharp, terms, states_bound = np.zeros((b, t, d)), np.zeros((b, t, d)), np.zeros((b, t + 1, d, n))
    for (row, i), c in channels(x):
        found = beside_truth(partial(bound, c, hold, states[row, :, i]), p)
        sharp[row, :, i], terms[row, :, i], states_bound[row, :, i] = found.output, found.terms, found.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, states_bound)


def run(declaration: Declaration, x: Instance) -> tuple[Array, Array]:
    """Outputs (B, T, D) behind the gate and states (B, T + 1, D, N): in balls, of many tokens in float64."""
    b, d, t = x.inputs["u"].shape
    n = x.inputs["A"].shape[1]
    out, states = np.zeros((b, t, d)), np.zeros((b, t + 1, d, n))
    for (row, i), c in channels(x):
        exact = (t + 1) * n * n <= EXACT_WORK
        y, h = oracle(declaration, c.declared(exact), length=t, system="arb" if exact else "float64", initial_state=c.start, prec=256)
        out[row, :, i] = np.asarray(y, float).reshape(t) * c.gate
        states[row, :, i] = np.asarray(h, float).reshape(t + 1, n)
    return out, states


def quotient(z: Array, hold: bool) -> Array:
    """(e^z - 1)/z for zero-order hold, else 1."""
    return np.asarray(special.exprel(z)) if hold else np.ones_like(z)


def bound(c: Channel, hold: bool, states: Array, p: Precision) -> Bounds:
    """The bounds of one channel for every order of evaluation: `fading`, whose decays are e^{ΔA} and whose writes B̄ u.

    Beside what that counts, Δ is off by its own roundings, z = ΔA by one more, which costs e^z |dz|, and a write by three
    products, with zero-order hold by those of (e^z - 1)/z. The feedthrough is two roundings, and the gate multiplies the row.
    """
    z, of_step = c.step[:, None] * c.A, step_error(c, p)
    decay, size = np.exp(z), np.abs(c.u)[:, None] * np.abs(c.B) * quotient(z, hold)
    writes = np.abs(c.step)[:, None] * size
    found = fading(c.C, writes[:, :, None], states[:, :, None], (decay[:, :, None],), p)
    turn = p.unit * np.abs(z) + np.abs(c.A) * of_step[:, None]
    off = writes * (p.unit * (SPLIT + 3 + QUOTIENT * hold) + hold * turn * np.maximum(1, z)) + size * of_step[:, None]
    off += p.tiny * (1 + np.abs(c.u)[:, None]) * (1 + np.abs(c.B))
    total, more = np.zeros(states.shape), np.zeros(states.shape)
    total[0] = np.abs(states[0])
    for t in range(len(z)):
        more[t + 1] = decay[t] * (more[t] + turn[t] * total[t]) + off[t]
        total[t + 1] = decay[t] * total[t] + writes[t]
    through = np.abs(c.D * c.u)
    rows = found.output[:, 0] + SECOND_ORDER * (np.abs(c.C) * more[1:]).sum(-1) + gamma(3, p.unit) * through
    terms = found.terms[:, 0] + through
    gate = np.abs(c.gate)
    if c.z is not None:
        rows = gate * rows + terms * (gamma(SILU + 2, p.unit) * gate + p.tiny * (1 + np.abs(c.z))) + p.tiny
    return Bounds(rows, found.states[:, :, 0] + SECOND_ORDER * more, gate * terms)


def step_error(c: Channel, p: Precision) -> Array:
    """How wrong Δ may be: a sum with the bias, which costs the slope there times its rounding, and log(1 + e^x)."""
    finite = np.where(np.isfinite(c.argument), np.abs(c.argument), 0.0)
    rounding = np.where(c.bias != 0, p.unit * finite * c.slope, 0.0)
    return rounding + (SOFTPLUS * p.unit * c.step + p.tiny if c.soft else 0.0)


def derive(
    declaration: Declaration, hold: bool, x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array
) -> tuple[float, float]:
    """The derivative of Σ weights · out + Σ final · h_T in a direction, and its bound.

    The bound is γ_N of the same derivative of the sum of the absolute values of all terms, and three times what errors of the
    exponents cost that: a backward pass evaluates these terms with at most three times the forward roundings. What is shared
    by tokens, channels or members of the batch has its gradient summed over them.
    """
    moves = replace(x, inputs={**x.inputs, **toward}, state=push)
    p, value, size, turned, lost = precision(x.dtype, x.precision), 0.0, 0.0, 0.0, 0.0
    for ((row, i), c), (_, move) in zip(channels(x), channels(moves), strict=True):
        w, f = weights[row, :, i], final[row, i]
        value += slope(declaration, c, move, w, f)
        terms = majorant(c, move, hold, np.abs(w), np.abs(f), p)
        size, turned, lost = size + terms[0], turned + terms[1], lost + terms[2]
    b, d, t = x.inputs["u"].shape
    n = x.inputs["A"].shape[1]
    count = 3 * (t + 1) * (n + SPLIT + QUOTIENT + SOFTPLUS + SILU) + b * d * (t + 1)
    return value, gamma(count, p.unit) * size + 3 * turned + p.tiny * count * lost


def slope(declaration: Declaration, c: Channel, move: Channel, w: Array, f: Array) -> float:
    """The derivative of one channel, by a complex step through the declaration and the chain rule around it."""
    at, along = c.declared(), {**move.declared(), "delta": c.slope * finite(move.argument)}
    moved = {m: a + 1j * STEP * along[m] for m, a in at.items()}
    y, h = oracle(declaration, moved, length=len(c.u), system="arb", initial_state=c.start + 1j * STEP * move.start, prec=512)
    y, last = (np.array([complex(e) for e in np.ravel(a)]) for a in (y, h[-1]))
    change = c.gate * y.imag / STEP
    if c.z is not None and move.z is not None:
        change = change + c.gate_slope * move.z * y.real
    return float(w @ change + f @ last.imag / STEP)


def finite(x: Array) -> Array:
    """Where an argument is infinite it has no direction."""
    return np.where(np.isfinite(x), x, 0.0)


def majorant(c: Channel, move: Channel, hold: bool, w: Array, f: Array, p: Precision) -> tuple[float, float, float]:
    """Of one channel: the derivative of the sum of the absolute values of all terms, what errors of exponents cost it, and
    what is lost where a number is below the normal ones.

    A decay e^s over a range is off by e^s times the sum of the errors of its exponents: one rounding of each z, its Δ, and of
    the sum of a range, which has at most T + 3 (`fading`).
    """
    step, z = np.abs(c.step), c.step[:, None] * c.A
    d_step = c.slope * np.abs(finite(move.argument))
    decay, phi = np.exp(z), quotient(z, hold)
    d_z = d_step[:, None] * np.abs(c.A) + step[:, None] * np.abs(move.A)
    phi_slope = np.maximum(phi, decay) * hold
    u, b = np.abs(c.u)[:, None], np.abs(c.B)
    write = step[:, None] * u * b * phi
    d_write = (d_step[:, None] * u * b + step[:, None] * (np.abs(move.u)[:, None] * b + u * np.abs(move.B))) * phi
    d_write += step[:, None] * u * b * phi_slope * d_z
    log = (len(z) + 4) * p.unit * np.abs(z) + np.abs(c.A) * step_error(c, p)[:, None] + EXPONENTIAL * p.unit
    of_slope = p.unit * np.abs(finite(c.argument))[:, None] * (c.bias != 0)
    relative = (step_error(c, p) / np.where(step > 0, step, 1))[:, None] * (1 + hold) + of_slope
    total, change = np.abs(c.start), np.abs(move.start)
    total_off, change_off = np.zeros((2, len(c.A)))
    rows = np.zeros((3, len(z)))
    own, d_own = np.abs(c.C), np.abs(move.C)
    for t in range(len(z)):
        own_off = relative[t] * d_write[t]
        change_off = decay[t] * (change_off + log[t] * change + d_z[t] * ((2 * log[t] + of_slope[t]) * total + total_off)) + own_off
        change = decay[t] * (change + d_z[t] * total) + d_write[t]
        total_off = decay[t] * (total_off + log[t] * total) + relative[t] * write[t]
        total = decay[t] * total + write[t]
        rows[2, t] = own[t] @ total
        rows[0, t] = own[t] @ change + d_own[t] @ total
        rows[1, t] = own[t] @ change_off + d_own[t] @ total_off
    through = np.abs(c.D) * np.abs(move.u) + np.abs(move.D) * np.abs(c.u)
    gate = np.abs(c.gate)
    size = gate * (rows[0] + through)
    if c.z is not None and move.z is not None:
        size = size + np.abs(c.gate_slope) * np.abs(move.z) * (rows[2] + np.abs(c.D * c.u)) + 2 * p.unit * np.abs(c.z) * size
    loss = (1 + np.abs(move.argument)[np.isfinite(move.argument)].sum()) * (1 + np.abs(c.u).sum()) * (1 + b.sum()) * (1 + own.sum())
    return float(w @ size + f @ change), float(w @ (gate * rows[1]) + f @ change_off), float(loss)


def independent(hold: bool, x: Instance) -> Array:
    """The outputs (B, T, D) by SciPy: the states of a channel solve a bidiagonal system of equations."""
    b, d, t = x.inputs["u"].shape
    out = np.zeros((b, t, d))
    for (row, i), c in channels(x):
        z = c.step[:, None] * c.A
        for n in range(len(c.A)) if t else ():
            right = c.step * c.B[:, n] * c.u * quotient(z[:, n], hold)
            decay = np.exp(z[:, n])
            right[0] += decay[0] * c.start[n]
            bands = np.stack([np.ones(t), np.append(-decay[1:], 0.0)])
            out[row, :, i] += c.C[:, n] * linalg.solve_banded((1, 0), bands, right)
        out[row, :, i] = (out[row, :, i] + c.D * c.u) * c.gate
    return out


@dataclass(frozen=True, eq=False)
class Selective(Operator):
    """A selective scan, whose outputs are compared with time as the second axis."""

    def arrays(self, out: Any, state: Any) -> tuple[Any, Any]:
        """Outputs (B, T, D)."""
        found = values(out)
        return found.swapaxes(1, 2) if np.ndim(found) == 3 else found, values(state)

    def weighed(self, out: Any, state: Any, weights: Array, final: Array | None) -> list[tuple[Any, Array]]:
        """The results beside their weights, in the axes of the call."""
        return super().weighed(out, state, weights.swapaxes(1, 2), final)

    def token(self, step: Callable[..., Any], x: Instance, t: int) -> dict[str, Any]:
        """The arguments of a step: what does not change is given to every channel, as a group of its own."""
        found = super().token(step, x, t)
        for name in "BC":
            if x.inputs[name].ndim == 2:
                found[name] = tensor(np.repeat(x.inputs[name][None], len(x.inputs["u"]), 0), x.dtype)
        return found

    def neutral_value(self, x: Instance, name: str) -> Any:
        """A step of 0: what the bias and log(1 + e^x) make 0."""
        if name != "delta":
            return 0.0
        bias = x.inputs.get("delta_bias", np.zeros(1))[:, None]
        return -np.inf if x.options.get("delta_softplus") else -bias


def operator(declaration: Declaration, hold: bool, **more: Any) -> Operator:
    """The operator with this declaration; ``hold`` says which B̄ it has."""
    truth = truths(partial(run, declaration))
    return Selective(
        name=declaration.operator,
        declaration=declaration,
        inputs=INPUTS,
        state_axes="b d n",
        draw=(lambda case: _held(draw(case))) if hold else draw,
        refer=partial(refer, declaration, hold, truth),
        derive=partial(derive, declaration, hold),
        independent=partial(independent, hold),
        optional=("chunk_size", "discretization"),
        needed=NEEDED,
        neutral=(("delta",),),
        silent=("u",),
        final_argument="return_last_state",
        **more,
    )


def _held(x: Instance) -> Instance:
    return replace(x, options={**x.options, "discretization": "zoh"})
