"""Faulty selective scans and convolutions: each law must see faults of its kind, at both scales."""

import torch
from torch.nn.functional import pad, silu

from isoform.impl import mamba
from isoform.impl.mamba import convolution

from ..planting import faulty, louder, misread

TIMED = ("u", "delta", "z", "B", "C")


def during(call, start, stop):
    """The call on some of the tokens."""
    return call | {n: x[..., start:stop] for n, x in call.items() if n in (*TIMED, "x") and x is not None and x.ndim > 2}


def length(call):
    return call["u" if "u" in call else "x"].shape[-1]


def state_of(call):
    return "initial_state" if "u" in call else "initial_states"


def in_parts(base, call, between, size=3):
    state, out = call.get(state_of(call)), []
    for start in range(0, max(length(call), 1), size):
        y, state = base(**during(call, start, start + size) | {state_of(call): state if start == 0 else between(state)})
        out.append(y)
    return torch.cat(out, -1), state


def steps_of(call):
    """Δ, and the call with it in the place of what it is made of."""
    delta, bias = call["delta"], call.get("delta_bias")
    delta = delta if bias is None else delta + bias[:, None]
    delta = mamba.softplus(delta) if call.get("delta_softplus") else delta
    return delta, {n: x for n, x in call.items() if n not in ("delta_bias", "delta_softplus")} | {"delta": delta}


