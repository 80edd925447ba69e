"""Masked softmax attention: o_i = Σ_j softmax_j(scale · q_i·k_j) v_j over the keys j that row i may see.

Vaswani et al. 2017 (arXiv:1706.03762), eq. 1. With S keys for T queries the causal frontier is j <= i + (S - T): the
queries are the last T of S tokens, as in decoding with a cache. A row that sees no key is 0 and has no gradient.
Grouped heads share keys and values (Ainslie et al. 2023, arXiv:2305.13245): query head i reads head i // (h / hkv).

Symbols: b batch, t queries, s keys, h query heads, hkv key and value heads (h is a multiple), d and v head sizes.

All functions take float64, float32, bfloat16 or float16; 16-bit inputs are computed in float32 and ``o`` has the dtype
of ``v``. ``scale`` None is d^-0.5. ``mask`` is boolean, True meaning visible, (b, s) for all rows or (b, t, s).
What a row may not see cannot change it or any gradient, NaN and infinity included; a row that sees a NaN or an infinity
is NaN, in that feature alone where it sits in ``v``. With a cache the s keys are those of all its tokens and the new ones.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ._cache import KVCache, RingCache, append, latest, push, window
from ._cache import crop as _crop
from ._common import _seen_finite, accumulator, check, check_groups, check_positive
from ._rotation import Positions, angles, turn
from ._softmax import Kernel, Sight, attend, blocks, fused

__all__ = ["CACHED", "FORMS", "STEPS", "KVCache", "RingCache", "blockwise", "crop", "extend", "full", "masked", "rotate", "step"]

Cache = KVCache | RingCache


def full(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b s hkv d"],
    v: Float[Tensor, "b s hkv v"],
    scale: float | None = None,
    mask: Bool[Tensor, "b s"] | Bool[Tensor, "b t s"] | None = None,
) -> Float[Tensor, "b t h v"]:
    """Every row sees every key that the mask shows; there is no causal frontier. Cross-attention is this with k, v of a memory.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    _check("attention.full", q, k, v, mask)
    return attend(fused, q, k, v, scale, Sight(q.shape[1], k.shape[1], False, None, mask))


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
    Without window and mask, and with t = s, memory is linear in t; else a table of (t, s) booleans is written.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``window_size`` that is no integer.
    ValueError
        Shapes or devices that do not fit together; ``window_size`` < 1.

    """
    return _causal("attention.masked", fused, q, k, v, scale, mask, window_size)


def blockwise(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b s hkv d"],
    v: Float[Tensor, "b s hkv v"],
    scale: float | None = None,
    mask: Bool[Tensor, "b s"] | Bool[Tensor, "b t s"] | None = None,
    window_size: int | None = None,
    chunk_size: int = 256,
) -> Float[Tensor, "b t h v"]:
    """Causal attention as `masked`, by the online softmax over blocks of ``chunk_size`` (any integer >= 1) queries and keys.

    Memory is linear in t and s, forward and backward, whatever the window and a mask (b, s); blocks outside the frontier
    and the window are skipped, so a window costs O(t · (window_size + chunk_size)). Milakov and Gimelshein 2018
    (arXiv:1805.02867); Dao 2023 (arXiv:2307.08691). A second derivative is refused with a RuntimeError.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a size that is no integer.
    ValueError
        Shapes or devices that do not fit together; ``window_size`` or ``chunk_size`` < 1.

    """
    check_positive("attention.blockwise", "chunk_size", chunk_size)
    return _causal("attention.blockwise", blocks(chunk_size), q, k, v, scale, mask, window_size)


def step(
    q: Float[Tensor, "b h d"],
    k: Float[Tensor, "b hkv d"],
    v: Float[Tensor, "b hkv v"],
    cache: Cache | None = None,
    scale: float | None = None,
    mask: Bool[Tensor, "b s"] | None = None,
) -> tuple[Float[Tensor, "b h v"], Cache]:
    """One new token, which sees itself and the whole cache, or its window in a ring: (o, new cache).

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    if mask is None and isinstance(cache, KVCache) and cache.buffer is not None and cache.buffer.takes(cache, q, k, v):
        longer = cache.buffer.write_one(k, v)
        b, hkv, d = k.shape
        o = scaled_dot_product_attention(q.view(b, hkv, -1, d), longer.k.transpose(1, 2), longer.v.transpose(1, 2), scale=scale)
        return o.flatten(1, 2), longer
    where = "attention.step"
    sizes = check(where, {"q": (q, "b h d"), "k": (k, "b hkv d"), "v": (v, "b hkv v")} | _cache_shapes(where, cache))
    check_groups(where, "hkv", "h", sizes)
    if mask is not None:
        o, new = _extend(where, q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), cache, scale, mask)
        return o.squeeze(1), new
    k, v = k.unsqueeze(1), v.unsqueeze(1)
    if isinstance(cache, RingCache):
        ring = push(cache, k, v)
        return _row(q, *window(ring), scale, None), ring
    new = append(cache, k, v)
    return _row(q, new.k, new.v, scale, None if new.buffer is None else new.buffer.finite), new


