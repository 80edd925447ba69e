"""Gated linear attention at gates of every strength: outputs and gradients within a bound for each number by itself."""

from functools import partial

import pytest
import torch

from isoform.impl.gated_linear_attention import chunkwise, parallel, recurrent, step

GATES = (0.0, -1e-8, -0.1, -1.0, -1.4, -3.0, -30.0, -torch.inf)
C = 8
FORMS = [recurrent, parallel, *(partial(chunkwise, chunk_size=c) for c in (1, 3, 16, 64))]
SIDES = [("gk",), ("gv",), ("gk", "gv"), ()]


def name(x):
    if isinstance(x, tuple):
        return "+".join(x) or "none"
    return f"chunkwise-{x.keywords['chunk_size']}" if isinstance(x, partial) else x.__name__


every_form = pytest.mark.parametrize("form", FORMS, ids=name)
every_side = pytest.mark.parametrize("sides", SIDES, ids=name)


def tokens(sides, t=45, gates=GATES, b=1, h=2, hv=4, dk=4, dv=3, dtype=torch.float32):
    """A call's tensors; every channel of every token has a gate of its own."""
    generator = torch.Generator().manual_seed(t)
    shapes = {"q": (b, t, h, dk), "k": (b, t, h, dk), "v": (b, t, hv, dv), "initial_state": (b, hv, dk, dv)}
    found = {n: torch.randn(shape, generator=generator, dtype=dtype) for n, shape in shapes.items()}
    for side in sides:
        shape = shapes[side[1]]
        found[side] = torch.tensor(gates, dtype=dtype)[torch.randint(len(gates), shape, generator=generator)]
    return found


def plain(q, k, v, initial_state, gk=None, gv=None):
    """The recurrence in float64, as the contract has it: scale K^-1/2, value head i reads head i // groups."""
    q, k, v, s = (x.double() for x in (q, k, v, initial_state))
    a = torch.ones_like(k) if gk is None else gk.double().exp()
    e = torch.ones_like(v) if gv is None else gv.double().exp()
    q, k, a = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (q, k, a))
    rows = []
    for q_t, k_t, v_t, a_t, e_t in zip(*(x.unbind(1) for x in (q, k, v, a, e)), strict=True):
        s = a_t[..., :, None] * s * e_t[..., None, :] + k_t[..., :, None] * v_t[..., None, :]
        rows.append((s * q_t[..., :, None]).sum(-2) * q.shape[-1] ** -0.5)
    return torch.stack(rows, 1), s


def sizes(inputs):
    """The inputs on which the recurrence adds up the absolute values of all its terms."""
    return {n: x if n in ("gk", "gv") else x.abs() for n, x in inputs.items()}


def roundings(inputs):
    """How often a term is rounded: a gate by its exponential (an ulp is two units) and two products, sums over time and keys."""
    _, t, _, dk = inputs["q"].shape
    return 6 * t + dk + 8


def gamma(n):
    u = torch.finfo(torch.float32).eps / 2
    return n * u / (1 - n * u)


def lost(inputs):
    """What is lost where numbers below 2^-126 are rounded to multiples of 2^-149: once a factor of each of the terms."""
    _, t, _, dk = inputs["q"].shape
    largest = max(1.0, *(x.abs().max().item() for n, x in inputs.items() if n not in ("gk", "gv")))
    return 2.0**-149 * roundings(inputs) * (t + 1) * dk * largest**3


def within(found, truth, bound):
    return bool(((found.double() - truth).abs() <= bound).all())


@every_side
@every_form
def test_outputs_are_accurate_at_every_strength(form, sides):
    inputs = tokens(sides)
    found = form(**inputs, output_final_state=True)
    for x, truth, size in zip(found, plain(**inputs), plain(**sizes(inputs)), strict=True):
        assert within(x, truth, gamma(roundings(inputs)) * size + lost(inputs))


@every_side
@every_form
def test_gradients_are_accurate_at_every_strength(form, sides):
    """A backward pass evaluates the terms of the derivative with at most three times the forward roundings."""
    inputs = {n: x.requires_grad_() for n, x in tokens(sides).items()}
    weights = [torch.randn(x.shape, generator=torch.Generator().manual_seed(1)) for x in (inputs["v"], inputs["initial_state"])]

    def gradient(call, given, weights):
        found = call(**given)
        return torch.autograd.grad(sum((x * w).sum() for x, w in zip(found, weights, strict=True)), tuple(given.values()))

    found = gradient(partial(form, output_final_state=True), inputs, weights)
    truth = gradient(plain, inputs, weights)
    size = gradient(plain, {n: x.detach().requires_grad_() for n, x in sizes(inputs).items()}, [w.abs() for w in weights])
    for n, x, y, z in zip(inputs, found, truth, size, strict=True):
        assert within(x, y, gamma(3 * roundings(inputs)) * z + lost(inputs)), n
        if n in sides:
            assert (x[inputs[n] == -torch.inf] == 0).all()
            assert (x[inputs[n] == -30.0] != 0).any(), "a weak gradient is still one"


@pytest.mark.parametrize("c", range(1, 2 * C + 3))
def test_every_chunk_size(c):
    for t in (c - 1, c, c + 1, 2 * C + 1):
        inputs = tokens(("gk", "gv"), t=max(t, 1))
        found = chunkwise(**inputs, output_final_state=True, chunk_size=c)
        for x, truth, size in zip(found, plain(**inputs), plain(**sizes(inputs)), strict=True):
            assert within(x, truth, gamma(roundings(inputs)) * size + lost(inputs))


