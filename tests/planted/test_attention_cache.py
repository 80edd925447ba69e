"""Faulty caches: what is kept, seen, taken back and shared in decoding; each law must see faults of its kind, at both scales."""

from typing import NamedTuple

import pytest
import torch

from isoform.impl import attention
from isoform.impl.attention import KVCache, RingCache
from isoform.properties.operator import Form

from .planting import checked

RIGHT = attention.CACHED["attention"]


def decoding(step=attention.step, **changed):
    return Form("masked", attention.masked, step, cached={**RIGHT, **changed})


def kept(cache, k, v):
    """All keys and values with new ones behind them, copied."""
    old = (k[:, :0], v[:, :0]) if cache is None else (cache.k, cache.v)
    return KVCache(*(torch.cat(pair, 1) for pair in zip(old, (k, v))))


def plain(sees):
    """Decoding in which ``sees`` says how the new tokens read all keys and values; rings are as they should be."""

    def extend(q, k, v, cache=None, scale=None, mask=None):
        if isinstance(cache, RingCache):
            return attention.extend(q, k, v, cache, scale, mask)
        new = kept(cache, k, v)
        return sees(q, new, scale, mask), new

    extend.__name__ = sees.__name__
    return extend


def shown(mask, extra):
    return extra if mask is None else mask[:, None] & extra


@plain
def frontier_top_left(q, new, scale, mask):
    first = torch.ones(q.shape[1], new.length, dtype=torch.bool).tril()
    return attention.full(q, new.k, new.v, scale, shown(mask, first.expand(len(q), *first.shape)))


@plain
def frontier_a_key_early(q, new, scale, mask):
    before = torch.ones(q.shape[1], new.length, dtype=torch.bool).tril(new.length - q.shape[1] - 1)
    return attention.full(q, new.k, new.v, scale, shown(mask, before.expand(len(q), *before.shape)))


@plain
def new_tokens_see_each_other(q, new, scale, mask):
    return attention.full(q, new.k, new.v, scale, mask)


@plain
def mask_ignored(q, new, scale, mask):
    return attention.masked(q, new.k, new.v, scale)


@plain
def mask_of_the_new_tokens_alone(q, new, scale, mask):
    mask = None if mask is None else mask.clone()
    if mask is not None:
        mask[:, : new.length - q.shape[1]] = True
    return attention.masked(q, new.k, new.v, scale, mask)


@plain
def mask_a_token_late(q, new, scale, mask):
    return attention.masked(q, new.k, new.v, scale, None if mask is None else mask.roll(1, 1))


@plain
def heads_tiled(q, new, scale, mask):
    groups = q.shape[2] // new.k.shape[2]
    return attention.masked(q, new.k.repeat(1, 1, groups, 1), new.v.repeat(1, 1, groups, 1), scale, mask)


@plain
def cache_detached(q, new, scale, mask):
    before = new.length - q.shape[1]
    k, v = (torch.cat([x[:, :before].detach(), x[:, before:]], 1) for x in (new.k, new.v))
    return attention.masked(q, k, v, scale, mask)


@plain
def new_values_detached(q, new, scale, mask):
    before = new.length - q.shape[1]
    return attention.masked(q, new.k, torch.cat([new.v[:, :before], new.v[:, before:].detach()], 1), scale, mask)


@plain
def zero_times_nan(q, new, scale, mask):
    o = attention.masked(q, new.k.nan_to_num(), new.v.nan_to_num(), scale, mask)
    return o + (new.v.sum((1, 2, 3), keepdim=True) * 0).to(o.dtype)


@plain
def nan_is_silenced(q, new, scale, mask):
    return attention.masked(q, new.k.nan_to_num(), new.v.nan_to_num(), scale, mask)


def forgets_the_cache(q, k, v, cache=None, scale=None, mask=None):
    mask = None if mask is None else mask[:, mask.shape[1] - q.shape[1] :]
    o, _ = attention.extend(q, k, v, None, scale, mask)
    return o, attention.extend(q, k, v, cache, scale)[1]


