"""Softmax attention under test: causal with a mask and a window, and without a frontier.

The declaration sees the keys 1..t. A row that sees other keys (more keys than queries, a mask, a window) is the last row
of the declaration on the keys that it does see; a row that sees none is 0.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.attention import DECLARATIONS

from . import oracle, scipy_truth, strategies
from .bounds import EXACT, SECOND_ORDER, gamma, rounded_products, stored
from .decoding import Plan
from .operator import Form, Input, Instance, Operator, Reference, pair
from .strategies import LARGE, ORDINARY, SMALL, Case, normal
from .tensors import Precision, joined, precision, rounded, tensor

Array = np.ndarray[Any, Any]
Cache = namedtuple("Cache", "k v")
INPUTS = (
    Input("q", "b t h d"),
    Input("k", "b s hkv d"),
    Input("v", "b s hkv v"),
    Input("mask", "b t s|b s", "boolean, True meaning visible"),
)
COMMON = frozenset({"sequence", "groups", "gradient", "edges", "batch", "padding-mask"})
TIE = 16.0
"""The size of queries and keys whose scores are large and nearly equal: there errors of the scores decide."""


def draw(case: Case, causal: bool) -> Instance:
    """Queries and keys whose scores are of a size that the case's scale sets; values scaled like other inputs."""
    b, t, hkv, d, width = (case.size(n) for n in ("b", "t", "h", "d", "v"))
    s = t + (3 if case.has("longer") else 0) - (min(t, 2) if case.has("shorter") else 0)
    h = hkv * case.size("groups")
    size = {SMALL: 2.0**-3, LARGE: 2.0, ORDINARY: 1.0}[case.scale]
    size = 2.0**6 if case.has("huge") else 2.0**-20 if case.has("vanishing") else size
    q, k = (rounded(case.rng(n).standard_normal((b, m, heads, d)) * size, case.dtype) for n, m, heads in ((0, t, h), (1, s, hkv)))
    inputs: dict[str, Array] = {"q": q, "k": k, "v": normal(case, 2, b, s, hkv, width)}
    if case.has("ties"):
        common = case.rng(6).standard_normal(d) * TIE
        inputs["q"], inputs["k"] = (rounded(common + case.rng(n).standard_normal(a.shape) / TIE, case.dtype) for n, a in ((0, q), (1, k)))
    if case.has("duplicate-keys"):
        inputs["k"] = np.repeat(inputs["k"][:, ::2], 2, axis=1)[:, :s]
    if case.has("constant"):
        inputs["v"] = rounded(np.full_like(inputs["v"], 1.5 * case.unit), case.dtype)
    options: dict[str, Any] = {"chunk_size": case.size("block"), **strategies.scaling(case)}
    inputs |= mask(case, b, t, s)
    if causal and case.has("window"):
        options["window_size"] = case.size("window")
    found = Instance(inputs, None, options, case.dtype)
    if case.has("hidden"):
        unseen = ~np.any(visible(found, causal), 1)[:, :, None, None]
        for name, bad in (("k", np.inf), ("v", np.nan)):
            inputs[name] = np.where(unseen, bad, inputs[name])
    return found


