"""Memories: every form against the recurrence as it is written, bit for bit where that is possible.

With integers, K = 4 (scale 1/2), decays of 0 and 1, and few tokens every intermediate is a dyadic number that float64 holds
exactly, so the order of operations cannot matter.
"""

from functools import partial
from inspect import signature

import pytest
import torch

from isoform.impl import delta_rule, gated_delta_rule, gated_linear_attention, gated_retention, linear_attention, retention

CHUNKS = (1, 2, 3, 16, 64)
MEMORIES = (linear_attention, retention, gated_retention, gated_linear_attention, delta_rule, gated_delta_rule)
MODULES = {next(iter(m.FORMS)): m for m in MEMORIES}
CORRECTING = ("delta-rule", "gated-delta-rule")
TIMELESS = ("g_gamma",)


def forms(operator):
    """Every form of an operator, the chunk loop at every chunk size."""
    for form in MODULES[operator].FORMS[operator]:
        sizes = CHUNKS if form.__name__ == "chunkwise" else ()
        yield from (partial(form, chunk_size=c) for c in sizes) if sizes else (form,)


OPERATORS = [(operator, form) for operator in MODULES for form in forms(operator)]
STEPS = {operator: module.STEPS[operator] for operator, module in MODULES.items()}


def name(form):
    if isinstance(form, str):
        return form
    return f"{form.func.__name__}-{form.keywords['chunk_size']}" if isinstance(form, partial) else form.__name__


every_form = pytest.mark.parametrize(("operator", "form"), OPERATORS, ids=name)


def tokens(operator, draw, b, t, h=2, hv=6, dk=4, dv=3, **kwargs):
    """Keyword tensors of one call; keys of the delta rule have few non-zero entries, which keeps exact values short."""
    inputs = {"q": draw(b, t, h, dk, **kwargs), "k": draw(b, t, h, dk, **kwargs), "v": draw(b, t, hv, dv, **kwargs)}
    if operator == "retention":
        inputs["g_gamma"] = torch.tensor([0.0, -torch.inf] * h, dtype=inputs["q"].dtype)[-h:]
    gates = {"gated-retention": ("g",), "gated-delta-rule": ("g",), "gated-linear-attention": ("gk", "gv")}
    for gate in gates.get(operator, ()):
        shape = {"g": (b, t, hv), "gk": (b, t, h, dk), "gv": (b, t, hv, dv)}[gate]
        inputs[gate] = torch.where(draw(*shape, low=0, high=3, **kwargs) == 0, -torch.inf, 0.0).to(inputs["q"].dtype)
    if operator in CORRECTING:
        inputs["k"] = torch.nn.functional.one_hot(draw(b, t, h, low=0, high=dk - 1).long(), dk).to(inputs["k"].dtype)
        inputs["beta"] = draw(b, t, hv, low=0, **kwargs) / 2
    return inputs


def during(inputs, time):
    """The inputs of one token or of several."""
    return {n: x if n in TIMELESS else x[:, time] for n, x in inputs.items()}


