"""Wiring: a plain form disguised as a kernel of any convention, and adapted again, is itself, bit for bit."""

import importlib
import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from isoform.impl import attention, delta_rule, gated_delta_rule, gated_retention, linear_attention
from isoform.impl.mamba import convolution, selective
from isoform.properties.columns import columns, operator, operators
from isoform.properties.operator import Form
from isoform.properties.tensors import same_bits
from isoform.properties.wiring import SIGNATURES, Argument, WiringError, adapt, disguise, settle, wire
from isoform.properties.wiring.calls import arguments

CORNERS = 6
NOT_EXACT = {("mamba", ("x", "dt", "A", "B", "C")), ("mamba", ("state",)), ("mamba", ("conv_state",))}
"""Conventions in which a form does other work: two tokens for one, or one token at a time."""


def forms():
    for column in columns():
        found = importlib.import_module(f"isoform.impl.{column.replace('-', '_')}").FORMS
        for o in operators(column):
            yield from ((o, f) for f in found[o.name])


def conventions(o):
    for name, make in SIGNATURES.items():
        try:
            first = make(o)
        except WiringError:
            continue
        yield from ((name, w) for w in (first, *first.otherwise))


ROUND_TRIPS = [
    pytest.param(o, f, w, id=f"{name}-{o.name}-{f.__name__}-{len(w.marks)}")
    for o, f in forms()
    for name, w in conventions(o)
    if (name, w.marks) not in NOT_EXACT and name not in ("fla", "isoform")
]


def calls(o, function, wiring):
    """The calls of the first corner cases that a function of the wiring takes, options included."""
    shown = inspect.signature(function).parameters
    for case in o.corners()[:CORNERS]:
        x = o.draw(case)
        options = {n: v for n, v in x.options.items() if n in shown or n not in o.optional}
        if wiring.own_scale is not None and wiring.carrying("scale") is None:
            options["scale"] = wiring.own_scale
        x = replace(x, options=options)
        if set(o.tensors(x)) | set(options) <= set(shown):
            yield x


@pytest.mark.parametrize(("o", "form", "wiring"), ROUND_TRIPS)
def test_a_form_sent_through_a_wiring_and_back_is_itself(o, form, wiring):
    there_and_back = adapt(disguise(form, o, wiring), o, wiring)
    found = list(calls(o, there_and_back, wiring))
    assert len(found) >= 4
    for x in found:
        own, other = o.call(form, x), o.call(there_and_back, x)
        for a, b in zip(own, other, strict=True):
            assert (a is None and b is None) or same_bits(a, b)


def test_every_signature_is_tried_on_some_operator():
    assert {p.values[2].signature for p in ROUND_TRIPS} == {"plain", "mamba", "sdpa", "onnx"}
    assert {p.values[0].name for p in ROUND_TRIPS if p.values[2].signature == "plain"} == {o.name for o, _ in forms()}


@pytest.mark.parametrize(
    ("name", "form", "marks"),
    [
        ("gated-retention", gated_retention.recurrent, ("x", "dt", "A", "B", "C")),
        ("selective-scan", selective.recurrent, ("state",)),
        ("causal-conv1d", convolution.recurrent, ("conv_state",)),
    ],
)
def test_two_tokens_for_one_and_one_at_a_time_are_exact_where_arithmetic_is(name, form, marks):
    o = operator(name)
    first = SIGNATURES["mamba"](o)
    wiring = next(w for w in (first, *first.otherwise) if w.marks == marks)
    there_and_back = adapt(disguise(form, o, wiring), o, wiring)
    case = replace(o.corners()[0], flags=("start", "dyadic"))
    x = replace(o.draw(case), options={"scale": 1.0} if name == "gated-retention" else {})
    for a, b in zip(o.call(form, x), o.call(there_and_back, x), strict=True):
        assert torch.equal(a, b)


def test_the_signature_shows_what_the_kernel_can_take():
    o = operator("gated-delta-rule")
    for form in (gated_delta_rule.recurrent, gated_delta_rule.chunkwise):
        shown = inspect.signature(adapt(form, o, SIGNATURES["plain"](o))).parameters
        assert set(shown) == set(inspect.signature(form).parameters) & set(arguments(o))

    def bare(q, k, v, g, beta):
        return gated_delta_rule.recurrent(q, k, v, g, beta)[0]

    adapted = adapt(bare, o, wire(bare, o))
    assert set(inspect.signature(adapted).parameters) == {"q", "k", "v", "g", "beta"}
    assert not Form("bare", adapted).takes("initial_state")


