"""The blocks of Mamba and Mamba-2 on weights that make every intermediate an integer, and their decoding.

silu(x) and log(1 + e^x) are x from 40 on, and a decay is 1 or 0 where its log is 0 or -∞.
"""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad, silu

from isoform.impl import transformer
from isoform.impl.mamba import block, ssd

T, M, D, N, R, W, LARGE = 5, 3, 4, 2, 1, 3, 64.0
BLOCKS = {
    "mamba": (block, {"width": 6, "states": 3, "rank": 2}),
    "mamba-2": (ssd, {"width": 6, "heads": 4, "head_size": 3, "states": 5, "groups": 2}),
}
each_block = pytest.mark.parametrize(("module", "sizes"), BLOCKS.values(), ids=BLOCKS)


def tokens(draw):
    """The last feature is 1 and carries what must be large."""
    return torch.cat([draw(2, T, M - 1, low=-1, high=1), torch.ones(2, T, 1).double()], -1)


def convolved(inner, weight, bias):
    """The causal convolution of (b t d)."""
    padded = pad(inner, (0, 0, weight.shape[1] - 1, 0))
    return sum(padded[:, j : j + inner.shape[1]] * weight[:, j] for j in range(weight.shape[1])) + bias


def mamba_weights(draw):
    def small(*shape):
        return draw(*shape, low=-1, high=1)

    inward = small(M, 2 * D)
    inward[-1, D:] = LARGE
    poles = torch.where(small(D, N) > 0, torch.inf, -torch.inf)
    conv_bias, step_bias = (torch.full((D,), size).double() for size in (LARGE, 8 * LARGE))
    return block.Block(inward, small(D, W), conv_bias, small(D, R + 2 * N), small(R, D), step_bias, poles, small(D), small(D, M))


def mamba_by_hand(x, w):
    inner, z = (x @ w.inward).chunk(2, -1)
    inner = convolved(inner, w.conv, w.conv_bias)
    low, B, C = (inner @ w.select).split([R, N, N], -1)
    delta = low @ w.step + w.step_bias
    assert min(inner.min(), z.min(), delta.min()) > 40
    h, rows = torch.zeros(len(x), D, N).double(), []
    for t in range(T):
        h = (w.A_log < 0) * h + (delta * inner)[:, t, :, None] * B[:, t, None]
        rows.append((h * C[:, t, None]).sum(-1) + w.D * inner[:, t])
    return (torch.stack(rows, 1) * z) @ w.outward


def second_weights(draw, groups):
    def small(*shape):
        return draw(*shape, low=-1, high=1)

    heads, c = 2, D + 2 * groups * N
    inward = small(M, D + c + heads)
    inward[-1, :D] = LARGE
    poles = torch.tensor([torch.inf, -torch.inf]).double()
    conv_bias, step_bias = (torch.full((size,), LARGE).double() for size in (c, heads))
    return ssd.Block(
        inward, small(c, W), conv_bias, step_bias, poles, small(heads), 1 + draw(D).abs(), torch.eye(D).double()[:, :M], groups
    )


