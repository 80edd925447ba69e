"""Decay: gates of every strength mixed in one chunk, the default and the special cases, and the rotation of retention."""

from functools import partial

import pytest
import torch

from isoform.impl import delta_rule, gated_delta_rule, gated_retention, linear_attention, retention

U = torch.finfo(torch.float32).eps / 2
STRENGTHS = (0.0, -1e-8, -0.1, -1.0, -1.4, -3.0, -30.0, -3000.0, -torch.inf)
T, H, K, V = 70, 2, 4, 3
SIZES = (1, 5, 16, 64)
ADDITIVE = [gated_retention.recurrent, gated_retention.parallel, *(partial(gated_retention.chunkwise, chunk_size=c) for c in SIZES)]
CORRECTING = [gated_delta_rule.recurrent, *(partial(gated_delta_rule.chunkwise, chunk_size=c) for c in SIZES)]


def name(form):
    return f"{form.func.__name__}-{form.keywords['chunk_size']}" if isinstance(form, partial) else form.__name__


def mixed(seed, mild):
    """Tokens in float32 and log-gates: any of all strengths, or a strong one among mild ones."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, T, H, d, generator=generator) for d in (K, K, V))
    g = torch.tensor(STRENGTHS)[torch.randint(len(STRENGTHS), (1, T, H), generator=generator)]
    if mild:
        g = torch.where(torch.arange(T)[:, None] % 9 == 4, g, torch.tensor([-1e-8, -0.1])[torch.arange(T)[:, None] % 2])
    state = torch.randn(1, H, K, V, generator=generator)
    return {"q": q, "k": k, "v": v, "g": g, "initial_state": state}


def bound(count, terms):
    """γ_count times the sum of the absolute values of all terms, none decayed.

    A running sum of at most T gates is off by T U of itself, and an exponent s < 0 that is off by δ costs
    e^s δ: at most T U / e, as |s| e^s <= 1/e. Every other rounding is one U of a term.
    """
    return count * U / (1 - count * U) * terms


def doubled(inputs):
    return {n: x.double().requires_grad_() for n, x in inputs.items()}


def undecayed(inputs):
    return {n: (0 * x.nan_to_num() if n == "g" else x.abs()).double().requires_grad_() for n, x in inputs.items()}


def loss_gradients(form, inputs):
    o, state = form(**inputs, output_final_state=True)
    return o, state, torch.autograd.grad(o.sum() + state.sum(), list(inputs.values()))


@pytest.mark.parametrize("form", ADDITIVE, ids=name)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mild", [False, True])
def test_mixed_gates_are_accurate_and_so_are_their_gradients(form, seed, mild):
    inputs = mixed(seed, mild)
    leaves = {n: x.clone().requires_grad_() for n, x in inputs.items()}
    *found, gradients = loss_gradients(form, leaves)
    *want, true = loss_gradients(gated_retention.recurrent, doubled(inputs))
    *terms, slopes = loss_gradients(gated_retention.recurrent, undecayed(inputs))
    count = 2 * (2 * T + K + V + 8)
    for a, b, c in zip(found, want, terms, strict=True):
        assert ((a - b).abs() <= bound(count, c)).all()
    for a, b, c in zip(gradients, true, slopes, strict=True):
        assert a.isfinite().all()
        assert ((a - b).abs() <= bound(3 * count, c)).all()
    off = doubled(inputs | {"g": inputs["g"].masked_fill(inputs["g"] == -0.1, 0.0)})
    assert ((gated_retention.recurrent(**off)[0] - want[0]).abs() > bound(count, terms[0])).any(), "the bound would not miss a lost gate"


@pytest.mark.parametrize("form", CORRECTING, ids=name)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mild", [False, True])
def test_mixed_gates_beside_corrections(form, seed, mild):
    """With one-hot keys and rates up to 1 an entry is multiplied by a factor in [0, 1] and an error never grows."""
    inputs = mixed(seed, mild)
    generator = torch.Generator().manual_seed(seed)
    inputs["k"] = torch.nn.functional.one_hot(torch.randint(K, (1, T, H), generator=generator), K).float()
    inputs["beta"] = torch.rand(1, T, H, generator=generator)
    leaves = {n: x.clone().requires_grad_() for n, x in inputs.items()}
    o, state, gradients = loss_gradients(form, leaves)
    want, last, _ = loss_gradients(gated_delta_rule.recurrent, doubled(inputs))
    most = inputs["v"].abs().max() + inputs["initial_state"].abs().max()
    limit = T * bound(2 * (2 * T + K + V + 8), 2 * most)
    assert ((state - last).abs() <= limit).all()
    assert ((o - want).abs() <= limit * inputs["q"].abs().sum(-1, keepdim=True) * K**-0.5).all()
    assert all(x.isfinite().all() for x in gradients)


def draw(seed, *shapes):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(-2, 3, shape, generator=generator).double() for shape in shapes]


@pytest.mark.parametrize("form", ["recurrent", "parallel", "chunkwise"])
def test_without_a_gate_they_are_the_plain_memories(form):
    q, k, v = draw(0, (1, 9, 2, 4), (1, 9, 2, 4), (1, 9, 4, 3))
    g = torch.zeros(1, 9, 4).double()
    want = getattr(linear_attention, form)(q, k, v)[0]
    assert torch.equal(getattr(gated_retention, form)(q, k, v, g)[0], want)
    assert torch.equal(getattr(retention, form)(q, k, v, g_gamma=torch.zeros(2).double())[0], want)
    if form != "parallel":
        k, beta = torch.nn.functional.one_hot(k.long().abs()[..., 0], 4).double(), g + 0.5
        assert torch.equal(getattr(gated_delta_rule, form)(q, k, v, g, beta)[0], getattr(delta_rule, form)(q, k, v, beta)[0])


@pytest.mark.parametrize("form", ["recurrent", "parallel", "chunkwise"])
@pytest.mark.parametrize("packed", [False, True])
def test_retention_is_gated_retention_with_a_constant_gate(form, packed):
    """One head per gate and two value heads each; in float64, so far within the bound of float32."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, T, h, d, generator=generator).double() for h, d in ((3, K), (3, K), (6, V)))
    gamma = torch.tensor([-0.1, -torch.inf, -1e-3]).double()
    cu = torch.tensor([0, 3, 3, 68]) if packed else None
    g = gamma.repeat_interleave(2).expand(1, T, 6)
    found = getattr(retention, form)(q, k, v, g_gamma=gamma, output_final_state=True, cu_seqlens=cu)
    want = gated_retention.recurrent(q, k, v, g, output_final_state=True, cu_seqlens=cu)
    terms = linear_attention.recurrent(q.abs(), k.abs(), v.abs(), output_final_state=True, cu_seqlens=cu)
    for a, b, c in zip(found, want, terms, strict=True):
        assert ((a - b).abs() <= 2.0**-29 * bound(2 * (2 * T + K + V + 8), c)).all()