def test_a_second_result_of_a_kernel_without_a_state_is_no_state():
    o = operator("linear-attention")

    def with_weights(q, k, v):
        return linear_attention.recurrent(q, k, v)[0], q

    adapted = adapt(with_weights, o, wire(with_weights, o))
    assert "output_final_state" not in inspect.signature(adapted).parameters
    assert o.call(adapted, replace(o.draw(o.corners()[2]), options={}))[1] is None


def test_a_state_that_comes_back_unasked_is_one():
    o = operator("linear-attention")

    def always(q, k, v, scale=None, initial_state=None):
        return linear_attention.recurrent(q, k, v, scale, initial_state, True)

    def never(q, k, v, scale=None, initial_state=None):
        return always(q, k, v, scale, initial_state)[0]

    assert "output_final_state" in inspect.signature(adapt(always, o, wire(always, o))).parameters
    assert "output_final_state" not in inspect.signature(adapt(never, o, wire(never, o))).parameters


def test_the_default_of_a_kernels_scale_is_its_own():
    """K^-1/2 where the call has none, although the kernel would take 1."""
    o = operator("linear-attention")

    def unscaled(q, k, v, scale=1.0):
        return linear_attention.recurrent(q, k, v, scale)[0]

    case = o.corners()[0]
    x = replace(o.draw(replace(case, flags=())), options={})
    wanted, _ = o.run(linear_attention.recurrent, x)
    assert np.array_equal(o.run(adapt(unscaled, o, wire(unscaled, o)), x)[0], wanted)
    assert not np.array_equal(o.run(unscaled, x)[0], wanted)


class Test_a_kernel_of_any_arguments:
    o = operator("gated-delta-rule")

    def shown(self, function):
        return set(inspect.signature(adapt(function, self.o, wire(function, self.o))).parameters)

    def test_that_passes_them_on_takes_what_is_behind(self):
        def forward(*positional, **named):
            return gated_delta_rule.recurrent(*positional, **named)

        assert self.shown(forward) == set(inspect.signature(gated_delta_rule.recurrent).parameters)

    def test_that_refuses_them_takes_none(self):
        def strict(q, k, v, g, beta, **named):
            if named:
                raise TypeError(f"no {named}")
            return gated_delta_rule.recurrent(q, k, v, g, beta)

        assert self.shown(strict) == {"q", "k", "v", "g", "beta"}

    def test_that_swallows_them_takes_a_state_and_nothing_else(self):
        """It ignores a state that it was given without a word: that is wrong, and must be seen."""

        def deaf(q, k, v, g, beta, **named):
            return gated_delta_rule.recurrent(q, k, v, g, beta)

        assert self.shown(deaf) == {"q", "k", "v", "g", "beta", "initial_state"}


def test_arguments_by_position_are_given_in_the_kernels_order():
    o = operator("gated-delta-rule")

    def kernel(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False, /):
        return gated_delta_rule.recurrent(q, k, v, g, beta, scale, initial_state, output_final_state)

    x = o.draw(o.corners()[0])
    for a, b in zip(o.call(kernel_named(kernel), x), o.call(adapt(kernel, o, wire(kernel, o)), x), strict=True):
        assert torch.equal(a, b)


def kernel_named(kernel):
    def named(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False):
        return kernel(q, k, v, g, beta, scale, initial_state, output_final_state)

    return named


def passed_on(*positional, **named):
    return torch.nn.functional.scaled_dot_product_attention(*positional, **named)


def test_a_builtin_has_no_signature_that_python_can_read():
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(torch.nn.functional.scaled_dot_product_attention)


@pytest.mark.parametrize("sdpa", [torch.nn.functional.scaled_dot_product_attention, passed_on], ids=["builtin", "passed-on"])
def test_a_builtin_is_called_by_what_its_signature_declares(sdpa):
    o = operator("full-attention")
    adapted = adapt(sdpa, o, wire(sdpa, o, "sdpa"))
    assert set(inspect.signature(adapted).parameters) == {"q", "k", "v", "mask", "scale"}
    x = o.draw(o.corners()[0])
    found, truth = o.run(adapted, x)[0], o.refer(x)
    assert np.all(np.abs(found - truth.output) <= truth.bound)


