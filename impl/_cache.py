"""What decoding with attention keeps: the keys and values of all tokens, or of the latest ones in a ring of slots.

Functions return a new cache and leave the old one as it was, so that two continuations from one cache do not meet.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ._common import _seen_finite, check_positive, writable

LEAST = 16
"""Tokens that a new buffer has room for, at least."""
_PLAIN = (torch.float64, torch.float32)
"""What sums are kept in."""


class KVCache(NamedTuple):
    """The keys and values of the tokens so far.

    Appending n tokens costs O(n), not a copy of the cache, where the cache is the longest in its ``buffer``: the new
    cache shares memory with the old one, which sees none of it past its own end. A shorter one (an older cache, or one
    that was cropped) is copied first. Write to neither ``k`` nor ``v``.
    """

    k: Float[Tensor, "b s hkv d"]
    v: Float[Tensor, "b s hkv v"]
    buffer: Buffer | None = None

    @property
    def length(self) -> int:
        """The number of tokens, and so the position of the next one."""
        return self.k.shape[1]


class RingCache(NamedTuple):
    """The latest tokens in ``window + spare`` slots, the token at position i in slot i mod (window + spare).

    What a row sees is the latest ``window`` tokens, itself among them. ``RingCache(window)`` is the empty ring. Each
    call copies the slots. ``start`` is the oldest position that the slots still hold, ``length`` the next one.
    A ring that holds all that the next token sees can be cropped: with n spare slots by n + 1 tokens at once.
    """

    window: int
    spare: int = 0
    k: Float[Tensor, "b slots hkv d"] | None = None
    v: Float[Tensor, "b slots hkv v"] | None = None
    start: int = 0
    length: int = 0


class Buffer:
    """Memory for the tokens of one cache and of its continuations, ordered by head; the first ``used`` are written, once.

    Caches see it through tensors that autograd takes for others than those written to: nobody has seen the places that
    are still to be written, so what a backward pass has kept stays as it was. ``finite`` says that the host has seen
    that all that is written is finite.
    """

    __slots__ = ("finite", "k", "seen", "token", "used", "v")

    def __init__(self, k: Float[Tensor, "b s hkv d"], v: Float[Tensor, "b s hkv v"]) -> None:
        self.__setstate__((_roomy(k), _roomy(v), k.shape[1], _seen_finite(k, v)))

    def __getstate__(self) -> tuple[Tensor, Tensor, int, bool]:
        """What a copy is made of: tensors that share memory would come apart in it."""
        return self.k, self.v, self.used, self.finite

    def __setstate__(self, state: tuple[Tensor, Tensor, int, bool]) -> None:
        """Restore."""
        self.k, self.v, self.used, self.finite = state
        self.seen = self.k.data, self.v.data
        token = self.k[:, 0].shape, self.v[:, 0].shape
        self.token = None if 0 in token[0] else token

    def fits(self, k: Tensor, v: Tensor) -> bool:
        """Whether there is room for these tokens, without a change of dtype, and writing is allowed here."""
        if self.used + k.shape[1] > self.k.shape[1] or not self.k.dtype == self.v.dtype == k.dtype == v.dtype:
            return False
        return torch.is_inference_mode_enabled() or not self.k.is_inference()

    def write(self, k: Tensor, v: Tensor) -> None:
        """Write behind what is there."""
        count = k.shape[1]
        self.k.narrow(1, self.used, count).copy_(k)
        self.v.narrow(1, self.used, count).copy_(v)
        self.used += count
        self.finite = self.finite and _seen_finite(k, v)

    def takes(self, cache: KVCache, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """Whether one more token (b h d), (b hkv d), (b hkv v) goes behind this cache, and the row that it gives is plain.

        Then `isoform.impl.attention.step` has nothing to check, to record or to mark: its tensors fit, all that is seen is finite,
        and sums are kept in the dtype of all.
        """
        if not (self.finite and type(q) is type(k) is type(v) is Tensor) or self.used != cache.k.shape[1] or self.used == self.k.shape[1]:
            return False
        if (k.shape, v.shape) != self.token or not (q.shape == k.shape or self._shared(q, k)):
            return False
        if not (q.dtype == k.dtype == v.dtype == self.k.dtype == self.v.dtype and k.dtype in _PLAIN):
            return False
        if self.k.is_inference() and not torch.is_inference_mode_enabled():
            return False
        return writable(q, k, v) and _seen_finite(q, k, v)

    @staticmethod
    def _shared(q: Tensor, k: Tensor) -> bool:
        """Whether the heads of q share those of k."""
        return q.ndim == 3 and q.shape[::2] == k.shape[::2] and q.shape[1] > 0 < k.shape[1] and q.shape[1] % k.shape[1] == 0

    def write_one(self, k: Float[Tensor, "b hkv d"], v: Float[Tensor, "b hkv v"]) -> KVCache:
        """Write a token that the buffer takes."""
        self.k.select(1, self.used).copy_(k)
        self.v.select(1, self.used).copy_(v)
        self.used += 1
        return self.cache()

    def cache(self) -> KVCache:
        """What is written, as a cache."""
        k, v = self.seen
        return KVCache(k.narrow(1, 0, self.used), v.narrow(1, 0, self.used), self)


def append(cache: KVCache | None, k: Float[Tensor, "b t hkv d"], v: Float[Tensor, "b t hkv v"]) -> KVCache:
    """The cache with new tokens behind the old ones; later writes to k and v do not reach it."""
    buffer = cache.buffer if isinstance(cache, KVCache) else None
    if cache is not None and buffer is not None and buffer.used == cache.k.shape[1] and buffer.fits(k, v) and writable(k, v):
        buffer.write(k, v)
        return buffer.cache()
    if cache is not None:
        k, v = torch.cat([cache.k, k], 1), torch.cat([cache.v, v], 1)
    if not writable(k, v):
        return KVCache(k, v) if cache is not None else KVCache(k.clone(), v.clone())
    return Buffer(k, v).cache()


def push(ring: RingCache, k: Float[Tensor, "b t hkv d"], v: Float[Tensor, "b t hkv v"]) -> RingCache:
    """The ring with new tokens in the slots of the oldest."""
    slots, length = ring.window + ring.spare, ring.length + k.shape[1]
    kept = min(k.shape[1], slots)
    slot = torch.arange(length - kept, length, device=k.device) % slots

    def written(old: Tensor | None, new: Tensor) -> Tensor:
        old = new.new_zeros(new.shape[0], slots, *new.shape[2:]) if old is None else old
        dtype = torch.promote_types(old.dtype, new.dtype)
        return old.to(dtype).index_copy(1, slot, new[:, new.shape[1] - kept :].to(dtype))

    return ring._replace(k=written(ring.k, k), v=written(ring.v, v), start=max(ring.start, length - slots), length=length)


def latest(ring: RingCache, count: int) -> tuple[Float[Tensor, "b n hkv d"], Float[Tensor, "b n hkv v"]] | None:
    """The keys and values of the latest tokens, in order, up to ``count`` of them; None where there is no token."""
    if ring.k is None or ring.v is None:
        return None
    count = min(count, ring.length - ring.start)
    first = (ring.length - count) % ring.k.shape[1]
    return _around(ring.k, first, count), _around(ring.v, first, count)


def window(ring: RingCache) -> tuple[Float[Tensor, "b n hkv d"], Float[Tensor, "b n hkv v"]]:
    """The keys and values that the token just pushed sees, in the order of the slots where these are all."""
    assert ring.k is not None and ring.v is not None
    count = min(ring.window, ring.length)
    if ring.spare == 0:
        return ring.k[:, :count], ring.v[:, :count]
    first = (ring.length - count) % ring.k.shape[1]
    return _around(ring.k, first, count), _around(ring.v, first, count)


def crop(where: str, cache: KVCache | RingCache, count: int) -> KVCache | RingCache:
    """The cache without its latest tokens."""
    if count:
        check_positive(where, "count", count)
    if count > cache.length:
        raise ValueError(f"{where}: count={count} tokens cannot be taken from a cache of {cache.length}.")
    length = cache.length - count
    if isinstance(cache, KVCache):
        return KVCache(cache.k[:, :length], cache.v[:, :length], cache.buffer)
    if max(0, length + 1 - cache.window) < cache.start:
        raise ValueError(
            f"{where}: the ring of {cache.window + cache.spare} slots has overwritten tokens that the token after position {length} sees; "
            f"a ring that is to be cropped by {count} at once needs spare={count - 1} or more."
        )
    return cache._replace(length=length)


def _roomy(x: Float[Tensor, "b s hkv d"]) -> Float[Tensor, "b capacity hkv d"]:
    """The tokens and as much room again; in memory the tokens of one head are together, as they are read."""
    x = x.detach().transpose(1, 2)
    room = x.new_empty(*x.shape[:2], max(LEAST, x.shape[2]), x.shape[3])
    return torch.cat([x, room], 2).transpose(1, 2)


def _around(x: Tensor, first: int, count: int) -> Tensor:
    """Slots first, first + 1, … around the ring."""
    head = x[:, first : first + count]
    return torch.cat([head, x[:, : count - head.shape[1]]], 1)
