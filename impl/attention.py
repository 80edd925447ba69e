"""Masked softmax attention: o_i = Σ_j softmax_j(scale · q_i·k_j) v_j over the keys j that row i may see.

Vaswani et al. 2017 (arXiv:1706.03762), eq. 1. With S keys for T queries the causal frontier is j <= i + (S - T): the
queries are the last T of S tokens, as in decoding with a cache. A row that sees no key is 0 and has no gradient.
Grouped heads share keys and values (Ainslie et al. 2023, arXiv:2305.13245): query head i reads head i // (h / hkv).

Symbols: b batch, t queries, s keys, h query heads, hkv key and value heads (h is a multiple), d and v head sizes.

All functions take float64, float32, bfloat16 or float16; 16-bit inputs are computed in float32 and ``o`` has the dtype
of ``v``. ``scale`` None is d^-0.5. ``mask`` is boolean, True meaning visible, (b, s) for all rows or (b, t, s).
What a row may not see cannot change it or any gradient, NaN and infinity included; a row that sees a NaN or an infinity
is NaN, in that feature alone where it sits in ``v``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from ._common import accumulator, check, check_groups, check_positive, spread


class KVCache(NamedTuple):
    """The keys and values of the tokens so far. Functions return a new one and leave the old one as it was."""

    k: Float[Tensor, "b s hkv d"]
    v: Float[Tensor, "b s hkv v"]


def full(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b s hkv d"],
    v: Float[Tensor, "b s hkv v"],
    scale: float | None = None,
    mask: Bool[Tensor, "b s"] | Bool[Tensor, "b t s"] | None = None,
) -> Float[Tensor, "b t h v"]:
    """Every row sees every key that the mask shows; there is no causal frontier.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    _check("attention.full", q, k, v, mask)
    return _attend(q, k, v, scale, mask, None, None)


def masked(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b s hkv d"],
    v: Float[Tensor, "b s hkv v"],
    scale: float | None = None,
    mask: Bool[Tensor, "b s"] | Bool[Tensor, "b t s"] | None = None,
    window_size: int | None = None,
) -> Float[Tensor, "b t h v"]:
    """Causal attention: row i sees the keys j <= i + (s - t) that the mask shows.

    With ``window_size`` (an integer >= 1) only the latest so many of them, the frontier included (Beltagy et al. 2020,
    arXiv:2004.05150). With fewer keys than queries the first t - s rows see nothing and are 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``window_size`` that is no integer.
    ValueError
        Shapes or devices that do not fit together; ``window_size`` < 1.

    """
    where = "attention.masked"
    _check(where, q, k, v, mask)
    if window_size is not None:
        check_positive(where, "window_size", window_size)
    position = torch.arange(q.shape[1], device=q.device) + (k.shape[1] - q.shape[1])
    end = (position + 1).clamp(min=0)
    start = None if window_size is None else (end - window_size).clamp(min=0)
    return _attend(q, k, v, scale, mask, start, end)


