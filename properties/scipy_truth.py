"""SciPy as an independent truth, in float64: it shares nothing with the declarations.

SciPy's systems are x_{k+1} = A x_k + B u_k, y_k = C x_k + D u_k. The system that reads after the update is its
(A, B, CA, D + CB), fed with the same inputs and started from the same state.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import signal, special

if TYPE_CHECKING:
    from .operator import Instance

Array = np.ndarray[Any, Any]


def real_form(a: Array) -> Array:
    """A complex matrix as a real one of twice the size: SciPy's simulations drop imaginary parts."""
    return np.block([[a.real, -a.imag], [a.imag, a.real]])


def dlsim(a: Array, b: Array, c: Array, d: Array, u: Array, start: Array) -> Array:
    """Outputs (T, p) of SciPy's own simulation. Raises ValueError where it drops samples, and for complex data."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, out, _ = signal.dlsim((a, b, c, d, True), u, x0=start)
    if len(out) != len(u):
        raise ValueError(f"dlsim returned {len(out)} of {len(u)} samples")
    return out


def simulate(x: Instance) -> Array:
    """The outputs (B, T) of an instance of the lti operator, by dlsim of the adapter system in its real form."""
    u, a, b, c = (x.inputs[n] for n in ("u", "Abar", "Bbar", "C"))
    d = x.inputs.get("D", np.zeros(()))
    n = len(c)
    a = np.diag(a) if a.ndim == 1 else a
    parts = real_form(a), real_form(b.reshape(n, 1)), real_form((c @ a).reshape(1, n)), real_form(np.reshape(d + c @ b, (1, 1)))
    found = []
    for row in range(len(u)):
        start = np.zeros(n) if x.state is None else x.state[row]
        if u.shape[1] == 0:
            found.append(np.zeros((0, 2)))
            continue
        inputs = np.stack([u[row].real, u[row].imag], 1)
        found.append(dlsim(*parts, inputs, np.concatenate([start.real, start.imag])))
    out = np.array(found).reshape(len(u), u.shape[1], 2)
    return out[..., 0] + 1j * out[..., 1] if any(map(np.iscomplexobj, (a, b, c, d, u))) or np.iscomplexobj(x.state) else out[..., 0]


def softmax_attention(x: Instance, seen: Array, scale: float) -> Array:
    """Attention by SciPy's softmax, over the keys that each row sees; rows that see none are 0."""
    q, k, v = (x.inputs[n] for n in "qkv")
    groups = q.shape[2] // k.shape[2]
    k, v = (np.repeat(a, groups, 2) for a in (k, v))
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for n, i, h in np.ndindex(q.shape[:3]):
        keys = seen[n, i]
        if keys.any():
            out[n, i, h] = special.softmax(scale * (k[n, keys, h] @ q[n, i, h])) @ v[n, keys, h]
    return out


def hold(a: Array, b: Array, delta: float) -> tuple[Array, Array]:
    """Zero-order hold by cont2discrete, (N, N) and (N,)."""
    ad, bd, _ = _discrete(a, b, delta, "zoh")
    return ad, bd


def ramp(a: Array, b: Array, delta: float) -> tuple[Array, Array]:
    """First-order hold by cont2discrete, (N, N) and (N, 2), for the inputs at both ends of a step.

    SciPy's state is x_k - B̄₁ u_k, so that its own B̄ is B̄₀ + Ā B̄₁, and B̄₁ is in its D.
    """
    ad, bd, last = _discrete(a, b, delta, "foh")
    return ad, np.stack([bd - ad @ last, last], -1)


def impulse(a: Array, b: Array, delta: float) -> tuple[Array, Array]:
    """Impulse invariance by cont2discrete: what is read before the update is Ā B̄, and B̄ is in its D. Raises ValueError if not."""
    ad, bd, first = _discrete(a, b, delta, "impulse")
    if not np.allclose(ad @ first, bd, rtol=1e-9, atol=1e-12 * np.abs(first).max(initial=0.0)):
        raise ValueError("the impulse-invariant system of SciPy is not (Ā, Ā B̄, C, C B̄)")
    return ad, first


