"""WKV of RWKV-4: o_t = (a_{t-1} + e^{u+k_t} v_t) / (b_{t-1} + e^{u+k_t}), the mean that a_t = e^w a_{t-1} + e^{k_t} v_t and
b_t = e^w b_{t-1} + e^{k_t} make.

The state is read before the update, with a bonus u for the current token. Peng et al. 2023 (arXiv:2305.13048), section 3,
where w stands for -w; the running maximum p_t = max(p_{t-1} + w, k_t) is that of its appendix on the RNN cell: sums are kept as
a e^{-p} and b e^{-p}, and no exponent is above 0, whatever the keys. What is lost of p + w stays in the sums, so weights are
accurate whatever p is; in float32 the sums would vanish where keys times tokens exceed 10⁹ (a p that no w moves any more).

Symbols: b batch, t time, c channels. ``k`` and ``v`` are (b, t, c); ``w`` (c) is the log-decay, at most 0, -∞ legal; ``u`` (c). A
state is (b, 3, c): a e^{-p}, b e^{-p} and p, of no token 0, 0 and -∞. Tensors may be float64, float32, bfloat16 or float16;
sums, weights and states are kept in the promoted dtype, float32 for 16-bit ones; the output has the dtype of ``v``. A key of -∞
weighs nothing; a mean of nothing is 0. A non-finite token changes its own and later rows of its channel only.

p is a scale: no gradient enters through the one that is returned. Whatever depends on the true sums alone, as every
continuation does, has its gradient through a e^{-p} and b e^{-p}.
"""

from __future__ import annotations

from math import isqrt

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _scan
from .._common import accumulator, check, check_state, eager
from .._memory import CACHED

Result = Float[Tensor, "b t c"] | tuple[Float[Tensor, "b t c"], Float[Tensor, "b 3 c"]]


def recurrent(
    k: Float[Tensor, "b t c"],
    v: Float[Tensor, "b t c"],
    w: Float[Tensor, " c"],
    u: Float[Tensor, " c"],
    initial_state: Float[Tensor, "b 3 c"] | None = None,
    output_final_state: bool = False,
) -> Result:
    """Token by token, as the recurrence is written: o, or (o, state) if ``output_final_state``.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.
    """
    k, wide, w, u, (above, below, p) = _enter("rwkv.wkv.recurrent", "b t c", k, v, w, u, initial_state)
    outputs = []
    for k_t, v_t in zip(k.unbind(1), wide.unbind(1), strict=True):
        outputs.append(_read(k_t, v_t, u, above, below, p))
        above, below, p = _advance(k_t, v_t, w, above, below, p)
    o = torch.stack(outputs, 1) if outputs else wide * (k + w + u)
    return _leave(o, (above, below, p), v, output_final_state)


def scan(
    k: Float[Tensor, "b t c"],
    v: Float[Tensor, "b t c"],
    w: Float[Tensor, " c"],
    u: Float[Tensor, " c"],
    initial_state: Float[Tensor, "b 3 c"] | None = None,
    output_final_state: bool = False,
) -> Result:
    """All tokens at once: the running maxima by a scan in (max, +), then both sums by one first-order scan.

    On a CPU as many tokens at once as a cache holds. Returns o, or (o, state) if ``output_final_state``; raises as `recurrent` does.
    """
    k, wide, w, u, state = _enter("rwkv.wkv.scan", "b t c", k, v, w, u, initial_state)
    span = max(1, CACHED // max(1, k[:, :1].numel()) if eager(k, wide, w, u, *state) else k.shape[1])
    outputs = []
    for part in zip(k.split(span, 1), wide.split(span, 1), strict=True):
        o, state = _all_at_once(*part, w, u, state)
        outputs.append(o)
    return _leave(outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1), state, v, output_final_state)


def step(
    k: Float[Tensor, "b c"],
    v: Float[Tensor, "b c"],
    w: Float[Tensor, " c"],
    u: Float[Tensor, " c"],
    state: Float[Tensor, "b 3 c"] | None = None,
) -> tuple[Float[Tensor, "b c"], Float[Tensor, "b 3 c"]]:
    """One token: (o, new state). The old state is left as it was; None is that of no token. Raises as `recurrent` does."""
    k, wide, w, u, (above, below, p) = _enter("rwkv.wkv.step", "b c", k, v, w, u, state)
    o = _read(k, wide, u, above, below, p)
    return o.to(v.dtype), torch.stack(_advance(k, wide, w, above, below, p), 1)


State = tuple[Float[Tensor, "b c"], Float[Tensor, "b c"], Float[Tensor, "b c"]]


