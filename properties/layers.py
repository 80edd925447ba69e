"""Layers of a transformer: one program in any number system, and how far roundings take it.

A stage is x + f(norm(x)) with pre-norm, norm(x + f(x)) with post-norm, or a norm alone; f is attention or a feed-forward
network. The program runs on float64, on complex numbers (derivatives by a complex step) and on balls.

Errors are first order. Inside a stage they grow by absolute values; from stage to stage they pass through its exact
Jacobian: beside absolute values, bounds would be blind from two layers on. Where a norm or a score may be off by more than
2⁻⁸, first order says nothing, and the bound is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .bounds import BLIND, SECOND_ORDER, gamma
from .oracle import STEP
from .remembering import Remembering

Array = np.ndarray[Any, Any]
MOVE = 2.0**-30
"""The step of a central difference: small, since it must not pass a corner; seven digits are left."""
LEAST = -1e300
"""Below every score."""


@dataclass(frozen=True)
class Stage:
    """One residual with its norm; or a norm, where ``mixing`` is "norm".

    ``weights`` are by name (q, k, v, o; up, up_bias, down, down_bias; gain, shift), ``seen`` (t, s) says which keys a row
    sees, ``angles`` (t, d/2) turn queries and keys, and a ``memory`` (s, m) is read in place of the tokens.
    """

    mixing: str
    weights: Mapping[str, Array]
    pre_norm: bool = True
    eps: float = 1e-5
    seen: Array = field(default_factory=lambda: np.ones((0, 0), bool))
    angles: Array | None = None
    memory: Array | None = None


def mean(x: Array) -> Array:
    """Over features, which stay an axis."""
    total: Array = x.sum(-1, keepdims=True)
    return total / x.shape[-1]


def floats(x: Array) -> Array:
    """The real part, in float64."""
    return np.vectorize(float, otypes=[float])(x) if x.dtype == object else x.real


# The program ----------------------------------------------------------------------------------------------


def run(stages: Sequence[Stage], x: Array) -> list[Array]:
    """Tokens (…, t, m) before the first stage and after each."""
    found = [x]
    for s in stages:
        found.append(after(s, found[-1]))
    return found


def after(s: Stage, x: Array) -> Array:
    """Tokens (…, t, m) after a stage."""
    if s.mixing == "norm":
        return _norm(s, x)
    return x + _mix(s, _norm(s, x)) if s.pre_norm else _norm(s, x + _mix(s, x))


def factors(s: Stage, x: Array) -> tuple[Array, Array]:
    """What the tokens after a stage are not linear in: the normalised tokens, and its scores or hidden features."""
    alone = s.mixing == "norm"
    given = _norm(s, x) if s.pre_norm and not alone else x
    inner = x[..., :0] if alone else _hidden(s.weights, given) if s.mixing == "feed-forward" else _scores(s, given)
    return _normal(s, x if s.pre_norm or alone else x + _mix(s, x)), inner


def _norm(s: Stage, x: Array) -> Array:
    return s.weights["gain"] * _normal(s, x) + s.weights["shift"]


def _normal(s: Stage, x: Array) -> Array:
    c = x - mean(x)
    return c / np.sqrt(mean(c * c) + s.eps)


def _mix(s: Stage, x: Array) -> Array:
    return _feed_forward(s.weights, x) if s.mixing == "feed-forward" else _attention(s, x)


def _feed_forward(w: Mapping[str, Array], x: Array) -> Array:
    z = _hidden(w, x)
    return np.where(floats(z) > 0, z, 0.0) @ w["down"] + w["down_bias"]


def _hidden(w: Mapping[str, Array], x: Array) -> Array:
    return x @ w["up"] + w["up_bias"]


def _attention(s: Stage, x: Array) -> Array:
    v = _repeated(_heads(x if s.memory is None else s.memory, s.weights["v"]), s.weights)
    return _merged(softmax(_scores(s, x), s.seen) @ v) @ _flat(s.weights["o"])


def _scores(s: Stage, x: Array) -> Array:
    q, k = (turned(_heads(y, s.weights[n]), s.angles) for n, y in (("q", x), ("k", x if s.memory is None else s.memory)))
    return q @ _repeated(k, s.weights).swapaxes(-1, -2) * _scale(s)


def softmax(scores: Array, seen: Array) -> Array:
    """Over the keys that a row sees; a row that sees none has no weights."""
    weights = np.where(seen, np.exp(np.where(seen, scores - _top(scores, seen), scores * 0)), 0.0)
    return weights / (weights.sum(-1, keepdims=True) + np.where(seen.any(-1, keepdims=True), 0.0, 1.0))


def _top(scores: Array, seen: Array) -> Array:
    """The largest score that a row sees."""
    return np.where(seen, floats(scores), LEAST).max(-1, keepdims=True, initial=LEAST)


def turned(x: Array, angles: Array | None) -> Array:
    """Pairs (i, i + d/2) of features, turned by the angles of their tokens."""
    if angles is None:
        return x
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def _heads(x: Array, w: Array) -> Array:
    """(…, t, m) to (…, h, t, d)."""
    y = x @ w.reshape(w.shape[0], -1)
    return y.reshape(*y.shape[:-1], *w.shape[1:]).swapaxes(-2, -3)


def _merged(x: Array) -> Array:
    """(…, h, t, d) to (…, t, h d)."""
    y = x.swapaxes(-2, -3)
    return y.reshape(*y.shape[:-2], y.shape[-2] * y.shape[-1])


def _flat(w: Array) -> Array:
    return w.reshape(-1, w.shape[-1])


def _repeated(x: Array, w: Mapping[str, Array]) -> Array:
    """The keys or values of a group, for each of its heads."""
    return np.repeat(x, w["q"].shape[1] // w["k"].shape[1], -3)


def _scale(s: Stage) -> float:
    return float(s.weights["q"].shape[-1] ** -0.5)


# Derivatives ----------------------------------------------------------------------------------------------


def moves(x: Array) -> Array:
    """Complex steps from tokens (t, m), one for each of their features: (t m, t, m)."""
    return x + 1j * STEP * np.eye(x.size).reshape(x.size, *x.shape)


def jacobian(s: Stage, x: Array) -> Array:
    """(t m, t m) of a stage at tokens (t, m)."""
    return after(s, moves(x)).imag.reshape(x.size, x.size).T / STEP


def passed(y: Array, spread: Array) -> Array:
    """The errors of what comes of `moves` of tokens whose errors are sums of the columns of ``spread`` (t m, any number)."""
    slopes = y.imag.reshape(len(y), math.prod(y.shape[1:])).T / STEP
    found: Array = np.abs(slopes @ spread).sum(1).reshape(y.shape[1:])
    return found


def cotangents(stages: Sequence[Stage], x: Array, weights: Array) -> list[Array]:
    """The derivative of Σ weights · (the tokens after all stages) by the tokens after each one, (t, m)."""
    found = [weights]
    for s, tokens in zip(reversed(stages), reversed(run(stages, x)[:-1]), strict=True):
        found.append((found[-1].ravel() @ jacobian(s, tokens)).reshape(x.shape))
    return found[-2::-1]


# Errors of one stage --------------------------------------------------------------------------------------


class Near(NamedTuple):
    """Values, how far each may be off, and the sum of the absolute values of the terms that make it up in its stage."""

    value: Array
    error: Array | float = 0.0
    terms: Array | None = None


@dataclass
class Roundings:
    """A stage with its roundings of one unit; ``off`` are errors of its weights, and of its memory, by name.

    ``worst`` is the largest relative error of a factor, be it of a norm or a softmax; ``inner`` are the errors of scores or
    hidden features. ``bent`` are those of hidden features that may have either sign. ``wide`` takes terms in the place of
    values as factors: next to those, a value is never less exact than its roundings say.
    """

    unit: float
    off: Mapping[str, Array] = field(default_factory=dict)
    bent: Array | float = 0.0
    wide: bool = False
    worst: float = 0.0
    inner: Array = field(default_factory=lambda: np.zeros(0))

    def after(self, s: Stage, x: Near) -> Near:
        """The tokens after the stage."""
        if s.mixing == "norm":
            return self.norm(s, x)
        if not s.pre_norm:
            return self.norm(s, self.residual(s, x, self.mix(s, x)))
        return self.residual(s, x, self.mix(s, self.norm(s, x)))

    def weight(self, s: Stage, name: str) -> Near:
        """A weight of the stage; those of heads as one matrix."""
        value, error = s.weights[name], self.off.get(name, np.zeros(1))
        if value.ndim < 3:
            return Near(value, error)
        shape = (-1, value.shape[-1]) if name == "o" else (value.shape[0], -1)
        return Near(value.reshape(shape), error.reshape(shape) if error.ndim == 3 else error)

    def size(self, x: Near) -> Array:
        """What a factor counts as."""
        return x.terms if self.wide and x.terms is not None else np.abs(x.value)

    def added(self, a: Near, b: Near) -> Near:
        """A sum: one rounding."""
        value = a.value + b.value
        return Near(value, a.error + b.error + self.unit * np.abs(value), self.size(a) + self.size(b))

    def residual(self, s: Stage, x: Near, f: Near) -> Near:
        """x + f, where x may be what the sums of the last product of f begin with: γ_{n + 2}."""
        last = math.prod(s.weights["down" if s.mixing == "feed-forward" else "o"].shape[:-1])
        found = self.added(x, f)
        return found._replace(error=found.error + gamma(last + 2, self.unit) * np.abs(x.value))

    def times(self, x: Near, w: Near) -> Near:
        """x W in any order of summation: γ_{n + 2}."""
        size = self.size(x)
        terms = size @ np.abs(w.value)
        own = gamma(len(w.value) + 2, self.unit) * terms
        came = (x.error + np.zeros(size.shape)) @ np.abs(w.value) + size @ (w.error + np.zeros(w.value.shape))
        return Near(x.value @ w.value, came + own, terms)

    def norm(self, s: Stage, x: Near) -> Near:
        """n = (x - mean) / σ, dn = (dx - mean dx - n mean(n dx)) / σ; m + 2 roundings of the mean, m + 6 of σ and the quotient, 4 more."""
        gain, shift = (self.weight(s, n) for n in ("gain", "shift"))
        m = x.value.shape[-1]
        c = x.value - mean(x.value)
        sigma = np.sqrt(mean(c * c) + s.eps)
        size = np.abs(c / sigma) + self.wide
        came = x.error + np.zeros(c.shape)
        e = (came + mean(came) + gamma(m + 2, self.unit) * (np.abs(x.value) + mean(np.abs(x.value)))) / sigma
        relative = mean(size * e) + gamma(m + 6, self.unit)
        self.worst = max(self.worst, float((e + relative).max(initial=0.0)))
        terms = np.abs(gain.value) * size + np.abs(shift.value)
        error = np.abs(gain.value) * (e + size * relative) + gain.error * size + shift.error + gamma(4, self.unit) * terms
        return Near(gain.value * c / sigma + shift.value, error, terms)

    def mix(self, s: Stage, x: Near) -> Near:
        """Attention or a feed-forward network."""
        return self.feed_forward(s, x) if s.mixing == "feed-forward" else self.attention(s, x)

    def feed_forward(self, s: Stage, x: Near) -> Near:
        """What is cut off at 0 loses its error, unless it may have either sign."""
        up, up_bias, down, down_bias = (self.weight(s, n) for n in ("up", "up_bias", "down", "down_bias"))
        z = self.added(self.times(x, up), up_bias)
        self.inner = np.asarray(z.error)
        open_ = z.value > 0
        kept = Near(z.value * open_, z.error * open_ + self.bent, self.size(z) * open_)
        return self.added(self.times(kept, down), down_bias)

    def attention(self, s: Stage, x: Near) -> Near:
        """Σ p e |v - o| for errors e of the scores, γ_{6 n + 2} of the sums, and those of the values, as in the column of attention."""
        read = x if s.memory is None else Near(s.memory, self.off.get("memory", 0.0))
        q, k, v = (self.heads(self.times(y, self.weight(s, n)), s.weights[n].shape[1]) for n, y in (("q", x), ("k", read), ("v", read)))
        q, k = self.turned(q, s.angles), self.turned(k, s.angles)
        k, v = (Near(*(_repeated(np.asarray(a), s.weights) for a in y)) for y in (k, v))
        size, keys = self.size(q), self.size(k).swapaxes(-1, -2)
        scores = q.value @ k.value.swapaxes(-1, -2) * _scale(s)
        came = q.error @ keys + size @ np.asarray(k.error).swapaxes(-1, -2)
        e = (came + gamma(q.value.shape[-1] + 4, self.unit) * (size @ keys)) * _scale(s)
        p, top = softmax(scores, s.seen), _top(scores, s.seen)
        e = np.where(s.seen, e + 2 * self.unit * np.abs(scores - top), 0.0)
        self.inner, self.worst = e, max(self.worst, float(e.max(initial=0.0)))
        o, terms = p @ v.value, p @ self.size(v)
        far = self.size(v)[:, None] + terms[:, :, None] if self.wide else np.abs(v.value[:, None] - o[:, :, None])
        own = gamma(6 * scores.shape[-1] + 2, self.unit) * (terms + np.abs(o))
        error = p @ v.error + ((p * e)[..., None] * far).sum(-2) + own
        return self.times(Near(*map(_merged, (o, error, terms))), self.weight(s, "o"))

    def heads(self, x: Near, count: int) -> Near:
        """(t, h d) to (h, t, d)."""
        return Near(*(np.asarray(a).reshape(len(x.value), count, x.value.shape[1] // count).swapaxes(0, 1) for a in x))

    def turned(self, x: Near, angles: Array | None) -> Near:
        """Two products and a sum of rounded factors (4); an angle may have been computed in this precision too (3)."""
        if angles is None:
            return x
        size, half = self.size(x), x.value.shape[-1] // 2
        cos, sin = np.abs(np.cos(angles)), np.abs(np.sin(angles))

        def both(y: Array, c: Array, d: Array) -> Array:
            a, b = y[..., :half], y[..., half:]
            return np.concatenate([a * c + b * d, a * d + b * c], -1)

        drift = gamma(3, self.unit) * np.abs(angles)
        own = both(size, gamma(4, self.unit) * cos + drift * sin, gamma(4, self.unit) * sin + drift * cos)
        return Near(turned(x.value, angles), both(np.asarray(x.error), cos, sin) + own, both(size, cos, sin))


# Errors of all stages -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Errors of the tokens after all stages, and by stage those that it adds and the largest of its own factors.

    ``worst`` is the largest of all factors beside all errors; ``bent`` says whether a hidden feature may have either sign.
    """

    total: Array
    added: tuple[Array, ...]
    factors: tuple[float, ...]
    worst: float
    bent: bool


