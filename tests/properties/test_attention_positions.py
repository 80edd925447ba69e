"""Rotary positions: pairs turned by angles known to fifty digits, scores that depend on distances, offsets that go on.

An angle in float64 is off by a few units of itself: its rate base^(-2i/d) has an exponent of at most log(base), rounded, and
a power of its own; then a product. Sine and cosine are rounded to the dtype of the sums, and each of the two products and
their sum once more.
"""

from functools import partial

import mpmath
import numpy as np
import pytest
import torch

from isoform.impl import attention
from isoform.properties.bounds import gamma
from isoform.properties.columns import operator
from isoform.properties.operator import Instance
from isoform.properties.tensors import DTYPES, array, precision, rounded, tensor

BASE = 10000.0
TURNED = 4 + np.log(BASE)
"""Units in float64 by which an angle may be off, of itself."""
PLACES = np.array([0, 1, 2, 511, 99_999])
OFFSETS = {"an int": 7, "of each sequence": np.array([-3, 5]), "of each token": np.stack([PLACES, PLACES[::-1]])}


def pairs(x, interleaved):
    """The two features of each pair, (..., d/2) each."""
    half = x.shape[-1] // 2
    return (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])


def places(offset, b, t):
    offset = np.asarray(offset)
    return np.broadcast_to(offset if offset.ndim == 2 else np.arange(t) + offset.reshape(-1, 1), (b, t))


