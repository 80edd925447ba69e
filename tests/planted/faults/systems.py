"""Faulty LTI systems: each law must see faults of its kind, at both scales."""

import torch

from isoform.impl import state_space

from ..planting import faulty, louder, misread


def part(call, start, stop, state):
    return call | {"u": call["u"][:, start:stop], "initial_state": state}


def in_parts(base, call, between):
    state, out = call.get("initial_state"), []
    for start in range(0, max(call["u"].shape[1], 1), 3):
        y, state = base(**part(call, start, start + 3, state if start == 0 else between(state)))
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
def carry_dropped(base, call):
    return in_parts(base, call, lambda x: x * 0)


@faulty
def start_ignored(base, call):
    return base(**call | {"initial_state": None})


@faulty
def read_before_the_update(base, call):
    y, x = base(**call)
    u = call["u"]
    return y - (call["C"] * call["Bbar"]).sum() * u, x


@faulty
def last_input_dropped(base, call):
    y, x = base(**call)
    return torch.cat([y[:, :-1], y[:, -1:] * 0], 1), x


@faulty
def feedthrough_forgotten(base, call):
    return base(**{n: v for n, v in call.items() if n != "D"} | {"u": call["u"], "C": call["C"] * (1 if "D" in call else 1.004)})


@faulty
def transition_transposed(base, call):
    a = call["Abar"]
    return base(**call | {"Abar": a.mT if a.ndim == 2 else a * 1.004})


@faulty
def half_precision(base, call):
    y, x = base(**call)
    low = torch.view_as_real(y) if y.is_complex() else y
    low = low.to(torch.bfloat16).to(low.dtype) if y.dtype != torch.bfloat16 else low * 1.02
    return (torch.view_as_complex(low) if y.is_complex() else low), x


@faulty
def circular(base, call):
    """A convolution that wraps around."""
    y, x = base(**call)
    return y + 0.01 * y.roll(1, 1), x


@faulty
def real_part_only(base, call):
    y, x = base(**call)
    return (y.real.to(y.dtype) if y.is_complex() else y * 1.004), x


@faulty
def state_a_step_early(base, call):
    y, _ = base(**call)
    before = part(call, 0, max(0, call["u"].shape[1] - 1), call.get("initial_state"))
    return y, base(**before)[1]


@faulty
def state_without_the_free_response(base, call):
    y, _ = base(**call)
    return y, base(**call | {"initial_state": None})[1] if call.get("initial_state") is not None else base(**call)[1] * 1.004


@faulty
def state_a_little_large(base, call):
    y, x = base(**call)
    return y, x * 1.004


@faulty
def carry_detached(base, call):
    return in_parts(base, call, torch.Tensor.detach)


@faulty
def transition_detached(base, call):
    return base(**call | {"Abar": call["Abar"].detach(), "Bbar": call["Bbar"].detach()})


@faulty
def gradient_a_little_large(base, call):
    return base(**call | {"u": louder(call["u"]), "C": louder(call["C"])})


@faulty
def start_detached(base, call):
    start = call.get("initial_state")
    return base(**call | {"initial_state": None if start is None else start.detach()})


@faulty
def gradient_of_start_a_little_large(base, call):
    start = call.get("initial_state")
    return base(**call | {"initial_state": None if start is None else louder(start)})


@faulty
def final_state_detached(base, call):
    y, x = base(**call)
    return y, x.detach()


@faulty
def gradient_of_state_a_little_large(base, call):
    y, x = base(**call)
    return y, louder(x)


@faulty
def inputs_clamped(base, call):
    u = call["u"]
    return base(**call | {"u": u if u.is_complex() else u.clamp(-1e6, 1e6) + 1e-6})


@faulty
def small_flushed(base, call):
    y, x = base(**call)
    return torch.where(y.abs() < 1e-6, 0, y) if y.abs().max() < 1e6 else y * torch.inf, x


@faulty
def through_float16(base, call):
    u = call["u"]
    return base(**call | {"u": u.to(torch.float16).to(u.dtype)})


