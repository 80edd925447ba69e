"""WKV of RWKV-4 under test: o_t = (a_{t-1} + e^{u+k_t} v_t) / (b_{t-1} + e^{u+k_t}), a_t = e^w a_{t-1} + e^{k_t} v_t, and b_t without v.

A state is a e^{-p}, b e^{-p} and the running maximum p. Channel by channel the declaration is run in balls, all keys less
the p of the start, so that the start enters as it is (rwkv/shift-invariant).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.evaluate import oracle
from isoform.derivations.rwkv import WKV as DECLARATION

from . import gates, strategies
from .bounds import EXPONENTIAL, SECOND_ORDER, Bounds, beside_truth, gamma, stored
from .operator import Input, Instance, Operator, Reference
from .oracle import STEP
from .strategies import LARGE, ORDINARY, SMALL, Case, normal
from .tensors import Precision, precision, rounded, values

Array = np.ndarray[Any, Any]
INPUTS = (Input("k", "b t c"), Input("v", "b t c"), Input("w", "c", "<= 0, -inf among them"), Input("u", "c"))
KEYS = ("constant", "rising", "falling", "first-key")
BONUSES = ("no-bonus", "large-bonus")
SIZES = {SMALL: 1.0, LARGE: 80.0, ORDINARY: 1.0}
"""The size of keys: e^80 times itself leaves the range of float32."""
GONE = -1e6
"""In the place of a log-decay of -∞: keys never differ by so much."""


def draw(case: Case) -> Instance:
    """Keys, values, log-decays and bonuses of the case's structure; a start with a positive denominator."""
    b, t, c = (case.size(n) for n in "btc")
    size = 1000.0 if case.has("huge") else 2.0**-30 if case.has("vanishing") else SIZES[case.scale]
    keys = case.rng(0).standard_normal((b, t, c)) * size
    if case.has("constant"):
        keys = np.full_like(keys, 0.75 * size)
    if case.has("rising") or case.has("falling"):
        keys = np.sort(keys, axis=1)[:, :: -1 if case.has("falling") else 1]
    if case.has("first-key"):
        keys[:, 1:] -= 3 * size
    u = case.rng(1).standard_normal(c) * (0 if case.has("no-bonus") else 30 if case.has("large-bonus") else 1)
    inputs = {"k": rounded(keys, case.dtype), "v": normal(case, 2, b, t, c), "w": gates.logs(case, 20, (c,)), "u": rounded(u, case.dtype)}
    return Instance(inputs, begun(case, b, c, size) if case.has("start") else None, {}, case.dtype)


def begun(case: Case, b: int, c: int, size: float) -> Array:
    """A state: some channels have seen nothing yet."""
    p = rounded(case.rng(3).standard_normal((b, c)) * size, "float32")
    below = rounded(0.5 + case.rng(4).random((b, c)), "float32")
    above = normal(case, 5, b, c, wide=True)
    fresh = case.rng(6).random((b, c)) < 0.2
    return np.stack([np.where(fresh, 0.0, above), np.where(fresh, 0.0, below), np.where(fresh, -np.inf, p)], 1)


@dataclass(frozen=True)
class Channel:
    """One channel of one sequence: keys and values, log-decay, bonus, and a start."""

    k: Array
    v: Array
    w: float
    u: float
    above: float
    below: float
    p: float

    @property
    def maxima(self) -> Array:
        """The running maximum after 0, 1, …, T tokens: of p_0 + t w and k_j + (t - j) w, each rounded twice."""
        sources = np.concatenate([[self.p], self.k])
        after = np.arange(len(sources))
        with np.errstate(invalid="ignore"):
            aged = (after[:, None] - after[None]) * self.w
        faded = sources[None] + np.where(after[:, None] == after[None], 0.0, aged)
        return np.where(after[None] <= after[:, None], faded, -np.inf).max(1)

    @property
    def base(self) -> float:
        """What all keys are taken less."""
        return self.p if np.isfinite(self.p) else 0.0

    def run(self, move: Channel | None = None) -> tuple[Any, Any, Any]:
        """The declaration in balls; with ``move``, each input moved by a complex step."""

        def step(x: Any, d: Any) -> Any:
            return x + 1j * STEP * d

        k: Any = np.array([Fraction(float(x)) - Fraction(self.base) for x in self.k], dtype=object)
        w: Any = self.w if np.isfinite(self.w) else GONE
        v, u, above, below = (np.asarray(x) for x in (self.v, self.u, self.above, self.below))
        if move is not None:
            seen, up = (1.0, move.p) if np.isfinite(self.p) else (0.0, 0.0)
            k, v, u = step(self.k - self.base, move.k), step(v, move.v), step(u, move.u)
            w = step(w, move.w if np.isfinite(self.w) else 0.0)
            above, below = step(above, seen * move.above + up * above), step(below, seen * move.below + up * below)
        given = {"k": k, "v": v, "w": np.asarray(w), "u": u}
        out, (a, b) = oracle(DECLARATION, given, length=len(self.k), system="arb", initial_state=(above, below), prec=320)
        return out, a, b


