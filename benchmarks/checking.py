"""Is what is timed the operator? Outputs and gradients against the recurrence in float64, at the sizes timed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import isnan, nan

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.contestants import Contestant, forms
from benchmarks.operators import FORWARD, Operator, draw

LIMIT = 2.0**-8
"""The largest error of a right result, as a part of the largest entry: what bfloat16 resolves. NaN is no right result."""


@dataclass(frozen=True)
class Check:
    """The error of the output, and the largest of the gradients', each over the largest entry of the truth.

    `broken` says which call raised, if one did; its error is then NaN.
    """

    output: float
    gradient: float
    broken: str = ""

    def right(self, direction: str) -> bool:
        """Whether what is timed in this direction is a number, and close."""
        return self.output <= LIMIT and (direction == FORWARD or self.gradient <= LIMIT)


def checks(operator: Operator, length: int, able: Iterable[Contestant]) -> dict[str, Check]:
    """Check everyone at this length, one after the other."""
    recurrent = next(form for form in forms(operator.name) if form.__name__ == "recurrent")
    inputs = {name: x.double() for name, x in draw(operator, length).items()}
    exact = cache(lambda row_scale: _run(Contestant("", lambda **x: recurrent(**x)[0], row_scale=row_scale), inputs))
    able = (one for one in able if one.longest is None or length <= one.longest)
    return {one.name: _check(one, draw(operator, length), exact(one.row_scale)) for one in able}


def _check(one: Contestant, inputs: dict[str, Tensor], truth: list[Tensor]) -> Check:
    try:
        with torch.no_grad():
            output = _error(_output(one, one.arrange(inputs)), truth[0])
    except Exception as reason:
        return Check(nan, nan, f"forward: {_first_line(reason)}")
    try:
        gradients = [_error(x, y) for x, y in zip(_run(one, inputs)[1:], truth[1:], strict=True)]
    except Exception as reason:
        return Check(output, nan, f"backward: {_first_line(reason)}")
    return Check(output, nan if any(map(isnan, gradients)) else max(gradients))


def _run(one: Contestant, inputs: dict[str, Tensor]) -> list[Tensor]:
    """The output and the gradients of a fixed weighted sum of it, time first."""
    leaves = {name: x.requires_grad_() for name, x in one.arrange(inputs).items()}
    o = _output(one, leaves)
    weights = torch.randn(o.shape, generator=torch.Generator().manual_seed(0)).to(o)
    return [o.detach(), *map(one.swap, torch.autograd.grad(o, list(leaves.values()), weights))]


def _output(one: Contestant, inputs: dict[str, Tensor]) -> Tensor:
    o = one.swap(one.call(**inputs))
    return normalize(o, dim=-1) if one.row_scale else o


def _first_line(reason: Exception) -> str:
    return f"{type(reason).__name__}: {reason}".splitlines()[0]


def _error(x: Tensor, truth: Tensor) -> float:
    return float((x - truth).abs().max() / truth.abs().max())