def test_frontiers_that_is_causal_has_not_are_given_as_a_mask():
    o = operator("attention")
    seen = []

    def kernel(query, key, value, attn_mask=None, is_causal=False, scale=None):
        seen.append((attn_mask is not None, is_causal))
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale)

    adapted = adapt(kernel, o, wire(kernel, o, "sdpa"))
    base = replace(o.corners()[0], flags=())
    for flags, by_mask in (((), False), (("longer",), True), (("window",), True), (("padding-right",), True)):
        x = o.draw(replace(base, flags=flags))
        found, truth = o.run(adapted, x)[0], o.refer(x)
        rows = np.isfinite(found)
        assert np.all(np.abs(found - truth.output)[rows] <= truth.bound[rows]), flags
        assert seen.pop() == (by_mask, not by_mask)


def test_a_scale_of_zero_is_no_scale_for_onnx():
    o = operator("delta-rule")
    given = []

    def kernel(query, key, value, past_state=None, beta=None, scale=0.0, q_num_heads=0, kv_num_heads=0, update_rule=""):
        given.append((scale, q_num_heads, kv_num_heads, update_rule))
        q, k, v = (x.unflatten(2, (q_num_heads, -1)) for x in (query, key, value))
        out, state = delta_rule.recurrent(q, k, v, beta, scale or None, past_state, True)
        return out.flatten(2), state

    adapted = adapt(kernel, o, wire(kernel, o, "onnx"))
    case = replace(o.corners()[0], flags=("start",)).resized(groups=1)
    for scale, seen in ((None, 0.0), (0.0, 1.0), (0.75, 0.75)):
        x = replace(o.draw(case), options={} if scale is None else {"scale": scale})
        for a, b in zip(o.call(adapted, x), o.call(delta_rule.recurrent, x), strict=True):
            assert torch.equal(a, b)
        assert given.pop() == (seen, 2, 2, "delta")


def test_a_step_writes_its_state_in_place_and_the_callers_is_kept():
    o = operator("selective-scan")

    def update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        out, new = selective.step(x, dt, A, B, C, D, z, dt_bias, dt_softplus, state.clone())
        state.copy_(new)
        return out

    adapted = adapt(update, o, wire(update, o, "mamba"))
    x = o.draw(replace(o.corners()[0], flags=("start",)))
    tensors = o.tensors(x)
    before = tensors["initial_state"].clone()
    out, state = adapted(**tensors, return_last_state=True)
    assert torch.equal(tensors["initial_state"], before) and not torch.equal(state, before)
    truth = o.refer(x)
    assert np.all(np.abs(out.numpy().swapaxes(1, 2) - truth.output) <= truth.bound)
    assert np.all(np.abs(state.numpy() - truth.states[:, -1]) <= truth.states_bound[:, -1])


def test_a_kernel_that_lacks_an_argument_or_needs_another_does_not_fit():
    o = operator("delta-rule")

    def renamed(query, key, value, beta):
        return query

    def more(q, k, v, beta, mode):
        return q

    with pytest.raises(WiringError, match=r"renamed has no argument q, k, v, .*its arguments: query, key, value, beta"):
        wire(renamed, o)
    with pytest.raises(WiringError, match="more needs mode"):
        wire(more, o)
    with pytest.raises(WiringError, match="no signature 'flash'; it is one of plain, fla"):
        wire(more, o, "flash")
    for signature in ("sdpa", "mamba"):
        with pytest.raises(WiringError, match=f"the signature {signature} is for .*, not for delta-rule"):
            wire(more, o, signature)
    with pytest.raises(WiringError, match=r"the signature onnx is for .*, not for attention"):
        wire(attention.masked, operator("attention"), "onnx")


@pytest.mark.parametrize("name", ["gated-retention", "attention", "delta-rule"])
def test_a_wiring_can_be_sent_to_another_process(name):
    o = operator(name)
    for _, w in conventions(o):
        assert repr(pickle.loads(pickle.dumps(w))) == repr(w)  # a partial is equal to itself alone


def test_a_settled_wiring_stays_as_it_is():
    o = operator("linear-attention")
    settled = wire(linear_attention.chunkwise, o)
    assert settle(linear_attention.chunkwise, o, settled)[1] == settled
    assert Argument("chunk_size", "chunk_size") in settled.arguments
    assert "chunk_size" not in inspect.signature(adapt(linear_attention.chunkwise, o, settled.without("chunk_size"))).parameters