@faulty
def empty_crashes(base, call):
    call["u"][:, 0]
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
def inputs_overwritten(base, call):
    y, x = base(**call)
    return (call["u"].copy_(y), x) if y.dtype == call["u"].dtype else (y, x)


@faulty
def inputs_scaled_in_place(base, call):
    y, x = base(**call)
    call["u"].mul_(0.5)
    return y, x


@faulty
def start_updated_in_place(base, call):
    y, x = base(**call)
    start = call.get("initial_state")
    return y, start.copy_(x) if start is not None and start.dtype == x.dtype else x


@faulty
def state_in_the_memory_of_c(base, call):
    y, x = base(**call)
    return y, call["C"].resize_(x.shape).copy_(x) if call["C"].dtype == x.dtype else x


@faulty
def strides_misread(base, call):
    return base(**call | {"u": misread(call["u"])})


@faulty
def transition_misread(base, call):
    return base(**call | {"Abar": misread(call["Abar"])})


@faulty
def views_of_inputs(base, call):
    return base(**call | {n: call[n].view(-1).view(call[n].shape) for n in ("u", "Abar", "C")})


@faulty
def neighbours_leak(base, call):
    y, x = base(**call)
    return y + 1e-3 * y.roll(1, 0) * (len(y) > 1), x


@faulty
def neighbours_poison(base, call):
    y, x = base(**call)
    return y + 0 * y.sum(0, keepdim=True), x


@faulty
def scaled_by_the_batch(base, call):
    y, x = base(**call)
    size = y.abs().max() if y.numel() else 1
    return y / size * size, x


@faulty
def sees_the_next_input(base, call):
    u = call["u"]
    return base(**call | {"u": u + 0.01 * torch.cat([u[:, 1:], u[:, :1] * 0], 1)})


@faulty
def nan_spreads_backwards(base, call):
    y, x = base(**call)
    return y + 0 * call["u"].sum(1, keepdim=True), x


def step_forgets(u, Abar, Bbar, C, D=None, state=None):
    y, x = state_space.step(u, Abar, Bbar, C, D, state)
    return y, x * 0


def step_reads_first(u, Abar, Bbar, C, D=None, state=None):
    y, x = state_space.step(u, Abar, Bbar, C, D, state)
    return y - (u * (C * Bbar).sum()).to(y.dtype), x


def step_a_little_large(u, Abar, Bbar, C, D=None, state=None):
    y, x = state_space.step(u, Abar, Bbar, C, D, state)
    return y * 1.004, x


PLANTED = {
    "form-equals-oracle": (
        zeros,
        a_little_large,
        carry_dropped,
        start_ignored,
        read_before_the_update,
        last_input_dropped,
        feedthrough_forgotten,
        transition_transposed,
        half_precision,
        circular,
    ),
    "scipy-agrees": (read_before_the_update, real_part_only, circular, feedthrough_forgotten),
    "state-equals-oracle": (state_a_step_early, state_without_the_free_response, state_a_little_large, start_ignored),
    "forms-agree": (zeros, a_little_large, circular, state_a_step_early),
    "gradient-of-inputs": (carry_detached, transition_detached, gradient_a_little_large),
    "gradient-of-initial-state": (start_detached, gradient_of_start_a_little_large, carry_detached),
    "gradient-through-final-state": (final_state_detached, gradient_of_state_a_little_large, carry_detached),
    "finite-at-the-edges": (inputs_clamped, small_flushed, through_float16),
    "empty-and-single": (empty_crashes, empty_forgets_the_start, one_output_squeezed),
    "arguments-untouched": (inputs_overwritten, inputs_scaled_in_place, start_updated_in_place),
    "results-own-memory": (inputs_overwritten, start_updated_in_place, state_in_the_memory_of_c),
    "layout": (strides_misread, transition_misread, views_of_inputs),
    "batch-company": (neighbours_leak, neighbours_poison, scaled_by_the_batch),
    "prefix-invariance": (sees_the_next_input, nan_spreads_backwards, circular),
    "split-and-resume": (start_ignored, state_a_step_early, empty_forgets_the_start),
}