def by_channel(x, d):
    """B or C of every channel (b, d, n, l)."""
    if x.ndim == 2:
        return x[None, :, :, None]
    return x.unsqueeze(1) if x.ndim == 3 else x.repeat_interleave(d // x.shape[1], 1)


def written_out(call, decay, drive):
    """The scan from all gates (b d n l) and writes of the call, as the functions have them of z, Δ, A and B."""
    delta, call = steps_of(call)
    u, d = call["u"], call["u"].shape[1]
    z = delta.unsqueeze(2) * call["A"][None, :, :, None]
    a, b = decay(z), drive(z, delta.unsqueeze(2), call["A"][None, :, :, None], by_channel(call["B"], d)) * u.unsqueeze(2)
    h = call.get("initial_state")
    h, rows = u.new_zeros(len(u), *call["A"].shape) if h is None else h, []
    c = by_channel(call["C"], d).expand(len(u), -1, -1, u.shape[-1])
    for t in range(u.shape[-1]):
        h = a[..., t] * h + b[..., t]
        rows.append((c[..., t] * h).sum(-1))
    y = torch.stack(rows, -1) if rows else torch.zeros_like(u)
    y = y if call.get("D") is None else y + call["D"][:, None] * u
    return (y if call.get("z") is None else y * silu(call["z"])).to(u.dtype), h


@faulty
def none_planted(base, call):
    hold = call.get("discretization") == "zoh"
    return written_out(call, torch.exp, lambda z, s, A, B: s * B * (torch.expm1(z) / torch.where(z == 0, 1, z) + (z == 0) if hold else 1))


@faulty
def zeros(base, call):
    y, h = base(**call)
    return y * 0, h


@faulty
def a_little_large(base, call):
    y, h = base(**call)
    return y * 1.004, h


@faulty
def half_precision(base, call):
    y, h = base(**call)
    return y.to(torch.bfloat16).to(y.dtype) if y.dtype != torch.bfloat16 else y * 1.03, h


@faulty
def last_token_dropped(base, call):
    y, h = base(**call)
    return torch.cat([y[..., :-1], y[..., -1:] * 0], -1), h


@faulty
def carry_dropped(base, call):
    return in_parts(base, call, lambda h: h * 0)


@faulty
def start_ignored(base, call):
    return base(**call | {state_of(call): None})


@faulty
def other_discretization(base, call):
    return base(**call | {"discretization": "euler" if call.get("discretization") == "zoh" else "zoh"})


@faulty
def step_of_the_write_forgotten(base, call):
    return written_out(call, torch.exp, lambda z, s, A, B: B + 0 * z)


@faulty
def decay_of_the_next_token(base, call):
    return written_out(call, lambda z: torch.cat([z[..., 1:], z[..., -1:]], -1).exp(), lambda z, s, A, B: s * B)


@faulty
def forward_euler_decay(base, call):
    return written_out(call, lambda z: 1 + z, lambda z, s, A, B: s * B)


@faulty
def poles_in_another_order(base, call):
    return base(**call | {"A": call["A"].flip(-1)})


@faulty
def read_before_the_update(base, call):
    y, h = base(**call)
    delta, given = steps_of(call)
    through = torch.zeros_like(call["A"][:, 0]) if call.get("D") is None else call["D"]
    silent, _ = base(**given | {"initial_state": None, "D": through * 0, "delta": delta * 0})
    alone = [base(**during(given, t, t + 1) | {"initial_state": None, "D": None, "z": None})[0] for t in range(length(call))]
    own = torch.cat(alone, -1) if alone else silent
    return y - (own if call.get("z") is None else own * silu(call["z"])), h


@faulty
def feedthrough_forgotten(base, call):
    return base(**call | {"D": None, "C": call["C"] * (1 if "D" in call else 1.004)})


@faulty
def gate_before_the_feedthrough(base, call):
    through = call.get("D")
    y, h = base(**call | {"D": None})
    return y + (call["u"] * through[:, None] * 1.004 if through is not None else 0.004 * y), h


@faulty
def gate_without_its_argument(base, call):
    y, h = base(**call | {"z": None})
    return y * torch.sigmoid(call["z"]) if call.get("z") is not None else y * 1.004, h


@faulty
def groups_in_turn(base, call):
    d = call["u"].shape[1]
    given = {n: x.repeat(1, d // x.shape[1], 1, 1) for n, x in call.items() if n in "BC" and x.ndim == 4}
    return base(**call | (given or {"C": call["C"] * 1.004}))


@faulty
def bias_behind_the_softplus(base, call):
    bias, soft = call.get("delta_bias"), call.get("delta_softplus")
    if bias is None or not soft:
        return base(**call | {"C": call["C"] * 1.004})
    return base(**call | {"delta": mamba.softplus(call["delta"]) + bias[:, None], "delta_bias": None, "delta_softplus": False})


@faulty
def softplus_by_its_letters(base, call):
    """log(e^x + 1), 0 from x = -17 on."""
    delta = call["delta"] if call.get("delta_bias") is None else call["delta"] + call["delta_bias"][:, None]
    return base(
        **call | {"delta": (delta.exp() + 1).log(), "delta_bias": None, "delta_softplus": False} if call.get("delta_softplus") else call
    )


@faulty
def quotient_by_its_letters(base, call):
    """(e^z - 1)/A B: no digits left beside z = 0, NaN there."""
    return written_out(call, torch.exp, lambda z, s, A, B: (z.exp() - 1) / A * B + 0 * s)


@faulty
def decays_by_quotients(base, call):
    """e^{G_t} Σ_s e^{-G_s} b_s, which overflows."""
    _, given = steps_of(call)
    z = given["delta"].unsqueeze(2) * given["A"][None, :, :, None]
    whole = z.cumsum(-1)
    y, h = base(**call)
    factor = ((whole.exp() * (-whole).exp()) ** 2).amin(2)
    return (y * factor).to(y.dtype), h


@faulty
def decays_by_differences(base, call):
    """Logs of decays as differences of sums from the start, in which those after strong ones have lost their digits."""
    dtype = call["u"].dtype
    kind = torch.promote_types(dtype, torch.float32)
    call = {n: x.to(kind) if isinstance(x, torch.Tensor) else x for n, x in call.items()}
    y, h = written_out(call, lambda z: z.clamp(min=-120).cumsum(-1).diff(prepend=z[..., :1] * 0).exp(), lambda z, s, A, B: s * B)
    return y.to(dtype), h


@faulty
def decays_floored(base, call):
    return base(**call | {"A": call["A"].clamp(min=-50)})


@faulty
def steps_floored(base, call):
    """Steps are at least 10^-4, as they are drawn at first."""
    delta, given = steps_of(call)
    return base(**given | {"delta": delta.clamp(min=1e-4)})


@faulty
def state_a_step_early(base, call):
    y, _ = base(**call)
    return y, base(**during(call, 0, max(0, length(call) - 1)))[1]


@faulty
def state_a_little_large(base, call):
    y, h = base(**call)
    return y, h * 1.004


@faulty
def state_without_the_start(base, call):
    y, h = base(**call)
    return y, base(**call | {state_of(call): None})[1] if call.get(state_of(call)) is not None else h * 1.004


@faulty
def padded_before_the_softplus(base, call):
    """To a multiple of 4 tokens with zeros, of which log(1 + e^b) makes steps."""
    missing = -length(call) % 4
    padded = {n: pad(x, (0, missing)) for n, x in call.items() if n in TIMED and x is not None and x.ndim > 2}
    y, h = base(**call | padded)
    return y[..., : length(call)], h


@faulty
def chunks_forget(base, call):
    return in_parts(base, call, lambda h: h * 0, call.get("chunk_size") or 64)


@faulty
def last_chunk_dropped(base, call):
    size = call.get("chunk_size") or 64
    whole = length(call) // size * size
    y, h = base(**during(call, 0, whole))
    return pad(y, (0, length(call) - whole)), h


@faulty
def carry_detached(base, call):
    return in_parts(base, call, torch.Tensor.detach)


@faulty
def poles_detached(base, call):
    return base(**call | {"A": call["A"].detach()})


@faulty
def gradient_a_little_large(base, call):
    return base(**call | {"delta": louder(call["delta"])} if "delta" in call else call | {"weight": louder(call["weight"])})


@faulty
def start_detached(base, call):
    start = call.get(state_of(call))
    return base(**call | {state_of(call): None if start is None else start.detach()})


@faulty
def final_state_detached(base, call):
    y, h = base(**call)
    return y, h.detach()


@faulty
def gradient_of_state_a_little_large(base, call):
    y, h = base(**call)
    return y, louder(h)


@faulty
def small_flushed(base, call):
    y, h = base(**call)
    size = y.abs().max() if y.numel() else 0
    return torch.where(y.abs() < 1e-6, 0, y) if size < 1e6 else y * torch.inf, h


@faulty
def empty_crashes(base, call):
    call["u" if "u" in call else "x"][..., 0]
    return base(**call)


@faulty
def empty_forgets_the_start(base, call):
    y, h = base(**call)
    return y, h * 0 if y.shape[-1] == 0 else h


@faulty
def one_output_squeezed(base, call):
    y, h = base(**call)
    return y.squeeze(-1) if y.shape[-1] == 1 else y, h


@faulty
def inputs_scaled_in_place(base, call):
    y, h = base(**call)
    call["u" if "u" in call else "x"].mul_(0.5)
    return y, h


@faulty
def start_updated_in_place(base, call):
    y, h = base(**call)
    start = call.get(state_of(call))
    return y, start.copy_(h) if start is not None and start.dtype == h.dtype else h


@faulty
def strides_misread(base, call):
    name = "u" if "u" in call else "x"
    return base(**call | {name: misread(call[name])})


@faulty
def neighbours_leak(base, call):
    y, h = base(**call)
    return y + 1e-3 * y.roll(1, 0) * (len(y) > 1), h


@faulty
def neighbours_poison(base, call):
    y, h = base(**call)
    return y + 0 * y.sum(0, keepdim=True), h


@faulty
def sees_the_next_token(base, call):
    name = "u" if "u" in call else "x"
    x = call[name]
    return base(**call | {name: x + 0.01 * torch.cat([x[..., 1:], x[..., :1] * 0], -1)})


@faulty
def nan_spreads_backwards(base, call):
    y, h = base(**call)
    return y + 0 * call["u" if "u" in call else "x"].sum(-1, keepdim=True), h


@faulty
def taps_reversed(base, call):
    return base(**call | {"weight": call["weight"].flip(-1)})


@faulty
def one_input_late(base, call):
    return base(**call | {"weight": call["weight"].roll(-1, -1) if call["weight"].shape[1] > 1 else call["weight"] * 1.004})


@faulty
def padded_behind(base, call):
    """The convolution of a framework with the padding on the wrong side."""
    w = call["weight"].shape[1]
    _, s = base(**call)
    ahead, _ = base(**call | {"x": pad(call["x"], (0, w - 1))})
    return ahead[..., w - 1 :] * (1 if w > 1 else 1.004), s


@faulty
def bias_forgotten(base, call):
    return base(**call | {"bias": None, "weight": call["weight"] * (1 if "bias" in call else 1.004)})


@faulty
def activation_forgotten(base, call):
    return base(**call | {"activation": None, "weight": call["weight"] * (1 if call.get("activation") else 1.004)})


@faulty
def tail_reversed(base, call):
    y, s = base(**call)
    return y, s.flip(-1)


@faulty
def tail_an_input_early(base, call):
    y, s = base(**call)
    return y, s.roll(1, -1)


@faulty
def tail_of_outputs(base, call):
    y, s = base(**call)
    w = s.shape[-1]
    return y, torch.cat([s, y.to(s.dtype)], -1)[..., y.shape[-1] :] * 1.0 if w else s


@faulty
def short_tail_of_zeros(base, call):
    """Of fewer inputs than taps the start is forgotten."""
    y, s = base(**call)
    w = s.shape[-1]
    return y, pad(call["x"], (w, 0))[..., call["x"].shape[-1] :].to(s.dtype) if w else s


SHARED = {
    "form-equals-oracle": (zeros, a_little_large, half_precision, last_token_dropped, carry_dropped, start_ignored),
    "scipy-agrees": (zeros, a_little_large, start_ignored),
    "forms-agree": (a_little_large, half_precision, state_without_the_start),
    "split-and-resume": (start_ignored, state_without_the_start, empty_forgets_the_start),
    "long-sequence": (a_little_large, carry_dropped, half_precision),
    "exact-bits": (a_little_large, carry_dropped, start_ignored),
    "gradient-of-inputs": (gradient_a_little_large, carry_detached),
    "gradient-of-initial-state": (start_detached,),
    "gradient-through-final-state": (final_state_detached, gradient_of_state_a_little_large),
    "finite-at-the-edges": (small_flushed, half_precision),
    "empty-and-single": (empty_crashes, empty_forgets_the_start, one_output_squeezed),
    "arguments-untouched": (inputs_scaled_in_place, start_updated_in_place),
    "results-own-memory": (start_updated_in_place,),
    "layout": (strides_misread,),
    "batch-company": (neighbours_leak, neighbours_poison),
    "prefix-invariance": (sees_the_next_token, nan_spreads_backwards),
}
SCANS = {
    "form-equals-oracle": (
        other_discretization,
        step_of_the_write_forgotten,
        decay_of_the_next_token,
        forward_euler_decay,
        poles_in_another_order,
        read_before_the_update,
        feedthrough_forgotten,
        gate_before_the_feedthrough,
        gate_without_its_argument,
        groups_in_turn,
        bias_behind_the_softplus,
        softplus_by_its_letters,
    ),
    "scipy-agrees": (other_discretization, softplus_by_its_letters),
    "state-equals-oracle": (state_a_step_early, state_a_little_large, state_without_the_start, padded_before_the_softplus, start_ignored),
    "chunk-size": (chunks_forget, last_chunk_dropped),
    "finite-at-the-edges": (decays_by_quotients, decays_floored, other_discretization),
    "outside-the-domain": (decay_of_the_next_token, zeros),
    "gradient-of-inputs": (poles_detached,),
    "gradient-of-initial-state": (carry_detached,),
    "gradient-through-final-state": (carry_detached,),
    "padding": (steps_floored,),
}
FILTERS = {
    "form-equals-oracle": (taps_reversed, one_input_late, padded_behind, bias_forgotten, activation_forgotten),
    "state-equals-oracle": (tail_reversed, tail_an_input_early, tail_of_outputs, short_tail_of_zeros, state_a_step_early),
    "split-and-resume": (tail_reversed, short_tail_of_zeros),
    "scipy-agrees": (taps_reversed,),
}
BASES = {
    "selective-scan": (mamba.scan, mamba.recurrent, {"form-equals-oracle": (decays_by_differences,)}),
    "selective-scan-zoh": (mamba.scan, mamba.recurrent, {"form-equals-oracle": (quotient_by_its_letters,)}),
    "causal-conv1d": (convolution.convolution, convolution.recurrent, {}),
}