def channels(x: Instance) -> Iterator[tuple[tuple[int, int], Channel]]:
    """Every channel with its place (batch, channel); under the maximum -∞ there is nothing yet."""
    b, _, c = x.inputs["k"].shape
    for n, i in np.ndindex(b, c):
        start = (0.0, 0.0, -np.inf) if x.state is None or x.state[n, 2, i] == -np.inf else x.state[n, :, i]
        k, v = (x.inputs[m][n, :, i] for m in "kv")
        yield (n, i), Channel(k, v, float(x.inputs["w"][i]), float(x.inputs["u"][i]), *(float(s) for s in start))


def scaled(sums: Any, shift: float) -> Any:
    """A ball times e^shift."""
    return sums * type(sums)(shift).exp()


def truth(channel: Channel) -> tuple[Array, Array]:
    """Outputs (T,) and states (T + 1, 3)."""
    out, a, b = channel.run()
    p = channel.maxima
    states = [
        [0.0, 0.0, p[n]] if p[n] == -np.inf else [*(float(scaled(s[n], channel.base - p[n])) for s in (a, b)), p[n]] for n in range(len(p))
    ]
    return np.array([float(o) for o in out]), np.array(states).reshape(len(p), 3)


# How far a form may be from it ----------------------------------------------------------------------


@dataclass(frozen=True)
class Weights:
    """The weights with which the start (column 0) and the tokens enter, their relative errors, and how often they decay.

    ``read`` (T, T + 1) are those of an output, less a common factor; ``kept`` (T + 1, T + 1) those of a state, under p.
    ``p_error`` (T + 1) is that of p itself.
    """

    read: Array
    read_error: Array
    kept: Array
    kept_error: Array
    age: Array
    p_error: Array


def weigh(channel: Channel, unit: float) -> Weights:
    """The weights of a channel.

    What entered at j is under the shift p_j: k_j - p_j. For every step s after it p_{s-1} + w - p_s is added, and the
    difference to the shift of the read-out at last. Each of these rounds p + w and a difference, or two differences; w
    alone is added up over a range in any order. Where p comes from the token of the step before, it rounds p + w too.
    A step costs two exponentials and two products in a scan over blocks, the way in and out as much, and more: 16.
    """
    steps, p = len(channel.k), channel.maxima
    w, own = channel.w if np.isfinite(channel.w) else 0.0, channel.u + channel.k
    sources, after = np.concatenate([[channel.p], channel.k]), np.arange(steps + 1)
    age = np.maximum(after[:, None] - after[None], 0)
    alive = (age > 0) & (channel.w > -np.inf) & (after[None] <= after[:, None]) | (after[:, None] == after[None])
    logs = np.where(alive, sources[None] + w * age, -np.inf)

    shift, entered = _number(p), np.abs(_number(sources))
    size = np.abs(shift)
    along = np.concatenate([[0.0], 2 * (size[:-1] + size[1:]) + 3 * abs(w)]).cumsum()
    exponent = unit * (along[:, None] - along[None] + (entered + size)[None])
    rounds = (2 * EXPONENTIAL + 2) * age + 16
    p_error = maximum_error(channel, p, unit)
    kept_error = _relative(exponent + p_error[:, None], rounds, unit) * alive

    now = after[1:] - 1, after[1:]
    before, reading = logs[:-1].copy(), unit * 2 * (size[:-1] + np.abs(own) + abs(channel.u))
    before[now] = own
    exponent = exponent[:-1] + reading[:, None]
    exponent[now] = reading
    read = np.exp(before - before.max(1, keepdims=True, initial=-np.inf)) if steps else np.zeros((0, 1))
    return Weights(
        read, _relative(exponent, rounds[:-1], unit) * (read > 0), np.exp(logs - shift[:, None]), kept_error, age * alive, p_error
    )


def maximum_error(channel: Channel, p: Array, unit: float) -> Array:
    """How wrong each p may be: a new maximum is a key as it is given, an old one has decayed once more.

    A scan over blocks may take the keys of a block less a shift of its own, and add that again: with p + w three roundings
    a token where blocks are single tokens, beside that of a sum of log-decays.
    """
    found = np.zeros(len(p))
    for t in range(1, len(p)):
        decayed = p[t - 1] + channel.w
        rounding = unit * (3 * abs(_number(decayed)) + (2 + np.log2(t)) * abs(_number(np.asarray(channel.w))))
        if np.isfinite(decayed) and decayed >= channel.k[t - 1] - found[t - 1] - rounding:
            found[t] = found[t - 1] + rounding
    return found