def plain(inputs, state):
    """The recurrence of the contract, head by head."""
    x = {n: a if n in TIMELESS else a.repeat_interleave(state.shape[1] // a.shape[2], 2) for n, a in inputs.items()}
    if "g_gamma" in x:
        x["g"] = x["g_gamma"].repeat_interleave(state.shape[1] // x["g_gamma"].shape[0]).expand(x["v"].shape[:3])
    rows = []
    for t in range(x["q"].shape[1]):
        k, v = x["k"][:, t], x["v"][:, t]
        if "g" in x:
            state = x["g"][:, t, :, None, None].exp() * state
        if "gk" in x:
            state = x["gk"][:, t, :, :, None].exp() * state * x["gv"][:, t, :, None, :].exp()
        if "beta" in x:
            v = x["beta"][:, t, :, None] * (v - torch.einsum("nhkv,nhk->nhv", state, k))
        state = state + torch.einsum("nhk,nhv->nhkv", k, v)
        rows.append(torch.einsum("nhkv,nhk->nhv", state, x["q"][:, t]) * x["q"].shape[-1] ** -0.5)
    return torch.stack(rows, 1) if rows else x["v"], state


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@every_form
@pytest.mark.parametrize("t", [0, 1, 2, 3, 15, 16, 17, 33])
def test_every_form_is_the_recurrence(operator, form, t, whole):
    inputs, state = tokens(operator, whole, 2, t), whole(2, 6, 4, 3)
    want = plain(inputs, state)
    assert same(form(**inputs, initial_state=state, output_final_state=True), want)
    assert t == 0 or not torch.equal(form(**inputs)[0], want[0]), "the initial state made no difference"
    assert form(**inputs)[1] is None


correcting_form = pytest.mark.parametrize(("operator", "form"), [(o, f) for o, f in OPERATORS if o in CORRECTING], ids=name)


@correcting_form
@pytest.mark.parametrize("strength", [2, 3, -1])
def test_beyond_the_stable_rates_the_recurrence_is_computed_as_written(operator, form, strength, whole):
    """A step multiplies what a key finds by 1 - β: by -2 for β = 3, which is exact for so few tokens."""
    inputs, state = tokens(operator, whole, 2, 17), whole(2, 6, 4, 3)
    inputs["beta"] = torch.full_like(inputs["beta"], float(strength))
    assert same(form(**inputs, initial_state=state, output_final_state=True), plain(inputs, state))


@every_form
def test_a_state_passed_on_resumes(operator, form, whole):
    inputs = tokens(operator, whole, 2, 21)
    want, state, rows = form(**inputs, output_final_state=True), None, []
    for a, b in [(0, 3), (3, 3), (3, 4), (4, 20), (20, 21)]:
        o, state = form(**during(inputs, slice(a, b)), initial_state=state, output_final_state=True)
        rows.append(o)
    assert same((torch.cat(rows, 1), state), want)


@pytest.mark.parametrize("operator", STEPS)
def test_steps_are_the_recurrence_and_leave_the_old_state(operator, whole):
    inputs, state = tokens(operator, whole, 2, 9), whole(2, 6, 4, 3)
    want, first = plain(inputs, state), state.clone()
    held, rows = state, []
    for t in range(9):
        o, state = STEPS[operator](**during(inputs, t), state=state)
        rows.append(o)
    assert same((torch.stack(rows, 1), state), want)
    assert torch.equal(held, first)
    fresh = during(inputs, 0)
    assert same(STEPS[operator](**fresh), STEPS[operator](**fresh, state=torch.zeros_like(first)))


@every_form
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_packed_sequences_are_each_alone(operator, form, dtype, whole):
    offsets = [2, 2, 5, 6, 6, 25, 41, 41]
    inputs, states = tokens(operator, whole, 1, 45), whole(7, 6, 4, 3)
    for x in (inputs[n] for n in inputs if n not in TIMELESS):
        x[:, :2] = x[:, 41:] = torch.nan
    o, last = form(**inputs, initial_state=states, output_final_state=True, cu_seqlens=torch.tensor(offsets, dtype=dtype))
    for n, (a, b) in enumerate(zip(offsets, offsets[1:], strict=False)):
        assert same((o[:, a:b], last[n : n + 1]), plain(during(inputs, slice(a, b)), states[n : n + 1]))
    assert torch.equal(o[:, :2], torch.zeros(1, 2, 6, 3).double())
    assert torch.equal(o[:, 41:], torch.zeros(1, 4, 6, 3).double())


@every_form
def test_a_bad_value_stays_in_its_segment_and_after_its_token(operator, form, whole):
    inputs = tokens(operator, whole, 1, 20)
    cu = torch.tensor([0, 9, 20])
    clean = form(**inputs, cu_seqlens=cu)[0]
    for hurt, value in (("k", torch.inf), ("v", torch.nan), ("v", -torch.inf)):
        bad = {n: x.clone() for n, x in inputs.items()}
        bad[hurt][:, 5, :, 1] = value
        o, state = form(**bad, cu_seqlens=cu, output_final_state=True)
        columns = [1] if hurt == "v" else [0, 1, 2]
        assert torch.equal(o[:, :5], clean[:, :5])
        assert torch.equal(o[:, 9:], clean[:, 9:])
        assert not o[:, 5:9, :, columns].isfinite().any()
        assert not state[0][..., columns].isfinite().all()
        assert state[1].isfinite().all()
        assert torch.equal(o.isfinite(), MODULES[operator].recurrent(**bad, cu_seqlens=cu)[0].isfinite())


@every_form
def test_neighbours_in_the_batch_do_not_matter(operator, form, whole):
    inputs = tokens(operator, whole, 3, 10)
    other = {n: x.clone() for n, x in inputs.items()}
    for x in (other[n] for n in other if n not in TIMELESS):
        x[1] = torch.nan
    a, b = form(**inputs, output_final_state=True), form(**other, output_final_state=True)
    assert same([x[::2] for x in a], [x[::2] for x in b])
    assert [x.shape[0] for x in form(**tokens(operator, whole, 0, 10), output_final_state=True)] == [0, 0]


@every_form
def test_sums_of_16_bit_inputs_are_kept_in_float32(operator, form):
    """300 ones add up to 300; a bfloat16 sum would stay at 256. The delta rule sees 300 orthogonal keys."""
    t = 300
    one = torch.ones(1, t, 1, 1, dtype=torch.bfloat16)
    inputs = {"q": one, "k": one, "v": one}
    if operator == "retention":
        inputs["g_gamma"] = torch.zeros(1)
    if operator in ("gated-retention", "gated-delta-rule"):
        inputs["g"] = torch.zeros_like(one[..., 0])
    if operator in CORRECTING:
        eye = torch.eye(t, dtype=torch.bfloat16).view(1, t, 1, t)
        inputs |= {"q": torch.ones_like(eye), "k": eye, "beta": one[..., 0]}
    o, state = form(**inputs, scale=1.0, output_final_state=True)
    assert (o.dtype, state.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(o.flatten(), torch.arange(1.0, t + 1).bfloat16())
    assert state.sum() == t


@every_form
def test_views_are_read_and_left_as_they_are(operator, form, whole):
    inputs = tokens(operator, whole, 2, 7)
    inputs["q"] = inputs["q"][:, :1].expand(2, 7, 2, 4)
    inputs["k"] = inputs["k"].transpose(1, 2).contiguous().transpose(1, 2)
    inputs["v"] = torch.stack([inputs["v"], inputs["v"]], -1)[..., 0]
    state = whole(2, 6, 3, 4).mT
    copies = {n: x.clone(memory_format=torch.contiguous_format) for n, x in inputs.items()}
    first = state.clone(memory_format=torch.contiguous_format)
    a = form(**inputs, initial_state=state, output_final_state=True)
    assert same(a, form(**copies, initial_state=first, output_final_state=True))
    assert all(torch.equal(inputs[n], copies[n]) for n in inputs)
    assert torch.equal(state, first)


FEW = [(name, form) for name, form in OPERATORS if not isinstance(form, partial) or form.keywords["chunk_size"] == 2]


@pytest.mark.parametrize(("operator", "form"), FEW, ids=name)
@pytest.mark.parametrize("packed", [False, True])
def test_gradients(operator, form, packed, smooth, whole):
    inputs = tokens(operator, whole, 1, 5, 1, 2, 2, 2)
    names = list(inputs)
    cu = torch.tensor([0, 1, 1, 4]) if packed else None
    state = smooth(3 if packed else 1, 2, 2, 2)

    def call(state, *xs):
        return form(**dict(zip(names, xs, strict=True)), initial_state=state, output_final_state=True, cu_seqlens=cu)

    xs = [(x.detach() + 0.1 * smooth(*x.shape)).detach().requires_grad_() for x in inputs.values()]
    assert torch.autograd.gradcheck(call, (state, *xs))


@correcting_form
def test_the_norm_has_its_epsilon_inside_the_root(operator, form):
    k = torch.tensor([3.0, 4.0], dtype=torch.float64).view(1, 1, 1, 2) * 1e-3
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    call = {"q": k, "k": k, "v": one.unsqueeze(-1), "beta": one, "scale": 1.0, "use_qk_l2norm_in_kernel": True}
    want = torch.tensor(25e-6 / 26e-6, dtype=torch.float64)
    if "g" in signature(form).parameters:
        call["g"] = torch.zeros_like(one)
    o = form(**call)[0].squeeze()
    assert (o - want).abs() <= 16 * torch.finfo(torch.float64).eps * want, "sum, root, four products and a sum, an ulp or two each"
    o, _ = STEPS[operator](**{n: x[:, 0] if isinstance(x, torch.Tensor) else x for n, x in call.items()})
    assert (o.squeeze() - want).abs() <= 16 * torch.finfo(torch.float64).eps * want


FAST = [(o, f, p) for o, f in FEW for p in (False, True) if name(f) != "recurrent" and not (p and name(f) == "parallel")]


@pytest.mark.parametrize(("operator", "form", "packed"), FAST, ids=lambda x: str(x) if isinstance(x, bool) else name(x))
def test_fast_forms_compile_into_one_graph(operator, form, packed, whole):
    inputs = tokens(operator, whole, 1, 9)
    torch.compiler.reset()
    call = partial(form, cu_seqlens=torch.tensor([0, 3, 3, 9]) if packed else None, output_final_state=True)
    assert same(torch.compile(call, fullgraph=True, backend="aot_eager")(**inputs), call(**inputs))


@pytest.mark.deep
def test_a_compiler_does_not_wash_out_the_stain(whole):
    inputs = tokens("linear-attention", whole, 1, 9)
    inputs["v"][:, 5] = torch.inf
    compiled = torch.compile(partial(linear_attention.chunkwise, chunk_size=4), fullgraph=True)
    assert torch.equal(compiled(**inputs)[0].isfinite(), linear_attention.recurrent(**inputs)[0].isfinite())


def arguments(operator, **changes):
    ones = {"q": torch.ones(2, 5, 2, 4), "k": torch.ones(2, 5, 2, 4), "v": torch.ones(2, 5, 6, 3)}
    if operator == "retention":
        ones["g_gamma"] = torch.zeros(2)
    if operator in ("gated-retention", "gated-delta-rule"):
        ones["g"] = torch.zeros(2, 5, 6)
    if operator in CORRECTING:
        ones["beta"] = torch.ones(2, 5, 6)
    return ones | changes


@every_form
@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"k": torch.ones(2, 4, 2, 4)}, ValueError, r"k has shape \(2, 4, 2, 4\); the other arguments need \(b=2, t=5, h=2, k=4\)"),
        ({"v": torch.ones(2, 5, 6)}, ValueError, r"v has shape \(2, 5, 6\); it needs the axes \(b, t, hv, v\)"),
        ({"q": torch.ones(2, 5, 2, 4).long()}, TypeError, r"q has dtype torch.int64; allowed are float64, float32, bfloat16, float16"),
        ({"q": torch.ones(2, 5, 2, 4).cfloat()}, TypeError, "q has dtype torch.complex64"),
        ({"q": [1.0]}, TypeError, "q must be a torch.Tensor, not list"),
        ({"k": torch.ones(2, 5, 2, 4, device="meta")}, ValueError, "k is on meta, the first argument on cpu"),
        ({"initial_state": torch.ones(2, 6, 3, 4)}, ValueError, r"initial_state has shape .*n=2, hv=6, k=4, v=3"),
        ({"cu_seqlens": torch.tensor([0, 5])}, ValueError, "with cu_seqlens the batch size must be 1, not 2"),
        ({"cu_seqlens": torch.tensor([0.0, 5.0])}, TypeError, "cu_seqlens must be an int32 or int64 tensor, not torch.float32"),
        ({"cu_seqlens": torch.tensor([0])}, ValueError, r"cu_seqlens has shape \(1,\)"),
    ],
)
def test_a_wrong_argument_is_named(operator, form, changes, error, sentence):
    with pytest.raises(error, match=sentence):
        form(**arguments(operator, **changes))


@every_form
def test_heads_that_cannot_be_shared_are_named(operator, form):
    wrong = arguments(operator, q=torch.ones(2, 5, 4, 4), k=torch.ones(2, 5, 4, 4))
    wrong.pop("g_gamma", None)
    with pytest.raises(ValueError, match="hv=6 heads cannot share h=4 heads; hv must be a multiple of h"):
        form(**wrong)


@pytest.mark.parametrize("operator", MODULES)
def test_a_chunk_size_is_a_positive_integer(operator):
    module = MODULES[operator]
    with pytest.raises(ValueError, match="chunk_size must be at least 1, not 0"):
        module.chunkwise(**arguments(operator), chunk_size=0)
    with pytest.raises(TypeError, match="chunk_size must be an int, not float"):
        module.chunkwise(**arguments(operator), chunk_size=2.0)