@pytest.mark.parametrize("strength", GATES)
@every_form
def test_one_gate_throughout(form, strength):
    inputs = tokens(("gk", "gv"), t=130, gates=(strength,))
    found = form(**inputs, output_final_state=True)
    for x, truth, size in zip(found, plain(**inputs), plain(**sizes(inputs)), strict=True):
        assert within(x, truth, gamma(roundings(inputs)) * size + lost(inputs))


@every_form
def test_above_zero_the_recurrence_is_computed_as_written(form):
    inputs = tokens(("gk", "gv"), gates=(0.5, -0.5, 1.0, 0.0))
    found = form(**inputs, output_final_state=True)
    for x, truth, size in zip(found, plain(**inputs), plain(**sizes(inputs)), strict=True):
        assert within(x, truth, gamma(roundings(inputs)) * size)


def test_differences_of_running_sums_would_be_seen():
    """e^{b_i - b_j} in place of the product of the gates between: the bound must tell it from the recurrence."""
    inputs = tokens(("gk",), gates=(-1e4, -0.1, -1e-8), hv=2)
    q, k, v = (inputs[n].transpose(1, 2) for n in ("q", "k", "v"))
    sums = inputs["gk"].transpose(1, 2).cumsum(2)
    weights = (sums[:, :, :, None] - sums[:, :, None]).exp()
    start = torch.einsum("bhtk,bhtk,bhkv->bhtv", q, sums.exp(), inputs["initial_state"])
    o = torch.einsum("bhtk,bhsk,bhtsk->bhts", q, k, weights).tril() @ v + start
    (truth, _), (size, _) = plain(**inputs), plain(**sizes(inputs))
    bound = gamma(roundings(inputs)) * size + lost(inputs)
    assert not within(o.transpose(1, 2) / 2, truth, bound)
    assert within(chunkwise(**inputs)[0], truth, bound)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("side", ["gk", "gv"])
@every_form
def test_a_gate_that_is_no_number_reaches_its_own_and_later_rows(form, side, value):
    inputs = tokens(("gk", "gv"), t=20)
    clean, _ = form(**inputs)
    inputs[side][:, 9, :, 1] = value
    o, state = form(**inputs, output_final_state=True)
    columns = [1] if side == "gv" else [0, 1, 2]
    assert torch.equal(o[:, :9], clean[:, :9])
    assert not o[:, 9:, :, columns].isfinite().any()
    assert torch.equal(o.isfinite(), recurrent(**inputs)[0].isfinite())
    assert torch.equal(state.isfinite(), recurrent(**inputs, output_final_state=True)[1].isfinite())


@pytest.mark.parametrize("form", [parallel, partial(chunkwise, chunk_size=3)], ids=name)
@every_side
def test_derivatives_of_both_orders(form, sides):
    few = tokens(sides, t=5, gates=(-0.3, 0.0, -2.0), h=1, hv=2, dk=2, dv=2, dtype=torch.float64)
    inputs = {n: x.requires_grad_() for n, x in few.items()}

    def call(*xs):
        return form(**dict(zip(inputs, xs, strict=True)), output_final_state=True)

    assert torch.autograd.gradcheck(call, tuple(inputs.values()))
    assert torch.autograd.gradgradcheck(call, tuple(inputs.values()), fast_mode=True)


@every_side
def test_steps_are_the_recurrence(sides):
    inputs = tokens(sides, dtype=torch.float64)
    state = inputs.pop("initial_state")
    want = recurrent(**inputs, initial_state=state, output_final_state=True)
    rows = []
    for t in range(inputs["q"].shape[1]):
        o, state = step(**{n: x[:, t] for n, x in inputs.items()}, state=state)
        rows.append(o)
    assert torch.equal(state, want[1])
    assert torch.equal(torch.stack(rows, 1), want[0])


def test_a_gate_of_a_wrong_shape_is_named():
    inputs = tokens(("gk", "gv"))
    with pytest.raises(ValueError, match=r"gk has shape \(1, 45, 4, 4\); the other arguments need \(b=1, t=45, h=2, k=4\)"):
        recurrent(**{**inputs, "gk": torch.zeros(1, 45, 4, 4)})
    with pytest.raises(ValueError, match=r"gv has shape \(1, 45, 4\); it needs the axes \(b, t, hv, v\)"):
        chunkwise(**{**inputs, "gv": torch.zeros(1, 45, 4)})


@pytest.mark.parametrize("sides", [("gk",), ("gk", "gv")], ids=name)
@pytest.mark.parametrize("wanted", ["q", "k", "v", "initial_state"])
def test_one_argument_alone_can_ask_for_a_gradient(sides, wanted):
    """What the others are multiplied by is not written over where it is needed."""
    inputs = tokens(sides, gates=(-0.1,), dtype=torch.float64)
    inputs[wanted].requires_grad_()
    found, expected = (torch.autograd.grad(form(**inputs)[0].sum(), inputs[wanted])[0] for form in (chunkwise, recurrent))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sides", SIDES[:3], ids=name)
def test_gates_alone_are_mapped(sides):
    inputs = tokens(sides, gates=(-0.1, -3.0), b=2, dtype=torch.float64)
    gates = {n: inputs.pop(n) for n in sides}
    o = torch.func.vmap(lambda g: chunkwise(**{n: x[:1] for n, x in inputs.items()}, **{n: x[None] for n, x in g.items()})[0])(gates)
    for n in range(2):
        expected, _ = chunkwise(**{m: x[:1] for m, x in inputs.items()}, **{m: x[n : n + 1] for m, x in gates.items()})
        torch.testing.assert_close(o[n], expected, rtol=1e-13, atol=1e-13)
