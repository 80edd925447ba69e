"""Caches: what they hold, that continuations do not meet, roll-back, rings around the wrap, and what a step says of NaN."""

import copy
import itertools
import pickle

import pytest
import torch

from isoform.impl import attention
from isoform.impl._cache import Buffer
from isoform.impl.attention import KVCache, RingCache

CUTS = [(9,), (1,) * 9, (3, 0, 1, 5), (8, 1)]


def draw(t=9, b=2, h=4, hkv=2, d=4, dv=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(b, t, n, m, generator=generator, dtype=torch.float64).to(dtype) for n, m in ((h, d), (hkv, d), (hkv, dv))]


def near(a, b, q, k, v):
    """Equal up to two evaluations: an error of (d + 2)u Σ|q_i k_i| in a score costs twice that of a weight, and s sums of values."""
    score = torch.einsum("nihd,njhd->nihj", q.abs(), k.repeat_interleave(2, 2).abs()).max() / 2
    bound = 2 * (2 * (4 + 2) * score + 2 * k.shape[1] + 8) * torch.finfo(v.dtype).eps * v.abs().max()
    return a.shape == b.shape and bool((a - b).abs().max() <= bound < 1e-12)


def pieces(cuts, *tensors):
    return zip(*(x.split(cuts, 1) for x in tensors), strict=True)


def decoded(cuts, q, k, v, cache=None, mask=None):
    """The rows by `step` for single tokens and by `extend` for several; the last cache, and each with a copy of its keys."""
    rows, held, end = [], [], 0
    for qs, ks, vs in pieces(cuts, q, k, v):
        end += qs.shape[1]
        shown = None if mask is None else mask[:, :end]
        if qs.shape[1] == 1:
            o, cache = attention.step(qs[:, 0], ks[:, 0], vs[:, 0], cache, mask=shown)
            o = o[:, None]
        else:
            o, cache = attention.extend(qs, ks, vs, cache, mask=shown)
        rows.append(o)
        held.append((cache, cache.k.clone()))
    return torch.cat(rows, 1), cache, held


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_cache_continues_and_is_left_as_it_was(cuts, masked):
    q, k, v = draw()
    mask = torch.tensor([[True] * 9, [False] * 3 + [True] * 6]) if masked else None
    o, cache, held = decoded(cuts, q, k, v, mask=mask)
    assert near(o, attention.masked(q, k, v, mask=mask), q, k, v)
    assert torch.equal(cache.k, k) and torch.equal(cache.v, v) and cache.length == 9
    assert all(torch.equal(c.k, copy) for c, copy in held)


def test_two_continuations_from_one_cache_do_not_meet():
    q, k, v = draw()
    want, cache = attention.masked(q, k, v), None
    for t in range(9):
        aside, other = attention.step(q[:, t] + 1, k[:, t] + 1, v[:, t] + 1, cache)
        o, cache = attention.step(q[:, t], k[:, t], v[:, t], cache)
        assert near(o, want[:, t], q, k, v)
        assert not torch.equal(o, aside)
        assert torch.equal(other.k[:, t], k[:, t] + 1) and torch.equal(cache.k, k[:, : t + 1])


def test_a_token_is_appended_in_place_and_copied_only_where_another_one_is():
    q, k, v = (x[:, 0] for x in draw(1))
    _, first = attention.extend(*draw(5))
    _, second = attention.step(q, k, v, first)
    _, third = attention.step(q, k, v, first)
    assert second.k.data_ptr() == first.k.data_ptr() != third.k.data_ptr()
    _, fourth = attention.step(q, k, v, attention.crop(second, 1))
    assert fourth.k.data_ptr() != second.k.data_ptr()
    _, plain = attention.step(q, k, v, KVCache(first.k, first.v))
    assert plain.k.data_ptr() != first.k.data_ptr()
    assert all(torch.equal(c.k, third.k) and c.length == 6 for c in (second, fourth, plain))


def test_copies_of_a_growing_cache_are_few():
    """Room doubles: of n tokens one by one, about log2(n / 16) are copied behind the others."""
    cache, places = None, set()
    for _ in range(200):
        _, cache = attention.step(*(x[:, 0] for x in draw(1)), cache)
        places.add(cache.k.data_ptr())
    assert cache.length == 200
    assert 2 <= len(places) <= 5


