"""Faulty forms of linear attention and the delta rule: each law must see those of its kind, at both scales."""

from functools import wraps

import torch

from isoform.impl import delta_rule, linear_attention

from ..planting import Backward, faulty, louder, misread

BASES = {"linear-attention": linear_attention, "delta-rule": delta_rule}


def part(call, start, stop, state=None):
    """The call on tokens start..stop-1, entered with a state."""
    cut = {n: x[:, start:stop] if n in ("q", "k", "v", "beta") else x for n, x in call.items()}
    return cut | {"initial_state": state, "output_final_state": True}


def length(call):
    return call["q"].shape[1]


def in_parts(base, call, size, between=lambda state: state):
    """The form run in parts of a size, with something done to the state in between."""
    state, out = call.get("initial_state"), []
    for start in range(0, max(length(call), 1), size):
        o, state = base(**part(call, start, start + size, state if start == 0 else between(state)))
        out.append(o)
    return torch.cat(out, 1), state


def changed(call, **new):
    return call | {n: new[n] for n in new if call.get(n) is not None}


# outputs --------------------------------------------------------------------------------------------


@faulty
def zeros(base, call):
    o, s = base(**call)
    return o * 0, s


@faulty
def mean(base, call):
    o, s = base(**call)
    return o.mean(1, keepdim=True).expand_as(o), s


@faulty
def last_token_dropped(base, call):
    o, s = base(**call)
    return torch.cat([o[:, :-1], o[:, -1:] * 0], 1), s


@faulty
def carry_dropped(base, call):
    return in_parts(base, call, call.get("chunk_size", 4), lambda s: s * 0)


@faulty
def swapped(base, call):
    return base(**call | {"q": call["k"], "k": call["q"]})


@faulty
def half_precision(base, call):
    low = {n: x.to(torch.bfloat16) for n, x in call.items() if isinstance(x, torch.Tensor) and x.is_floating_point()}
    o, s = base(**call | {n: x.to(call[n].dtype) for n, x in low.items()})
    return o.to(torch.bfloat16).to(o.dtype), s


@faulty
def a_little_large(base, call):
    o, s = base(**call)
    return o * 1.004, s


@faulty
def scale_forgotten(base, call):
    return base(**call | {"scale": 1.0 if call.get("scale") is None else 2.0})


@faulty
def start_ignored(base, call):
    return base(**call | {"initial_state": None})


@faulty
def tail_without_carry(base, call):
    size = call.get("chunk_size", 4)
    whole = length(call) // size * size
    if whole in (0, length(call)):
        return base(**call)
    (a, s), (b, t) = base(**part(call, 0, whole, call.get("initial_state"))), base(**part(call, whole, length(call)))
    return torch.cat([a, b], 1), s + t


@faulty
def one_bit_off(base, call):
    o, s = base(**call)
    return o * (1 + 2 * torch.finfo(o.dtype).eps), s


# states ---------------------------------------------------------------------------------------------


@faulty
def state_a_token_early(base, call):
    o, s = base(**call)
    return o, base(**part(call, 0, max(0, length(call) - 1), call.get("initial_state")))[1] if s is not None else None


@faulty
def state_a_little_large(base, call):
    o, s = base(**call)
    return o, None if s is None else s * 1.004


@faulty
def state_transposed(base, call):
    o, s = base(**call)
    return o, None if s is None else s.mT


@faulty
def state_in_half_precision(base, call):
    o, s = base(**call)
    return o, None if s is None else s.to(torch.bfloat16).to(s.dtype)


@faulty
def no_state(base, call):
    return base(**call)[0], None


# long sequences -------------------------------------------------------------------------------------


@faulty
def carry_in_half_precision(base, call):
    return in_parts(base, call, 64, lambda s: s.to(torch.bfloat16).to(s.dtype))


@faulty
def carry_leaks_away(base, call):
    return in_parts(base, call, 16, lambda s: s * 0.998)


@faulty
def older_than_256_forgotten(base, call):
    if length(call) <= 256:
        return base(**call)
    return in_parts(base, call, 256, lambda s: s * 0)


# chunks ---------------------------------------------------------------------------------------------


@faulty
def short_chunks_ignore_the_start(base, call):
    return base(**call | ({"initial_state": None} if length(call) < call.get("chunk_size", 64) else {}))