def second_by_hand(x, w):
    heads, groups = len(w.D), w.groups
    z, inner, steps = (x @ w.inward).split([D, w.conv.shape[0], heads], -1)
    inner, delta = convolved(inner, w.conv, w.conv_bias), steps + w.step_bias
    assert min(inner.min(), z.min(), delta.min()) > 40
    v, B, C = inner.split([D, groups * N, groups * N], -1)
    v = v.unflatten(-1, (heads, -1))
    B, C = (m.unflatten(-1, (groups, N)).repeat_interleave(heads // groups, 2) for m in (B, C))
    S, rows = torch.zeros(len(x), heads, N, D // heads).double(), []
    for t in range(T):
        S = (w.A_log < 0)[:, None, None] * S + (delta[:, t, :, None] * B[:, t])[..., None] * v[:, t, :, None]
        rows.append((S * C[:, t, ..., None]).sum(2) + w.D[:, None] * v[:, t])
    return torch.stack(rows, 1).flatten(2) * silu(z)


def test_mamba_is_exact_on_integers(whole):
    x, w = tokens(whole), mamba_weights(whole)
    assert w.A_log.unique().numel() == 2
    y = mamba_by_hand(x, w)
    assert y.abs().max() < 2**53 and y.abs().max() > 2**20
    assert torch.equal(block.forward(x, w), y)


@pytest.mark.parametrize("groups", [1, 2])
def test_mamba_2_is_exact_on_integers_up_to_its_norm(groups, whole):
    """Behind the norm every row has root mean square 1 in each group, so the same formula is evaluated on the same numbers."""
    x, w = tokens(whole), second_weights(whole, groups)
    y = second_by_hand(x, w).unflatten(-1, (groups, -1))
    y = (y * (y.square().mean(-1, keepdim=True) + w.eps).rsqrt()).flatten(-2) * w.gain
    assert torch.equal(ssd.forward(x, w), y[..., :M])


def decoded(module, x, w, ends):
    """The rows of parts that end there."""
    rows, state = [], None
    for start, stop in zip((0, *ends), (*ends, x.shape[1])):
        y, state = module.extend(x[:, start:stop], w, state)
        rows.append(y)
    return torch.cat(rows, 1), state


@pytest.mark.parametrize("case", ["mamba", "mamba-2"])
def test_parts_and_steps_are_the_whole(case, whole):
    module = BLOCKS[case][0]
    x, w = tokens(whole), mamba_weights(whole) if case == "mamba" else second_weights(whole, 2)
    y, last = decoded(module, x, w, ())
    for ends in ((0, 1, 3), (2, 2), (4,)):
        rows, state = decoded(module, x, w, ends)
        assert torch.equal(rows, y) and all(torch.equal(a, b) for a, b in zip(state, last, strict=True))
    state = None
    for t in range(T):
        before = None if state is None else [s.clone() for s in state]
        row, new = module.step(x[:, t], w, state)
        assert torch.equal(row, y[:, t])
        assert state is None or all(torch.equal(a, b) for a, b in zip(state, before, strict=True))
        state = new
    assert all(torch.equal(a, b) for a, b in zip(state, last, strict=True))


@each_block
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_weight_has_a_gradient(module, sizes, dtype):
    w = module.init(torch.Generator().manual_seed(0), dtype=dtype, **sizes)
    y = module.forward(torch.linspace(-1, 1, 2 * 7 * 6).view(2, 7, 6).to(dtype), w)
    y.square().sum().backward()
    assert y.dtype == dtype and y.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in transformer.parameters(w))


@each_block
def test_a_token_that_is_not_finite_changes_no_earlier_row(module, sizes):
    w = module.init(torch.Generator().manual_seed(0), dtype=torch.float64, **sizes)
    x = torch.linspace(-1, 1, 2 * 7 * 6).view(2, 7, 6).double()
    y = module.forward(x, w)
    x[0, 4] = torch.nan
    found = module.forward(x, w)
    assert torch.equal(found[0, :4], y[0, :4]) and torch.equal(found[1], y[1]) and found[0, 4:].isnan().all()


@each_block
def test_steps_begin_between_a_thousandth_and_a_tenth(module, sizes):
    w = module.init(torch.Generator().manual_seed(0), dtype=torch.float64, **sizes)
    first = torch.nn.functional.softplus(w.step_bias)
    assert 0.001 <= first.min() < first.max() <= 0.1


@pytest.mark.parametrize(
    ("case", "changes", "sentence"),
    [
        ("mamba", {"inward": torch.ones(6, 5)}, r"inward has shape \(6, 5\); the other weights need \(6, 24\)"),
        ("mamba", {"select": torch.ones(12, 5)}, r"select has shape \(12, 5\); the other weights need \(12, 8\)"),
        ("mamba", {"D": torch.ones(3)}, r"D has shape \(3,\)"),
        ("mamba-2", {"inward": torch.ones(6, 5)}, r"inward has 5 columns; z, x with B and C, and the steps have 12 \+ 32 \+ 4"),
        ("mamba-2", {"groups": 3}, "h=4 heads cannot share g=3"),
        ("mamba-2", {"conv": torch.ones(11, 4), "conv_bias": torch.ones(11)}, "conv has 11 channels; x has 12 of them"),
    ],
)
def test_a_wrong_weight_is_named(case, changes, sentence):
    module, sizes = BLOCKS[case]
    w = replace(module.init(torch.Generator().manual_seed(0), **sizes), **changes)
    for function, shape in ((module.forward, (2, 7, 6)), (module.step, (2, 6))):
        with pytest.raises(ValueError, match=sentence):
            function(torch.ones(shape), w)