def local(s: Stage, x: Array, r: Roundings) -> Array:
    """The errors that a stage adds to tokens (t, m); those of a norm in front pass what follows by its exact Jacobian."""
    if s.mixing == "norm" or not s.pre_norm:
        return np.asarray(r.after(s, Near(x)).error)
    n = r.norm(s, Near(x))
    own = r.residual(s, Near(x), r.mix(s, Near(n.value)))
    return own.error + passed(_mix(s, moves(n.value)), np.diag(np.ravel(n.error)))


@Remembering(256)
def errors(stages: Sequence[Stage], x: Array, unit: float) -> Errors:
    """The errors of tokens (t, m) that are exact before the first stage."""
    spread, added, own, worst, bent = np.zeros((x.size, 0)), [], [], 0.0, False
    for s in stages:
        r = Roundings(unit)
        r.after(s, Near(x))
        normal, inner = (passed(y, spread) for y in factors(s, moves(x)))
        own.append(r.worst)
        if s.mixing == "feed-forward":
            r.bent = np.where(np.abs(factors(s, x)[1]) <= inner + r.inner, inner + r.inner, 0.0)
            bent |= bool(np.any(r.bent))
        else:
            worst = max(worst, float(np.where(s.seen, inner, 0.0).max(initial=0.0)) if s.mixing == "attention" else 0.0)
        worst = max(worst, r.worst + float(normal.max(initial=0.0)))
        added.append(local(s, x, r))
        spread = np.concatenate([jacobian(s, x) @ spread, np.diag(added[-1].ravel())], 1)
        x = after(s, x)
    return Errors(np.abs(spread).sum(1).reshape(x.shape), tuple(added), tuple(own), worst, bent)


