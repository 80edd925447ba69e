"""The block of Mamba-2: the state of a head decays by one number, so the scan is gated retention, chunk by chunk.

Dao and Gu 2024 (arXiv:2405.21060), section 7.1 and figure 6, as in the released code: one projection to z, x, B, C and the
steps; a causal convolution with silu over x, B and C; S_t = e^{Δ_t A} S_{t-1} + Δ_t B_t x_tᵀ, y_t = S_tᵀ C_t + D x_t, with a
number A = -e^{A_log} for each head; then the root mean square norm of y · silu(z) in each group, and a projection back.

Symbols: b batch, t tokens, m model features, h heads of p features each, d = h·p, g groups of heads that share B and C, n
states, w taps, c = d + 2·g·n channels of the convolution.

Dtypes and errors are those of `isoform.impl.mamba.block`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import silu

from .. import gated_retention
from .._common import accumulator, check, check_groups, check_positive
from . import convolution
from .block import Draw
from .selective import softplus


@dataclass(frozen=True)
class Block:
    """The weights of a block; ``inward`` has the columns of z, x, B, C and the steps, one after the other."""

    inward: Float[Tensor, "m d+c+h"]
    conv: Float[Tensor, "c w"]
    conv_bias: Float[Tensor, " c"]
    step_bias: Float[Tensor, " h"]
    A_log: Float[Tensor, " h"]
    D: Float[Tensor, " h"]
    gain: Float[Tensor, " d"]
    outward: Float[Tensor, "d m"]
    groups: int = 1
    eps: float = 1e-5


class State(NamedTuple):
    """What decoding keeps of the tokens so far: the last inputs of the convolution, and the state of each head."""

    conv: Float[Tensor, "b c w-1"]
    heads: Float[Tensor, "b h n p"]


def forward(x: Float[Tensor, "b t m"], weights: Block) -> Float[Tensor, "b t m"]:
    """All tokens at once."""
    return extend(x, weights)[0]


def extend(x: Float[Tensor, "b t m"], weights: Block, state: State | None = None) -> tuple[Float[Tensor, "b t m"], State]:
    """Several new tokens after those of the state, None being none: (what `forward` has in their places, new state)."""
    where = "mamba.ssd.extend"
    check(where, {"x": (x, "b t m")})
    w = _entered(where, x, weights)
    z, inner, steps = _inward(x, w)
    conv, heads = (None, None) if state is None else state
    inner, conv = convolution.convolution(inner.mT, w.conv, w.conv_bias, conv, True, "silu")
    v, write, g, q, k = _written(inner.mT, steps, w)
    o, heads = gated_retention.chunkwise(q, k, write, g, scale=1.0, initial_state=heads, output_final_state=True)
    assert heads is not None
    return _outward(o, v, z, w).to(x.dtype), State(conv, heads)


def step(x: Float[Tensor, "b m"], weights: Block, state: State | None = None) -> tuple[Float[Tensor, "b m"], State]:
    """One new token: (what `forward` has in its place, new state). The old state is left as it was."""
    where = "mamba.ssd.step"
    check(where, {"x": (x, "b m")})
    w = _entered(where, x, weights)
    z, inner, steps = _inward(x, w)
    conv, heads = (None, None) if state is None else state
    inner, conv = convolution.step(inner, w.conv, w.conv_bias, conv, "silu")
    v, write, g, q, k = _written(inner, steps, w)
    o, heads = gated_retention.step(q, k, write, g, heads, 1.0)
    return _outward(o, v, z, w).to(x.dtype), State(conv, heads)


def init(
    generator: torch.Generator,
    *,
    width: int,
    heads: int,
    head_size: int = 64,
    states: int = 128,
    groups: int = 1,
    taps: int = 4,
    dtype: torch.dtype = torch.float32,
) -> Block:
    """Random weights on the generator's device that ask for a gradient.

    As `isoform.impl.mamba.block.init`, but A is between -1 and -16, evenly, and the gain of the norm is 1.
    """
    draw, d = Draw(generator, dtype), heads * head_size
    c = d + 2 * groups * states
    poles = torch.rand(heads, generator=generator, dtype=torch.float64, device=generator.device) * 15 + 1
    inward, conv = draw.normal(width, d + c + heads, summands=width), draw.normal(c, taps, summands=taps)
    conv_bias, through, gain = (draw.leaf(x) for x in (torch.zeros(c), torch.ones(heads), torch.ones(d)))
    outward = draw.normal(d, width, summands=d)
    return Block(inward, conv, conv_bias, draw.steps(heads), draw.leaf(poles.log()), through, gain, outward, groups)


def _entered(where: str, x: Tensor, w: Block) -> Block:
    """The weights in the dtype of the sums, checked."""
    names = {"conv": (w.conv, "c w"), "conv_bias": (w.conv_bias, "c"), "step_bias": (w.step_bias, "h"), "A_log": (w.A_log, "h")}
    names |= {"D": (w.D, "h"), "gain": (w.gain, "d"), "outward": (w.outward, "d m"), "inward": (w.inward, "m i")}
    sizes = check(where, {"x": (x, "... m"), **names})
    check_positive(where, "groups", w.groups)
    sizes["g"] = w.groups
    for few, many in (("h", "d"), ("g", "h")):
        check_groups(where, few, many, sizes)
    d, c, h = (sizes[name] for name in "dch")
    if c < d or (c - d) % (2 * w.groups):
        raise ValueError(f"{where}: conv has {c} channels; x has {d} of them, and the rest are those of B and C in {w.groups} groups.")
    if sizes["i"] != d + c + h:
        raise ValueError(f"{where}: inward has {sizes['i']} columns; z, x with B and C, and the steps have {d} + {c} + {h}.")
    dtype = accumulator(x)
    names_ = ("inward", "conv", "conv_bias", "step_bias", "A_log", "D", "gain", "outward")
    return replace(w, **{name: getattr(w, name).to(dtype) for name in names_})


def _inward(x: Float[Tensor, "*b m"], w: Block) -> list[Tensor]:
    """z (*b d), the inputs of the convolution (*b c), and the steps before their bias (*b h)."""
    parts = [w.gain.shape[0], w.conv.shape[0], w.A_log.shape[0]]
    return list((x.to(w.A_log.dtype) @ w.inward).split(parts, -1))


def _written(inner: Float[Tensor, "*b c"], steps: Float[Tensor, "*b h"], w: Block) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """x (*b h p), Δ x, the log-decays Δ A (*b h), and C and B (*b g n)."""
    d, h = w.gain.shape[0], w.A_log.shape[0]
    states = (inner.shape[-1] - d) // 2
    x, B, C = inner.split([d, states, states], -1)
    delta = softplus(steps + w.step_bias)
    v = x.unflatten(-1, (h, d // h))
    C, B = (part.unflatten(-1, (w.groups, states // w.groups)) for part in (C, B))
    return v, v * delta.unsqueeze(-1), delta * -w.A_log.exp(), C, B


def _outward(o: Float[Tensor, "*b h p"], v: Float[Tensor, "*b h p"], z: Float[Tensor, "*b d"], w: Block) -> Float[Tensor, "*b m"]:
    """What passes by the state, the gate, the norm of each group and the projection back."""
    y = torch.addcmul(o, v, w.D.unsqueeze(-1)).flatten(-2) * silu(z)
    grouped = y.unflatten(-1, (w.groups, y.shape[-1] // w.groups))
    y = (grouped * (grouped.square().mean(-1, keepdim=True) + w.eps).rsqrt()).flatten(-2)
    return (y * w.gain) @ w.outward
