"""RWKV: WKV for keys and decays of any strength beside exact shifts, gradients of gradients, transforms; token shift and channel mix."""

import pytest
import torch

from isoform.impl import delta_rule
from isoform.impl.rwkv import FORMS, STEPS, channel_mix, token_shift, wkv, wkv6, wkv7
from isoform.properties.columns import operator
from isoform.properties.operator import Instance

DECAYS = (0.0, -1e-8, -0.1, -1.0, -3.0, -30.0, -300.0, -torch.inf)
MEANS = FORMS["wkv"]
ARGUMENTS = {"wkv": ("k", "v", "w", "u"), "wkv6": ("q", "k", "v", "w", "u"), "wkv7": ("q", "k", "v", "w", "a", "b")}
SUMS = 4 * 2 * 45 * 2**-23
"""Numerator and denominator: a product and a sum a token, twice in a scan over blocks, each a unit in the last place at most."""
every_mean = pytest.mark.parametrize("form", MEANS, ids=lambda f: f.__name__)


def tokens(t=45, b=2, size=1.0, dtype=torch.float32, seed=0):
    """Keys, values, one decay of each strength, bonuses."""
    generator = torch.Generator().manual_seed(seed)
    c = len(DECAYS)
    k, v = torch.randn(2, b, t, c, generator=generator, dtype=dtype)
    return {"k": k * size, "v": v, "w": torch.tensor(DECAYS, dtype=dtype), "u": torch.randn(c, generator=generator, dtype=dtype)}


@every_mean
@pytest.mark.parametrize("size", [0.1, 1.0, 80.0, 1e3])
def test_keys_of_any_size_are_weighed_within_the_derived_bound(form, size):
    x = tokens(size=size)
    truth = operator("wkv").refer(Instance({n: t.double().numpy() for n, t in x.items()}, None, {}, "float32"))
    assert (abs(form(**x).double().numpy() - truth.output) <= truth.bound).all()


@every_mean
@pytest.mark.parametrize("size", [1.0, 80.0, 1e3, 1e6])
def test_a_mean_lies_between_its_values(form, size):
    x = tokens(size=size)
    slack = SUMS * x["v"].abs().max()
    assert (form(**x) <= x["v"].cummax(1).values + slack).all()
    assert (form(**x) >= x["v"].cummin(1).values - slack).all()


@every_mean
def test_a_constant_value_comes_back(form):
    x = tokens(size=500.0) | {"v": torch.full((2, 45, len(DECAYS)), 3.0)}
    torch.testing.assert_close(form(**x), x["v"], rtol=SUMS, atol=0)


@every_mean
def test_keys_that_weigh_nothing_are_not_there(form):
    x = tokens()
    x["w"] = torch.zeros(len(DECAYS))  # no decay: a hidden token changes nothing
    hidden = torch.randn(2, 45, generator=torch.Generator().manual_seed(1)) > 0.3
    k = torch.where(hidden[..., None], -torch.inf, x["k"])
    out, state = form(**x | {"k": k}, output_final_state=True)
    for n in range(2):
        kept = ~hidden[n]
        alone, last = form(x["k"][n : n + 1, kept], x["v"][n : n + 1, kept], x["w"], x["u"], output_final_state=True)
        torch.testing.assert_close(out[n : n + 1, kept], alone)
        torch.testing.assert_close(state[n : n + 1], last)
    nothing = form(**x | {"k": torch.full_like(k, -torch.inf)})
    assert (nothing == 0).all()


@every_mean
def test_hidden_keys_have_finite_gradients(form):
    x = tokens()
    k = x["k"].clone()
    k[:, :7] = -torch.inf
    leaves = {n: t.requires_grad_() for n, t in (x | {"k": k}).items()}
    form(**leaves).square().sum().backward()
    assert all(t.grad.isfinite().all() for t in leaves.values())


@every_mean
def test_shifted_keys_shift_the_maximum_alone(form):
    """Every exponent is a multiple of 1/8, and none is rounded."""
    x = tokens() | {"w": torch.tensor([0, -0.125, -0.25, -1, -3, -30, -300, -torch.inf])}
    x = x | {n: (x[n] * 8).round() / 8 for n in "ku"}
    whole, state = form(**x, output_final_state=True)
    moved, other = form(**x | {"k": x["k"] + 64.0}, output_final_state=True)
    assert torch.equal(moved, whole)
    assert torch.equal(other[:, :2], state[:, :2]) and torch.equal(other[:, 2], state[:, 2] + 64.0)


@every_mean
def test_gradients_by_finite_differences_and_again(form):
    x = tokens(t=5, b=1, dtype=torch.float64)
    x = {n: t[..., 2:6].clone() for n, t in x.items()}
    start = torch.stack(
        [torch.randn(1, 4, dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64) + 0.5, torch.randn(1, 4, dtype=torch.float64)], 1
    )
    leaves = [t.requires_grad_() for t in (*x.values(), start)]

    def true_sums(*given):
        out, state = form(*given, output_final_state=True)
        return out, state[:, :2] * state[:, 2:].exp()

    assert torch.autograd.gradcheck(true_sums, leaves)
    assert torch.autograd.gradgradcheck(true_sums, leaves, fast_mode=True)