def _enter(
    where: str, axes: str, k: Tensor, v: Tensor, w: Tensor, u: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, State]:
    """Check, and bring everything to the accumulation dtype."""
    sizes = check(where, {"k": (k, axes), "v": (v, axes), "w": (w, "c"), "u": (u, "c")})
    if state is not None:
        check_state(where, k, state, {"b": sizes["b"], "3": 3, "c": sizes["c"]})
    dtype = accumulator(k, v, w, u, state)
    k, v, w, u = (x.to(dtype) for x in (k, v, w, u))
    if state is None:
        nothing = k.new_zeros(sizes["b"], sizes["c"])
        return k, v, w, u, (nothing, nothing, nothing - torch.inf)
    above, below, p = state.to(dtype).unbind(1)
    return k, v, w, u, (above, below, p)


def _leave(o: Tensor, state: State, v: Tensor, output_final_state: bool) -> Result:
    o = o.to(v.dtype)
    return (o, torch.stack(state, 1)) if output_final_state else o


def _finite(p: Tensor) -> Tensor:
    """The shift for a maximum, a finite one for that of nothing."""
    return p.clamp(min=torch.finfo(p.dtype).min)


def _advance(k: Tensor, v: Tensor, w: Tensor, above: Tensor, below: Tensor, p: Tensor) -> State:
    """One more token. What rounds p + w is undone by p - new, which is exact where they are close."""
    new = torch.maximum(p + w, k).detach()
    shift = _finite(new)
    kept, weight = (p - shift + w).exp(), (k - shift).exp()
    return torch.addcmul(weight * v, kept, above), torch.addcmul(weight, kept, below), new


def _read(k: Tensor, v: Tensor, u: Tensor, above: Tensor, below: Tensor, p: Tensor) -> Tensor:
    """The mean of what was before and of the token, which has the bonus."""
    own = u + k
    shift = _finite(torch.maximum(p, own).detach())
    old, new = (p - shift).exp(), (own - shift).exp()
    total = torch.addcmul(new, old, below)
    return torch.addcmul(new * v, old, above) / torch.where(total == 0, 1.0, total)


def _all_at_once(k: Float[Tensor, "b t c"], v: Float[Tensor, "b t c"], w: Tensor, u: Tensor, state: State) -> tuple[Tensor, State]:
    """The outputs of some tokens and the state after them, from the state before."""
    if k.shape[1] == 0:
        return v * (k + w + u), state
    above, below, p = state
    maxima = _running_maximum(k, w, p)
    before = torch.cat([p.unsqueeze(1), maxima[:, :-1]], 1)
    shift = _finite(maxima)
    weight, gate = (k - shift).exp(), (before - shift + w).exp()
    start = torch.stack([above, below], 1)
    sums, last = _scan.scan(gate.unsqueeze(2), torch.stack([weight * v, weight], 2), start)
    earlier = torch.cat([start.unsqueeze(1), sums[:, :-1]], 1)
    o = _read(k, v, u, earlier[:, :, 0], earlier[:, :, 1], before)
    return o, (last[:, 0], last[:, 1], maxima[:, -1])


@torch.no_grad()
def _running_maximum(k: Float[Tensor, "b t c"], w: Float[Tensor, " c"], p: Float[Tensor, "b c"]) -> Float[Tensor, "b t c"]:
    """max(p + t w, max_j k_j + (t - j) w) for every t, each sum rounded no more often than the loop's."""
    if eager(k, w, p):
        return _by_blocks(k, w, p)

    def combine(first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return first[0] + second[0], torch.maximum(first[1] + second[0], second[1])

    first = torch.maximum(p + w, k[:, 0]).unsqueeze(1)
    changes = torch.cat([first, k[:, 1:]], 1)
    return _scan.associative_scan(combine, (w.expand(1, k.shape[1], -1), changes))[1]


def _by_blocks(k: Float[Tensor, "b t c"], w: Float[Tensor, " c"], p: Float[Tensor, "b c"]) -> Float[Tensor, "b t c"]:
    """Blocks of about √t tokens side by side, first for the maximum that each ends with, then from what it starts with."""
    t = k.shape[1]
    size = isqrt(t)
    whole = t - t % size
    found = torch.empty_like(k, memory_format=torch.contiguous_format)
    keys, places = (x[:, :whole].unflatten(1, (-1, size)).unbind(2) for x in (k, found))
    ends = keys[0]
    for x in keys[1:]:
        ends = torch.maximum(ends + w, x)
    starts = [p]
    for x in ends.unbind(1):
        starts.append(torch.maximum(starts[-1] + size * w, x))
    for before, tokens, rows in (
        (torch.stack(starts[:-1], 1), keys, places),
        (starts[-1], k[:, whole:].unbind(1), found[:, whole:].unbind(1)),
    ):
        for x, row in zip(tokens, rows, strict=True):
            before = torch.maximum(before + w, x, out=row)
    return found