def nothing_for_no_token(q, k, v, cache=None, scale=None, mask=None):
    o, new = attention.extend(q, k, v, cache, scale, mask)
    return o, new if q.shape[1] else None


def ring_written_before_it_is_read(q, k, v, cache=None, scale=None, mask=None):
    """Only what the slots hold at the end is seen, and tokens that overwrite each other see the later one."""
    if not isinstance(cache, RingCache):
        return attention.extend(q, k, v, cache, scale, mask)
    _, new = attention.extend(q, k, v, cache, scale)
    slots = new.k.shape[1]
    held = torch.arange(new.start, new.length) % slots
    mask = None if mask is None else mask[:, new.start :]
    o = attention.masked(q, new.k[:, held], new.v[:, held], scale, mask, new.window)
    return o, new


def ring_read_a_token_late(q, k, v, cache=None, scale=None, mask=None):
    """The oldest key of the window was dropped before the new tokens read."""
    if not isinstance(cache, RingCache) or cache.window == 1:
        return attention.extend(q, k, v, cache, scale, mask)
    narrow, _ = attention.extend(q, k, v, cache._replace(window=cache.window - 1, spare=cache.spare + 1), scale, mask)
    return narrow, attention.extend(q, k, v, cache, scale)[1]


def rows_of_the_first_sequence(q, k, v, cache=None, scale=None, mask=None):
    return attention.extend(q, k[:1].expand_as(k), v[:1].expand_as(v), cache, scale, mask)


def another_kernel_beside_nan(q, k, v, cache=None, scale=None, mask=None):
    """The neighbours of a sequence with NaN are computed in another order."""
    o, new = attention.extend(q, k, v, cache, scale, mask)
    return o if new.v.isfinite().all() else o * (1 + torch.finfo(o.dtype).eps), new


def contiguous_was_assumed(q, k, v, cache=None, scale=None, mask=None):
    flat = v.as_strided(v.shape, torch.empty(v.shape).stride(), v.storage_offset())
    return attention.extend(q, k, flat, cache, scale, mask)


def step_ignores_the_mask(q, k, v, cache=None, scale=None, mask=None):
    return attention.step(q, k, v, cache, scale)


def step_beside_nan(q, k, v, cache=None, scale=None, mask=None):
    """One row that is computed in another way where anything in the cache is NaN."""
    o, new = attention.step(q, k, v, cache, scale, mask)
    return o if new.v.isfinite().all() else o * (1 + torch.finfo(o.dtype).eps), new


def wide_ring(window, spare=0):
    return RingCache(window + 1, spare)


def narrow_ring(window, spare=0):
    return RingCache(max(1, window - 1), spare + 1)


def no_ring(window, spare=0):
    return None


PARTS = (
    {"extend": forgets_the_cache},
    {"extend": frontier_top_left},
    {"extend": frontier_a_key_early},
    {"extend": new_tokens_see_each_other},
    {"extend": mask_ignored},
    {"extend": mask_of_the_new_tokens_alone},
    {"extend": mask_a_token_late},
    {"extend": heads_tiled},
    {"extend": nothing_for_no_token},
    {"extend": ring_written_before_it_is_read},
    {"extend": ring_read_a_token_late},
    {"extend": contiguous_was_assumed},
    {"step": step_ignores_the_mask},
    {"ring": wide_ring},
    {"ring": narrow_ring},
    {"ring": no_ring},
)
COMPANY = ({"extend": rows_of_the_first_sequence}, {"extend": another_kernel_beside_nan}, {"step": step_beside_nan})
WINDOW = (
    {"extend": ring_written_before_it_is_read},
    {"extend": ring_read_a_token_late},
    {"ring": wide_ring},
    {"ring": narrow_ring},
    {"ring": no_ring},
)
SIGHT = ({"extend": zero_times_nan}, {"extend": nan_is_silenced}, {"extend": frontier_top_left}, {"ring": wide_ring})
PADDING = ({"extend": mask_ignored}, {"extend": mask_of_the_new_tokens_alone}, {"extend": zero_times_nan}, {"step": step_ignores_the_mask})
GRADIENT = ({"extend": cache_detached}, {"extend": new_values_detached}, {"extend": forgets_the_cache})