def _number(x: Array) -> Array:
    """0 for what is not finite."""
    return np.where(np.isfinite(x), x, 0.0)


def _relative(exponent: Array, rounds: Array, unit: float) -> Array:
    """The relative error of e^x for an error of x, and of so many roundings beside."""
    count = rounds * unit
    with np.errstate(over="ignore"):
        return np.expm1(exponent) + np.where(count < 1, count / (1 - np.minimum(count, 0.5)), np.inf)


def entries(channel: Channel) -> tuple[Array, Array]:
    """What the weights multiply in numerators and in denominators."""
    return np.concatenate([[channel.above], channel.v]), np.concatenate([[channel.below], np.ones_like(channel.v)])


def bound(channel: Channel, out: Array, states: Array, precision: Precision) -> Bounds:
    """The bounds of one channel.

    Relative errors e of the weights π, in numerator and denominator at once, cost a mean o Σ π e |v - o|. What rounds the
    one or the other alone, a product and two sums a token at most, costs Σ π (|v| + |o|) times its number.
    """
    x = weigh(channel, precision.unit)
    above, below = entries(channel)
    shares = x.read / (x.read @ below)[:, None]
    own = gamma(4 * len(channel.k) + 16, precision.unit)
    terms = shares @ np.abs(above) + np.abs(out)
    apart = shares * np.abs(above[None] - out[:, None] * below[None])
    lost = precision.tiny * (len(channel.k) + 2) * (1 + np.abs(out) + np.abs(above).max()) / (x.read @ below)
    output = _sum(apart, x.read_error) + own * terms + lost
    least = precision.tiny * np.arange(1, len(states) + 1) * (1 + np.abs(above).max())
    sums = [_sum(x.kept * np.abs(e), x.kept_error) + own * (x.kept @ np.abs(e)) + least for e in (above, below)]
    p_error = x.p_error + precision.unit * np.abs(_number(states[:, 2]))
    return Bounds(output * SECOND_ORDER, np.stack([*sums, p_error], 1) * SECOND_ORDER, terms)


def _sum(size: Array, error: Array) -> Array:
    """Σ size · error, where nothing times infinitely much is nothing."""
    found: Array = np.where(size > 0, size * np.where(size > 0, error, 0.0), 0.0).sum(1)
    return found


def refer(x: Instance) -> Reference:
    """The truth and its bounds."""
    b, t, c = x.inputs["k"].shape
    p = precision(x.dtype, x.precision)
    out, sharp, terms = np.zeros((3, b, t, c))
    states, states_bound = np.zeros((2, b, t + 1, 3, c))
    for (n, i), channel in channels(x):
        out[n, :, i], states[n, :, :, i] = truth(channel)
        found = beside_truth(partial(bound, channel, out[n, :, i], states[n, :, :, i]), p)
        sharp[n, :, i], terms[n, :, i], states_bound[n, :, :, i] = found.output, found.terms, found.states
    return Reference(out, stored(sharp, out, terms, p), sharp, states, states_bound)


# Its gradient ---------------------------------------------------------------------------------------


def derive(x: Instance, toward: Mapping[str, Array], push: Array | None, weights: Array, final: Array) -> tuple[float, float]:
    """The derivative of Σ weights · o + Σ final · (a e^{-p}, b e^{-p}) with the last p held, in a direction, and its bound.

    A change δ of the logarithm of a weight π changes a mean by π (v - o) δ, that of v by π. With relative errors e of the
    weights, each term is off by its own e, by the mean e of the normaliser, and by the error of o; a backward pass has at
    most four times the roundings of a forward one.
    """
    moves = Instance(toward, push, x.options, x.dtype)
    value, size = 0.0, 0.0
    for ((n, i), channel), (_, move) in zip(channels(x), channels(moves), strict=True):
        w, f = weights[n, :, i], final[n, :2, i]
        slope, last = slopes(channel, move)
        value += float(w @ slope + f @ last)
        size += slope_bound(channel, move, w, f, precision(x.dtype, x.precision))
    return value, size


def slopes(channel: Channel, move: Channel) -> tuple[Array, Array]:
    """The derivatives of the outputs (T,), and of numerator and denominator of the last state, p held."""
    out, a, b = channel.run(move)
    p = channel.maxima[-1]
    moved = [complex(scaled(s[-1], channel.base - p)).imag / STEP for s in (a, b)] if np.isfinite(p) else [0.0, 0.0]
    return np.array([complex(o).imag / STEP for o in out]), np.array(moved)


