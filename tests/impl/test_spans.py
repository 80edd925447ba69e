"""Long sequences in spans: gradients of a form's own against those that are recorded, and where they give way."""

from functools import partial

import pytest
import torch

from isoform.impl import _memory, delta_rule, gated_delta_rule, gated_retention, linear_attention, retention
from isoform.impl._spans import Spans

T, H, K, V, C = 7, 2, 3, 4, 2
U = torch.finfo(torch.float64).eps / 2
FORMS = {
    "linear-attention": linear_attention.chunkwise,
    "retention": partial(retention.chunkwise, g_gamma=torch.tensor([-0.3, -torch.inf])),
    "gated-retention": gated_retention.chunkwise,
    "delta-rule": delta_rule.chunkwise,
    "delta-rule of normalized keys": partial(delta_rule.chunkwise, use_qk_l2norm_in_kernel=True),
    "gated-delta-rule": gated_delta_rule.chunkwise,
}
GATES = {gated_retention.chunkwise: "g", delta_rule.chunkwise: "b", gated_delta_rule.chunkwise: "gb"}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))


@pytest.fixture(autouse=True)
def short_spans(monkeypatch):
    """Two chunks of two tokens each, the last one ragged."""
    monkeypatch.setattr(_memory, "CACHED", 2 * C * H * V)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)


def kinds(form):
    return GATES.get(getattr(form, "func", form), "")


def arguments(form, smooth):
    inputs = [smooth(1, T, H, K), smooth(1, T, H, K), smooth(1, T, H, V)]
    gates = [{"g": -1, "b": 1}[kind] * smooth(1, T, H).detach().abs() for kind in kinds(form)]
    return [*inputs, *(g.requires_grad_() for g in gates), smooth(1, H, K, V)]


def call(form, *inputs):
    *inputs, state = inputs
    return form(*inputs, initial_state=state, output_final_state=True, chunk_size=C)


def by_loss(form, inputs):
    """Gradients of Σ weight · result with different weights."""
    o, state = call(form, *inputs)
    weights = torch.linspace(-1, 1, o.numel()).view(o.shape).double(), torch.linspace(2, 1, state.numel()).view(state.shape).double()
    return torch.autograd.grad((o * weights[0]).sum() + (state * weights[1]).sum(), inputs)


def recorded(form, inputs, monkeypatch):
    """The same, of the form without a gradient of its own."""
    with monkeypatch.context() as patched:
        patched.setattr(Spans, "__call__", lambda spans, x, state: spans.forward(x, state))
        return by_loss(form, inputs)


@every_form
def test_gradients_over_several_spans_and_those_of_the_gradients(form, smooth):
    inputs = arguments(form, smooth)
    assert torch.autograd.gradcheck(partial(call, form), inputs)
    assert torch.autograd.gradgradcheck(partial(call, form), inputs, fast_mode=True)


@every_form
def test_a_form_has_a_gradient_of_its_own_that_keeps_only_states(form, smooth):
    """Beside the inputs a state for each chunk is kept, for delta rules the errors of what is recalled, and no weights between tokens."""
    inputs, kept = arguments(form, smooth), []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        call(form, *inputs)
    shapes = [tuple(x.shape) for x in kept]
    assert {*shapes} <= {(1, T, H, K), (1, T, H, V), (1, T, H, 1), (1, T, 1, 1), (1, H, K, V), (1, H, 2, K, V), (1, H, 2, C, V)}
    assert shapes.count((1, H, 2, K, V)) == -(-T // (2 * C))
    assert shapes.count((1, H, 2, C, V)) == ("b" in kinds(form)) * -(-T // (2 * C))


@every_form
def test_the_gradient_of_its_own_is_that_of_the_recorded_form(form, smooth, monkeypatch):
    inputs = arguments(form, smooth)
    want = recorded(form, inputs, monkeypatch)
    monkeypatch.setattr(Spans, "_differentiated", lambda *given: pytest.fail("finite inputs need no other gradient"))
    for x, y in zip(by_loss(form, inputs), want, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)


@every_form
@pytest.mark.parametrize(("place", "value"), [(0, torch.nan), (1, torch.inf), (2, -torch.inf), (1, 1e200), (2, 1e200)])
def test_what_is_not_finite_has_the_gradients_of_the_recorded_form(form, place, value, smooth, monkeypatch):
    """A value that is not finite, or finite ones whose product overflows where it is masked."""
    inputs = [x.detach() for x in arguments(form, smooth)]
    inputs[place][:, 5, 0, 1] = value
    inputs[0 if place == 1 else 1][:, 4, 0, 1] = 1e200
    inputs = [x.requires_grad_() for x in inputs]
    want = recorded(form, inputs, monkeypatch)
    for x, y in zip(by_loss(form, inputs), want, strict=True):
        assert torch.equal(x.isfinite(), y.isfinite())
        size = y[y.isfinite()].abs().max() if y.isfinite().any() else 0.0
        assert ((x - y)[y.isfinite()].abs() <= 2 * T * (K + V) * U * size).all()
    corrected = "b" in kinds(form)  # which multiplies keys by keys, and not behind a mask alone
    assert all(x.isfinite().all() for x in want) == (abs(value) == 1e200) or corrected


@every_form
def test_many_gradients_of_one_output_at_once(form, smooth):
    """As for all rows of a Jacobian."""
    inputs = arguments(form, smooth)
    o, _ = call(form, *inputs)
    directions = torch.linspace(-1, 1, 3 * o.numel()).view(3, *o.shape).double()
    found = torch.autograd.grad(o, inputs, directions, is_grads_batched=True, retain_graph=True)
    for n, direction in enumerate(directions):
        for x, y in zip(found, torch.autograd.grad(o, inputs, direction, retain_graph=True), strict=True):
            torch.testing.assert_close(x[n], y, rtol=1e-12, atol=1e-12)


@every_form
def test_one_argument_alone_is_mapped(form, smooth):
    """In the place of each: the others have fewer numbers than what is made of both."""
    inputs = [x.detach() for x in arguments(form, smooth)]
    for n, x in enumerate(inputs):

        def alone(x, n=n):
            return call(form, *inputs[:n], x, *inputs[n + 1 :])

        many = torch.stack([x, 2 * x])
        for found, expected in zip(torch.func.vmap(alone)(many), zip(*(alone(x) for x in many), strict=True), strict=True):
            torch.testing.assert_close(found, torch.stack(expected), rtol=1e-12, atol=1e-12)
