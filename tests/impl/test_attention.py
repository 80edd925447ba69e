"""Attention: which keys a row sees, what garbage does, and the cache.

With queries of 0 every visible key weighs the same, and with values of one-hot rows the output shows which keys these
are: a test of the frontier, the window and the mask that needs no tolerance.
"""

import functools
import itertools

import pytest
import torch

from isoform.impl import attention

in_blocks = functools.partial(attention.blockwise, chunk_size=2)
CAUSAL = pytest.mark.parametrize(
    "form", [attention.masked, in_blocks, attention.blockwise], ids=["masked", "in blocks of 2", "in one block"]
)
LENGTHS = [(5, 5), (3, 7), (7, 3), (1, 6), (6, 1), (1, 1), (4, 0), (0, 4)]


def seen(form, t, s, b=2, **kwargs):
    """A boolean (b, t, s): the keys that each row weighs."""
    q, k, v = torch.zeros(b, t, 2, 4), torch.ones(b, s, 1, 4), torch.eye(s).expand(b, s, s).unsqueeze(2)
    o = form(q, k, v, **kwargs)
    assert torch.equal(o[:, :, 0], o[:, :, 1])
    return o[:, :, 0] > 0


def allowed(t, s, window, mask, causal, b=2):
    def shows(n, i, j):
        position = i + s - t
        if causal and not (j <= position and (window is None or j > position - window)):
            return False
        return mask is None or bool(mask[n, j] if mask.ndim == 2 else mask[n, i, j])

    return torch.tensor([[[shows(n, i, j) for j in range(s)] for i in range(t)] for n in range(b)]).bool().view(b, t, s)


def masks(t, s):
    generator = torch.Generator().manual_seed(s + 10 * t)
    return None, torch.rand(2, s, generator=generator) < 0.5, torch.rand(2, t, s, generator=generator) < 0.5


@pytest.mark.parametrize(("t", "s"), LENGTHS)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_row_sees_its_frontier_its_window_and_its_mask(t, s, which):
    mask = masks(t, s)[which]
    for form, window in itertools.product((attention.masked, in_blocks), (None, 1, 2, 3, 9)):
        assert torch.equal(seen(form, t, s, mask=mask, window_size=window), allowed(t, s, window, mask, True))
    assert torch.equal(seen(attention.full, t, s, mask=mask), allowed(t, s, None, mask, False))


def draw(t, s, h=6, hkv=2, d=4, dv=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, t, h, d), (2, s, hkv, d), (2, s, hkv, dv))
    return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


def by_hand(q, k, v, visible, scale):
    """Row by row. The values lie in the hull of v, so a difference is measured in ulps of max |v|."""
    o = torch.zeros(*q.shape[:3], v.shape[-1], dtype=v.dtype)
    for n, i, h in itertools.product(*map(range, q.shape[:3])):
        keys, g = visible[n, i].nonzero().flatten(), h // (q.shape[2] // k.shape[2])
        if keys.numel():
            o[n, i, h] = (k[n, keys, g] @ q[n, i, h] * scale).softmax(0) @ v[n, keys, g]
    return o


@pytest.mark.parametrize(("t", "s"), [(5, 5), (3, 7), (7, 3)])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("scale", [None, 2.0])
@CAUSAL
def test_weights_and_groups(form, t, s, which, scale):
    """An error of (d + 2)u Σ|q_i k_i| in a score costs e^{that} - 1 of a weight, twice, since the sum has it too."""
    q, k, v = (x.detach() for x in draw(t, s))
    mask = masks(t, s)[which]
    factor = 0.5 if scale is None else scale
    want = by_hand(q, k, v, allowed(t, s, 2, mask, True), factor)
    score = torch.einsum("nihd,njhd->nihj", q.abs(), k.repeat_interleave(3, 2).abs()).max() * factor
    bound = 2 * (2 * (4 + 2) * score + 2 * s + 8) * torch.finfo(torch.float64).eps * v.abs().max()
    assert (form(q, k, v, scale, mask, 2) - want).abs().max() <= bound
    assert bound < 1e-12


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("form", [attention.masked, in_blocks, attention.full])
@pytest.mark.parametrize(("t", "s"), [(3, 3), (2, 4), (4, 2)])
def test_gradients(form, which, t, s):
    mask = masks(t, s)[which]
    assert torch.autograd.gradcheck(lambda *x: form(*x, mask=mask), draw(t, s, 2, 1, 2, 2))


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("form", [attention.masked, in_blocks])
def test_what_a_row_does_not_see_cannot_matter(form, which, window, garbage):
    """Rows up to 3 stand before the garbage or see around it: output and gradients must be those without it."""
    q, k, v = draw(6, 6)
    mask = masks(6, 6)[which]
    visible = allowed(6, 6, window, mask, True)
    rows = ~visible[:, :, 4]

    def run(bad_k, bad_v):
        x, y = k.detach().clone(), v.detach().clone()
        x[:, 4], y[:, 4] = bad_k, bad_v
        leaves = [q.detach().clone().requires_grad_(), x.requires_grad_(), y.requires_grad_()]
        o = form(*leaves, mask=mask, window_size=window)
        o[rows].sin().sum().backward()
        return o, [x.grad for x in leaves]

    want, gradients = run(1.0, 1.0)
    for bad in ((garbage, 1.0), (1.0, garbage), (garbage, garbage)):
        o, got = run(*bad)
        assert torch.equal(o[rows], want[rows])
        assert not o[~rows].isfinite().any()
        assert all(torch.equal(a, b) for a, b in zip(got, gradients, strict=True))
        assert all(g.isfinite().all() for g in got)