def gbt(a: Array, b: Array, delta: float, alpha: float) -> tuple[Array, Array]:
    """The generalised bilinear transform by cont2discrete; its A and B are those of the other convention too."""
    ad, bd, _ = _discrete(a, b, delta, "gbt", alpha)
    return ad, bd


def _discrete(a: Array, b: Array, delta: float, method: str, alpha: float | None = None) -> tuple[Array, Array, Array]:
    """SciPy's A (N, N), B (N,) and D (N,) of a system whose output is the state."""
    n = len(b)
    system = (a, b.reshape(n, 1), np.eye(n), np.zeros((n, 1)))
    ad, bd, _, dd, _ = signal.cont2discrete(system, delta, method=method, alpha=alpha)
    return ad, bd[:, 0], dd[:, 0]


def response(a: Array, b: Array, u: Array, delta: float, start: Array, line: bool = False) -> Array:
    """States of x' = A x + B u by lsim of the continuous system.

    (T + 1, N) with each u held for Δ, (T, N) with a ``line`` from one u to the next.
    """
    n = len(b)
    given = u if line else np.concatenate([u, u[-1:]])
    _, _, states = signal.lsim(
        (a, b.reshape(n, 1), np.eye(n), np.zeros((n, 1))), given, delta * np.arange(len(given)), X0=start, interp=line
    )
    return np.asarray(states).reshape(len(given), n)


def layers(x: Instance, causal: bool) -> Array:
    """The stack of a transformer, all sequences and heads at once, by SciPy's softmax."""
    w, options = x.inputs, x.options
    y, t = w["x"], w["x"].shape[1]
    mask = w.get("mask", np.ones(y.shape[:2], bool))
    distance = np.arange(t)[:, None] - np.arange(t)
    seen = mask[:, None] & ((distance >= 0) & (distance < options.get("window_size", t + 1)) if causal else True)
    place = np.cumsum(mask, 1) - 1 if "mask" in w else np.arange(t)[None]
    pairs = w["q"].shape[-1] // 2
    spin = None if options["base"] is None else np.exp(1j * place[:, :, None] * options["base"] ** (-np.arange(pairs) / pairs))

    def norm(y: Array, gain: Array, shift: Array) -> Array:
        return gain * (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + options["eps"]) + shift

    def turn(y: Array, spin: Array | None) -> Array:
        if spin is None:
            return y
        both = (y[..., :pairs] + 1j * y[..., pairs:]) * spin[:, :, None]
        return np.concatenate([both.real, both.imag], -1)

    def attend(n: int, read: Array | None, y: Array) -> Array:
        names = [f"cross_{name}" if read is not None else name for name in "qkvo"]
        q, k, v = (np.einsum("btm,mhd->bthd", a, w[name][n]) for a, name in zip((y, *((y, y) if read is None else (read, read))), names))
        own, angle = (seen, spin) if read is None else (sights, None)
        q, k = turn(q, angle), turn(k, angle)
        k, v = (np.repeat(a, q.shape[2] // k.shape[2], 2) for a in (k, v))
        scores = np.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
        p = special.softmax(np.where(own[:, None], scores, -1e300), -1) * own[:, None] if scores.size else scores
        return np.einsum("bhts,bshv,hvm->btm", p, v, w[names[3]][n])

    def network(n: int, y: Array) -> Array:
        return np.maximum(y @ w["up"][n] + w["up_bias"][n], 0) @ w["down"][n] + w["down_bias"][n]

    memory, sights = w.get("memory"), np.ones((0, 0, 0), bool)
    if memory is not None:
        sight = w.get("memory_mask", np.ones(memory.shape[:2], bool))
        memory, sights = np.where(sight[..., None], memory, 0), np.repeat(sight[:, None], t, 1)
    rows = np.isfinite(y).all(-1, keepdims=True)
    y = np.where(rows, y, 0)
    for n in range(len(w["q"])):
        cross = [] if memory is None else [partial(attend, n, memory)]
        mixers = [partial(attend, n, None), *cross, partial(network, n)]
        for mix, gain, shift in zip(mixers, w["gain"][n], w["shift"][n], strict=True):
            y = y + mix(norm(y, gain, shift)) if options["pre_norm"] else norm(y + mix(y), gain, shift)
    return np.where(rows, norm(y, w["end_gain"], w["end_shift"]) if "end_gain" in w else y, np.nan)
