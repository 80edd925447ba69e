"""Plain attention without any care, of which tests make wrong forms by changing one part."""


import torch

from isoform.impl import attention

BASES = {"attention": attention.masked, "full-attention": attention.full}


def scores(call, shift=None):
    """Scores, visibility, and values with heads repeated, of plain attention without any care."""
    q, k, v = (call[n].double() for n in "qkv")
    groups = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(groups, 2) for x in (k, v))
    scale = q.shape[-1] ** -0.5 if call.get("scale") is None else call["scale"]
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
    if shift is not None:
        seen = seen.tril(shift)
    if call.get("window_size"):
        seen = seen.triu(k.shape[1] - q.shape[1] - call["window_size"] + 1)
    mask = call.get("mask")
    if mask is not None:
        seen = seen & (mask[:, None] if mask.ndim == 2 else mask)
    return torch.einsum("bthd,bshd->bhts", q, k) * scale, seen if seen.ndim == 2 else seen[:, None], v, call["v"].dtype


def frontier(base, call):
    return call["k"].shape[1] - call["q"].shape[1] if base is attention.masked else None


def weighed(p, v, dtype):
    return torch.einsum("bhts,bshv->bthv", p, v).to(dtype)
