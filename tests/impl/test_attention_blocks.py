"""Attention by blocks: every block size is the same, memory is linear, and what is refused."""

import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from isoform.impl import attention
from isoform.properties.tensors import tensors_in

LENGTHS = [(0, 0), (1, 1), (9, 9), (4, 9), (9, 4), (5, 0)]


def draw(t, s, h=6, hkv=2, d=4, dv=3):
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, t, h, d), (2, s, hkv, d), (2, s, hkv, dv))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def masks(t, s):
    generator = torch.Generator().manual_seed(1)
    return None, torch.rand(2, s, generator=generator) < 0.5, torch.rand(2, t, s, generator=generator) < 0.5


@pytest.mark.parametrize(("t", "s"), LENGTHS)
@pytest.mark.parametrize("chunk_size", [1, 2, 3, 4, 8, 9, 10])
def test_every_block_size_gives_the_same_rows_and_gradients(t, s, chunk_size):
    """Scores are below 2⁵, values and weights of the loss below 2³; sums have at most 9 · 3 terms a head of a group."""
    q, k, v = draw(t, s)
    weights = torch.randn(2, t, 6, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    bound = 2**12 * torch.finfo(torch.float64).eps
    for mask, window in itertools.product(masks(t, s), (None, 1, 4, 20)):
        want = attention.masked(q, k, v, None, mask, window)
        found = attention.blockwise(q, k, v, None, mask, window, chunk_size)
        assert found.shape == want.shape
        assert not found.numel() or (found - want).abs().max() <= bound
        for a, b in zip(*(torch.autograd.grad(o, (q, k, v), weights) for o in (found, want)), strict=True):
            assert not a.numel() or (a - b).abs().max() <= bound


class Largest(TorchDispatchMode):
    """The largest result of any operator, in numbers."""

    found = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.found = max([self.found, *(x.untyped_storage().nbytes() // x.element_size() for x in tensors_in(result))])
        return result


@pytest.mark.parametrize("window", [None, 7])
@pytest.mark.parametrize("padded", [False, True])
def test_memory_is_linear_in_the_length(window, padded):
    """No result is larger than an input or a block of scores; kept for the backward pass are those and two numbers a row."""
    h, d, size = 2, 4, 8
    for t in (64, 128):
        q, k, v = (torch.randn(1, t, h, d, requires_grad=True) for _ in range(3))
        mask = torch.rand(1, t) < 0.7 if padded else None
        kept = []
        with Largest() as largest, torch.autograd.graph.saved_tensors_hooks(lambda x, kept=kept: kept.append(x) or x, lambda x: x):
            attention.blockwise(q, k, v, None, mask, window, size).sum().backward()
        assert 0 < largest.found <= (t + 1) * h * d
        assert sum(x.numel() for x in kept) <= t * h * (5 * d + 2)


def test_a_window_skips_the_blocks_outside():
    """Of m blocks a side, m (m + 1) / 2 are before the frontier, and with a window of one block 2 m - 1 are in it."""
    size, m = 4, 6

    class Products(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += func.overloadpacket.__name__ == "bmm"
            return func(*args, **(kwargs or {}))

    q, k, v = (x.detach() for x in draw(size * m, size * m))
    for window, blocks in ((None, m * (m + 1) // 2), (size, 2 * m - 1), (1, m)):
        with Products() as products:
            attention.blockwise(q, k, v, None, None, window, size)
        assert products.count == 2 * blocks


@pytest.mark.parametrize("which", [1, 2])
def test_a_hidden_value_may_be_as_large_as_there_are(which):
    q, k, v = (x.detach().float() for x in draw(5, 5))
    mask = torch.ones((2, 5) if which == 1 else (2, 5, 5), dtype=torch.bool)
    mask[..., 2] = False
    large = v.clone()
    large[:, 2] = torch.finfo(torch.float32).max
    found = []
    for values in (v, large):
        leaves = [x.clone().requires_grad_() for x in (q, k, values)]
        o = attention.blockwise(*leaves, mask=mask, chunk_size=2)
        found.append((o, *torch.autograd.grad(o.sin().sum(), leaves)))
    assert all(torch.equal(a, b) and a.isfinite().all() for a, b in zip(*found, strict=True))


def test_scores_of_any_size():
    q, k, v = (x.detach() for x in draw(9, 9))
    want = torch.zeros_like(v).repeat_interleave(3, 2)
    scores = torch.einsum("nihd,njhd->nhij", q, k.repeat_interleave(3, 2)).masked_fill(~torch.ones(9, 9).tril().bool(), -torch.inf)
    for n, head, i in itertools.product(range(2), range(6), range(9)):
        want[n, i, head] = v[n, scores[n, head, i].argmax(), head // 3]
    assert torch.equal(attention.blockwise(q * 1e9, k, v, chunk_size=2), want)  # the largest score wins by more than 745


def test_a_second_derivative_is_refused():
    leaves = draw(4, 4)
    (first, *_) = torch.autograd.grad(attention.blockwise(*leaves).sin().sum(), leaves, create_graph=True)
    with pytest.raises(RuntimeError, match=r"attention\.blockwise: a second derivative is not implemented"):
        first.sum().backward()


def test_function_transforms_differentiate():
    leaves = draw(4, 5)
    found = torch.func.grad(lambda *x: attention.blockwise(*x, chunk_size=2).sin().sum(), (0, 1, 2))(*(x.detach() for x in leaves))
    want = torch.autograd.grad(attention.blockwise(*leaves, chunk_size=2).sin().sum(), leaves)
    assert all(torch.equal(a, b) for a, b in zip(found, want, strict=True))


def test_gradients_compile():
    torch.compiler.reset()
    leaves = draw(4, 5)
    shown = {"mask": torch.tensor([[True] * 5, [False] * 2 + [True] * 3]), "window_size": 3, "chunk_size": 4}
    compiled = torch.compile(attention.blockwise, fullgraph=True, backend="aot_eager")
    found, want = (torch.autograd.grad(f(*leaves, **shown).sin().sum(), leaves) for f in (compiled, attention.blockwise))
    assert all(torch.equal(a, b) for a, b in zip(found, want, strict=True))


# Rotary positions ---------------------------------------------------------------------------------


def rotated_by_hand(x, positions, base, interleaved):
    """Pair by pair, as complex numbers."""
    d = x.shape[-1]
    angle = positions[..., None] * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., : d // 2], x[..., d // 2 :])
    z = torch.complex(a, b) * torch.polar(torch.ones_like(angle), angle)[:, :, None]
    return torch.stack([z.real, z.imag], -1).flatten(-2) if interleaved else torch.cat([z.real, z.imag], -1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("base", [10000.0, 500.0])
@pytest.mark.parametrize(
    "offset", [0, 7, torch.tensor([3, -2]), torch.tensor([[0, 0, 1, 2, 9], [5, 4, 3, 2, 1]])], ids=["0", "7", "each", "all"]
)
def test_rotation_is_of_the_declared_pairs(interleaved, base, offset):
    """Two products and a sum of numbers below 4, and an angle that is rounded: 16 units of 4 are ample."""
    x = draw(5, 5, d=8)[0].detach()
    first = torch.as_tensor(offset)
    positions = first if first.ndim == 2 else (first.view(-1, 1) + torch.arange(5)).expand(2, 5)
    found = attention.rotate(x, offset, base, interleaved)
    assert (found - rotated_by_hand(x, positions.double(), base, interleaved)).abs().max() <= 64 * torch.finfo(torch.float64).eps
    assert not torch.equal(found, attention.rotate(x, offset, base, not interleaved))


def test_the_conventions_differ_by_an_order_of_the_features():
    x = draw(5, 5, d=8)[0].detach()
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    assert torch.equal(attention.rotate(x[..., order], 3), attention.rotate(x, 3, interleaved=True)[..., order])


@pytest.mark.parametrize("interleaved", [False, True])
def test_scores_depend_on_distances_so_padding_on_the_left_may_shift_positions(interleaved):
    """Angles below 10² are off by 10² u, so a score of 8 products below 16 by less than 2¹⁴ u."""
    q, k, _ = (x.detach() for x in draw(5, 5, h=2, d=8))
    scores = [
        torch.einsum("nihd,njhd->nhij", *(attention.rotate(x, offset, interleaved=interleaved) for x in (q, k)))
        for offset in (0, 40, torch.tensor([-3, 11]))
    ]
    bound = 2**14 * torch.finfo(torch.float64).eps
    assert all((a - scores[0]).abs().max() <= bound for a in scores[1:])
    moved = torch.einsum(
        "nihd,njhd->nhij", attention.rotate(q, 1, interleaved=interleaved), attention.rotate(k, 0, interleaved=interleaved)
    )
    assert (moved - scores[0]).abs().max() > 0.1


def test_a_wrong_rotation_is_named():
    x = torch.ones(2, 3, 1, 4)
    with pytest.raises(ValueError, match="x has d=3 features; pairs need an even number"):
        attention.rotate(x[..., :3])
    with pytest.raises(ValueError, match=r"offset has shape \(3,\); the other arguments need \(b=2,\) or \(b=2, t=3\)"):
        attention.rotate(x, torch.zeros(3, dtype=torch.int64))
    with pytest.raises(TypeError, match="offset must be an int, not float"):
        attention.rotate(x, 0.5)
    with pytest.raises(TypeError, match=r"offset has dtype torch\.float32"):
        attention.rotate(x, torch.zeros(2))
    assert attention.rotate(torch.ones(2, 0, 1, 4)).shape == (2, 0, 1, 4)
