"""The selective scan, the convolution and the blocks, bit for bit on integers, and what scans do beside that."""

import math
from functools import partial

import mpmath
import pytest
import torch

from isoform.impl import mamba
from isoform.impl.mamba import convolution
from isoform.impl.mamba.selective import softplus
from isoform.impl.mamba.spans import phi1_slope

B, D, N, GONE = 2, 6, 3, -1e6
LENGTHS = (0, 1, 2, 3, 7, 13)
DISCRETIZATIONS = ("euler", "zoh")
CHUNKS = (None, 1, 2, 3, 16)
SCANS = {"recurrent": mamba.recurrent} | {f"scan-{c}": partial(mamba.scan, chunk_size=c) for c in CHUNKS}
WEIGHTS = {"shared": (1,), "two-groups": (2,), "mixed-groups": (2, 3), "constant": (0,), "one-constant": (0, 1)}
every_scan = pytest.mark.parametrize("form", SCANS.values(), ids=SCANS)
both = pytest.mark.parametrize("discretization", DISCRETIZATIONS)


def weights(groups, t, draw):
    """B or C of so many groups; of 0 groups without time."""
    return draw(D, N) if groups == 0 else draw(B, N, t) if groups == 1 else draw(B, groups, N, t)


def call(t, draw, kinds=(1,), hold=False):
    """Arguments whose every intermediate is a small integer: decays are 1 and, where nothing is divided by their logs, 0."""
    poles = draw(D, N) * 0 if hold else torch.where(draw(D, N) > 0, GONE, 0.0)
    given = {"u": draw(B, D, t), "delta": draw(B, D, t, low=1), "A": poles, "D": draw(D), "z": torch.zeros(B, D, t).double()}
    return given | {"B": weights(kinds[0], t, draw), "C": weights(kinds[-1], t, draw), "initial_state": draw(B, D, N)}