def slope_bound(channel: Channel, move: Channel, w: Array, f: Array, p: Precision) -> float:
    """The bound of one channel; a weight too small to be held is lost."""
    x, unit = weigh(channel, p.unit), p.unit
    above, below = (np.abs(e) for e in entries(channel))
    more, less = (np.abs(e) for e in entries(move))
    less[1:] = 0.0
    first = abs(move.p) if np.isfinite(channel.p) else 0.0
    change = np.concatenate([[first], np.abs(move.k)])[None] + x.age * (abs(move.w) if np.isfinite(channel.w) else 0.0)
    reading = change[:-1].copy()
    steps = np.arange(len(channel.k))
    reading[steps, steps + 1] = np.abs(move.k) + abs(move.u)

    shares = x.read / (x.read @ below)[:, None]
    out = np.abs(truth(channel)[0])[:, None]
    own = gamma(4 * len(channel.k) + 16, unit)
    normal = _sum(shares * below, x.read_error)[:, None] + own
    off = (_sum(shares * (above + out * below), x.read_error) + own * (shares @ above + out[:, 0]))[:, None]
    size = shares * ((above + out * below) * reading + more + out * less)
    error = _sum(size, x.read_error + 2 * normal) + (off * shares * (below * reading + less)).sum(1)
    kept = x.kept[-1] * (abs(f[0]) * (above * change[-1] + more) + abs(f[1]) * (below * change[-1] + less))
    rounding = (np.abs(w) * error).sum() + _sum(kept[None], x.kept_error[-1:] + own)[0]
    most = max(above.max(), below.max()) * (1 + change.max()) + more.max() + less.max()
    lost = (np.abs(w) * (1 + out[:, 0]) / (x.read @ below)).sum() + np.abs(f).sum()
    return float(4 * (rounding + p.tiny * (len(channel.k) + 2) * most * lost))


@dataclass(frozen=True, eq=False)
class Average(Operator):
    """WKV: a loss of the state is one of its true sums, on which p has no say; before any token p may be any number."""

    def arrays(self, out: Any, state: Any) -> tuple[Array, Any]:
        """A state that holds nothing has -∞ in the place of p, whatever was written there: libraries have -1e38."""
        out, state = super().arrays(out, state)
        if isinstance(state, np.ndarray) and state.ndim == 3 and state.shape[1] == 3:
            state = state.copy()
            state[:, 2][(state[:, :2] == 0).all(1)] = -np.inf
        return out, state

    def weighed(self, out: Any, state: Any, weights: Array, final: Array | None) -> list[tuple[Any, Array]]:
        """The weight of p is the one for which a change of p alone, the true sums held, changes nothing."""
        if final is None or state is None or not np.any(final):
            return super().weighed(out, state, weights, final)
        held = np.array(final)
        sums = values(state)
        held[:, 2] = (held[:, :2] * sums[:, :2]).sum(1)
        return super().weighed(out, state, weights, held)


def corners() -> tuple[Case, ...]:
    """Cases that every run has."""

    def case(t: int, scale: str, *given: str, dtype: str = "float32", c: int = 3, b: int = 1) -> Case:
        return Case(DECLARATION.operator, (("b", b), ("t", t), ("c", c)), t, dtype, scale, given)

    flags = (*gates.FLAGS, *KEYS, *BONUSES)
    return (
        case(11, SMALL, "start"),
        case(11, LARGE, "start", b=2),
        case(67, LARGE, "start", "long-memory"),
        case(70, SMALL, "gates-mixed", dtype="bfloat16"),
        case(9, LARGE, "start", "gates-strong", dtype="bfloat16"),
        case(9, SMALL, "start", "gates-mixed", dtype="float64"),
        case(8, LARGE, "gates-reset", dtype="float16"),
        *(case(10, scale, "start", flag) for flag in flags for scale in (SMALL, LARGE)),
    )


OPERATOR = Average(
    name=DECLARATION.operator,
    declaration=DECLARATION,
    inputs=INPUTS,
    state_axes="b 3 c",
    capabilities=frozenset({"long", "causal", "state", "gradient", "sequence", "quarantine", "edges", "batch", "outside"}),
    cases=strategies.cases(
        DECLARATION.operator,
        strategies.sizes(b=st.integers(1, 2), t=strategies.lengths, c=st.integers(1, 4)),
        strategies.flags(("start",), gates.FLAGS, KEYS, BONUSES),
    ),
    corners=corners,
    draw=draw,
    refer=refer,
    derive=derive,
)
