"""Faulty structured state spaces: each law must see faults of its kind, at both scales."""

from functools import wraps

import pytest
import torch

from isoform.impl import discretization, s4
from isoform.impl.s4 import diagonal, low_rank
from isoform.properties.operator import Form

from .planting import checked, faulty, louder, misread

BASES = {"s4": low_rank.convolution, "s4d": diagonal.convolution}
SIBLINGS = {"s4": low_rank.recurrent, "s4d": diagonal.recurrent}


def part(call, start, stop, state):
    return call | {"u": call["u"][..., start:stop], "initial_state": state}


class Conjugated(torch.autograd.Function):
    """The identity, with the conjugate of its gradient: a derivative by x in place of one by its conjugate."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.conj() if g.is_complex() else g * 1.004


@faulty
def zeros(base, call):
    y, x = base(**call)
    return y * 0, x


@faulty
def a_little_large(base, call):
    y, x = base(**call)
    return y * 1.004, x


@faulty
def carry_dropped(base, call):
    state, out = call.get("initial_state"), []
    for start in range(0, max(call["u"].shape[-1], 1), 3):
        y, state = base(**part(call, start, start + 3, state if start == 0 else state * 0))
        out.append(y)
    return torch.cat(out, -1), state


@faulty
def start_ignored(base, call):
    return base(**call | {"initial_state": None})


@faulty
def last_input_dropped(base, call):
    y, x = base(**call)
    return torch.cat([y[..., :-1], y[..., -1:] * 0], -1), x


@faulty
def feedthrough_forgotten(base, call):
    y, x = base(**{n: v for n, v in call.items() if n != "D"})
    return (y if "D" in call else y * 1.004), x


@faulty
def half_of_each_pair(base, call):
    """Twice the real part, as code that stores one of each conjugate pair has it."""
    return base(**call | {"C": 2 * call["C"]})


@faulty
def conjugate_of_c(base, call):
    c = call["C"]
    return base(**call | {"C": c.conj().resolve_conj() if c.is_complex() else c * 1.004})


@faulty
def step_doubled(base, call):
    return base(**call | {"delta": 2 * call["delta"]})


@faulty
def step_of_the_first_channel(base, call):
    return base(**call | {"delta": call["delta"][:1].expand_as(call["delta"]) * (1.004 if len(call["delta"]) == 1 else 1)})


@faulty
def drive_not_discretised(base, call):
    return base(**call | {"B": call["B"] * call["delta"].unsqueeze(-1)})


@faulty
def low_rank_forgotten(base, call):
    return base(**call | {"P": 0 * call["P"]})


@faulty
def low_rank_added(base, call):
    """A = Λ + P P*, by i P in place of P where that is complex."""
    p = call["P"]
    return base(**call | {"Lambda": call["Lambda"] + 2 * p.abs() ** 2 * 0.5, "P": 0 * p})


@faulty
def another_rule(base, call):
    return base(**call | {"rule": "bilinear" if call.get("rule", "zoh") == "zoh" else "zoh"})


@faulty
def aliased(base, call):
    """The kernel with all of its periods added up: C in place of C (I - Ā^l)."""
    kept = low_rank._row_power
    low_rank._row_power = lambda a, row, count: torch.zeros_like(row)
    try:
        return base(**call)
    finally:
        low_rank._row_power = kept


@faulty
def circular(base, call):
    y, x = base(**call)
    return y + 0.01 * y.roll(1, -1), x


@faulty
def half_precision(base, call):
    y, x = base(**call)
    return (y * 1.02 if y.dtype == torch.bfloat16 else y.to(torch.bfloat16).to(y.dtype)), x


@faulty
def state_a_step_early(base, call):
    y, _ = base(**call)
    return y, base(**part(call, 0, max(0, call["u"].shape[-1] - 1), call.get("initial_state")))[1]


@faulty
def state_a_little_large(base, call):
    y, x = base(**call)
    return y, x * 1.004


@faulty
def state_conjugated(base, call):
    y, x = base(**call)
    return y, x.conj().resolve_conj() if x.is_complex() else x * 1.004


@faulty
def poles_detached(base, call):
    return base(**call | {"Lambda": call["Lambda"].detach()})


@faulty
def gradient_of_poles_conjugated(base, call):
    return base(**call | {"Lambda": Conjugated.apply(call["Lambda"])})


@faulty
def step_detached(base, call):
    return base(**call | {"delta": call["delta"].detach()})


@faulty
def gradient_of_the_step_a_little_large(base, call):
    return base(**call | {"delta": louder(call["delta"])})


@faulty
def gradient_of_c_conjugated(base, call):
    return base(**call | {"C": Conjugated.apply(call["C"])})


@faulty
def drive_detached(base, call):
    return base(**call | {"B": call["B"].detach()})


@faulty
def gradient_of_inputs_a_little_large(base, call):
    return base(**call | {"u": louder(call["u"])})


@faulty
def carry_detached(base, call):
    state, out = call.get("initial_state"), []
    for start in range(0, max(call["u"].shape[-1], 1), 3):
        y, state = base(**part(call, start, start + 3, state if start == 0 else state.detach()))
        out.append(y)
    return torch.cat(out, -1), state


@faulty
def start_detached(base, call):
    start = call.get("initial_state")
    return base(**call | {"initial_state": None if start is None else start.detach()})


@faulty
def gradient_of_start_conjugated(base, call):
    start = call.get("initial_state")
    return base(**call | {"initial_state": None if start is None else Conjugated.apply(start)})


@faulty
def final_state_detached(base, call):
    y, x = base(**call)
    return y, x.detach()


@faulty
def gradient_of_state_conjugated(base, call):
    y, x = base(**call)
    return y, Conjugated.apply(x)


@faulty
def gradient_of_state_a_little_large(base, call):
    y, x = base(**call)
    return y, louder(x)


@faulty
def empty_crashes(base, call):
    call["u"][..., 0]
    return base(**call)


@faulty
def empty_forgets_the_start(base, call):
    y, x = base(**call)
    return y, x * 0 if y.shape[-1] == 0 else x


@faulty
def one_output_squeezed(base, call):
    y, x = base(**call)
    return y.squeeze(-1) if y.shape[-1] == 1 else y, x


@faulty
def inputs_scaled_in_place(base, call):
    y, x = base(**call)
    call["u"].mul_(0.5)
    return y, x


@faulty
def inputs_overwritten(base, call):
    y, x = base(**call)
    return (call["u"].copy_(y), x) if y.dtype == call["u"].dtype else (y, x)


@faulty
def start_updated_in_place(base, call):
    y, x = base(**call)
    start = call.get("initial_state")
    return y, start.copy_(x) if start is not None and start.dtype == x.dtype else x


@faulty
def strides_misread(base, call):
    return base(**call | {"u": misread(call["u"])})


@faulty
def views_of_inputs(base, call):
    return base(**call | {n: call[n].view(-1).view(call[n].shape) for n in ("u", "Lambda", "C")})


@faulty
def neighbours_leak(base, call):
    y, x = base(**call)
    return y + 1e-3 * y.roll(1, 0) * (len(y) > 1), x


@faulty
def neighbours_poison(base, call):
    y, x = base(**call)
    return y + 0 * y.sum(0, keepdim=True), x


@faulty
def sees_the_next_input(base, call):
    u = call["u"]
    return base(**call | {"u": u + 0.01 * torch.cat([u[..., 1:], u[..., :1] * 0], -1)})


@faulty
def nan_spreads_backwards(base, call):
    y, x = base(**call)
    return y + 0 * call["u"].sum(-1, keepdim=True), x


@faulty
def inputs_clamped(base, call):
    return base(**call | {"u": call["u"].clamp(-1e6, 1e6) + 1e-6})


@faulty
def through_float16(base, call):
    return base(**call | {"u": call["u"].to(torch.float16).to(call["u"].dtype)})


PLANTED = {
    "form-equals-oracle": (
        zeros,
        a_little_large,
        carry_dropped,
        start_ignored,
        last_input_dropped,
        feedthrough_forgotten,
        half_of_each_pair,
        conjugate_of_c,
        step_doubled,
        step_of_the_first_channel,
        drive_not_discretised,
        half_precision,
        circular,
    ),
    "scipy-agrees": (zeros, half_of_each_pair, conjugate_of_c, drive_not_discretised, circular),
    "state-equals-oracle": (state_a_step_early, state_a_little_large, state_conjugated, start_ignored),
    "forms-agree": (zeros, a_little_large, circular, state_a_step_early),
    "finite-at-the-edges": (inputs_clamped, through_float16),
    "empty-and-single": (empty_crashes, empty_forgets_the_start, one_output_squeezed),
    "arguments-untouched": (inputs_overwritten, inputs_scaled_in_place, start_updated_in_place),
    "results-own-memory": (inputs_overwritten, start_updated_in_place),
    "layout": (strides_misread, views_of_inputs),
    "batch-company": (neighbours_leak, neighbours_poison),
    "prefix-invariance": (sees_the_next_input, nan_spreads_backwards, circular),
    "split-and-resume": (start_ignored, state_a_step_early, empty_forgets_the_start),
}
GRADIENTS = {
    "gradient-of-inputs": (
        poles_detached,
        gradient_of_poles_conjugated,
        step_detached,
        gradient_of_the_step_a_little_large,
        gradient_of_c_conjugated,
        drive_detached,
        gradient_of_inputs_a_little_large,
        carry_detached,
    ),
    "gradient-of-initial-state": (start_detached, gradient_of_start_conjugated, carry_detached),
    "gradient-through-final-state": (
        final_state_detached,
        gradient_of_state_conjugated,
        gradient_of_state_a_little_large,
        poles_detached,
        start_detached,
        carry_detached,
    ),
}
OWN = {
    "s4": {"form-equals-oracle": (low_rank_forgotten, low_rank_added, aliased), "scipy-agrees": (low_rank_forgotten, aliased)},
    "s4d": {"form-equals-oracle": (another_rule,), "scipy-agrees": (another_rule,), **GRADIENTS},
}
PAIRS = [(name, law, f) for name in BASES for table in (PLANTED, OWN[name]) for law, fs in table.items() for f in fs]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("name", "law", "plant"), [pytest.param(*p, id=f"{p[0]}-{p[1]}-{p[2].__name__}") for p in PAIRS])
def test_a_faulty_form_is_caught(name, law, plant, scale):
    form = Form(plant.__name__, plant(BASES[name]), siblings=(SIBLINGS[name],))
    result = checked(law, name, form, scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


def forgets(step):
    @wraps(step)
    def planted(**call):
        y, x = step(**call)
        return y, x * 0

    return planted


def reads_first(step):
    @wraps(step)
    def planted(**call):
        _, x = step(**call)
        state = torch.zeros_like(x) if call["state"] is None else call["state"]
        y, _ = step(**call | {"u": 0 * call["u"], "state": state})
        return y, x

    return planted


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("plant", [forgets, reads_first])
def test_a_faulty_step_is_caught(plant, name, scale):
    assert checked("step-equals-whole", name, Form("recurrent", SIBLINGS[name], plant(s4.STEPS[name])), scale).verdict == "violated"


def test_the_rule_of_a_diagonal_system_is_the_one_of_its_column():
    assert {"zoh": discretization.zoh, "bilinear": discretization.bilinear} == diagonal.RULES