@pytest.mark.parametrize("name", FORMS)
def test_transforms_give_what_one_call_gives(name):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(3, *shape, generator=generator, dtype=torch.float64)

    if name == "wkv":
        many = (draw(2, 9, 4), draw(2, 9, 4), -draw(4).abs(), draw(4))
    else:
        q, k, v, a = (draw(2, 9, 2, 4) for _ in range(4))
        own = (draw(2, 4),) if name == "wkv6" else (a / 4, -a / 8)
        many = (q, k, v, -draw(2, 9, 2, 4).abs(), *own)
    for form in FORMS[name]:

        def loss(*given, form=form):
            result = form(*given)
            return (result if name == "wkv" else result[0]).square().sum()

        each = [torch.func.grad(loss, argnums=tuple(range(len(many))))(*one) for one in zip(*many, strict=True)]
        found = torch.func.vmap(torch.func.grad(loss, argnums=tuple(range(len(many)))))(*many)
        for n, gradient in enumerate(found):
            torch.testing.assert_close(gradient, torch.stack([e[n] for e in each]))
        leaves = [x[0].clone().requires_grad_() for x in many]
        loss(*leaves).backward()
        for leaf, gradient in zip(leaves, each[0], strict=True):
            torch.testing.assert_close(leaf.grad, gradient)


@pytest.mark.parametrize("name", FORMS)
def test_wrong_arguments_are_named(name):
    given = dict.fromkeys(ARGUMENTS[name], 1.0)
    for function in (*FORMS[name], STEPS[name]):
        with pytest.raises(TypeError, match=rf"rwkv\.{name}\.{function.__name__}: {ARGUMENTS[name][0]} must be a torch.Tensor, not float"):
            function(**given)


def test_wrong_shapes_are_named():
    x = tokens()
    with pytest.raises(ValueError, match=r"rwkv.wkv.scan: w has shape \(7,\)"):
        wkv.scan(**x | {"w": x["w"][1:]})
    with pytest.raises(ValueError, match=r"rwkv.wkv.recurrent: initial_state has shape"):
        wkv.recurrent(**x, initial_state=torch.zeros(2, 2, len(DECAYS)))
    q = torch.zeros(1, 3, 2, 4)
    with pytest.raises(ValueError, match=r"rwkv.wkv6.chunkwise: u has shape"):
        wkv6.chunkwise(q, q, q, q, torch.zeros(4))
    with pytest.raises(ValueError, match=r"rwkv.wkv7.chunkwise: a has shape"):
        wkv7.chunkwise(q, q, q, q, q[..., 1:], q)


@pytest.mark.parametrize("chunk_size", [1, 3, 16, 64])
def test_the_delta_rule_is_rwkv_7_without_decay(chunk_size):
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 37, 2, 5, generator=generator, dtype=torch.float64)
    k = torch.nn.functional.normalize(k, dim=-1)
    beta = torch.rand(1, 37, 2, 1, generator=generator, dtype=torch.float64)
    found, state = wkv7.chunkwise(q, k, beta * v, 0 * k, -beta * k, k, output_final_state=True, chunk_size=chunk_size)
    truth, last = delta_rule.recurrent(q, k, v, beta.squeeze(-1), output_final_state=True)
    torch.testing.assert_close(found, truth)
    torch.testing.assert_close(state, last)


# what mixes a token with the one before it ------------------------------------------------------------


def mixed(t=11, b=2, d=5, m=7):
    generator = torch.Generator().manual_seed(t)
    shapes = {"x": (b, t, d), "mix_k": (d,), "mix_r": (d,), "W_k": (m, d), "W_v": (d, m), "W_r": (d, d)}
    return {n: torch.randn(shape, generator=generator, dtype=torch.float64) for n, shape in shapes.items()}


@pytest.mark.parametrize("t", [0, 1, 2, 11])
def test_a_token_shift_is_a_convolution_of_width_2(t):
    x = mixed(t)
    kernel = torch.stack([1 - x["mix_k"], x["mix_k"]], 1).unsqueeze(1)
    padded = torch.nn.functional.pad(x["x"].mT, (1, 0))
    truth = torch.nn.functional.conv1d(padded, kernel, groups=5).mT if t else x["x"]
    torch.testing.assert_close(token_shift(x["x"], x["mix_k"]), truth)


@pytest.mark.parametrize("cut", [0, 1, 4, 11])
def test_both_resume_from_the_last_token(cut):
    x = mixed()
    for form, given in ((token_shift, {"x": x["x"], "mix": x["mix_k"]}), (channel_mix, x)):
        whole, last = form(**given, output_final_state=True)
        first, state = form(**given | {"x": x["x"][:, :cut]}, output_final_state=True)
        second, end = form(**given | {"x": x["x"][:, cut:]}, initial_state=state, output_final_state=True)
        torch.testing.assert_close(torch.cat([first, second], 1), whole)
        assert torch.equal(end, last) and torch.equal(last, x["x"][:, -1])


def test_a_channel_mix_sees_a_token_and_the_one_before():
    x = mixed()
    jacobian = torch.func.jacrev(lambda tokens: channel_mix(**x | {"x": tokens}).sum((0, 2)))(x["x"])
    seen = jacobian.abs().amax((1, 3)) > 0
    band = torch.eye(11, dtype=torch.bool) | torch.eye(11, dtype=torch.bool).roll(1, 0).tril(-1)
    assert torch.equal(seen, band)


def test_a_channel_mix_is_what_the_paper_writes():
    x = mixed(t=1, b=1)
    token = x["x"][0, 0]
    key = (x["W_k"] @ (x["mix_k"] * token)).clamp(min=0) ** 2
    gate = torch.sigmoid(x["W_r"] @ (x["mix_r"] * token))
    torch.testing.assert_close(channel_mix(**x)[0, 0], gate * (x["W_v"] @ key))
