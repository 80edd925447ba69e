"""Decay inside a chunk: what is left of a token's write at a later token, at the chunk's end, and of the chunk's start.

Every exponent is a sum of log-gates taken from where it begins to where it ends, so small gates are kept beside large
ones and -∞ is never subtracted from -∞. A difference of two running sums would do neither.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Decay(NamedTuple):
    """Products of the gates of a chunk; the axes b, h and m may be 1 where a product does not depend on them."""

    within: Float[Tensor, "b h m c c"]
    """Of the gates j < s <= i in row j, column i: what is left at i of the write at j; 0 below the diagonal."""
    begun: Float[Tensor, "b h m c 1"]
    """Of the gates s <= i: what is left at i of the state before the chunk."""
    ended: Float[Tensor, "b h m c 1"]
    """Of the gates s > j: what is left in the state after the chunk of the write at j."""
    whole: Float[Tensor, "b h m 1 1"]
    """Of all gates."""


def gated(g: Float[Tensor, "b h m c 1"]) -> Decay:
    """The decay of a log-gate per token. A missing token has the gate 0."""
    g = g.squeeze(-1)
    later = torch.nn.functional.pad(g, (0, 1))[..., 1:]
    sums = g.cumsum(-1)[..., None], later.flip(-1).cumsum(-1).flip(-1)[..., None], g.sum(-1)[..., None, None]
    return Decay(segments(g).exp_().triu(), *(x.exp_() for x in sums))


def segments(g: Float[Tensor, "*b c"]) -> Float[Tensor, "*b c c"]:
    """The sums of g over j < s <= i in row j, column i; 0 below the diagonal."""
    return g.unsqueeze(-2).expand(*g.shape, g.shape[-1]).triu(1).cumsum(-1)


def powers(g: Float[Tensor, " h"], c: int) -> Float[Tensor, "h c+1"]:
    """The products of 0, 1, …, c gates of a log-gate per head: n of them add up to n·g in one rounding."""
    n = torch.arange(c + 1, device=g.device)
    return (torch.where(n > 0, g[:, None], 0.0) * n).exp()


def constant(power: Float[Tensor, "h c+1"]) -> Decay:
    """The decay of a gate per head with these powers, in a chunk of c tokens."""
    c = power.shape[1] - 1
    shifted = torch.nn.functional.pad(power[:, :c], (max(c - 1, 0), 0)).unfold(-1, c, 1).flip(-2)
    power = power[None, :, None, :, None]
    return Decay(shifted[None, :, None], power[:, :, :, 1:], power[:, :, :, :c].flip(-2), power[:, :, :, c:])


def shortened(decay: Decay, power: Float[Tensor, "h c+1"], present: Float[Tensor, "1 1 m c 1"]) -> Decay:
    """The constant decay where ``present`` is 1 for a token and 0 for none, which come last."""
    c = present.shape[3]
    tokens = present.sum((0, 1, 3, 4)).long()
    left = (tokens[:, None] - 1 - torch.arange(c, device=power.device)).clamp(min=0)
    return decay._replace(ended=power[:, left][None, ..., None], whole=power[:, tokens][None, ..., None, None])