def bound(stages: Sequence[Stage], x: Array, unit: float) -> Array:
    """How far tokens (t, m) after all stages may be off; infinite where first order says nothing."""
    found = errors(stages, x, unit)
    return found.total * SECOND_ORDER if found.worst <= BLIND else np.full_like(found.total, np.inf)


Along = Callable[[complex], tuple[Sequence[Stage], Array]]
"""Stages and tokens, moved so far in a direction."""


def slope(along: Along, weights: Array) -> float:
    """The derivative of Σ weights · (the tokens after all stages) in a direction, by a complex step."""
    return float((weights * run(*along(1j * STEP))[-1].imag).sum() / STEP)


def slope_bound(along: Along, weights: Array, unit: float) -> float:
    """How far a backward pass may be off of `slope`.

    What a stage adds to the tokens changes it by the second derivative, along the direction and by these tokens. And each
    term of a stage, of the absolute cotangents after it and the absolute tangents before it, has at most three times the
    forward roundings, of factors that are off themselves; a sum over the tokens makes the gradient of a weight.
    Infinite where a hidden feature may have either sign.
    """
    stages, x = along(0)
    moved, tokens = along(1j * STEP)
    found = errors(stages, x, unit)
    if found.worst > BLIND or found.bent:
        return np.inf
    late, early = (cotangents(*along(sign * MOVE), weights) for sign in (1, -1))
    pulled = cotangents(stages, x, weights)
    size = sum(float((np.abs(a - b) * e).sum()) for a, b, e in zip(late, early, found.added)) / (2 * MOVE)
    before, moving = run(stages, x), run(moved, tokens)
    for n, (s, m) in enumerate(zip(stages, moved, strict=True)):
        off = {name: np.abs(w.imag) / STEP for name, w in m.weights.items()}
        if m.memory is not None:
            off["memory"] = np.abs(m.memory.imag) / STEP
        terms = np.asarray(Roundings(0.0, off, wide=True).after(s, Near(before[n], np.abs(moving[n].imag) / STEP)).error)
        count = 3 * roundings(s) + len(x)
        size += float((np.abs(pulled[n]) * terms).sum()) * (6 * found.factors[n] + gamma(count, unit))
    return size * SECOND_ORDER


def roundings(s: Stage) -> int:
    """Of one term of a stage: those of the norm, of each product with a weight, of the rotation, the scores, and the softmax's sums."""
    norm = 2 * len(s.weights["gain"]) + 12
    if s.mixing == "norm":
        return norm
    if s.mixing == "feed-forward":
        return norm + sum(s.weights["up"].shape) + 6
    m, _, width = s.weights["v"].shape
    return norm + m + s.weights["o"].shape[0] * width + s.weights["q"].shape[2] + 6 * s.seen.shape[1] + 14
