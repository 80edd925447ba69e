"""What a kernel refuses is found, with its reason; what it gets wrong is no limit, nor is a crash."""

import inspect
from dataclasses import replace

import pytest
import torch

from isoform.impl import attention, delta_rule, linear_attention, mamba
from isoform.impl.mamba import convolution
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.limits import Limits, Sizes
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.wiring import adapt, detect, wire

DELTA = operator("delta-rule")


def right(q, k, v, beta, initial_state=None, output_final_state=False, **more):
    return delta_rule.recurrent(q, k, v, beta, initial_state=initial_state, output_final_state=output_final_state, **more)


def limited(refuses, said="not supported", error=ValueError):
    """A right kernel that raises where ``refuses`` says so."""

    def kernel(q, k, v, beta, initial_state=None, output_final_state=False):
        if refuses(q, v, initial_state):
            raise error(said)
        return right(q, k, v, beta, initial_state, output_final_state)

    return kernel


def found(kernel, o=DELTA, **more):
    return detect(kernel, o, wire(kernel, o), **more)


def only(limits):
    (size,) = limits.sizes
    assert not limits.refuses
    return (size.axis, size.multiple, size.least, size.most)


SIZES = [
    (lambda t, k, v: t % 16, ("t", 16, 0, None)),
    (lambda t, k, v: t % 16 or t == 0, ("t", 16, 16, None)),
    (lambda t, k, v: t % 64 or t < 64, ("t", 64, 64, None)),
    (lambda t, k, v: t == 0, ("t", 1, 1, None)),
    (lambda t, k, v: t < 2, ("t", 1, 2, None)),
    (lambda t, k, v: t > 64, ("t", 1, 0, 64)),
    (lambda t, k, v: k % 8, ("k", 8, 8, None)),
    (lambda t, k, v: k & (k - 1) or k < 16, ("k", 1, 16, 16)),
    (lambda t, k, v: k > 64, ("k", 1, 1, 64)),
    (lambda t, k, v: v % 2, ("v", 2, 2, None)),
]


@pytest.mark.parametrize(("refuses", "limit"), SIZES, ids=[str(limit) for _, limit in SIZES])
def test_sizes_that_are_refused_are_found(refuses, limit):
    kernel = limited(lambda q, v, state: refuses(q.shape[1], q.shape[3], v.shape[3]))
    limits = found(kernel).limits
    assert only(limits) == limit
    assert "raises ValueError: not supported" in limits.reasons[0]


STRUCTURES = [
    ("unequal", lambda q, v, s: q.shape[3] != v.shape[3]),
    ("groups", lambda q, v, s: q.shape[2] != v.shape[2]),
    ("float64", lambda q, v, s: q.dtype == torch.float64),
    ("bfloat16", lambda q, v, s: q.dtype == torch.bfloat16),
    ("gradient", lambda q, v, s: q.requires_grad),
]


@pytest.mark.parametrize(("word", "refuses"), STRUCTURES, ids=[w for w, _ in STRUCTURES])
@pytest.mark.parametrize("error", [ValueError, NotImplementedError, AssertionError, TypeError, RuntimeError])
def test_structure_that_is_refused_is_found(word, refuses, error):
    limits = found(limited(refuses, error=error)).limits
    assert set(limits.refuses) == {word} and not limits.sizes
    assert "not supported" in limits.refuses[word]


def test_keys_and_values_of_one_size_are_varied_together():
    limits = found(limited(lambda q, v, s: q.shape[3] != v.shape[3] or q.shape[3] % 16)).limits
    assert set(limits.refuses) == {"unequal"}
    assert {(s.axis, s.multiple, s.least) for s in limits.sizes} == {("k", 16, 16), ("v", 16, 16)}


def test_a_chunk_that_must_divide_the_sequence_is_found():
    def kernel(q, k, v, beta, chunk_size=64):
        assert q.shape[1] % chunk_size == 0
        return delta_rule.chunkwise(q, k, v, beta, chunk_size=chunk_size)[0]

    limits = found(kernel).limits
    assert {(s.axis, s.multiple, s.least, s.most) for s in limits.sizes} == {("t", 16, 0, None), ("chunk", 1, 16, 16)}


def test_a_state_that_is_refused_is_never_given():
    kernel = limited(lambda q, v, state: state is not None, "no state yet")
    detected = found(kernel)
    shown = set(inspect.signature(adapt(kernel, DELTA, detected.wiring)).parameters)
    assert shown == {"q", "k", "v", "beta", "output_final_state"}
    assert detected.notes == ("initial_state is never given: ValueError: no state yet",) and not detected.limits