@pytest.mark.parametrize("again", [copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))], ids=["deepcopy", "pickle"])
def test_a_copied_cache_goes_on(again):
    q, k, v = draw()
    _, cache, _ = decoded((5,), *(x[:, :5] for x in (q, k, v)))
    rest, cache, _ = decoded((1, 3), *(x[:, 5:] for x in (q, k, v)), again(cache))
    assert near(rest, attention.masked(q, k, v)[:, 5:], q[:, 5:], k, v)
    assert torch.equal(cache.k, k)


@pytest.mark.parametrize("where", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_a_cache_may_go_on_elsewhere(where):
    q, k, v = draw()
    with where():
        o, cache, _ = decoded((4, 1), *(x[:, :5] for x in (q, k, v)))
    rest, cache, _ = decoded((1, 3), *(x[:, 5:] for x in (q, k, v)), cache)
    assert near(torch.cat([o, rest], 1), attention.masked(q, k, v), q, k, v)
    assert torch.equal(cache.k, k)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("ring", [None, RingCache(4)], ids=["all", "ring"])
def test_gradients_go_through_the_cache(cuts, ring):
    window = None if ring is None else ring.window
    leaves = [x.requires_grad_() for x in draw()]
    want = torch.autograd.grad(attention.masked(*leaves, window_size=window).sin().sum(), leaves)
    o, _, _ = decoded(cuts, *leaves, ring)
    for a, b in zip(torch.autograd.grad(o.sin().sum(), leaves), want, strict=True):
        assert (a - b).abs().max() <= 2**10 * torch.finfo(a.dtype).eps  # sums of 9 · 4 products of numbers below 4


def test_a_backward_pass_sees_the_cache_as_it_was():
    q, k, v = draw()
    with torch.no_grad():
        _, cache = attention.extend(q[:, :5], k[:, :5], v[:, :5])
    leaf = q[:, 5:6].clone().requires_grad_()
    o = attention.masked(leaf, cache.k, cache.v)
    with torch.no_grad():
        attention.step(q[:, 5], k[:, 5], v[:, 5], cache)
    (found,) = torch.autograd.grad(o.sum(), leaf)
    (want,) = torch.autograd.grad(attention.masked(leaf, k[:, :5], v[:, :5]).sum(), leaf)
    assert near(found, want, q, k, v)


def test_an_overwritten_argument_does_not_reach_the_cache():
    for start in (None, KVCache(*draw(2)[1:]), RingCache(3)):
        q, k, v = draw(1)
        _, cache = attention.extend(q, k, v, start)
        before = cache.k.clone()
        k.fill_(7.0)
        if isinstance(start, KVCache):
            start.k.fill_(7.0)
        assert torch.equal(cache.k, before)


@pytest.mark.parametrize("graph", [False, True])
def test_a_step_is_nan_where_it_sees_what_is_not_finite(graph):
    for bad, place in itertools.product((torch.nan, torch.inf, -torch.inf), ("q", "k", "v")):
        q, k, v = draw(5)
        {"q": q, "k": k, "v": v}[place][0, 2, 1, 1] = bad
        q, k, v = (x.requires_grad_(graph) for x in (q, k, v))
        o, _, _ = decoded((1,) * 5, q, k, v)
        assert torch.equal(o.isnan(), attention.masked(q, k, v).isnan())
        assert o.isnan().any()
        assert not o.isinf().any()


@pytest.mark.parametrize("h", [2, 4])
def test_a_plain_token_goes_a_short_way_to_the_same_bits(h, monkeypatch):
    """From the second token on, where all that is seen is finite and nothing is recorded."""
    q, k, v = draw(9, h=h)
    asked, takes = [], Buffer.takes
    with monkeypatch.context() as patched:
        patched.setattr(Buffer, "takes", lambda *given: asked.append(takes(*given)) or asked[-1])
        short, cache, _ = decoded((1,) * 9, q, k, v)
        assert asked == [True] * 8
        attention.step(q[:, 0], k[:, 0] * torch.inf, v[:, 0], cache)
        attention.step(q[:, 0].requires_grad_(), k[:, 0], v[:, 0], cache)
        assert asked[8:] == [False, False]
    monkeypatch.setattr(Buffer, "takes", lambda *given: False)
    long, again, _ = decoded((1,) * 9, q.detach(), k, v)
    assert torch.equal(short, long) and torch.equal(cache.k, again.k) and torch.equal(cache.v, again.v)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_step_in_16_bits_is_computed_in_float32(dtype):
    q, k, v = draw(9, dtype=dtype)
    o, cache, _ = decoded((1,) * 9, q, k, v)
    wide, _, _ = decoded((1,) * 9, q.float(), k.float(), v.float())
    assert o.dtype == cache.k.dtype == dtype
    assert torch.equal(o, wide.to(dtype))


def test_a_cache_takes_the_wider_dtype():
    q, k, v = draw()
    _, cache = attention.extend(q[:, :4].float(), k[:, :4].float(), v[:, :4].float())
    _, cache = attention.step(q[:, 4], k[:, 4], v[:, 4], cache)
    assert cache.k.dtype == torch.float64
    assert torch.equal(cache.k[:, :4], k[:, :4].float().double()) and torch.equal(cache.k[:, 4], k[:, 4])


@pytest.mark.parametrize("cache", [None, RingCache(3)], ids=["all", "ring"])
def test_compiles_into_one_graph(cache):
    torch.compiler.reset()
    q, k, v = draw(4)
    extend, step = (torch.compile(f, fullgraph=True, backend="aot_eager") for f in (attention.extend, attention.step))
    first, state = extend(q[:, :3], k[:, :3], v[:, :3], cache)
    last, state = step(q[:, 3], k[:, 3], v[:, 3], state)
    want = attention.masked(q, k, v, window_size=None if cache is None else 3)
    assert near(torch.cat([first, last[:, None]], 1), want, q, k, v)
    assert state.length == 4


@pytest.mark.parametrize("cache", [None, RingCache(3), RingCache(3, 2)], ids=["all", "ring", "ring with spare slots"])
def test_no_value_of_a_device_is_read(cache):
    """Tensors on the meta device have no values: whoever reads one raises."""

    def given(*shape):
        return [torch.empty(2, *shape, n, 4, device="meta") for n in (4, 2, 2)]

    q, k, v = given(5)
    for mask in (None, torch.empty(2, 5, dtype=torch.bool, device="meta"), torch.empty(2, 5, 5, dtype=torch.bool, device="meta")):
        assert attention.full(q, k, v, mask=mask).shape == attention.masked(q, k, v, mask=mask, window_size=2).shape == q.shape
        assert attention.blockwise(q, k, v, mask=mask, chunk_size=2).shape == q.shape
    assert attention.rotate(q, torch.empty(2, dtype=torch.int64, device="meta")).shape == q.shape
    _, cache = attention.extend(q, k, v, cache)
    _, cache = attention.step(*given(), attention.crop(cache, 1))
    o, cache = attention.step(*given(), cache, mask=torch.empty(2, 6, dtype=torch.bool, device="meta"))
    assert o.shape == (2, 4, 4) and cache.length == 6


@pytest.mark.parametrize("cache", [attention.extend(*draw(5))[1], KVCache(*draw(5)[1:]), RingCache(3)], ids=["ours", "plain", "ring"])
def test_function_transforms_go_through_a_step(cache):
    q, k, v = (torch.stack([x[:, 0], -x[:, 0], 2 * x[:, 0]]) for x in draw(1))

    def loss(q, k, v):
        return attention.step(q, k, v, cache)[0].sin().sum()

    found = torch.vmap(torch.func.grad(loss, (0, 1, 2)))(q, k, v)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    want = torch.autograd.grad(sum(loss(*each) for each in zip(*leaves, strict=True)), leaves)
    assert all((a - b).abs().max() <= 2**10 * torch.finfo(a.dtype).eps for a, b in zip(found, want, strict=True))


# The ring -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 3, 8, 9, 19])
@pytest.mark.parametrize("spare", [0, 1, 4])
@pytest.mark.parametrize("cuts", [(19,), (1,) * 19, (4, 0, 5, 1, 9), (2, 3, 2, 3, 2, 3, 2, 2), (18, 1)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_ring_is_the_window(window, spare, cuts, masked):
    q, k, v = draw(19)
    mask = torch.tensor([[True] * 19, [False] * 5 + [True, False] * 7]) if masked else None
    o, ring, held = decoded(cuts, q, k, v, RingCache(window, spare), mask)
    assert near(o, attention.masked(q, k, v, mask=mask, window_size=window), q, k, v)
    assert all(torch.equal(c.k, copy) for c, copy in held)
    slots = window + spare
    assert ring.k.shape[1] == slots and ring.length == 19 and ring.start == max(0, 19 - slots)
    for position in range(ring.start, 19):
        assert torch.equal(ring.k[:, position % slots], k[:, position]) and torch.equal(ring.v[:, position % slots], v[:, position])


def test_a_ring_sees_what_is_not_finite_no_longer_than_its_window():
    q, k, v = draw(8)
    k[:, 2] = torch.inf
    o, _, _ = decoded((1,) * 8, q, k, v, RingCache(3))
    assert torch.equal(o.isnan(), attention.masked(q, k, v, window_size=3).isnan())
    assert o[:, 2:5].isnan().all() and o[:, 5:].isfinite().all()


# Roll-back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [None, RingCache(3, 2), RingCache(9)], ids=["all", "ring of 3", "ring of 9"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_was_rolled_back_is_forgotten(start, count):
    q, k, v = draw()
    window = None if start is None else start.window
    _, cache, _ = decoded((6 - count,), *(x[:, : 6 - count] for x in (q, k, v)), start)
    if count:
        _, cache = attention.extend(*(-x[:, :count] for x in (q, k, v)), cache)
    whole = cache
    cache = attention.crop(cache, count)
    assert cache.length == 6 - count
    o, cache, _ = decoded((1,) * (3 + count), *(x[:, 6 - count :] for x in (q, k, v)), cache)
    assert near(o, attention.masked(q, k, v, window_size=window)[:, 6 - count :], q, k, v)
    assert whole.length == 6


def test_a_ring_rolls_back_as_far_as_it_holds_what_the_next_token_sees():
    q, k, v = draw(12)
    want = attention.masked(q, k, v, window_size=3)
    for spare, length, count in itertools.product(range(4), range(1, 12), range(1, 8)):
        _, ring, _ = decoded((1,) * length, *(x[:, :length] for x in (q, k, v)), RingCache(3, spare))
        if count > length:
            with pytest.raises(ValueError, match=f"count={count} tokens cannot be taken from a cache of {length}"):
                attention.crop(ring, count)
        elif count <= spare + 1 or length <= 3 + spare:
            at = length - count
            o, _ = attention.step(q[:, at], k[:, at], v[:, at], attention.crop(ring, count))
            assert near(o, want[:, at], q, k, v)
        else:
            with pytest.raises(ValueError, match=f"needs spare={count - 1} or more"):
                attention.crop(ring, count)


def test_two_roll_backs_are_one():
    _, ring = attention.extend(*draw(9), RingCache(3, 1))
    once = attention.crop(attention.crop(ring, 1), 1)
    assert once.length == 7
    with pytest.raises(ValueError, match="has overwritten tokens that the token after position 6 sees"):
        attention.crop(once, 1)


@pytest.mark.parametrize("cache", [KVCache(*draw(2)[1:]), RingCache(3)], ids=["all", "ring"])
def test_a_wrong_count_is_named(cache):
    with pytest.raises(TypeError, match="count must be an int, not float"):
        attention.crop(cache, 1.5)
    with pytest.raises(ValueError, match="count must be at least 1, not -1"):
        attention.crop(cache, -1)
    with pytest.raises(ValueError, match=f"count=3 tokens cannot be taken from a cache of {cache.length}"):
        attention.crop(cache, 3)


def test_a_mask_of_other_tokens_is_named():
    q, k, v = draw(2)
    _, cache = attention.extend(q, k, v)
    with pytest.raises(ValueError, match=r"attention.extend: mask has shape \(2, 2\); it needs \(b, s\) = \(2, 4\)"):
        attention.extend(q, k, v, cache, mask=torch.ones(2, 2, dtype=torch.bool))


def test_a_cache_of_other_heads_is_named():
    one = torch.ones(1, 2, 4)
    for cache in (
        KVCache(torch.ones(1, 3, 1, 4), torch.ones(1, 3, 1, 4)),
        attention.extend(*(torch.ones(1, 1, 1, 4),) * 3, RingCache(2))[1],
    ):
        with pytest.raises(ValueError, match="cache_k has shape"):
            attention.step(one, one, one, cache)


@pytest.mark.parametrize(
    ("cache", "error", "message"),
    [
        (RingCache(0), ValueError, "the window of a ring must be at least 1, not 0"),
        (RingCache(2, -1), ValueError, "1 \\+ the spare slots of a ring must be at least 1, not 0"),
        ({}, TypeError, "cache must be a KVCache, a RingCache or another pair of k and v, not dict"),
    ],
    ids=["window", "spare", "dict"],
)
def test_a_wrong_cache_is_named(cache, error, message):
    q, k, v = draw()
    with pytest.raises(error, match=rf"attention\.extend: {message}"):
        attention.extend(q, k, v, cache)
    with pytest.raises(error, match=rf"attention\.step: {message}"):
        attention.step(q[:, 0], k[:, 0], v[:, 0], cache)


def test_without_a_feature_all_keys_weigh_the_same():
    q, k, v = draw()
    found = attention.masked(q[..., :0], k[..., :0], v)
    assert near(found, attention.masked(0 * q, k, v), 0 * q, k, v)