def turned(x, offset, interleaved=False):
    """The truth (b, t, h, d), and how far a form in float64 may be from it, per unit of rounding."""
    b, t, h, d = x.shape
    found, angle = np.zeros_like(x), np.zeros((b, t, 1, d // 2))
    (left, right), (out_left, out_right) = pairs(x, interleaved), pairs(found, interleaved)
    with mpmath.workdps(50):
        for n, i, m in np.ndindex(b, t, d // 2):
            phi = int(places(offset, b, t)[n, i]) * mpmath.mpf(BASE) ** (mpmath.mpf(-2 * m) / d)
            c, s = mpmath.cos(phi), mpmath.sin(phi)
            angle[n, i, 0, m] = abs(phi)
            for j in range(h):
                a, e = left[n, i, j, m], right[n, i, j, m]
                out_left[n, i, j, m], out_right[n, i, j, m] = a * c - e * s, a * s + e * c
    return found, angle


def bound(x, truth, angle, interleaved, dtype):
    p = precision(dtype)
    size = sum(np.abs(a) for a in pairs(x, interleaved))
    each = (TURNED * 2.0**-52 * angle + gamma(4, p.unit)) * size
    spread = np.zeros_like(truth)
    for part in pairs(spread, interleaved):
        part[...] = each
    return spread * (1 + p.out) + p.out * np.abs(truth) + p.out_tiny + p.tiny


def drawn(dtype, b=2, t=5, h=2, d=6, seed=0):
    return rounded(np.random.default_rng(seed).standard_normal((b, t, h, d)), dtype)


def worst(rotate, dtype, offset, interleaved):
    """The largest error over bound."""
    x = drawn(dtype)
    given = torch.from_numpy(offset) if isinstance(offset, np.ndarray) else offset
    found = array(rotate(tensor(x, dtype), offset=given, base=BASE, interleaved=interleaved))
    truth, angle = turned(x, offset, interleaved)
    return float((np.abs(found - truth) / bound(x, truth, angle, interleaved, dtype)).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("offset", OFFSETS.values(), ids=OFFSETS)
def test_a_rotation_is_the_true_one(dtype, interleaved, offset):
    assert worst(attention.rotate, dtype, offset, interleaved) <= 0.6  # half a unit where a bound counts a whole one


def other_pairs(x, offset, base, interleaved):
    return attention.rotate(x, offset, base, not interleaved)


def other_direction(x, offset, base, interleaved):
    return attention.rotate(x, -offset - (0 if getattr(offset, "ndim", 0) == 2 else x.shape[1] - 1), base, interleaved)


def one_position_late(x, offset, base, interleaved):
    return attention.rotate(x, offset + 1, base, interleaved)


def offset_ignored(x, offset, base, interleaved):
    return attention.rotate(x, 0, base, interleaved)


def another_base(x, offset, base, interleaved):
    return attention.rotate(x, offset, base * 1.01, interleaved)


def angles_in_float32(x, offset, base, interleaved):
    d = x.shape[-1]
    theta = torch.tensor(base, dtype=torch.float32) ** (torch.arange(0, d, 2, dtype=torch.float32) / -d)
    at = torch.tensor(places(offset, *x.shape[:2]).copy()).float()[:, :, None, None] * theta
    a, b = (torch.from_numpy(p.copy()).to(x.dtype) for p in pairs(x.double().numpy(), interleaved))
    c, s = at.cos().to(x.dtype), at.sin().to(x.dtype)
    out = torch.stack([a * c - b * s, a * s + b * c], -1)
    return out.flatten(-2) if interleaved else out.transpose(-1, -2).flatten(-2)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotate", [other_pairs, other_direction, one_position_late, offset_ignored, another_base, angles_in_float32])
def test_a_false_rotation_is_seen(rotate, interleaved):
    assert worst(rotate, "float32", OFFSETS["of each token"], interleaved) > 2


def scores(rotate, x, y, p, r):
    """The scores of queries at p, p + 1, … and keys at r, r + 1, …"""
    return np.einsum("bthd,bshd->bhts", *(array(rotate(tensor(a, "float64"), n)) for a, n in ((x, p), (y, r))))


def by_distance(x, y, distance):
    """The score of a query so many positions behind a key, from one rotation of the query."""
    truth, _ = turned(np.repeat(x, len(distance), 1), np.array(distance)[None].repeat(len(x), 0))
    return np.einsum("bthd,bshd->bhts", truth, y)


def distances_missed(rotate):
    """The largest error over bound of the scores, with both shifted by the same positions."""
    x, y = drawn("float64", t=1), drawn("float64", t=1, seed=1)
    size = np.einsum("bthd,bshd->bhts", *(np.repeat(sum(np.abs(a) for a in pairs(z, False)), 2, -1) for z in (x, y)))
    found = []
    for distance in (0, 1, 5, 300):
        for shift in (0, 1, 1000, 30_000):
            angle = 2 * shift + distance
            off = (TURNED * 2.0**-52 * angle + gamma(2 * 4 + x.shape[-1] + 1, 2.0**-52)) * size
            found.append(np.abs(scores(rotate, x, y, shift + distance, shift) - by_distance(x, y, [distance])) / off)
    return float(np.max(found))


def test_scores_depend_on_distances():
    assert distances_missed(attention.rotate) <= 0.2


def test_scores_of_shifted_queries_alone_are_seen():
    calls = iter(range(1000))

    def every_second(x, offset):
        return attention.rotate(x, offset if next(calls) % 2 else 0)

    assert distances_missed(every_second) > 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 12, torch.tensor([3, -4])], ids=str)
def test_offsets_go_on_after_a_cut(dtype, offset):
    x = tensor(drawn(dtype, t=9), dtype)
    whole = attention.rotate(x, offset)
    for n in range(10):
        parts = [attention.rotate(x[:, :n], offset), attention.rotate(x[:, n:], offset + n)]
        assert torch.equal(torch.cat(parts, 1), whole)
    assert not torch.equal(attention.rotate(x[:, 4:], offset), whole[:, 4:])


def in_parts(q, k, v, window, restart=False):
    """Decoding in parts, each rotated by the number of tokens in the cache."""
    cache, found = None if window is None else attention.RingCache(window), []
    for a, b in ((0, 1), (1, 1), (1, 4), (4, q.shape[1])):
        at = 0 if restart or cache is None else cache.length
        turn = partial(attention.rotate, offset=at)
        o, cache = attention.extend(turn(q[:, a:b]), turn(k[:, a:b]), v[:, a:b], cache)
        found.append(o)
    return torch.cat(found, 1)


def beside_truth(found, q, k, v, window, dtype):
    """The largest error over bound of attention to rotated queries and keys, whose values are those of the form."""
    options = {} if window is None else {"window_size": window}
    inputs = {n: array(x) for n, x in (("q", attention.rotate(q)), ("k", attention.rotate(k)), ("v", v))}
    truth = operator("attention").refer(Instance(inputs, None, options, dtype))
    return float((np.abs(array(found) - truth.output) / truth.bound).max())


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("window", [None, 3])
def test_positions_go_on_in_a_cache(dtype, window):
    q, k, v = (tensor(drawn(dtype, b=1, t=7, seed=n), dtype) for n in range(3))
    assert beside_truth(in_parts(q, k, v, window), q, k, v, window, dtype) <= 1
    assert beside_truth(in_parts(q, k, v, window, restart=True), q, k, v, window, dtype) > 2


def padded(x, pads, start):
    """Sequences with NaN in so many tokens on their left, rotated from these positions, or not at all."""
    x = x.clone()
    for n, pad in enumerate(pads):
        x[n, :pad] = torch.nan
    return x if start is None else attention.rotate(x, start)


def test_padding_on_the_left_shifts_positions():
    q, k, v = (tensor(drawn("float32", t=8, seed=n), "float32") for n in range(3))
    pads = torch.tensor([2, 5])
    mask = torch.arange(8) >= pads[:, None]
    for start, right in ((-pads, True), (pads, False)):
        found = attention.masked(padded(q, pads, -pads), padded(k, pads, start), padded(v, pads, None), mask=mask)
        for n, pad in enumerate(pads.tolist()):
            error = beside_truth(found[n : n + 1, pad:], *(x[n : n + 1, pad:] for x in (q, k, v)), None, "float32")
            assert error <= 0.2 if right else error > 2
