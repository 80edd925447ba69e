"""Attention that sees what it should not, or not all that it should, and blocks that are not put together: each law sees its own."""

import torch

from ..attending import BASES, frontier, scores, weighed
from ..planting import faulty


def softmax(s, seen):
    return s.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num()


@faulty
def window_a_key_wider(base, call):
    return base(**call | ({"window_size": call["window_size"] + 1} if call.get("window_size") else {}))


@faulty
def window_a_key_narrower(base, call):
    return base(**call | ({"window_size": max(1, call["window_size"] - 1)} if call.get("window_size") else {}))


@faulty
def window_ignored(base, call):
    return base(**call | {"window_size": None})


@faulty
def window_from_the_first_key(base, call):
    width = call.pop("window_size", None)
    if width is None:
        return base(**call)
    t, s = call["q"].shape[1], call["k"].shape[1]
    seen = torch.ones(t, s, dtype=torch.bool).triu(1 - width)
    mask = call.get("mask")
    shown = seen if mask is None else seen & (mask[:, None] if mask.ndim == 2 else mask)
    return base(**call | {"mask": shown.expand(call["q"].shape[0], t, s)})


@faulty
def sees_the_next_key(base, call):
    s, seen, v, dtype = scores(call, call["k"].shape[1] - call["q"].shape[1] + 1)
    return weighed(softmax(s, seen), v, dtype)


@faulty
def top_left_frontier(base, call):
    s, seen, v, dtype = scores(call, 0)
    return weighed(softmax(s, seen), v, dtype)


@faulty
def zero_times_nan(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    return weighed(softmax(s, seen), v, dtype)


@faulty
def nan_is_silenced(base, call):
    return base(**call | {n: call[n].nan_to_num() for n in "kv"})


@faulty
def first_key_unseen(base, call):
    mask = call.get("mask")
    seen = torch.ones(call["k"].shape[:2], dtype=torch.bool)
    seen[:, :1] = False
    return base(**call | {"mask": seen if mask is None else mask & (seen if mask.ndim == 2 else seen[:, None])})


@faulty
def mask_ignored(base, call):
    return base(**call | {"mask": None})


@faulty
def mask_hides_values_alone(base, call):
    mask = call.get("mask")
    if mask is None or mask.ndim == 3:
        return base(**call)
    return base(**call | {"mask": None, "v": call["v"].masked_fill(~mask[:, :, None, None], 0)})


@faulty
def mask_is_a_penalty(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    return weighed((s - 10.0 * ~seen).softmax(-1), v, dtype)


@faulty
def mask_of_the_first_sequence(base, call):
    mask = call.get("mask")
    return base(**call | {"mask": None if mask is None else mask[:1].expand_as(mask)})


@faulty
def mask_a_key_late(base, call):
    mask = call.get("mask")
    return base(**call | {"mask": None if mask is None else mask.roll(1, -1)})


@faulty
def softmax_of_nothing(base, call):
    clean = {n: call[n].nan_to_num(0, 0, 0) for n in "kv"}
    s, seen, v, dtype = scores(call | clean, frontier(base, call))
    return weighed((s + torch.where(seen, 0, -torch.inf)).softmax(-1).nan_to_num(), v, dtype)


@faulty
def hidden_keys_times_zero(base, call):
    s, seen, v, dtype = scores(call | {"v": call["v"].nan_to_num()}, frontier(base, call))
    s = torch.where(seen, s, -1e300)
    return weighed(torch.where(seen.any(-1, keepdim=True), s.softmax(-1), 0), v, dtype)


@faulty
def every_value_has_a_gradient(base, call):
    o, v = base(**call), call["v"]
    mean = v.where(v.isfinite(), 0).sum((1, 2, 3), keepdim=True)
    return o + (mean - mean.detach())


SIGHT = (zero_times_nan, nan_is_silenced, first_key_unseen, mask_ignored)
PADDING = (zero_times_nan, mask_ignored, mask_hides_values_alone, mask_is_a_penalty, mask_a_key_late, mask_of_the_first_sequence)
BEHIND = (softmax_of_nothing, hidden_keys_times_zero, every_value_has_a_gradient)
WINDOW = (window_a_key_wider, window_a_key_narrower, window_ignored)
PAIRS = [
    (name, law, f)
    for name in BASES
    for law, fs in (("sight", SIGHT), ("padding-mask", PADDING), ("gradient-behind-the-mask", BEHIND))
    for f in fs
]
PAIRS += [("attention", law, f) for law in ("window", "sight", "form-equals-oracle") for f in WINDOW]
PAIRS += [("attention", "sight", f) for f in (sees_the_next_key, top_left_frontier, window_from_the_first_key)]


def online(fault):
    """An online softmax over blocks of keys, with one fault or none."""

    def form(q, k, v, scale=None, mask=None, window_size=None, chunk_size=4):
        call = {"q": q, "k": k, "v": v, "scale": scale, "mask": mask, "window_size": window_size}
        s, seen, values, dtype = scores(call, k.shape[1] - q.shape[1])
        s, values = s.masked_fill(~seen, -torch.inf), values.nan_to_num().transpose(1, 2)
        largest, total = s.new_full((*s.shape[:-1], 1), torch.finfo(s.dtype).min), s.new_zeros(*s.shape[:-1], 1)
        o = s.new_zeros(*s.shape[:-1], v.shape[-1])
        end = k.shape[1] // chunk_size * chunk_size if fault == "ragged tail skipped" else k.shape[1]
        for n in range(0, end, chunk_size):
            part, below = s[..., n : n + chunk_size], values[:, :, n : n + chunk_size]
            if fault == "tail padded with zeros":
                room = chunk_size - part.shape[-1]
                part, below = torch.nn.functional.pad(part, (0, room)), torch.nn.functional.pad(below, (0, 0, 0, room))
            before, largest = largest, torch.maximum(largest, part.amax(-1, keepdim=True))
            p, kept = (part - largest).exp(), (before - largest).exp()
            total = total * (1 if fault == "sum not rescaled" else kept) + p.sum(-1, keepdim=True)
            o = o * (1 if fault == "output not rescaled" else kept) + p @ below
            if fault == "blocks averaged":
                o, total = o / total, torch.ones_like(total)
        return torch.where(total > 0, o / total, 0).transpose(1, 2).to(dtype)

    return form


@faulty
def sums_in_the_dtype(base, call):
    s, seen, v, dtype = scores(call, frontier(base, call))
    p, v = softmax(s, seen).to(dtype), v.to(dtype)
    o = p.new_zeros(*call["q"].shape[:3], v.shape[-1])
    for j in range(v.shape[1]):
        o = o + p[..., j].transpose(1, 2)[..., None] * v[:, j, None]
    return o