def channelwise(x, t):
    """B or C of every channel (b d n t)."""
    if x.ndim == 2:
        return x[None, :, :, None].expand(B, -1, -1, t)
    x = x[:, None] if x.ndim == 3 else x
    return x.repeat_interleave(D // x.shape[1], 1)


def by_hand(u, delta, A, B, C, D, initial_state, z=None):
    h, rows, t = initial_state, [], u.shape[-1]
    writes, reads = channelwise(B, t), channelwise(C, t)
    for i in range(t):
        h = (delta[..., i, None] * A).exp() * h + (delta[..., i] * u[..., i])[..., None] * writes[..., i]
        rows.append((reads[..., i] * h).sum(-1) + D * u[..., i])
    return torch.stack(rows, -1) if rows else u, h


@every_scan
@both
@pytest.mark.parametrize("kinds", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("t", LENGTHS)
def test_every_form_is_the_recurrence(form, discretization, kinds, t, whole):
    given = call(t, whole, kinds, discretization == "zoh")
    del given["z"]
    y, h = by_hand(**given)
    found, last = form(**given, return_last_state=True, discretization=discretization)
    assert torch.equal(found, y) and torch.equal(last, h)
    assert torch.equal(form(**given, discretization=discretization), y)


@every_scan
def test_a_held_input_is_integrated_and_eulers_is_not(form):
    """Over Δ = ln 2 with A = -1, ∫ e^{-s} ds = 1/2; the released code writes Δ."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    given = {"u": one, "delta": one * math.log(2), "A": -one[0], "B": one, "C": one}
    assert abs(form(**given, discretization="zoh").item() - 0.5) <= 4 * torch.finfo(torch.float64).eps
    assert form(**given, discretization="euler").item() == math.log(2)


@both
def test_steps_are_the_recurrence_and_leave_the_old_state(discretization, whole):
    given = call(7, whole, (2,), discretization == "zoh")
    del given["z"]
    y, last = by_hand(**given)
    h, rows = given.pop("initial_state"), []
    first = h.clone()
    for i in range(7):
        token = {n: x[..., i] if n in ("u", "delta", "B", "C") else x for n, x in given.items()}
        row, new = mamba.step(**token, state=h, discretization=discretization)
        assert i or torch.equal(h, first)
        h = new
        rows.append(row)
    assert torch.equal(torch.stack(rows, -1), y) and torch.equal(h, last)


@every_scan
def test_the_gate_multiplies_what_passes_by_too(form, whole):
    """silu(z) is z from 64 on, and 0 at 0."""
    given = call(7, whole)
    y, _ = by_hand(**given)
    gate = torch.where(whole(B, D, 7) > 0, 64.0, 0.0)
    assert torch.equal(form(**given | {"z": gate}), y * gate)


@every_scan
def test_a_bias_comes_before_the_softplus(form, whole):
    """log(1 + e^x) is x from 64 on, and 0 at -∞."""
    given = call(7, whole)
    bias = 64 + whole(D)
    shut = whole(B, D, 7) > 1
    steps = torch.where(shut, -torch.inf, given["delta"])
    y, _ = by_hand(**given | {"delta": torch.where(shut, 0.0, given["delta"] + bias[:, None])})
    assert torch.equal(form(**given | {"delta": steps, "z": None}, delta_bias=bias, delta_softplus=True), y)


@both
def test_gradients_and_those_of_gradients(discretization, smooth):
    inputs = [smooth(1, 2, 5), smooth(1, 2, 5), smooth(2, 2), smooth(1, 2, 2, 5), smooth(2, 2), smooth(2), smooth(1, 2, 5), smooth(2)]
    state = smooth(1, 2, 2)

    def form(*inputs):
        *inputs, state = inputs
        return mamba.scan(*inputs, True, state, True, discretization, 2)

    assert torch.autograd.gradcheck(form, (*inputs, state))
    assert torch.autograd.gradgradcheck(form, (*inputs, state), fast_mode=True)


@both
def test_many_gradients_of_one_output_at_once(discretization, whole):
    """As for all rows of a Jacobian; decays of 1 have gradients that are integers and halves."""
    given = [whole(1, 2, 5), whole(1, 2, 5), 0 * whole(2, 2), whole(1, 2, 5), whole(1, 2, 5), whole(2)]
    inputs = [x.requires_grad_() for x in given]
    y = mamba.scan(*inputs, discretization=discretization, chunk_size=2)
    directions = whole(3, *y.shape)
    found = torch.autograd.grad(y, inputs, directions, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(y, inputs, direction, retain_graph=True) for direction in directions]
    assert all(torch.equal(x, torch.stack(rows)) for x, rows in zip(found, zip(*each, strict=True), strict=True))
    assert all(x.any() for x in found)


def test_a_gradient_keeps_the_states_that_enter_the_spans(smooth):
    t, size, kept = 12, 4, []
    inputs = [smooth(B, D, t), smooth(B, D, t), smooth(D, N), smooth(B, N, t), smooth(B, N, t)]
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        mamba.scan(*inputs, chunk_size=size)
    assert max(x.numel() for x in kept) <= B * D * t
    assert sum(tuple(x.shape) == (B, 1, N, D) for x in kept) == 1 + t // size


@both
def test_transforms_and_one_graph(discretization, whole):
    given = call(7, whole, hold=discretization == "zoh")
    given = {n: x for n, x in given.items() if n != "z"}
    form = partial(mamba.scan, discretization=discretization)
    mapped = torch.func.vmap(lambda u: form(**given | {"u": u}))(torch.stack([given["u"], 2 * given["u"]]))
    assert torch.equal(mapped, torch.stack([form(**given), form(**given | {"u": 2 * given["u"]})]))
    torch.compiler.reset()
    assert torch.equal(torch.compile(form, fullgraph=True, backend="aot_eager")(**given), form(**given))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_slope_of_the_quotient(dtype):
    """(e^z - φ₁)/z of two values within 3 units, or a series of at most 20 products and sums."""
    z = torch.cat([torch.tensor([0.0, -1e-30, -1e-8, -0.5, 0.5]), -torch.logspace(-6, 4, 200), torch.logspace(-3, 1, 50)]).to(dtype)
    unit = torch.finfo(dtype).eps
    with mpmath.workdps(150):
        for point, found in zip(z.tolist(), phi1_slope(z).tolist(), strict=True):
            x = mpmath.mpf(point)
            mean = (mpmath.exp(x) - 1) / x if x else mpmath.mpf(1)
            slope = (mpmath.exp(x) - mean) / x if x else mpmath.mpf(1) / 2
            bound = 3 * unit * (mpmath.exp(x) + mean) / abs(x) + 2 * unit * slope if abs(x) > 0.5 else 40 * unit * slope
            assert abs(found - slope) <= bound, point


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softplus_to_the_last_digits(dtype):
    """An exponential, log1p and a sum, each within 2 units; subnormal numbers below."""
    x = torch.cat([torch.linspace(-100, 100, 401), torch.tensor([-1e4, 1e4, -17.0, 20.0, 20.5, -0.0])]).to(dtype)
    info = torch.finfo(dtype)
    with mpmath.workdps(60):
        for point, found in zip(x.tolist(), softplus(x).tolist(), strict=True):
            right = mpmath.log1p(mpmath.exp(mpmath.mpf(point)))
            assert abs(found - right) <= 6 * info.eps * right + info.tiny, point
    assert softplus(torch.tensor(-torch.inf)) == 0


def test_sixteen_bits_are_summed_in_float32(whole):
    given = {n: x.bfloat16() for n, x in call(13, whole).items() if n != "z"}
    y, h = mamba.scan(**given, return_last_state=True)
    wide, state = mamba.scan(**{n: x.float() for n, x in given.items()}, return_last_state=True)
    assert y.dtype == torch.bfloat16 and h.dtype == torch.float32
    assert torch.equal(y, wide.bfloat16()) and torch.equal(h, state)


@every_scan
@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"A": torch.ones(4, 2)}, ValueError, r"B has shape \(2, 3, 5\)"),
        ({"B": torch.ones(2, 3, 3, 5)}, ValueError, "d=4 heads cannot share gB=3"),
        ({"C": torch.ones(5)}, ValueError, r"C has shape \(5,\); it needs the axes \(b, n, l\)"),
        ({"D": torch.ones(3)}, ValueError, r"D has shape \(3,\)"),
        ({"u": torch.ones(2, 4, 5).long()}, TypeError, "u has dtype torch.int64"),
        ({"initial_state": torch.ones(1, 4, 3)}, ValueError, r"initial_state has shape \(1, 4, 3\); the other arguments need \(b=2"),
        ({"discretization": "bilinear"}, ValueError, "discretization must be one of euler, zoh, not 'bilinear'"),
    ],
)
def test_a_wrong_argument_is_named(form, changes, error, sentence):
    shapes = {"u": (2, 4, 5), "delta": (2, 4, 5), "A": (4, 3), "B": (2, 3, 5), "C": (2, 3, 5)}
    with pytest.raises(error, match=sentence):
        form(**{n: torch.ones(s) for n, s in shapes.items()} | changes)


def test_a_wrong_chunk_size_and_a_wrong_state_of_a_step():
    given = {
        "u": torch.ones(1, 2, 3),
        "delta": torch.ones(1, 2, 3),
        "A": torch.ones(2, 2),
        "B": torch.ones(1, 2, 3),
        "C": torch.ones(1, 2, 3),
    }
    with pytest.raises(ValueError, match="chunk_size must be at least 1, not 0"):
        mamba.scan(**given, chunk_size=0)
    token = {n: x if n == "A" else x[..., 0] for n, x in given.items()}
    with pytest.raises(ValueError, match=r"state has shape \(2, 2\)"):
        mamba.step(**token, state=torch.ones(2, 2))


FILTERS = (convolution.recurrent, convolution.convolution)


@pytest.mark.parametrize("form", FILTERS)
@pytest.mark.parametrize("w", [1, 2, 4])
@pytest.mark.parametrize("t", [0, 1, 2, 3, 9])
def test_the_convolution_is_exact_on_integers(form, w, t, whole):
    x, weight, bias, start = whole(B, D, t), whole(D, w), 64 + whole(D), whole(B, D, w - 1)
    inputs = torch.cat([start, x], -1)
    rows = [(inputs[..., i : i + w] * weight).sum(-1) + bias for i in range(t)]
    y = torch.stack(rows, -1) if rows else x
    for activation in (None, "silu", "swish"):
        found, tail = form(x, weight, bias, start, True, activation)
        assert torch.equal(found, y) and torch.equal(tail, inputs[..., t:]), "silu(x) is x from 40 on"
    assert torch.equal(form(x, weight), form(x, weight, bias) - bias[:, None])
    tail = start
    for i in range(t):
        row, tail = convolution.step(x[..., i], weight, bias, tail, "silu")
        assert torch.equal(row, y[..., i]) and torch.equal(tail, inputs[..., i + 1 : i + w])


@pytest.mark.parametrize("form", FILTERS)
@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"weight": torch.ones(3, 4)}, ValueError, r"weight has shape \(3, 4\)"),
        ({"weight": torch.ones(2, 0)}, ValueError, "the number of taps must be at least 1, not 0"),
        ({"initial_states": torch.ones(1, 2, 4)}, ValueError, r"initial_states has shape \(1, 2, 4\); the other arguments need"),
        ({"activation": "relu"}, ValueError, "activation must be None, 'silu' or 'swish', not 'relu'"),
    ],
)
def test_a_wrong_argument_of_the_convolution_is_named(form, changes, error, sentence):
    with pytest.raises(error, match=sentence):
        form(**{"x": torch.ones(1, 2, 5), "weight": torch.ones(2, 4)} | changes)
