"""The operators that are timed: their inputs, and what is to be reached beside the best peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize, softplus

BATCH, HEADS, KEY, VALUE = 1, 4, 64, 64
CHANNELS, STATE, MODES = 256, 16, 32
"""Channels of the state-space models; states of a channel of the selective scan; conjugate pairs of a channel of S4D."""
FORWARD, BOTH = "forward", "forward+backward"
GATE_DIVISOR = 16
"""Log-gates are log σ(x) / 16, as gated linear attention has them (Yang et al. 2023, arXiv:2312.06635)."""

Inputs = dict[str, Tensor]
Draw = Callable[[int, torch.Generator], Inputs]


def memory(*gates: str) -> Draw:
    """Inputs of a layer with heads, time first: q, k, v (b t h d), and those of g and beta (b t h), gk (b t h k) that it has.

    The keys of a delta rule have norm 1, as its models have them.
    """

    def inputs(length: int, random: torch.Generator) -> Inputs:
        token = (BATCH, length, HEADS)
        q, k, v = (torch.randn(*token, size, generator=random) for size in (KEY, KEY, VALUE))
        drawn = {
            "g": logsigmoid(torch.randn(token, generator=random)) / GATE_DIVISOR,
            "gk": logsigmoid(torch.randn(*token, KEY, generator=random)) / GATE_DIVISOR,
            "beta": torch.randn(token, generator=random).sigmoid(),
        }
        return {"q": q, "k": normalize(k, dim=-1) if "beta" in gates else k, "v": v} | {name: drawn[name] for name in gates}

    return inputs


def selective(length: int, random: torch.Generator) -> Inputs:
    """Inputs of the selective scan, time last: A = -1, ..., -N in each channel and steps around 0.01, as Mamba starts."""
    u, delta = (torch.randn(BATCH, CHANNELS, length, generator=random) for _ in range(2))
    write, read = (torch.randn(BATCH, STATE, length, generator=random) for _ in range(2))
    rates = -torch.arange(1.0, STATE + 1).repeat(CHANNELS, 1)
    return {"u": u, "delta": softplus(delta - 4.6), "A": rates, "B": write, "C": read, "D": torch.ones(CHANNELS)}


def diagonal(length: int, random: torch.Generator) -> Inputs:
    """Inputs of S4D, time last: S4D-Lin's modes, one of each conjugate pair, and steps from 0.001 to 0.1."""
    modes = (-0.5 + 1j * torch.pi * torch.arange(MODES)).repeat(CHANNELS, 1)
    read = torch.randn(CHANNELS, MODES, dtype=torch.complex64, generator=random)
    step = torch.logspace(-3, -1, CHANNELS)
    u = torch.randn(BATCH, CHANNELS, length, generator=random)
    return {"u": u, "Lambda": modes, "B": torch.ones_like(modes), "C": read, "delta": step}


def averages(length: int, random: torch.Generator) -> Inputs:
    """Inputs of RWKV-4's mean: k, v (b t c), its log-decays w and its bonus u (c)."""
    k, v = (torch.randn(BATCH, length, CHANNELS, generator=random) for _ in range(2))
    return {"k": k, "v": v, "w": -torch.logspace(-3, 0, CHANNELS), "u": torch.randn(CHANNELS, generator=random)}


@dataclass(frozen=True)
class Operator:
    """An operator by its name in ``isoform.impl``, and the largest times beside the best torch peer, forward and with backward.

    `form` is the one that is held against it, and linear in the length unless `quadratic`; in float64 `truth` is what all
    results are checked against. The output has the shape of the input `like`.
    """

    name: str
    forward: float
    both: float
    inputs: Draw
    form: str = "chunkwise"
    truth: str = "recurrent"
    like: str = "v"
    quadratic: bool = False

    def target(self, direction: str) -> float:
        """The ratio to reach in this direction."""
        return self.forward if direction == FORWARD else self.both


OPERATORS = (
    Operator("linear-attention", 0.95, 0.95, memory()),
    Operator("retention", 0.6, 0.6, memory()),
    Operator("gated-retention", 1.0, 0.8, memory("g")),
    Operator("gated-linear-attention", 0.25, 0.05, memory("gk")),
    Operator("delta-rule", 0.7, 0.25, memory("beta")),
    Operator("gated-delta-rule", 0.75, 0.25, memory("g", "beta")),
    Operator("attention", 1.1, 1.1, memory(), form="masked", truth="blockwise", quadratic=True),
    Operator("selective-scan", 0.65, 1.0, selective, form="scan", like="u"),
    Operator("s4d", 0.35, 0.1, diagonal, form="convolution", like="u"),
    Operator("wkv", 0.3, 0.02, averages, form="scan"),
)


def draw(operator: Operator, length: int) -> Inputs:
    """Draw the inputs by name, float32 and complex64."""
    return operator.inputs(length, torch.Generator().manual_seed(length))
