"""The block of Mamba: a projection to x and z, a causal convolution with silu, the selective scan gated by z, a projection back.

Gu and Dao 2023 (arXiv:2312.00752), figure 3 and section 3.4, as in the released code: A = -e^{A_log}, Δ = log(1 + e^x) of a
projection through r features with a bias, B̄ = ΔB.

Symbols: b batch, t tokens, m model features, d channels, w taps, r features of the step, n states of a channel.

Functions take float64, float32, bfloat16 or float16 for ``x`` and compute in its dtype, 16-bit ones in float32; weights are
converted to that, and the result has the dtype of ``x``. A later token changes no earlier row, whatever it is. Any object
with the fields of `Block` will do for weights. Each function raises TypeError for an argument that is no tensor of an
allowed dtype, and ValueError for shapes or devices that do not fit together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .._common import accumulator, check
from . import convolution, selective


@dataclass(frozen=True)
class Block:
    """The weights of a block; ``inward`` has the columns of x and then those of z, ``select`` those of the step, of B and of C."""

    inward: Float[Tensor, "m 2d"]
    conv: Float[Tensor, "d w"]
    conv_bias: Float[Tensor, " d"]
    select: Float[Tensor, "d r+2n"]
    step: Float[Tensor, "r d"]
    step_bias: Float[Tensor, " d"]
    A_log: Float[Tensor, "d n"]
    D: Float[Tensor, " d"]
    outward: Float[Tensor, "d m"]


class State(NamedTuple):
    """What decoding keeps of the tokens so far: the last inputs of the convolution, and the state of the scan."""

    conv: Float[Tensor, "b d w-1"]
    scan: Float[Tensor, "b d n"]


def forward(x: Float[Tensor, "b t m"], weights: Block) -> Float[Tensor, "b t m"]:
    """All tokens at once."""
    return extend(x, weights)[0]


def extend(x: Float[Tensor, "b t m"], weights: Block, state: State | None = None) -> tuple[Float[Tensor, "b t m"], State]:
    """Several new tokens after those of the state, None being none: (what `forward` has in their places, new state)."""
    where = "mamba.block.extend"
    check(where, {"x": (x, "b t m")})
    w = _entered(where, x, weights)
    inner, gate = (x.to(w.A_log.dtype) @ w.inward).mT.chunk(2, 1)
    conv, scan = (None, None) if state is None else state
    inner, conv = convolution.convolution(inner, w.conv, w.conv_bias, conv, True, "silu")
    delta, A, B, C = _selected(inner.mT, w)
    y, scan = selective.scan(inner, delta.mT, A, B.mT, C.mT, w.D, gate, w.step_bias, True, scan, True)
    return (y.mT @ w.outward).to(x.dtype), State(conv, scan)


def step(x: Float[Tensor, "b m"], weights: Block, state: State | None = None) -> tuple[Float[Tensor, "b m"], State]:
    """One new token: (what `forward` has in its place, new state). The old state is left as it was."""
    where = "mamba.block.step"
    check(where, {"x": (x, "b m")})
    w = _entered(where, x, weights)
    inner, gate = (x.to(w.A_log.dtype) @ w.inward).chunk(2, 1)
    conv, scan = (None, None) if state is None else state
    inner, conv = convolution.step(inner, w.conv, w.conv_bias, conv, "silu")
    y, scan = selective.step(inner, *_selected(inner, w), w.D, gate, w.step_bias, True, scan)
    return (y @ w.outward).to(x.dtype), State(conv, scan)


def init(
    generator: torch.Generator,
    *,
    width: int,
    channels: int | None = None,
    states: int = 16,
    taps: int = 4,
    rank: int | None = None,
    dtype: torch.dtype = torch.float32,
) -> Block:
    """Random weights on the generator's device that ask for a gradient, by default with 2 · width channels.

    Projections are normal, of variance 1 / (number of summands); A is -1, -2, …, -n; steps begin between 0.001 and 0.1, evenly
    on a logarithmic scale; D is 1.
    """
    d, r = channels or 2 * width, rank or -(-width // 16)
    draw = Draw(generator, dtype)
    steps = draw.steps(d)
    poles = torch.arange(1, states + 1, dtype=torch.float64, device=generator.device).log().expand(d, states)
    inward, conv = draw.normal(width, 2 * d, summands=width), draw.normal(d, taps, summands=taps)
    select, step_, outward = (draw.normal(i, o, summands=i) for i, o in ((d, r + 2 * states), (r, d), (d, width)))
    return Block(inward, conv, draw.leaf(torch.zeros(d)), select, step_, steps, draw.leaf(poles), draw.leaf(torch.ones(d)), outward)


@dataclass(frozen=True)
class Draw:
    """Leaves of a dtype, on the device of a generator."""

    generator: torch.Generator
    dtype: torch.dtype

    def leaf(self, x: Tensor) -> Tensor:
        """The values as a tensor that asks for a gradient."""
        return x.to(self.generator.device, self.dtype).clone().requires_grad_()

    def normal(self, *shape: int, summands: int) -> Tensor:
        """Normal numbers of variance 1 / summands."""
        drawn = torch.randn(shape, generator=self.generator, dtype=torch.float64, device=self.generator.device)
        return self.leaf(drawn * summands**-0.5)

    def steps(self, count: int) -> Tensor:
        """What log(1 + e^x) makes steps between 0.001 and 0.1, evenly on a logarithmic scale."""
        drawn = torch.rand(count, generator=self.generator, dtype=torch.float64, device=self.generator.device)
        first = 0.001 * 100**drawn
        return self.leaf(first + torch.log(-torch.expm1(-first)))


def _entered(where: str, x: Tensor, weights: Block) -> Block:
    """The weights in the dtype of the sums, checked."""
    w = weights
    names = {"conv": (w.conv, "d w"), "conv_bias": (w.conv_bias, "d"), "A_log": (w.A_log, "d n"), "step": (w.step, "r d")}
    names |= {"step_bias": (w.step_bias, "d"), "D": (w.D, "d"), "outward": (w.outward, "d m")}
    sizes = check(where, {"x": (x, "... m"), **names})
    d, r, n = (sizes[name] for name in "drn")
    for name, given, shape in (("inward", w.inward, (sizes["m"], 2 * d)), ("select", w.select, (d, r + 2 * n))):
        check(where, {"x": (x, "..."), name: (given, "i o")})
        if tuple(given.shape) != shape:
            raise ValueError(f"{where}: {name} has shape {tuple(given.shape)}; the other weights need {shape}.")
    dtype = accumulator(x)
    parts = (w.inward, w.conv, w.conv_bias, w.select, w.step, w.step_bias, w.A_log, w.D, w.outward)
    return Block(*(part.to(dtype) for part in parts))


def _selected(inner: Float[Tensor, "*b d"], w: Block) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The step before its bias (*b d), A (d n), and B and C (*b n)."""
    r, n = w.step.shape[0], w.A_log.shape[1]
    low, B, C = (inner @ w.select).split([r, n, n], -1)
    return low @ w.step, -w.A_log.exp(), B, C