def test_the_default_decay_is_that_of_the_paper():
    one = torch.ones(1, 2, 8, 1).double()
    for form in retention.FORMS["retention"]:
        o = form(one, one, one, scale=1.0)[0][0, 1, :, 0]
        assert ((o - (2 - 0.5 ** (5 + torch.arange(8.0).double()))).abs() <= 4 * torch.finfo(torch.float64).eps).all(), "log, exp and a sum"
    _, state = retention.step(*(x[:, 0] for x in (one, one, one)), state=torch.ones(1, 8, 1, 1).double())
    assert torch.equal(state, retention.recurrent(one[:, :1], one[:, :1], one[:, :1], None, torch.ones(1, 8, 1, 1).double(), True)[1])


@pytest.mark.parametrize("module", [linear_attention, retention, gated_retention, delta_rule, gated_delta_rule])
def test_a_later_score_beyond_the_range_does_not_reach_back(module):
    """Finite tokens whose product overflows: a masked weight is 0 and not 0 · ∞."""
    gates = {n: torch.full((1, 6, 1), x) for n, x in (("g", -0.5), ("beta", 0.0)) if n in module.chunkwise.__annotations__}
    q, k, v = torch.ones(3, 1, 6, 1, 2)
    k, q = k.clone(), q * 1e20
    early = module.chunkwise(q, k, v, **gates)[0]
    k[:, 4] = 1e30
    late = module.chunkwise(q, k, v, **gates)[0]
    assert torch.equal(early[:, :4], late[:, :4])
    assert late[:, :4].isfinite().all()


def turning(k=6):
    generator = torch.Generator().manual_seed(1)
    q, x = torch.randn(2, 2, 9, 2, k, generator=generator).double()
    return q, x, torch.rand(k // 2, generator=generator).double() * 3


def test_a_rotation_is_the_product_with_a_unit():
    q, k, theta = turning()
    turned = retention.rotate(q, k, theta, offset=5)
    unit = torch.exp(1j * (torch.arange(9)[:, None, None] + 5) * theta)
    for x, y in zip((q, k), turned, strict=True):
        want = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * unit
        size = x.unflatten(-1, (-1, 2)).norm(dim=-1)
        off = (torch.view_as_complex(y.unflatten(-1, (-1, 2))) - want).abs()
        assert (off <= (2 * 14 * 3 + 8) * torch.finfo(torch.float64).eps * size).all(), "an angle up to 42, its cosine, two products"


@pytest.mark.parametrize("form", [retention.recurrent, retention.parallel, partial(retention.chunkwise, chunk_size=4)], ids=name)
def test_positions_are_relative_and_go_on_over_a_cut(form):
    """Angles reach 3 · 1000, so a cosine is off by 3000 eps and a score by four times that."""
    q, k, theta = turning()
    v = torch.randn(2, 9, 2, 3, generator=torch.Generator().manual_seed(2)).double()
    g = torch.tensor([-0.1, 0.0]).double()

    def run(start):
        turned = [retention.rotate(q[:, a:b], k[:, a:b], theta, start + a) for a, b in ((0, 4), (4, 9))]
        o, state = form(*turned[0], v[:, :4], output_final_state=True, g_gamma=g)
        return torch.cat([o, form(*turned[1], v[:, 4:], initial_state=state, g_gamma=g)[0]], 1)

    want = form(*retention.rotate(q, k, theta), v, g_gamma=g)[0]
    limit = linear_attention.parallel(q.abs(), k.abs(), v.abs())[0] * 2 * (4 * 3000 + 50) * torch.finfo(torch.float64).eps
    for start in (0, 7, 991, torch.tensor([3, 800])):
        assert ((run(start) - want).abs() <= limit).all()
    still = form(q, k, v, g_gamma=g)[0]
    assert ((still - want).abs() > limit).any(), "the rotation made no difference"


def test_a_rotation_names_a_wrong_argument():
    q = torch.ones(1, 3, 1, 4)
    with pytest.raises(ValueError, match="theta has 3 angles for k=4 features; it needs one for every two"):
        retention.rotate(q, q, torch.ones(3))
    with pytest.raises(TypeError, match=r"offset has dtype torch\.float32; allowed are int64, int32"):
        retention.rotate(q, q, torch.ones(2), torch.ones(1))
    with pytest.raises(TypeError, match="offset must be an int, not float"):
        retention.rotate(q, q, torch.ones(2), 1.5)