def test_packing_that_is_refused_is_found():
    def kernel(q, k, v, beta, initial_state=None, output_final_state=False, cu_seqlens=None):
        if cu_seqlens is not None:
            raise NotImplementedError("one sequence at a time")
        return right(q, k, v, beta, initial_state, output_final_state)

    assert set(found(kernel).limits.refuses) == {"packing"}


def test_a_kernel_without_a_gradient_has_none():
    assert found(torch.no_grad()(limited(lambda q, v, s: False))).limits.refuses["gradient"] == "the output has none"

    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            return right(*given)[0]

        @staticmethod
        def backward(ctx, gradient):
            raise NotImplementedError("inference only")

    def kernel(q, k, v, beta):
        return Forward.apply(q, k, v, beta)

    assert found(kernel).limits.refuses["gradient"] == "the backward pass is not implemented: inference only"


def zeroed(q, k, v, beta):
    out, _ = right(q, k, v, beta)
    return out * 0


NO_LIMITS = {
    "a right kernel": limited(lambda q, v, s: False),
    "a wrong answer": zeroed,
    "NaN for an odd length": lambda q, k, v, beta: right(q, k, v, beta)[0] * (torch.nan if q.shape[1] % 2 else 1.0),
    "a wrong shape": lambda q, k, v, beta: right(q, k, v, beta)[0][:, :3],
    "no tensor": lambda q, k, v, beta: None if q.shape[1] % 16 else right(q, k, v, beta)[0],
    "a mistake in the program": limited(lambda q, v, s: q.shape[1] % 4, error=IndexError),
    "a name that is not there": limited(lambda q, v, s: q.shape[3] != v.shape[3], error=UnboundLocalError),
    "one length": limited(lambda q, v, s: q.shape[1] == 17, error=RuntimeError),
    "everything": limited(lambda q, v, s: True),
}


@pytest.mark.parametrize("what", NO_LIMITS)
def test_what_is_wrong_is_no_limit(what):
    kernel = NO_LIMITS[what]
    detected = found(kernel)
    assert not detected.limits and not detected.notes
    assert detected.wiring == wire(kernel, DELTA)


