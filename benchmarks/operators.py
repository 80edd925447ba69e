"""The operators that are timed: their gates, their inputs, and what is to be reached beside the best peer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize

BATCH, HEADS, KEY, VALUE = 1, 4, 64, 64
FORWARD, BOTH = "forward", "forward+backward"
GATE_DIVISOR = 16
"""Log-gates are log σ(x) / 16, as gated linear attention has them (Yang et al. 2023, arXiv:2312.06635)."""


@dataclass(frozen=True)
class Operator:
    """An operator by its name in ``isoform.impl``, the gates of its call, and the largest time beside the best torch peer.

    `form` is the one that is held against it, and linear in the length where it is a chunk form; in float64 `truth` is what
    all results are checked against.
    """

    name: str
    gates: tuple[str, ...]
    forward: float
    both: float
    form: str = "chunkwise"
    truth: str = "recurrent"

    @property
    def linear(self) -> bool:
        """Whether the cost of the form grows in a straight line."""
        return self.form == "chunkwise"

    def target(self, direction: str) -> float:
        """The ratio to reach in this direction."""
        return self.forward if direction == FORWARD else self.both


OPERATORS = (
    Operator("linear-attention", (), 0.95, 0.95),
    Operator("retention", (), 0.6, 0.6),
    Operator("gated-retention", ("g",), 1.0, 0.8),
    Operator("gated-linear-attention", ("gk",), 0.25, 0.05),
    Operator("delta-rule", ("beta",), 0.7, 0.25),
    Operator("gated-delta-rule", ("g", "beta"), 0.75, 0.25),
    Operator("attention", (), 1.1, 1.1, form="masked", truth="blockwise"),
)


def draw(operator: Operator, length: int) -> dict[str, Tensor]:
    """Draw the inputs by name, float32, time first: q, k, v (b t h d), g and beta (b t h), gk (b t h k).

    The keys of a delta rule have norm 1, as its models have them.
    """
    random = torch.Generator().manual_seed(length)
    token = (BATCH, length, HEADS)
    q, k, v = (torch.randn(*token, size, generator=random) for size in (KEY, KEY, VALUE))
    gates = {
        "g": logsigmoid(torch.randn(token, generator=random)) / GATE_DIVISOR,
        "gk": logsigmoid(torch.randn(*token, KEY, generator=random)) / GATE_DIVISOR,
        "beta": torch.randn(token, generator=random).sigmoid(),
    }
    return {"q": q, "k": normalize(k, dim=-1) if "beta" in operator.gates else k, "v": v} | {name: gates[name] for name in operator.gates}
