"""Rotations of pairs of features by angles that grow with the position: rotary embeddings, and retention's."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._common import accumulator, check

Positions = int | Int[Tensor, " b"] | Int[Tensor, "b t"]


def angles(where: str, like: Float[Tensor, "b t h d"], theta: Float[Tensor, " d/2"], offset: Positions) -> Float[Tensor, "#b t 1 d/2"]:
    """Position times theta, in float64, for the tokens offset, offset + 1, …; or for the positions themselves, (b, t).

    Raises
    ------
    TypeError
        An ``offset`` that is neither an int nor a tensor of integers.
    ValueError
        An ``offset`` of another shape or on another device.
    """
    b, t = like.shape[:2]
    if not isinstance(offset, Tensor):
        if not isinstance(offset, int | torch.SymInt) or isinstance(offset, bool):
            raise TypeError(f"{where}: offset must be an int, not {type(offset).__name__}.")
        position = (torch.arange(t, device=like.device) + offset)[None]
    else:
        check(where, {"offset": (offset, "b t" if offset.ndim == 2 else "b")}, (torch.int64, torch.int32))
        if tuple(offset.shape) not in ((b,), (b, t)):
            raise ValueError(f"{where}: offset has shape {tuple(offset.shape)}; the other arguments need (b={b},) or (b={b}, t={t}).")
        if offset.device != like.device:
            raise ValueError(f"{where}: offset is on {offset.device}, the first argument on {like.device}; one device is allowed.")
        position = offset if offset.ndim == 2 else torch.arange(t, device=like.device) + offset[:, None]
    return (position[..., None] * theta.double())[:, :, None]


def turn(x: Float[Tensor, "b t h d"], angle: Float[Tensor, "#b t 1 d/2"], *, halves: bool = False) -> Float[Tensor, "b t h d"]:
    """Turn features 2i and 2i + 1, or i and i + d/2 where ``halves``, by angle i."""
    wide = x.to(accumulator(x))
    cos, sin = angle.cos().to(wide.dtype), angle.sin().to(wide.dtype)
    pairs = wide.unflatten(-1, (2, -1)).transpose(-1, -2) if halves else wide.unflatten(-1, (-1, 2))
    a, b = pairs.unbind(-1)
    turned = (a * cos - b * sin, a * sin + b * cos)
    return (torch.cat(turned, -1) if halves else torch.stack(turned, -1).flatten(-2)).to(x.dtype)