@faulty
def last_of_a_chunk_lost(base, call):
    size = call["chunk_size"]
    keep = torch.arange(length(call)) % size != size - 1
    return base(**call | {"v": call["v"] * keep.view(1, -1, 1, 1)})


@faulty
def chunks_of_one_crash(base, call):
    if call["chunk_size"] == 1:
        raise ZeroDivisionError("a chunk of one token")
    return base(**call)


@faulty
def carry_detached(base, call):
    return in_parts(base, call, 2, torch.Tensor.detach)


@faulty
def keys_detached(base, call):
    return base(**call | {"k": call["k"].detach()})


@faulty
def gradient_a_little_large(base, call):
    return base(**call | {"v": louder(call["v"]), "q": louder(call["q"])})


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
    o, s = base(**call)
    return o, None if s is None else s.detach()


@faulty
def gradient_of_state_a_little_large(base, call):
    o, s = base(**call)
    return o, None if s is None else louder(s)


@faulty
def last_value_detached_in_state(base, call):
    o, s = base(**call)
    v = torch.cat([call["v"][:, :-1], call["v"][:, -1:].detach()], 1)
    return o, None if s is None else base(**call | {"v": v})[1]


@faulty
def gradient_in_float32_a_little_large(base, call):
    return base(**call | ({"v": louder(call["v"])} if call["v"].dtype == torch.float32 else {}))


@faulty
def gradient_of_long_ones_a_little_large(base, call):
    return base(**call | ({"v": louder(call["v"])} if length(call) > 20 else {}))


@faulty
def another_answer_while_recording(base, call):
    o, s = base(**call)
    return o * 1.004 if call["q"].requires_grad else o, s


@faulty
def packed_values_detached(base, call):
    return base(**call | ({} if call.get("cu_seqlens") is None else {"v": call["v"].detach()}))


@faulty
def packed_gradient_a_little_large(base, call):
    return base(**call | ({} if call.get("cu_seqlens") is None else {"q": louder(call["q"])}))


@faulty
def packed_starts_detached(base, call):
    return base(**call | ({} if call.get("cu_seqlens") is None else {"initial_state": call["initial_state"].detach()}))


def halved(x):
    """The identity, with half the gradient."""
    return Backward.apply(x, 0.5)


class Contiguous(torch.autograd.Function):
    """The identity, with a gradient that is right if it, and the tensor, lie in memory without gaps."""

    @staticmethod
    def forward(ctx, x):
        ctx.right = x.is_contiguous()
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g if ctx.right and g.is_contiguous() else g / 2