def step(
    q: Float[Tensor, "b h d"],
    k: Float[Tensor, "b hkv d"],
    v: Float[Tensor, "b hkv v"],
    cache: KVCache | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b h v"], KVCache]:
    """One new token, which sees itself and the whole cache: (o, new cache).

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    where = "attention.step"
    sizes = check(where, {"q": (q, "b h d"), "k": (k, "b hkv d"), "v": (v, "b hkv v")} | _cache_shapes(cache))
    check_groups(where, "hkv", "h", sizes)
    cache = _append(cache, k.unsqueeze(1), v.unsqueeze(1))
    dtype = accumulator(q, cache.k, cache.v)
    b, h, d = q.shape
    hkv = sizes["hkv"]
    scores = q.to(dtype).reshape(b, hkv, -1, d) @ cache.k.to(dtype).permute(0, 2, 3, 1)
    weights = (scores * (d**-0.5 if scale is None else scale)).softmax(-1)
    o = weights @ cache.v.to(dtype).transpose(1, 2)
    return o.reshape(b, h, sizes["v"]).to(v.dtype), cache


def extend(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b t hkv d"],
    v: Float[Tensor, "b t hkv v"],
    cache: KVCache | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b t h v"], KVCache]:
    """Several new tokens, causal among themselves, which see the whole cache: (o, new cache).

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    where = "attention.extend"
    sizes = check(where, {"q": (q, "b t h d"), "k": (k, "b t hkv d"), "v": (v, "b t hkv v")} | _cache_shapes(cache))
    check_groups(where, "hkv", "h", sizes)
    cache = _append(cache, k, v)
    return masked(q, cache.k, cache.v, scale), cache


FORMS = {"attention": (masked,), "full-attention": (full,)}
STEPS = {"attention": step}


def _check(where: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    sizes = check(where, {"q": (q, "b t h d"), "k": (k, "b s hkv d"), "v": (v, "b s hkv v")})
    check_groups(where, "hkv", "h", sizes)
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{where}: mask must be a bool tensor, True meaning visible, not {kind}.")
    b, t, s = sizes["b"], sizes["t"], sizes["s"]
    if tuple(mask.shape) not in ((b, s), (b, t, s)):
        raise ValueError(f"{where}: mask has shape {tuple(mask.shape)}; it needs (b, s) = {(b, s)} or (b, t, s) = {(b, t, s)}.")
    if mask.device != q.device:
        raise ValueError(f"{where}: mask is on {mask.device}, the first argument on {q.device}; one device is allowed.")


def _cache_shapes(cache: KVCache | None) -> dict[str, tuple[Tensor, str]]:
    return {} if cache is None else {"cache_k": (cache.k, "b s hkv d"), "cache_v": (cache.v, "b s hkv v")}


def _append(cache: KVCache | None, k: Tensor, v: Tensor) -> KVCache:
    """The cache with new tokens behind the old, in memory of its own: later writes to k and v do not reach it."""
    if cache is None:
        return KVCache(k.clone(), v.clone())
    return KVCache(torch.cat([cache.k, k], 1), torch.cat([cache.v, v], 1))


def _attend(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b s hkv d"],
    v: Float[Tensor, "b s hkv v"],
    scale: float | None,
    mask: Tensor | None,
    start: Int[Tensor, " t"] | None,
    end: Int[Tensor, " t"] | None,
) -> Float[Tensor, "b t h v"]:
    """Row i sees the keys start[i] <= j < end[i] that the mask shows; None is no limit."""
    dtype = accumulator(q, k, v)
    groups = q.shape[2] // k.shape[2] if k.shape[2] else 1
    clean_q, clean_k, clean_v = (torch.nan_to_num(x.to(dtype), 0.0, 0.0, 0.0).transpose(1, 2) for x in (q, k, v))
    clean_k, clean_v = (spread(x, groups, 1) for x in (clean_k, clean_v))
    bad_keys, empty = _seen(~v.isfinite() | ~k.isfinite().all(-1, keepdim=True), mask, start, end)

    square = mask is None and start is None and end is not None and q.shape[1] == k.shape[1]
    visible = None if square else _visible(k.shape[1], mask, start, end)
    if visible is not None:
        visible = (visible | empty).unsqueeze(-3)
    o = scaled_dot_product_attention(clean_q, clean_k, clean_v, visible, is_causal=square, scale=scale).transpose(1, 2)

    bad = spread(bad_keys, groups, 2) | ~q.isfinite().all(-1, keepdim=True)
    o = o + torch.zeros_like(o).masked_fill(bad, torch.nan)
    return o.masked_fill(empty.unsqueeze(-1), 0.0).to(v.dtype)


def _visible(keys: int, mask: Tensor | None, start: Tensor | None, end: Tensor | None) -> Bool[Tensor, "*b #t s"] | None:
    visible = mask.unsqueeze(1) if mask is not None and mask.ndim == 2 else mask
    if end is None:
        return visible
    key = torch.arange(keys, device=end.device)
    band = key < end[:, None] if start is None else (key < end[:, None]) & (key >= start[:, None])
    return band if visible is None else visible & band


def _seen(
    bad: Bool[Tensor, "b s hkv v"], mask: Tensor | None, start: Tensor | None, end: Tensor | None
) -> tuple[Bool[Tensor, "#b #t hkv v"], Bool[Tensor, "#b #t 1"]]:
    """Return whether a row sees a bad entry, and whether it sees no key at all, by counting in its range of keys."""
    if mask is not None and mask.ndim == 3:
        band = _visible(bad.shape[1], None, start, end)
        visible = mask if band is None else mask & band
        seen = visible.float() @ bad.flatten(2).float()
        return seen.unflatten(2, bad.shape[2:]) > 0, ~visible.any(-1, keepdim=True)
    shown = bad.new_ones(1, bad.shape[1], 1) if mask is None else mask.unsqueeze(-1)
    return _count(bad & shown.unsqueeze(-1), start, end) > 0, _count(shown, start, end) == 0


def _count(flags: Bool[Tensor, "b s *f"], start: Tensor | None, end: Tensor | None) -> Int[Tensor, "b #t *f"]:
    if end is None:
        return flags.sum(1, keepdim=True, dtype=torch.int32)
    sums = pad(flags.cumsum(1, dtype=torch.int32), (0, 0) * (flags.ndim - 2) + (1, 0))
    return sums[:, end] if start is None else sums[:, end] - sums[:, start]
