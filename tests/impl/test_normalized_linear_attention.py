"""Normalised linear attention: every form against a mean of the values, feature maps, and denominators that are 0."""

from functools import partial

import pytest
import torch

from isoform.impl import linear_attention
from isoform.impl.normalized_linear_attention import chunkwise, elu_plus_one, parallel, recurrent, step

FORMS = [recurrent, parallel, *(partial(chunkwise, chunk_size=c) for c in (1, 3, 16, 64))]
EPS = torch.finfo(torch.float64).eps


def name(form):
    return f"chunkwise-{form.keywords['chunk_size']}" if isinstance(form, partial) else form.__name__


every_form = pytest.mark.parametrize("form", FORMS, ids=name)


def tokens(t=21, b=2, h=2, hv=6, dk=4, dv=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(t)
    shapes = {"q": (b, t, h, dk), "k": (b, t, h, dk), "v": (b, t, hv, dv)}
    return {n: torch.randn(shape, generator=generator, dtype=dtype) for n, shape in shapes.items()}


def start(b=2, hv=6, dk=4, dv=3):
    """A state whose normaliser is positive."""
    state = torch.randn(b, hv, dk, dv + 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return torch.cat([state[..., :-1], state[..., -1:].abs()], -1)


def mean(q, k, v, state=None, feature_map=elu_plus_one):
    """Equation 9 of Katharopoulos et al., row by row, an initial state being one more key and value for each feature."""
    q, k = (feature_map(x).repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (q, k))
    weights = torch.einsum("bthk,bshk->bhts", q, k).tril()
    above, below = torch.einsum("bhts,bshv->bthv", weights, v), weights.sum(-1).transpose(1, 2)
    size = torch.einsum("bhts,bshv->bthv", weights, v.abs())
    if state is not None:
        above, size = (x + torch.einsum("bthk,bhkv->bthv", q, s[..., :-1]) for x, s in ((above, state), (size, state.abs())))
        below = below + torch.einsum("bthk,bhk->bth", q, state[..., -1])
    return above / below[..., None], size / below[..., None]


def near(found, inputs, truth, size):
    """Within the roundings of both sides: of T + K + 4 sums and products above and below, and the quotient."""
    _, t, _, dk = inputs["q"].shape
    return bool(((found - truth).abs() <= 4 * (t + dk + 5) * EPS * size).all())


@every_form
@pytest.mark.parametrize("t", [1, 2, 15, 16, 17, 33])
def test_every_form_is_a_mean_of_the_values(form, t):
    inputs, state = tokens(t), start()
    assert near(form(**inputs)[0], inputs, *mean(**inputs))
    assert near(form(**inputs, initial_state=state)[0], inputs, *mean(**inputs, state=state))
    assert form(**inputs)[1] is None


@every_form
def test_a_row_of_equal_values_is_that_value(form):
    inputs = tokens()
    inputs["v"] = torch.full_like(inputs["v"], 0.7)
    assert near(form(**inputs)[0], inputs, torch.full_like(inputs["v"], 0.7), torch.full_like(inputs["v"], 0.7))


@every_form
def test_the_state_is_that_of_linear_attention_with_a_1_appended(form):
    inputs, state = tokens(), start()
    k = elu_plus_one(inputs["k"])
    extended = torch.cat([inputs["v"], torch.ones_like(inputs["v"][..., :1])], -1)
    _, want = linear_attention.recurrent(k, k, extended, initial_state=state, output_final_state=True)
    _, found = form(**inputs, initial_state=state, output_final_state=True)
    size = linear_attention.recurrent(k, k, extended.abs(), initial_state=state.abs(), output_final_state=True)[1]
    assert ((found - want).abs() <= 2 * 23 * EPS * size).all()
    _, none = form(**{n: x[:, :0] for n, x in inputs.items()}, initial_state=state, output_final_state=True)
    assert torch.equal(none, state) and none.data_ptr() != state.data_ptr()


@every_form
def test_packed_sequences_are_each_alone(form):
    inputs, offsets = tokens(b=1), [1, 1, 4, 5, 18]
    states = torch.cat([start(b=1) * 0.5**n for n in range(4)])
    cu = torch.tensor(offsets, dtype=torch.int32)
    o, last = form(**inputs, initial_state=states, output_final_state=True, cu_seqlens=cu)
    assert torch.equal(last[0], states[0])
    for n, (a, b) in enumerate(zip(offsets, offsets[1:], strict=False)):
        part = {m: x[:, a:b] for m, x in inputs.items()}
        assert near(o[:, a:b], inputs, *mean(**part, state=states[n : n + 1]))
    assert not o[:, :1].any() and not o[:, 18:].any()


def test_steps_are_the_recurrence_and_leave_the_old_state():
    inputs, state = tokens(), start()
    want, first = recurrent(**inputs, initial_state=state, output_final_state=True), state.clone()
    held, rows = state, []
    for t in range(21):
        o, state = step(**{n: x[:, t] for n, x in inputs.items()}, state=state)
        rows.append(o)
    assert torch.equal(torch.stack(rows, 1), want[0]) and torch.equal(state, want[1]) and torch.equal(held, first)


@every_form
def test_any_feature_map(form):
    def squares(x):
        """Four features become ten."""
        i, j = torch.triu_indices(4, 4)
        return (x[..., i] * x[..., j]).square()

    inputs = tokens()
    assert near(form(**inputs, feature_map=squares)[0], inputs, *mean(**inputs, feature_map=squares))
    assert form(**inputs, feature_map=squares, output_final_state=True)[1].shape == (2, 6, 10, 4)
    mapped = {**inputs, "q": squares(inputs["q"]), "k": squares(inputs["k"])}
    assert torch.equal(form(**mapped, feature_map=None)[0], form(**inputs, feature_map=squares)[0])


def test_elu_plus_one_keeps_its_accuracy_where_it_is_small():
    x = torch.tensor([-80.0, -17.5, -1.0, -0.0, 0.0, 1e-9, 2.0], dtype=torch.float32, requires_grad=True)
    y = elu_plus_one(x)
    exact = torch.where(x > 0, 1 + x.double(), x.double().exp())
    assert ((y - exact).abs() <= 2 * torch.finfo(torch.float32).eps * exact).all()
    y.sum().backward()
    assert ((x.grad - torch.where(x > 0, 1.0, exact)).abs() <= 2 * torch.finfo(torch.float32).eps).all()


@every_form
def test_a_denominator_of_0_makes_a_row_of_0_and_no_gradient(form):
    """Two ways: no key so far has a feature, and two signed features cancel."""
    inputs = {n: x.requires_grad_() for n, x in tokens(t=6, h=1, hv=1, dk=2).items()}
    q, k = torch.ones(2, 6, 1, 2).double(), torch.ones(2, 6, 1, 2).double()
    k[0, :3] = 0
    k[1, :, 0, 1] = -1
    inputs["q"], inputs["k"] = q.requires_grad_(), k.requires_grad_()
    o, _ = form(**inputs, feature_map=None)
    assert not o[0, :3].any() and o[0, 3:].all() and not o[1].any()
    grads = torch.autograd.grad(o.sum(), tuple(inputs.values()))
    assert all(g.isfinite().all() and not g[1].any() for g in grads)
    assert grads[2][0, 3:].any()


@every_form
def test_a_bad_value_stays_in_its_column_and_after_its_token(form):
    inputs = tokens()
    clean, _ = form(**inputs)
    for hurt, columns in (("v", [1]), ("k", [0, 1, 2])):
        bad = {n: x.clone() for n, x in inputs.items()}
        bad[hurt][:, 9, :, 1] = torch.nan
        o, _ = form(**bad)
        assert torch.equal(o[:, :9], clean[:, :9])
        assert not o[:, 9:, :, columns].isfinite().any()
        assert torch.equal(o.isfinite(), recurrent(**bad)[0].isfinite())


@every_form
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_inputs_are_divided_in_float32(form, dtype):
    """300 features of 2 add up to 600; a 16-bit sum would stay at 512, and the mean of 1, …, 1 would not be 1."""
    one = torch.ones(1, 300, 1, 1, dtype=dtype)
    o, state = form(one, one, one, output_final_state=True)
    assert o.dtype == dtype and state.dtype == torch.float32 and torch.equal(o, one)
    assert state[..., -1] == 600


@pytest.mark.parametrize("form", [recurrent, parallel, partial(chunkwise, chunk_size=2)], ids=name)
def test_gradients(form):
    inputs = {n: x.requires_grad_() for n, x in tokens(t=5, b=1, h=1, hv=2, dk=2, dv=2).items()}
    state = start(b=1, hv=2, dk=2, dv=2).requires_grad_()

    def call(state, *xs):
        return form(**dict(zip(inputs, xs, strict=True)), initial_state=state, output_final_state=True)

    assert torch.autograd.gradcheck(call, (state, *inputs.values()))


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"v": torch.ones(2, 5, 6)}, ValueError, r"v has shape \(2, 5, 6\); it needs the axes \(b, t, hv, v\)"),
        ({"q": [1.0]}, TypeError, "q must be a torch.Tensor, not list"),
        ({"feature_map": 3}, TypeError, "feature_map must be a function or None, not int"),
        ({"initial_state": torch.ones(2, 6, 4, 3)}, ValueError, r"initial_state has shape \(2, 6, 4, 3\)"),
        ({"q": torch.ones(2, 5, 4, 4), "k": torch.ones(2, 5, 4, 4)}, ValueError, "hv must be a multiple of h"),
    ],
)
@every_form
def test_a_wrong_argument_is_named(form, changes, error, sentence):
    ones = {"q": torch.ones(2, 5, 2, 4), "k": torch.ones(2, 5, 2, 4), "v": torch.ones(2, 5, 6, 3)}
    with pytest.raises(error, match=sentence):
        form(**ones | changes)


def test_a_chunk_size_is_a_positive_integer():
    with pytest.raises(ValueError, match="chunk_size must be at least 1, not 0"):
        chunkwise(**tokens(), chunk_size=0)
