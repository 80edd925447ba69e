"""Faulty attention: each law must see faults of its kind, at both scales."""

import torch

from ..attending import frontier, scores, weighed
from ..planting import faulty, misread


@faulty
def zeros(base, call):
    return base(**call) * 0


@faulty
def mean_of_values(base, call):
    return base(**call | {"q": call["q"] * 0})


@faulty
def a_little_large(base, call):
    return base(**call) * 1.004


@faulty
def half_precision(base, call):
    return base(**call | {n: call[n].to(torch.bfloat16).to(call[n].dtype) for n in "qkv"})


@faulty
def scale_forgotten(base, call):
    return base(**call | {"scale": 1.0 if call.get("scale") is None else 0.5})


@faulty
def last_key_dropped(base, call):
    seen = torch.ones(call["k"].shape[:2], dtype=torch.bool)
    seen[:, -1:] = False
    mask = call.get("mask")
    return base(**call | {"mask": seen if mask is None else mask & (seen if mask.ndim == 2 else seen[:, None])})


@faulty
def top_left_frontier(base, call):
    s, seen, v, dtype = scores(call, 0)
    return weighed(s.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num(), v, dtype)


@faulty
def sees_the_next_key(base, call):
    s, seen, v, dtype = scores(call, call["k"].shape[1] - call["q"].shape[1] + 1)
    return weighed(s.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num(), v, dtype)


@faulty
def empty_rows_are_means(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    return weighed(s.masked_fill(~seen, torch.finfo(s.dtype).min).softmax(-1), v, dtype)


@faulty
def empty_rows_are_nan(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    return weighed(s.masked_fill(~seen, -torch.inf).softmax(-1), v, dtype)


@faulty
def no_shift_before_exp(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    p = torch.where(seen, s.float().exp(), 0)
    return weighed((p / p.sum(-1, keepdim=True).clamp(min=1e-30)).double(), v, dtype)


@faulty
def added_to_the_denominator(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    p = torch.where(seen, (s - s.max()).exp(), 0)
    return weighed(p / (p.sum(-1, keepdim=True) + 1e-3), v, dtype)


@faulty
def later_nan_leaks(base, call):
    later = call["v"].double().sum((1, 2, 3)).view(-1, 1, 1, 1) * 0
    return base(**call) + later.to(call["v"].dtype)


@faulty
def heads_tiled(base, call):
    groups = call["q"].shape[2] // call["k"].shape[2]
    return base(**call | {n: call[n].repeat(1, 1, groups, 1) for n in "kv"})


@faulty
def first_head_only(base, call):
    return base(**call | {n: call[n][:, :, :1].expand_as(call[n]) for n in "kv"})


@faulty
def heads_in_reverse(base, call):
    return base(**call | {n: call[n].flip(2) for n in "kv"})


@faulty
def keys_detached(base, call):
    return base(**call | {"k": call["k"].detach()})


@faulty
def first_value_detached(base, call):
    v = call["v"]
    return base(**call | {"v": torch.cat([v[:, :1].detach(), v[:, 1:]], 1)})


@faulty
def weights_detached(base, call):
    return base(**call | {"q": call["q"].detach(), "k": call["k"].detach()})


@faulty
def queries_scaled_in_place(base, call):
    o = base(**call)
    call["q"].mul_(0.5)
    return o


@faulty
def values_masked_in_place(base, call):
    o = base(**call)
    call["v"].zero_()
    return o


@faulty
def keys_sorted_in_place(base, call):
    o = base(**call)
    call["k"].copy_(call["k"].flip(1) * 2)
    return o


@faulty
def output_in_queries(base, call):
    o = base(**call)
    return call["q"].resize_(o.shape).copy_(o) if o.dtype == call["q"].dtype else o


@faulty
def output_in_values(base, call):
    o = base(**call)
    return call["v"].resize_(o.shape).copy_(o)


@faulty
def output_in_keys(base, call):
    o = base(**call)
    return call["k"].resize_(o.shape).copy_(o)


@faulty
def views_of_values(base, call):
    return base(**call | {"v": call["v"].view(-1).view(call["v"].shape)})


@faulty
def contiguous_was_assumed(base, call):
    return base(**call | {"k": misread(call["k"])})


@faulty
def queries_by_storage(base, call):
    q = call["q"]
    first = torch.empty(0, dtype=q.dtype).set_(q.untyped_storage())[: q.numel()]
    return base(**call | {"q": first.reshape(q.shape) if first.numel() == q.numel() else q})


@faulty
def neighbours_leak(base, call):
    o = base(**call)
    return o + 1e-3 * o.roll(1, 0) * (o.shape[0] > 1)


@faulty
def neighbours_poison(base, call):
    o = base(**call)
    return o + 0 * o.sum(0, keepdim=True)


@faulty
def largest_score_of_the_batch(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    p = torch.where(seen, (s - s.max()).exp(), 0)
    total = p.sum(-1, keepdim=True)
    return weighed(torch.where(total > 0, p / total, 0), v.nan_to_num(), dtype)


@faulty
def empty_crashes(base, call):
    call["q"][:, 0]
    return base(**call)


@faulty
def one_row_squeezed(base, call):
    o = base(**call)
    return o.squeeze(1) if o.shape[1] == 1 else o


@faulty
def first_row_doubled(base, call):
    o = base(**call)
    return torch.cat([o[:, :1] * 2, o[:, 1:]], 1) if o.shape[1] == 1 else o


PLANTED = {
    "form-equals-oracle": (
        zeros,
        mean_of_values,
        last_key_dropped,
        a_little_large,
        half_precision,
        scale_forgotten,
        empty_rows_are_means,
        empty_rows_are_nan,
    ),
    "scipy-agrees": (zeros, mean_of_values, a_little_large, scale_forgotten),
    "finite-at-the-edges": (empty_rows_are_means, empty_rows_are_nan, no_shift_before_exp, added_to_the_denominator),
    "group-map": (heads_tiled, first_head_only, heads_in_reverse),
    "gradient-of-inputs": (keys_detached, first_value_detached, weights_detached),
    "arguments-untouched": (queries_scaled_in_place, values_masked_in_place, keys_sorted_in_place),
    "results-own-memory": (output_in_queries, output_in_values, output_in_keys),
    "layout": (views_of_values, contiguous_was_assumed, queries_by_storage),
    "batch-company": (neighbours_leak, neighbours_poison, largest_score_of_the_batch),
}
CAUSAL = {
    "form-equals-oracle": (top_left_frontier, sees_the_next_key),
    "prefix-invariance": (sees_the_next_key, later_nan_leaks, top_left_frontier),
    "split-and-resume": (top_left_frontier, sees_the_next_key, empty_crashes),
    "empty-and-single": (empty_crashes, one_row_squeezed, first_row_doubled),
}