class Overwriting(torch.autograd.Function):
    """The identity, whose backward pass computes in place."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        found = g.clone()
        g.mul_(0.5)
        return found


@faulty
def carry_gradient_halved_every_64_tokens(base, call):
    return base(**call) if call.get("cu_seqlens") is not None else in_parts(base, call, 64, halved)


@faulty
def strides_of_the_gradient_misread(base, call):
    o, s = base(**call)
    return Contiguous.apply(o), s


@faulty
def strides_of_keys_misread_backwards(base, call):
    return base(**call | {"k": Contiguous.apply(call["k"])})


@faulty
def incoming_gradient_overwritten(base, call):
    o, s = base(**call)
    return Overwriting.apply(o), s


@faulty
def another_state_while_recording(base, call):
    o, s = base(**call)
    return o, s if s is None or not call["q"].requires_grad else s + (0.01 * s).detach()


@faulty
def another_packed_answer_while_recording(base, call):
    o, s = base(**call)
    return (o + (0.01 * o).detach() if call["q"].requires_grad and call.get("cu_seqlens") is not None else o), s


# options --------------------------------------------------------------------------------------------


@faulty
def any_scale_is_one(base, call):
    return base(**changed(call, scale=1.0))


@faulty
def wide_heads_cut_off(base, call):
    o, s = base(**call)
    return (o if call["q"].shape[-1] <= 128 else o * 0), s


@faulty
def wide_values_cut_off(base, call):
    o, s = base(**call)
    return (o if call["v"].shape[-1] <= 128 else o * 0), s


@faulty
def zeros_where_no_state_is_asked_for(base, call):
    o, s = base(**call)
    return (o if call["output_final_state"] else o * 0), s


@faulty
def last_token_lost_where_no_state_is_asked_for(base, call):
    o, s = base(**call)
    return (o if call["output_final_state"] else torch.cat([o[:, :-1], o[:, -1:] * 0], 1)), s


@faulty
def start_ignored_where_no_state_is_asked_for(base, call):
    return base(**call | ({} if call["output_final_state"] else {"initial_state": None}))


# edges ----------------------------------------------------------------------------------------------


@faulty
def through_float16(base, call):
    o, s = base(**call | {"v": call["v"].to(torch.float16).to(call["v"].dtype)})
    return o, s


@faulty
def values_clamped(base, call):
    return base(**call | {"v": call["v"].clamp(-1e6, 1e6) + 1e-6})


@faulty
def small_flushed(base, call):
    o, s = base(**call)
    return torch.where(o.abs() < 1e-12, 0, o).clamp(-1e15, 1e15), s


@faulty
def empty_crashes(base, call):
    call["q"][:, 0]
    return base(**call)


@faulty
def empty_forgets_the_start(base, call):
    o, s = base(**call)
    return o, s * 0 if length(call) == 0 and s is not None else s


@faulty
def one_token_squeezed(base, call):
    o, s = base(**call)
    return o.squeeze(1) if length(call) == 1 else o, s


# memory ---------------------------------------------------------------------------------------------


@faulty
def values_overwritten(base, call):
    o, s = base(**call)
    call["v"].copy_(o)
    return call["v"], s


@faulty
def start_updated_in_place(base, call):
    o, s = base(**call)
    start = call.get("initial_state")
    return o, s if start is None or s is None or start.dtype != s.dtype else start.copy_(s)


@faulty
def queries_scaled_in_place(base, call):
    o, s = base(**call)
    call["q"].mul_(0.5)
    return o, s


@faulty
def output_in_queries(base, call):
    o, s = base(**call)
    return (call["q"].resize_(o.shape).copy_(o), s) if call["q"].dtype == o.dtype else (o, s)


class Remembers:
    """A form that answers differently the second time."""

    calls = 0


@faulty
def remembers(base, call):
    Remembers.calls += 1
    o, s = base(**call)
    return o * (1 + Remembers.calls % 2), s


@faulty
def strides_of_values_misread(base, call):
    return base(**call | {"v": misread(call["v"])})


@faulty
def strides_of_keys_misread(base, call):
    return base(**call | {"k": misread(call["k"])})


@faulty
def views_of_values(base, call):
    return base(**call | {"v": call["v"].view(-1).view(call["v"].shape)})


@faulty
def heads_tiled(base, call):
    groups = call["v"].shape[2] // call["q"].shape[2]
    return base(**call | {n: call[n].repeat(1, 1, groups, 1) for n in ("q", "k")})


@faulty
def first_head_only(base, call):
    return base(**call | {n: call[n][:, :, :1].expand_as(call[n]) for n in ("q", "k")})


@faulty
def groups_in_reverse(base, call):
    o, s = base(**call | {n: call[n].flip(2) for n in ("q", "k")})
    return o, s


@faulty
def neighbours_leak(base, call):
    o, s = base(**call)
    return o + 1e-3 * o.roll(1, 0) * (o.shape[0] > 1), s


@faulty
def neighbours_poison(base, call):
    o, s = base(**call)
    return o + 0 * o.sum(0, keepdim=True), s


@faulty
def scaled_by_the_batch(base, call):
    size = call["v"].abs().max() if call["v"].numel() else 1
    o, s = base(**call | {"v": call["v"] / (3 * size + 1e-30)})
    return o * (3 * size + 1e-30), s


# packing --------------------------------------------------------------------------------------------


@faulty
def offsets_ignored(base, call):
    if call.get("cu_seqlens") is None:
        return base(**call)
    n = len(call["cu_seqlens"]) - 1
    start = call.get("initial_state")
    o, s = base(**call | {"cu_seqlens": None, "initial_state": None if start is None else start[:1]})
    return o, s.expand(n, *s.shape[1:])


@faulty
def one_state_for_all(base, call):
    o, s = base(**call)
    return o, s[-1:].expand_as(s) if call.get("cu_seqlens") is not None and s is not None else s


@faulty
def offsets_off_by_one(base, call):
    cu = call.get("cu_seqlens")
    if cu is None:
        return base(**call)
    moved = cu.clone()
    moved[1:-1] = (cu[1:-1] + 1).clamp(max=int(cu[-1]))
    return base(**call | {"cu_seqlens": moved})


# time -----------------------------------------------------------------------------------------------


@faulty
def sees_the_next_token(base, call):
    v = call["v"]
    return base(**call | {"v": v + 0.01 * torch.cat([v[:, 1:], v[:, :1] * 0], 1)})


@faulty
def normalised_over_time(base, call):
    o, s = base(**call)
    top = o.abs().amax(1, keepdim=True)
    return torch.where(top == 0, o, o / top * top), s


@faulty
def masked_product_keeps_nan(base, call):
    o, s = base(**call)
    later = call["v"].flip(1).cumsum(1).flip(1).sum((2, 3), keepdim=True)
    return o + 0 * later, s


# one step -------------------------------------------------------------------------------------------


def step_forgets_to_write(step):
    def form(state=None, **call):
        o, new = step(state=state, **call)
        return o, new * 0 if state is None else state

    return wraps(step)(form)


def step_reads_first(step):
    def form(state=None, **call):
        idle = {"beta": call["beta"] * 0} if "beta" in call else {"v": call["v"] * 0}
        return step(state=state, **call | idle)[0], step(state=state, **call)[1]

    return wraps(step)(form)


def step_in_half_precision(step):
    def form(**call):
        o, new = step(**call)
        return o, new.to(torch.bfloat16).to(new.dtype)

    return wraps(step)(form)


def step_a_little_large(step):
    def form(**call):
        o, new = step(**call)
        return o * 1.004, new

    return wraps(step)(form)


@faulty
def third_state_of_the_second(base, call):
    o, s = base(**call)
    return o, None if s is None or len(s) < 3 else torch.cat([s[:2], s[1:2], s[3:]])


@faulty
def wide_offsets_misread(base, call):
    offsets = call.get("cu_seqlens")
    if offsets is None or offsets.dtype == torch.int32:
        return base(**call)
    first = min((n for n in offsets.tolist() if n), default=0)
    return base(**call | {"cu_seqlens": torch.where(offsets == first, 0, offsets)})


def emptied(states, chosen):
    """The states with 0 where packed sequences are the chosen ones."""
    return states * (~torch.as_tensor(chosen)).to(states.dtype).view(-1, 1, 1, 1)


def state_of_some_packed_lost(chosen):
    """A form that hands out 0 for the packed sequences that are chosen by their lengths and the chunk size."""

    @faulty
    def form(base, call):
        o, s = base(**call)
        return o, s if call.get("cu_seqlens") is None else emptied(s, chosen(call["cu_seqlens"].diff(), call["chunk_size"]))

    form.__name__ = chosen.__name__
    return form


@state_of_some_packed_lost
def empty_ones_lost(lengths, size):
    return lengths == 0


@state_of_some_packed_lost
def empty_first_lost(lengths, size):
    return (lengths == 0) & (torch.arange(len(lengths)) == 0)


@state_of_some_packed_lost
def empty_last_lost(lengths, size):
    return (lengths == 0) & (torch.arange(len(lengths)) == len(lengths) - 1)


@state_of_some_packed_lost
def empty_after_empty_lost(lengths, size):
    return (lengths == 0) & (torch.nn.functional.pad(lengths, (1, 0), value=1)[:-1] == 0) & (torch.arange(len(lengths)) > 1)


@state_of_some_packed_lost
def whole_chunks_lost(lengths, size):
    return (lengths > 0) & (lengths % size == 0) & torch.tensor(size > 2)


@state_of_some_packed_lost
def one_more_than_a_chunk_lost(lengths, size):
    return (lengths > 1) & (lengths % size == 1) & torch.tensor(size > 2)


@faulty
def start_updated_where_packed(base, call):
    o, s = base(**call)
    start = call.get("initial_state")
    if call.get("cu_seqlens") is not None and start is not None:
        start.copy_(s)
    return o, s


@faulty
def offsets_moved(base, call):
    found = base(**call)
    if call.get("cu_seqlens") is not None:
        call["cu_seqlens"].add_(1)
    return found


@faulty
def start_as_short_as_the_inputs(base, call):
    start = call.get("initial_state")
    return base(**call | {"initial_state": None if start is None else start.to(call["q"].dtype).to(start.dtype)})


@faulty
def last_of_64_lost(base, call):
    if length(call) == 0 or length(call) % 64 or call.get("cu_seqlens") is not None:
        return base(**call)
    v = torch.cat([call["v"][:, :-1], call["v"][:, -1:] * 0], 1)
    return base(**call | {"v": v})


@faulty
def short_state_where_packed(base, call):
    o, s = base(**call)
    return o, s if call.get("cu_seqlens") is None else s.to(o.dtype)


@faulty
def nan_of_state_swallowed(base, call):
    o, s = base(**call)
    return o, None if s is None else torch.nan_to_num(s)


@faulty
def nan_swallowed(base, call):
    o, s = base(**call)
    return torch.nan_to_num(o), s


PLANTED = {
    "form-equals-oracle": (
        zeros,
        mean,
        last_token_dropped,
        carry_dropped,
        swapped,
        half_precision,
        a_little_large,
        scale_forgotten,
        start_ignored,
        tail_without_carry,
        any_scale_is_one,
    ),
    "state-equals-oracle": (
        state_a_token_early,
        state_a_little_large,
        state_transposed,
        state_in_half_precision,
        no_state,
        start_ignored,
        last_of_64_lost,
        start_as_short_as_the_inputs,
    ),
    "exact-bits": (one_bit_off, swapped, last_token_dropped, state_a_token_early),
    "long-sequence": (carry_in_half_precision, carry_leaks_away, older_than_256_forgotten),
    "forms-agree": (zeros, a_little_large, start_ignored, state_a_token_early),
    "chunk-size": (carry_dropped, tail_without_carry, last_of_a_chunk_lost, chunks_of_one_crash, short_chunks_ignore_the_start),
    "gradient-of-inputs": (
        carry_detached,
        keys_detached,
        gradient_a_little_large,
        gradient_in_float32_a_little_large,
        gradient_of_long_ones_a_little_large,
        another_answer_while_recording,
        another_state_while_recording,
        carry_gradient_halved_every_64_tokens,
        strides_of_the_gradient_misread,
        strides_of_keys_misread_backwards,
        incoming_gradient_overwritten,
    ),
    "gradient-of-packed": (
        packed_values_detached,
        packed_gradient_a_little_large,
        packed_starts_detached,
        another_packed_answer_while_recording,
        incoming_gradient_overwritten,
    ),
    "state-on-request": (
        zeros_where_no_state_is_asked_for,
        last_token_lost_where_no_state_is_asked_for,
        start_ignored_where_no_state_is_asked_for,
    ),
    "gradient-of-initial-state": (start_detached, gradient_of_start_a_little_large, carry_detached),
    "gradient-through-final-state": (final_state_detached, gradient_of_state_a_little_large, last_value_detached_in_state, carry_detached),
    "finite-at-the-edges": (through_float16, values_clamped, small_flushed),
    "empty-and-single": (empty_crashes, empty_forgets_the_start, one_token_squeezed, start_ignored),
    "result-dtypes": (short_state_where_packed,),
    "arguments-untouched": (
        values_overwritten,
        start_updated_in_place,
        queries_scaled_in_place,
        remembers,
        start_updated_where_packed,
        offsets_moved,
    ),
    "results-own-memory": (values_overwritten, start_updated_in_place, output_in_queries),
    "layout": (strides_of_values_misread, strides_of_keys_misread, views_of_values),
    "group-map": (heads_tiled, first_head_only, groups_in_reverse),
    "batch-company": (neighbours_leak, neighbours_poison, scaled_by_the_batch, third_state_of_the_second),
    "packed-equals-alone": (
        offsets_ignored,
        one_state_for_all,
        offsets_off_by_one,
        wide_offsets_misread,
        empty_ones_lost,
        empty_first_lost,
        empty_last_lost,
        empty_after_empty_lost,
        whole_chunks_lost,
        one_more_than_a_chunk_lost,
    ),
    "prefix-invariance": (sees_the_next_token, normalised_over_time, masked_product_keeps_nan, nan_swallowed, nan_of_state_swallowed),
    "split-and-resume": (start_ignored, state_a_token_early, empty_forgets_the_start),
}
STEPS = (step_forgets_to_write, step_reads_first, step_in_half_precision, step_a_little_large)