@CAUSAL
def test_a_bad_value_marks_its_own_feature_and_a_bad_query_its_own_row(form):
    q, k, v = (x.detach() for x in draw(4, 4))
    v[:, 2, :, 1] = torch.nan
    q[:, 0, 5] = torch.inf
    bad = ~form(q, k, v).isfinite()
    want = torch.zeros_like(bad)
    want[:, 2:, :, 1] = want[:, 0, 5] = True
    assert torch.equal(bad, want)


@pytest.mark.parametrize("form", [attention.masked, in_blocks, attention.full])
def test_an_empty_row_is_zero_and_has_no_gradient(form):
    q, k, v = draw(3, 3)
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[:, 1] = False
    o = form(q, k, v, mask=mask)
    assert not o[:, 1].any()
    assert o[:, 0].all()
    for grad in torch.autograd.grad(o[:, 1].sum(), (q, k, v)):
        assert not grad.any()
    q = q.detach().clone()
    q[:, 1] = torch.nan
    assert not form(q, k, v, mask=mask)[:, 1].any()


def test_no_keys_and_no_batch():
    for b, t, s in [(2, 3, 0), (0, 3, 3), (2, 0, 0)]:
        for form in (attention.masked, in_blocks, attention.full):
            o = form(torch.ones(b, t, 2, 4, requires_grad=True), torch.ones(b, s, 1, 4), torch.ones(b, s, 1, 3))
            assert o.shape == (b, t, 2, 3)
            assert not o.any() or s
            o.sum().backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_inputs_are_computed_in_float32(dtype):
    short = [x.detach().to(dtype) for x in draw(33, 33, d=16, dv=16)]
    for form in (attention.masked, in_blocks, attention.full):
        o = form(*short)
        assert o.dtype == dtype
        assert torch.equal(o, form(*(x.float() for x in short)).to(dtype))


@CAUSAL
def test_neighbours_and_views_do_not_matter(form):
    q, k, v = (x.detach() for x in draw(5, 5))
    want = form(q, k, v)
    other = [x.clone() for x in (q, k, v)]
    for x in other:
        x[1] = torch.nan
    assert torch.equal(form(*other)[0], want[0])
    turned = [x.transpose(1, 3).contiguous().transpose(1, 3) for x in (q, k, v)]
    copies = [x.clone() for x in turned]
    assert torch.equal(form(*turned), want)
    assert all(torch.equal(a, b) for a, b in zip(turned, copies, strict=True))
    one = k[:, :1].expand_as(k)
    assert torch.equal(form(q, one, v), form(q, one.contiguous(), v))


@pytest.mark.parametrize(
    "kwargs", [{}, {"window_size": 2}, {"mask": torch.ones(2, 5).bool()}, {"mask": torch.ones(2, 4, 5).bool().tril()}], ids=str
)
def test_compiles_into_one_graph(kwargs):
    torch.compiler.reset()
    q, k, v = (x.detach() for x in draw(4, 5))
    for form in (attention.masked, attention.blockwise, attention.full):
        if form is not attention.full or "window_size" not in kwargs:
            compiled = torch.compile(form, fullgraph=True, backend="aot_eager")
            assert torch.equal(compiled(q, k, v, **kwargs), form(q, k, v, **kwargs))


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"mask": torch.ones(2, 5)}, TypeError, "mask must be a bool tensor, True meaning visible, not torch.float32"),
        (
            {"mask": torch.ones(2, 4).bool()},
            ValueError,
            r"mask has shape \(2, 4\); it needs \(b, s\) = \(2, 5\) or \(b, t, s\) = \(2, 3, 5\)",
        ),
        ({"v": torch.ones(2, 4, 1, 4)}, ValueError, r"v has shape \(2, 4, 1, 4\); the other arguments need \(b=2, s=5, hkv=1, v"),
        ({"k": torch.ones(2, 5, 2, 4)}, ValueError, "v has shape"),
        ({"q": torch.ones(2, 3, 2, 4).int()}, TypeError, "q has dtype torch.int32"),
        ({"window_size": 0}, ValueError, "window_size must be at least 1, not 0"),
        ({"window_size": 1.5}, TypeError, "window_size must be an int, not float"),
    ],
)
def test_a_wrong_argument_is_named(changes, error, sentence):
    arguments = {"q": torch.ones(2, 3, 2, 4), "k": torch.ones(2, 5, 1, 4), "v": torch.ones(2, 5, 1, 4)} | changes
    with pytest.raises(error, match=sentence):
        attention.masked(**arguments)


def test_a_chunk_size_below_one_is_named():
    with pytest.raises(ValueError, match="chunk_size must be at least 1, not 0"):
        attention.blockwise(torch.ones(1, 1, 1, 4), torch.ones(1, 1, 1, 4), torch.ones(1, 1, 1, 4), chunk_size=0)


def test_heads_that_cannot_be_shared_are_named():
    with pytest.raises(ValueError, match="h=3 heads cannot share hkv=2 heads; h must be a multiple of hkv"):
        attention.full(torch.ones(1, 1, 3, 4), torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4))
    with pytest.raises(ValueError, match="cache_k has shape"):
        attention.step(
            torch.ones(1, 2, 4), torch.ones(1, 2, 4), torch.ones(1, 2, 4), attention.KVCache(torch.ones(1, 3, 1, 4), torch.ones(1, 3, 1, 4))
        )