def test_a_state_that_is_ignored_is_no_limit_but_a_violation():
    def deaf(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        return delta_rule.recurrent(q, k, v, beta, scale, None, output_final_state)

    detected = found(deaf)
    assert not detected.limits
    form = Form("deaf", adapt(deaf, DELTA, detected.wiring), limits=detected.limits)
    assert form.takes("initial_state")
    for law in laws():
        if law.name in ("split-and-resume", "form-equals-oracle"):
            assert run_law(law, DELTA, form, examples=0, corners=3, minimise=False).verdict == "violated"


def test_none_of_the_laws_accuses_a_right_kernel_of_what_it_refuses():
    kernel = limited(lambda q, v, s: q.shape[1] % 16 or q.shape[3] != v.shape[3] or q.shape[2] != v.shape[2] or s is not None)
    detected = found(kernel)
    form = Form("limited", adapt(kernel, DELTA, detected.wiring), limits=detected.limits)
    for law in laws():
        result = run_law(law, DELTA, form, examples=0, corners=1, minimise=False)
        assert result.verdict in ("holds", "not-applicable"), (law.name, result.detail)


def test_declared_limits_are_kept_and_looked_behind():
    kernel = limited(lambda q, v, s: q.shape[1] % 32 or q.dtype == torch.float64)
    declared = Limits((Sizes("t", multiple=32, reason="declared"),))
    limits = found(kernel, declared=declared).limits
    assert [(s.axis, s.multiple) for s in limits.sizes] == [("t", 32)] and set(limits.refuses) == {"float64"}
    assert "declared" in limits.reasons[0]


def test_groups_of_weights_and_taps_are_found():
    o = operator("causal-conv1d")

    def kernel(x, weight, bias=None, activation=None):
        if not 2 <= weight.shape[1] <= 4 or x.shape[1] % 8:
            raise RuntimeError("width 2 to 4, channels by 8")
        return convolution.convolution(x, weight, bias, activation=activation)

    limits = found(kernel, o).limits
    assert {(s.axis, s.multiple, s.least, s.most) for s in limits.sizes} == {("d", 8, 8, None), ("w", 1, 2, 4)}


def test_weights_without_an_axis_of_time_are_found_refused():
    def kernel(u, delta, A, B, C, D=None):
        if B.ndim == 2 or C.ndim == 2:
            raise ValueError("B and C have time")
        return mamba.scan(u, delta, A, B, C, D)

    limits = found(kernel, operator("selective-scan")).limits
    assert set(limits.refuses) == {"constant"} and not limits.sizes


def test_attention_of_as_many_keys_as_queries_is_held_to_that():
    def kernel(q, k, v, scale=None):
        if k.shape[1] != q.shape[1]:
            raise RuntimeError("the sizes must match")
        return attention.masked(q, k, v, scale)

    o = operator("attention")
    seen = found(kernel, o)
    assert set(seen.limits.refuses) == {"lengths"} and not seen.limits.sizes and not seen.notes
    form = Form("kernel", adapt(kernel, o, seen.wiring), limits=seen.limits)
    for law in laws():
        if law.name in ("form-equals-oracle", "split-and-resume", "calls-apart", "batch-company"):
            result = run_law(law, o, form, examples=3, corners=12)
            assert result.verdict == ("not-applicable" if law.name == "split-and-resume" else "holds"), result


def test_sdpa_of_this_framework_refuses_nothing():
    o = operator("full-attention")
    sdpa = torch.nn.functional.scaled_dot_product_attention
    detected = detect(sdpa, o, wire(sdpa, o, "sdpa"))
    assert not detected.limits and not detected.notes


def test_a_default_that_is_refused_as_an_argument_is_left_out():
    def kernel(q, k, v, scale=None):
        if scale is not None:
            raise ValueError("scale is K^-1/2")
        return linear_attention.recurrent(q, k, v)[0]

    o = operator("linear-attention")
    detected = found(kernel, o)
    assert detected.notes == ("scale is never given: ValueError: scale is K^-1/2",)
    adapted = adapt(kernel, o, detected.wiring)
    assert "scale" not in inspect.signature(adapted).parameters
    x = o.draw(replace(o.corners()[0], flags=()))
    assert o.run(adapted, replace(x, options={}))[0].shape == (1, 11, 4, 2)


# float64 that is computed in float32 ------------------------------------------------------------------------


def narrow(q, k, v, beta, initial_state=None, output_final_state=False):
    given = [x if x is None else x.float() for x in (q, k, v, beta, initial_state)]
    o, s = right(*given[:4], initial_state=given[4], output_final_state=output_final_state)
    return o.to(v.dtype), s


def wrong_and_narrow(q, k, v, beta, initial_state=None, output_final_state=False):
    o, s = narrow(q, k, v, beta, initial_state, output_final_state)
    return 1.001 * o, s


def halved(q, k, v, beta, initial_state=None, output_final_state=False):
    o, s = narrow(q, k, v.bfloat16(), beta, initial_state, output_final_state)
    return o.to(q.dtype), s


def test_a_kernel_that_computes_in_float32_is_not_held_to_float64():
    assert list(found(narrow).limits.refuses) == ["float64"]
    assert "in float32" in found(narrow).limits.reasons[0]
    assert not found(narrow, precision="float64").limits
    form = Form("narrow", adapt(narrow, DELTA, wire(narrow, DELTA)), limits=found(narrow).limits)
    asked = [law for law in laws() if law.name in ("form-equals-oracle", "result-dtypes")]
    assert [run_law(law, DELTA, form, examples=5).verdict for law in asked] == ["holds", "holds"]


@pytest.mark.parametrize("kernel", [right, wrong_and_narrow, halved], ids=lambda f: f.__name__)
def test_what_is_as_near_as_float64_or_not_as_near_as_float32_is_held_to_float64(kernel):
    assert "float64" not in found(kernel).limits.refuses


def test_a_kernel_that_refuses_more_queries_than_keys_is_held_to_the_rest():
    def decode(q, k, v):
        if q.shape[1] > k.shape[1]:
            raise ValueError("more queries than keys")
        return attention.masked(q, k, v)

    limits = detect(decode, operator("attention"), wire(decode, operator("attention"))).limits
    assert set(limits.refuses) == {"shorter"} and "more queries than keys" in limits.refuses["shorter"]
    assert limits.fit(replace(operator("attention").corners()[0], flags=("longer",))).flags == ("longer",)