def crop_keeps_one_too_many(cache, count):
    return attention.crop(cache, max(0, count - 1))


def crop_takes_one_too_many(cache, count):
    return attention.crop(cache, min(cache.length, count + 1))


def crop_does_nothing(cache, count):
    return cache


def crop_does_not_refuse(cache, count):
    return cache._replace(length=cache.length - count) if isinstance(cache, RingCache) else attention.crop(cache, count)


def crop_of_the_oldest(cache, count):
    return KVCache(cache.k[:, count:], cache.v[:, count:]) if isinstance(cache, KVCache) else attention.crop(cache, count)


def crop_of_values_alone(cache, count):
    if isinstance(cache, RingCache):
        return attention.crop(cache, count)
    length = cache.length - count
    return KVCache(torch.cat([cache.k[:, :0], cache.k[:, count:]], 1), cache.v[:, :length])


ROLL_BACK = (
    crop_keeps_one_too_many,
    crop_takes_one_too_many,
    crop_does_nothing,
    crop_does_not_refuse,
    crop_of_the_oldest,
    crop_of_values_alone,
)


class Shared(NamedTuple):
    """A cache whose memory is written at its end, whoever else has written there."""

    k: torch.Tensor
    v: torch.Tensor
    length: int


def shares_its_memory(q, k, v, cache=None, scale=None, mask=None):
    if isinstance(cache, RingCache):
        return attention.extend(q, k, v, cache, scale, mask)
    if cache is None:
        cache = Shared(k.new_zeros(len(k), 256, *k.shape[2:]), v.new_zeros(len(v), 256, *v.shape[2:]), 0)
    end = cache.length + k.shape[1]
    cache.k[:, cache.length : end], cache.v[:, cache.length : end] = k, v
    return attention.masked(q, cache.k[:, :end], cache.v[:, :end], scale, mask), cache._replace(length=end)


def ring_written_in_place(q, k, v, cache=None, scale=None, mask=None):
    o, new = attention.extend(q, k, v, cache, scale, mask)
    if isinstance(cache, RingCache) and cache.k is not None:
        cache.k.copy_(new.k)
        cache.v.copy_(new.v)
    return o, new


def old_cache_emptied(q, k, v, cache=None, scale=None, mask=None):
    o, new = attention.extend(q, k, v, cache, scale, mask)
    new = new._replace(k=new.k.clone(), v=new.v.clone(), **({} if isinstance(new, RingCache) else {"buffer": None}))
    if cache is not None and cache.v is not None:
        cache.v.zero_()
    return o, new


CONTINUATIONS = (shares_its_memory, ring_written_in_place, old_cache_emptied)
PAIRS = [
    (law, change)
    for law, changes in (
        ("cached-parts", PARTS),
        ("window", WINDOW),
        ("sight", SIGHT),
        ("padding-mask", PADDING),
        ("batch-company", COMPANY),
        ("gradient-of-parts", GRADIENT),
        ("roll-back", tuple({"crop": f} for f in ROLL_BACK)),
        ("two-continuations", tuple({"extend": f} for f in CONTINUATIONS)),
    )
    for change in changes
]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "change"), [pytest.param(*p, id=f"{p[0]}-{next(iter(p[1].values())).__name__}") for p in PAIRS])
def test_a_faulty_cache_is_caught(law, change, scale):
    result = checked(law, "attention", decoding(**change), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("law", ["cached-parts", "gradient-of-parts", "two-continuations", "roll-back"])
def test_a_cache_that_copies_holds(law):
    @plain
    def copies(q, new, scale, mask):
        return attention.masked(q, new.k, new.v, scale, mask)

    result = checked(law, "attention", decoding(extend=copies), "small")
    assert result.verdict == "holds", result


def test_a_cache_that_writes_in_place_is_right_for_one_continuation():
    assert checked("cached-parts", "attention", decoding(step=None, extend=shares_its_memory), "small").verdict == "holds"