def mask(case: Case, b: int, t: int, s: int) -> dict[str, Array]:
    """The mask of the case's structure: tokens of padding on the left, on the right or anywhere, or any keys for each row."""
    if case.has("mask") or case.has("edge"):
        shown = case.rng(5).random((b, t, s)) < 0.6
        shown[:, ::3] = False
        return {"mask": shown}
    if case.has("padding"):
        shown = case.rng(5).random((b, s)) < 0.7
        shown[:, 1::5] = False  # by chance alone nothing might be hidden
        return {"mask": shown}
    hidden = (np.arange(b)[:, None] + 1 + case.seed) % (s // 2 + 2)
    if case.has("padding-left"):
        return {"mask": np.arange(s) >= hidden}
    return {"mask": np.arange(s) < s - hidden} if case.has("padding-right") else {}


@dataclass(frozen=True)
class Row:
    """One row of one head: its place, its scaled query, and the keys that it sees."""

    place: tuple[int, int, int]
    query: Array
    keys: Array
    values: Array
    seen: Array


def scale_of(x: Instance) -> float:
    """The factor on the scores; without one d^-1/2."""
    given = x.options.get("scale")
    return float(x.inputs["q"].shape[-1] ** -0.5 if given is None else given)


def visible(x: Instance, causal: bool) -> Array:
    """Which keys each row sees, (b, t, s)."""
    b, t = x.inputs["q"].shape[:2]
    s = x.inputs["k"].shape[1]
    end = np.arange(t)[:, None] + (s - t) if causal else np.full((t, 1), s)
    key = np.arange(s)[None]
    seen = key <= end
    if "window_size" in x.options:
        seen &= key > end - x.options["window_size"]
    found = np.broadcast_to(seen, (b, t, s))
    mask = x.inputs.get("mask")
    return found if mask is None else found & (mask[:, None] if mask.ndim == 2 else mask)


def rows(x: Instance, causal: bool) -> Iterator[Row]:
    """Every row that sees a key; query head i reads key head i // (H / HKV)."""
    q, k, v = (x.inputs[n] for n in "qkv")
    seen = visible(x, causal)
    groups = q.shape[2] // k.shape[2] if k.shape[2] else 1
    for n, i, h in np.ndindex(q.shape[:3]):
        keys = np.flatnonzero(seen[n, i])
        if len(keys):
            yield Row((n, i, h), q[n, i, h] * scale_of(x), k[n, keys, h // groups], v[n, keys, h // groups], keys)


def refer(x: Instance, declaration: Any, causal: bool) -> Reference:
    """The truth, row by row or at once where every row sees all earlier keys, and its bound."""
    b, t, h, _ = x.inputs["q"].shape
    shape = (b, t, h, x.inputs["v"].shape[3])
    out, sharp, terms = np.zeros((3, *shape))
    p = precision(x.dtype, x.precision, apart=True)
    plain = whole(x, declaration, causal)
    for r in rows(x, causal):
        out[r.place] = oracle.last_row(declaration, r.query, r.keys, r.values) if plain is None else plain[r.place]
        sharp[r.place] = sum(_row_bound(r, out[r.place], each) for each in (p, EXACT))
        terms[r.place] = weights_of(r) @ np.abs(r.values)
    return Reference(out, stored(sharp, out, terms, p) * np.any(visible(x, causal), -1)[:, :, None, None], sharp)


def whole(x: Instance, declaration: Any, causal: bool, run: Callable[..., Array] = oracle.attention) -> Array | None:
    """All rows from one run of the declaration a head; None where that is not what the rows see."""
    q, k, v = (x.inputs[n] for n in "qkv")
    t, s = q.shape[1], k.shape[1]
    if not t or "mask" in x.inputs or "window_size" in x.options or s < t or (not causal and s != t):
        return None
    groups = q.shape[2] // k.shape[2] if k.shape[2] else 1
    out = np.zeros((*q.shape[:3], v.shape[3]))
    padded = np.concatenate([np.zeros((q.shape[0], s - t, *q.shape[2:])), q * scale_of(x)], 1)
    for n, h in np.ndindex(q.shape[0], q.shape[2]):
        out[n, :, h] = run(declaration, padded[n, :, h], k[n, :, h // groups], v[n, :, h // groups])[s - t :]
    return out


def weights_of(r: Row) -> Array:
    """The softmax weights of a row, in float64."""
    scores = r.keys @ r.query
    p = np.exp(scores - scores.max())
    return p / p.sum()


def _score_error(r: Row, precision: Precision) -> Array:
    """How wrong each exponent may be: a score, and its difference to a maximum or to a log-sum-exp.

    A score is a dot product over d of a scaled query, or the scale times a dot product; log₂e in the scale, for powers of
    two, is two roundings more (γ_{d+4}). Its difference to a maximum is rounded, that of two running maxima too, and
    log₂e times it twice (4 units). A running maximum is times the scale where one block meets it, and the difference of
    two is where the next one does: one unit of what it is, which is no less than the score and no more than the largest.
    """
    scores = r.keys @ r.query
    dot = (gamma(len(r.query) + 4, precision.unit) + rounded_products(1, precision)) * (np.abs(r.keys) @ np.abs(r.query))
    return dot + precision.unit * (4 * np.abs(scores - scores.max()) + np.maximum(np.abs(scores), np.abs(scores.max())))


def _shift_error(r: Row, precision: Precision) -> Array:
    """How wrong each probability e^{s - L} may be beside the errors of the scores, L being the log-sum-exp m + log Z.

    Nothing is divided afterwards, so that what a softmax loses on the way (a shift of all exponents) is in the output: L is
    rounded and, for powers of two, log₂e times it twice (3 units); log Z is off by the units of a logarithm and, for logs
    of another base, twice more (4); and the difference of a score and L as `_score_error` has it.
    """
    scores = r.keys @ r.query
    most = scores.max()
    log = np.log(np.exp(scores - most).sum())
    return precision.unit * (3 * np.abs(most + log) + 4 * log + 4 * np.abs(scores - most - log))


def _row_bound(r: Row, truth: Array, precision: Precision) -> Array:
    """Σ p_j |δ_j| |v_j - o| for errors δ in the scores, the roundings of numerator and denominator, and Σ p_j |ε_j| |v_j|
    for those of probabilities that are not divided by their sum (`_shift_error`).

    Each key costs numerator and denominator at most an exponential (2 roundings), a change of the running maximum (3), a
    product and a sum: γ_{6 n + 2}.
    """
    p = weights_of(r)
    error, shift = np.expm1(_score_error(r, precision)), np.expm1(_shift_error(r, precision))
    own = (gamma(6 * len(p) + 2, precision.unit) + rounded_products(1, precision)) * (p @ np.abs(r.values) + np.abs(truth))
    found = (p * error) @ np.abs(r.values - truth) + (p * shift) @ np.abs(r.values) + own
    return found * SECOND_ORDER + precision.tiny * (1 + np.abs(r.values).sum(0))


def derive(x: Instance, declaration: Any, causal: bool, toward: Mapping[str, Array], weights: Array) -> tuple[float, float]:
    """The derivative of Σ weights · o in a direction, and its bound.

    With errors e in the weights p, relative, each of the terms p dv and p (dq k + q dk) (v - o) is off by at most
    2 e + γ; a backward pass has at most three times the roundings of the forward one.
    """
    p = precision(x.dtype, x.precision, apart=True)
    moves = replace(x, inputs={**x.inputs, **{n: toward[n] for n in "qkv"}})
    value = size = 0.0
    stepped = {n: x.inputs[n] + 1j * oracle.STEP * toward[n] for n in "qkv"}
    plain = whole(replace(x, inputs={**x.inputs, **stepped}), declaration, causal, oracle.attention_slope)
    for r, m in zip(rows(x, causal), rows(moves, causal), strict=True):
        w = weights[r.place]
        at, along = ((row.query, row.keys, row.values) for row in (r, m))
        found = oracle.last_row_slope(declaration, at, along) if plain is None else plain[r.place]
        value += float(w @ found)
        a = weights_of(r)
        out = a @ r.values
        scores = np.abs(m.keys) @ np.abs(r.query) + np.abs(r.keys) @ np.abs(m.query)
        terms = a @ np.abs(m.values) + (a * scores) @ (np.abs(r.values) + np.abs(out))
        error = np.expm1((_score_error(r, p) + _shift_error(r, p)).max()) + gamma(6 * len(a) + 2, p.unit)
        own = gamma(3 * (len(r.query) + sum(w.shape) + weights.shape[1]), p.unit) + rounded_products(6, p)
        size += float(np.abs(w) @ terms) * (6 * error + own)
    return value, size * SECOND_ORDER


@dataclass(frozen=True, eq=False)
class Attention(Operator):
    """Attention, whose step takes the keys and values so far for a state."""

    def lacking(self, form: Form, flag: str) -> str:
        """The argument that a structure flag needs and that a form does not have; steps and caches have ways of their own."""
        argument = NEEDED.get(flag, "")
        return argument if argument and not form.takes(argument) else ""

    def steps(self, x: Instance) -> bool:
        """Without a mask and a window, and with no query before the first key; `decode` has the others."""
        return self.decodes(x) and not {"mask", "window_size"} & (set(x.inputs) | set(x.options))

    def decodes(self, x: Instance) -> bool:
        """Every token has its key, and a mask is of tokens."""
        return x.inputs["k"].shape[1] >= self.length(x) and np.ndim(x.inputs.get("mask", [[]])) == 2

    def decode(self, form: Form, plan: Plan) -> Callable[..., Any]:
        """The whole by a cache, a ring where there is a window; keys before the first token enter first."""

        def whole(q: Any, k: Any, v: Any, scale: float | None = None, mask: Any = None, window_size: int | None = None) -> Any:
            before = k.shape[1] - q.shape[1]

            def feed(cache: Any, new: tuple[Any, Any, Any], shown: Any) -> tuple[Any, Any]:
                more = {"scale": scale} | ({} if shown is None else {"mask": shown})
                if not plan.single or form.step is None:
                    return pair(form.cached["extend"](*new, cache=cache, **more))
                out, cache = form.step(*(a.squeeze(1) for a in new), cache=cache, **more)
                return out.unsqueeze(1), cache

            def enter(cache: Any, a: int, b: int) -> tuple[Any, Any]:
                at = slice(before + a, before + b)
                return feed(cache, (q[:, a:b], k[:, at], v[:, at]), None if mask is None else mask[:, : before + b])

            def others(cache: Any, a: int) -> Any:
                shown = None if mask is None else mask[:, : before + a]
                for count in [1] * plan.count if plan.single else [plan.count]:
                    shown = None if shown is None else joined((shown, shown.new_ones(len(shown), count)))
                    _, cache = feed(cache, tuple(x.new_full((len(x), count, *x.shape[2:]), plan.content) for x in (q, k, v)), shown)
                return cache

            cache = None if window_size is None else form.cached["ring"](window_size, spare=plan.spare)
            if before:
                early = (q.new_zeros(len(q), before, *q.shape[2:]), k[:, :before], v[:, :before])
                _, cache = form.cached["extend"](*early, cache=cache, mask=None if mask is None else mask[:, :before])
            return joined(plan.follow(cache, enter, others, form.cached["crop"]))

        return whole

    def token(self, step: Any, x: Instance, t: int) -> dict[str, Any]:
        """The arguments of a step: the new token, and a cache where there are keys before the first one."""
        found = super().token(step, x, t)
        found.pop(self.step_argument)
        before = x.inputs["k"].shape[1] - self.length(x)
        cache = Cache(*(tensor(x.inputs[n][:, :before], x.dtype) for n in "kv")) if before else None
        return found | {self.step_argument: cache}


SHAPE = strategies.sizes(
    b=st.integers(1, 2),
    t=strategies.lengths,
    h=st.integers(1, 2),
    groups=st.integers(1, 3),
    d=st.integers(1, 5),
    v=st.integers(1, 5),
    window=st.sampled_from((1, 2, 3, 5, 8)),
    block=strategies.chunks,
)
MASKS = ("padding", "padding-left", "padding-right", "mask")
NEEDED = dict.fromkeys((*MASKS, "edge"), "mask") | {"window": "window_size"} | dict.fromkeys(strategies.SCALINGS, "scale")
"""The argument that structure needs."""
VALUES = ("duplicate-keys", "constant", "ties")


def corners(name: str) -> Iterator[Case]:
    """Cases that every run has: ragged blocks, one block longer than the sequence, windows that slide and that do not."""
    for t, scale, dtype, flags, other in (
        (7, SMALL, "float32", (), {"block": 2}),
        (6, LARGE, "float32", ("longer", "other-scale"), {"block": 4}),
        (7, LARGE, "float32", ("padding", "hidden"), {"b": 2}),
        (5, SMALL, "float32", ("mask", "longer"), {"block": 3}),
        (9, LARGE, "float64", ("window",), {"block": 2}),
        (6, LARGE, "bfloat16", (), {"block": 16}),
        (6, SMALL, "float32", ("shorter",), {}),
        (70, LARGE, "float32", (), {"block": 16}),
        (70, SMALL, "bfloat16", ("constant",), {"h": 1, "groups": 1}),  # many nearly equal terms, of which short sums lose some
        (8, LARGE, "float32", ("ties", "longer"), {"block": 3}),
        (8, SMALL, "float32", ("padding-left", "hidden", "window"), {"b": 2, "block": 3}),
        (7, LARGE, "float16", ("padding-right", "hidden", "longer"), {"b": 2, "window": 2}),
    ):
        shape = {"b": 1, "t": t, "h": 2, "groups": 2, "d": 3, "v": 2, "window": 3, "block": 64} | other
        yield Case(name, tuple(shape.items()), t, dtype, scale, tuple(flags))


def operator(declaration: Any, causal: bool) -> Operator:
    """One of the two operators."""
    structure = strategies.flags(("longer", "shorter"), MASKS, VALUES, ("hidden",), strategies.SCALINGS, ("window",) if causal else ())

    def derivative(x: Instance, toward: Mapping[str, Array], push: None, weights: Array, final: None) -> tuple[float, float]:
        return derive(x, declaration, causal, toward, weights)

    return Attention(
        name=declaration.operator,
        declaration=declaration,
        inputs=INPUTS,
        state_axes="",
        capabilities=COMMON | ({"causal", "resumes-by-keys", "quarantine", "window"} if causal else set()),
        cases=strategies.cases(declaration.operator, SHAPE, structure),
        corners=lambda: tuple(corners(declaration.operator)),
        draw=lambda case: draw(case, causal),
        refer=lambda x: refer(x, declaration, causal),
        derive=derivative,
        sees=lambda x: visible(x, causal),
        step_argument="cache",
        independent=lambda x: scipy_truth.softmax_attention(x, visible(x, causal), scale_of(x)),
    )


OPERATORS = tuple(operator(d, d.operator == "attention") for d in DECLARATIONS)