def extend(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b t hkv d"],
    v: Float[Tensor, "b t hkv v"],
    cache: Cache | None = None,
    scale: float | None = None,
    mask: Bool[Tensor, "b s"] | None = None,
) -> tuple[Float[Tensor, "b t h v"], Cache]:
    """Several new tokens, causal among themselves, which see the whole cache, or their windows in a ring: (o, new cache).

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    where = "attention.extend"
    sizes = check(where, {"q": (q, "b t h d"), "k": (k, "b t hkv d"), "v": (v, "b t hkv v")} | _cache_shapes(where, cache))
    check_groups(where, "hkv", "h", sizes)
    return _extend(where, q, k, v, cache, scale, mask)


def crop(cache: Cache, count: int) -> Cache:
    """The cache without its latest ``count`` tokens: rolled back, to go on with others.

    Raises
    ------
    TypeError
        A ``count`` that is no integer.
    ValueError
        A ``count`` below 0 or above the number of tokens; a ring that has overwritten what the next token would see.

    """
    return _crop("attention.crop", cache, count)


def rotate(
    x: Float[Tensor, "b t h d"], offset: Positions = 0, base: float = 10000.0, interleaved: bool = False
) -> Float[Tensor, "b t h d"]:
    """Rotary positions of queries or keys: pair i of the features is turned by position · base^(-2i/d).

    Su et al. 2021 (RoFormer, arXiv:2104.09864), eq. 15. The pairs are the features i and i + d/2, as in most code;
    ``interleaved`` ones are 2i and 2i + 1, as in the paper: the same up to an order of the features. Scores depend on
    distances alone. ``offset`` is the position of the first token (of each batch entry, if a tensor (b): minus the padding
    on the left, say), or the positions themselves (b, t). Angles are computed in float64.

    Raises
    ------
    TypeError
        No tensor of an allowed dtype; an ``offset`` that is neither an int nor a tensor of integers.
    ValueError
        Shapes or devices that do not fit together; an odd d.

    """
    where = "attention.rotate"
    d = check(where, {"x": (x, "b t h d")})["d"]
    if d % 2:
        raise ValueError(f"{where}: x has d={d} features; pairs need an even number.")
    theta = base ** (torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / -max(d, 1))
    return turn(x, angles(where, x, theta, offset), halves=not interleaved)


FORMS = {"attention": (masked, blockwise), "full-attention": (full,)}
STEPS = {"attention": step}
CACHED = {"attention": {"extend": extend, "crop": crop, "ring": RingCache}}


def _causal(
    where: str, kernel: Kernel, q: Tensor, k: Tensor, v: Tensor, scale: float | None, mask: Tensor | None, window_size: int | None
) -> Tensor:
    _check(where, q, k, v, mask)
    if window_size is not None:
        check_positive(where, "window_size", window_size)
    return attend(kernel, q, k, v, scale, Sight(q.shape[1], k.shape[1], True, window_size, mask))


def _row(
    q: Float[Tensor, "b h d"], k: Float[Tensor, "b s hkv d"], v: Float[Tensor, "b s hkv v"], scale: float | None, finite: bool | None
) -> Float[Tensor, "b h v"]:
    """One row that sees every key. ``finite`` says whether these are, None that nobody has looked; it does not decide on the kernel,
    since a NaN in the batch may not change a bit of its neighbours.
    """
    dtype = accumulator(q, k, v)
    b, h, d = q.shape
    queries = q.reshape(b, k.shape[2], h // max(1, k.shape[2]), d)
    keys, values = k.transpose(1, 2), v.transpose(1, 2)
    if not q.dtype == k.dtype == v.dtype == dtype:
        queries, keys, values = queries.to(dtype), keys.to(dtype), values.to(dtype)
    if finite is not None:
        bad = None if finite and _seen_finite(q) else _spoilt(queries, keys, values)
        if bad is not None:
            queries, keys, values = (torch.nan_to_num(x, 0.0, 0.0, 0.0) for x in (queries, keys, values))
        o = scaled_dot_product_attention(queries, keys, values, scale=scale)
        return (o if bad is None else o.masked_fill(bad, torch.nan)).reshape(b, h, v.shape[3]).to(v.dtype)
    scores = queries @ keys.mT
    o = (scores * (max(1, d) ** -0.5 if scale is None else scale)).softmax(-1) @ values
    bad = ~(scores.isfinite().all(-1, keepdim=True) & o.isfinite())
    return (o + torch.zeros_like(o).masked_fill(bad, torch.nan)).reshape(b, h, v.shape[3]).to(v.dtype)


def _spoilt(q: Float[Tensor, "b hkv g d"], k: Float[Tensor, "b hkv s d"], v: Float[Tensor, "b hkv s v"]) -> Bool[Tensor, "b hkv g v"]:
    """Which outputs of rows that see every key are NaN."""
    good = q.isfinite().all(-1, keepdim=True) & k.isfinite().all(-1).all(-1)[..., None, None]
    return ~(good & v.isfinite().all(-2, keepdim=True))


def _extend(
    where: str, q: Tensor, k: Tensor, v: Tensor, cache: Cache | None, scale: float | None, mask: Tensor | None
) -> tuple[Tensor, Cache]:
    keys, values, new = _enter(k, v, cache)
    if mask is not None:
        _check_mask(where, mask, q, {"s": new.length})
        mask = mask[:, new.length - keys.shape[1] :]
    window = cache.window if isinstance(cache, RingCache) else None
    return attend(fused, q, keys, values, scale, Sight(q.shape[1], keys.shape[1], True, window, mask)), new


def _enter(k: Tensor, v: Tensor, cache: Cache | None) -> tuple[Tensor, Tensor, Cache]:
    """The keys and values that the new tokens see between them, and the cache with these tokens."""
    if not isinstance(cache, RingCache):
        new = append(cache, k, v)
        return new.k, new.v, new
    before, ring = latest(cache, cache.window - 1), push(cache, k, v)
    return (k, v, ring) if before is None else (torch.cat([before[0], k], 1), torch.cat([before[1], v], 1), ring)


def _check(where: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    sizes = check(where, {"q": (q, "b t h d"), "k": (k, "b s hkv d"), "v": (v, "b s hkv v")})
    check_groups(where, "hkv", "h", sizes)
    if mask is not None:
        _check_mask(where, mask, q, {"s": sizes["s"]}, {"t": sizes["t"], "s": sizes["s"]})


def _check_mask(where: str, mask: Tensor, like: Tensor, *allowed: dict[str, int]) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{where}: mask must be a bool tensor, True meaning visible, not {kind}.")
    b = like.shape[0]
    if tuple(mask.shape) not in [(b, *sizes.values()) for sizes in allowed]:
        need = " or ".join(f"({', '.join(['b', *sizes])}) = {(b, *sizes.values())}" for sizes in allowed)
        raise ValueError(f"{where}: mask has shape {tuple(mask.shape)}; it needs {need}.")
    if mask.device != like.device:
        raise ValueError(f"{where}: mask is on {mask.device}, the first argument on {like.device}; one device is allowed.")


def _cache_shapes(where: str, cache: Cache | None) -> dict[str, tuple[Tensor | None, str]]:
    if cache is None:
        return {}
    if not (hasattr(cache, "k") and hasattr(cache, "v")):
        raise TypeError(f"{where}: cache must be a KVCache, a RingCache or another pair of k and v, not {type(cache).__name__}.")
    if isinstance(cache, RingCache):
        check_positive(where, "the window of a ring", cache.window)
        check_positive(where, "1 + the spare slots of a ring", cache.spare + 1)
    return {"cache_k": (cache.k, "b slots hkv d"), "cache_v": (cache.v, "b slots hkv v")}
