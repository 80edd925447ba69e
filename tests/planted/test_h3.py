"""Faulty H3 layers: each law must see faults of its kind, at both scales."""


import pytest
import torch

from isoform.impl import h3
from isoform.properties.operator import Form

from .planting import checked, faulty, louder, misread


def part(call, start, stop, state):
    return call | {n: call[n][:, start:stop] for n in "qkv"} | {"initial_state": state}


def in_parts(base, call, between):
    state, out = call.get("initial_state"), []
    for start in range(0, max(call["q"].shape[1], 1), 3):
        y, state = base(**part(call, start, start + 3, state if start == 0 else between(state, call["shift"].shape[2] - 1)))
        out.append(y)
    return torch.cat(out, 1), state


@faulty
def zeros(base, call):
    y, x = base(**call)
    return y * 0, x


@faulty
def a_little_large(base, call):
    y, x = base(**call)
    return y * 1.004, x


@faulty
def keys_dropped_between_parts(base, call):
    return in_parts(base, call, lambda x, before: torch.cat([x[..., :before] * 0, x[..., before:]], -1))


@faulty
def modes_dropped_between_parts(base, call):
    return in_parts(base, call, lambda x, before: torch.cat([x[..., :before], x[..., before:] * 0], -1))


@faulty
def start_ignored(base, call):
    return base(**call | {"initial_state": None})


@faulty
def keys_and_values_swapped(base, call):
    q, k, v = (call[n] for n in "qkv")
    return base(**call | ({"k": v, "v": k} if k.shape == v.shape else {"q": k, "k": q}))


@faulty
def shift_left_out(base, call):
    first = torch.zeros_like(call["shift"])
    first[..., 0] = 1.004
    return base(**call | {"shift": first})


@faulty
def taps_reversed(base, call):
    return base(**call | {"shift": call["shift"].flip(-1) * (1.004 if call["shift"].shape[2] == 1 else 1)})


@faulty
def textbook_index(base, call):
    """The shift as a system that is read before its update: every lag is one more."""
    k = call["k"]
    return base(**call | {"k": torch.cat([0 * k[:, :1], k[:, :-1]], 1)})


@faulty
def modes_summed_before_the_products(base, call):
    return base(**call | {"Bbar": call["Bbar"] * call["C"], "C": torch.ones_like(call["C"])})


@faulty
def no_decay(base, call):
    return base(**call | {"Abar": torch.ones_like(call["Abar"]) * (1 - 2.0**-4)})


@faulty
def conjugate_poles(base, call):
    a = call["Abar"]
    return base(**call | {"Abar": a.conj().resolve_conj() if a.is_complex() else a * 0.99 - 0.003})


@faulty
def half_precision(base, call):
    y, x = base(**call)
    return (y * 1.02 if y.dtype == torch.bfloat16 else y.to(torch.bfloat16).to(y.dtype)), x


@faulty
def circular(base, call):
    y, x = base(**call)
    return y + 0.02 * y.roll(1, 1), x


@faulty
def state_a_step_early(base, call):
    y, _ = base(**call)
    return y, base(**part(call, 0, max(0, call["q"].shape[1] - 1), call.get("initial_state")))[1]


@faulty
def oldest_key_first(base, call):
    y, x = base(**call)
    before = call["shift"].shape[2] - 1
    return y, torch.cat([x[..., :before].flip(-1) * (1.004 if before < 2 else 1), x[..., before:] * (1.004 if before < 2 else 1)], -1)


@faulty
def modes_a_little_large(base, call):
    y, x = base(**call)
    before = call["shift"].shape[2] - 1
    return y, torch.cat([x[..., :before], 1.004 * x[..., before:]], -1)


@faulty
def carry_detached(base, call):
    return in_parts(base, call, lambda x, before: x.detach())


@faulty
def poles_detached(base, call):
    return base(**call | {"Abar": call["Abar"].detach()})


@faulty
def gradient_a_little_large(base, call):
    return base(**call | {n: louder(call[n]) for n in ("q", "k", "C", "shift")})


@faulty
def start_detached(base, call):
    start = call.get("initial_state")
    return base(**call | {"initial_state": None if start is None else start.detach()})


@faulty
def final_state_detached(base, call):
    y, x = base(**call)
    return y, x.detach()


@faulty
def gradient_of_state_a_little_large(base, call):
    y, x = base(**call)
    return y, louder(x)


@faulty
def empty_crashes(base, call):
    call["q"][:, 0]
    return base(**call)


@faulty
def empty_forgets_the_start(base, call):
    y, x = base(**call)
    return y, x * 0 if y.shape[1] == 0 else x


@faulty
def one_output_squeezed(base, call):
    y, x = base(**call)
    return y.squeeze(1) if y.shape[1] == 1 else y, x


@faulty
def keys_scaled_in_place(base, call):
    y, x = base(**call)
    call["k"].mul_(0.5)
    return y, x


@faulty
def values_overwritten(base, call):
    y, x = base(**call)
    return call["v"].copy_(y), x


@faulty
def strides_misread(base, call):
    return base(**call | {"k": misread(call["k"])})


@faulty
def neighbours_leak(base, call):
    y, x = base(**call)
    return y + 1e-3 * y.roll(1, 0) * (len(y) > 1), x


@faulty
def neighbours_poison(base, call):
    y, x = base(**call)
    return y + 0 * y.sum(0, keepdim=True), x


@faulty
def sees_the_next_key(base, call):
    k = call["k"]
    return base(**call | {"k": k + 0.1 * torch.cat([k[:, 1:], k[:, :1] * 0], 1)})


@faulty
def nan_spreads_backwards(base, call):
    y, x = base(**call)
    return y + 0 * call["v"].sum(1, keepdim=True), x


@faulty
def inputs_clamped(base, call):
    return base(**call | {"v": call["v"].clamp(-1e6, 1e6) + 1e-6})


@faulty
def through_float16(base, call):
    return base(**call | {"v": call["v"].to(torch.float16).to(call["v"].dtype)})


PLANTED = {
    "form-equals-oracle": (
        zeros,
        a_little_large,
        keys_dropped_between_parts,
        modes_dropped_between_parts,
        start_ignored,
        keys_and_values_swapped,
        shift_left_out,
        taps_reversed,
        textbook_index,
        no_decay,
        conjugate_poles,
        half_precision,
        circular,
    ),
    "scipy-agrees": (zeros, keys_and_values_swapped, taps_reversed, textbook_index, conjugate_poles, circular),
    "state-equals-oracle": (state_a_step_early, oldest_key_first, modes_a_little_large, start_ignored, modes_summed_before_the_products),
    "forms-agree": (zeros, a_little_large, circular, state_a_step_early),
    "gradient-of-inputs": (carry_detached, poles_detached, gradient_a_little_large),
    "gradient-of-initial-state": (start_detached, carry_detached),
    "gradient-through-final-state": (final_state_detached, gradient_of_state_a_little_large, carry_detached),
    "finite-at-the-edges": (inputs_clamped, through_float16),
    "empty-and-single": (empty_crashes, empty_forgets_the_start, one_output_squeezed),
    "arguments-untouched": (values_overwritten, keys_scaled_in_place),
    "results-own-memory": (values_overwritten,),
    "layout": (strides_misread,),
    "batch-company": (neighbours_leak, neighbours_poison),
    "prefix-invariance": (sees_the_next_key, nan_spreads_backwards, circular),
    "split-and-resume": (start_ignored, state_a_step_early, oldest_key_first, empty_forgets_the_start),
}
PAIRS = [(law, f) for law, fs in PLANTED.items() for f in fs]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "plant"), [pytest.param(*p, id=f"{p[0]}-{p[1].__name__}") for p in PAIRS])
def test_a_faulty_form_is_caught(law, plant, scale):
    result = checked(law, "h3", Form(plant.__name__, plant(h3.convolution), siblings=(h3.recurrent,)), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


def step_forgets(**call):
    y, x = h3.step(**call)
    return y, x * 0


def step_reads_first(**call):
    y, x = h3.step(**call)
    return y - h3.step(**call | {"state": None})[0], x


def step_keeps_the_keys(**call):
    y, x = h3.step(**call)
    before = call["shift"].shape[2] - 1
    state = torch.zeros_like(x) if call["state"] is None else call["state"].to(x.dtype)
    return y, torch.cat([state[..., :before], x[..., before:]], -1)


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("step", [step_forgets, step_reads_first, step_keeps_the_keys])
def test_a_faulty_step_is_caught(step, scale):
    assert checked("step-equals-whole", "h3", Form("recurrent", h3.recurrent, step), scale).verdict == "violated"
