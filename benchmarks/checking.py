"""Is what is timed the operator? Outputs and gradients against one form in float64, at the sizes timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isnan

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.contestants import Contestant, forms, output
from benchmarks.operators import BOTH, FORWARD, Operator, draw

LIMIT = 2.0**-8
"""The largest error of a right result, as a part of the largest entry: what bfloat16 resolves."""


@dataclass(frozen=True)
class Check:
    """The error of the output, and the largest of the gradients', each over the largest entry of the truth.

    `broken` says what a call raised, or that it gave NaN; then, and of a call that was not made, there is no error.
    `milliseconds` has the processor time of each call that was made, by direction.
    """

    output: float | None = None
    gradient: float | None = None
    broken: str = ""
    milliseconds: Mapping[str, float] = field(default_factory=dict)

    def right(self, direction: str) -> bool:
        """Whether what is timed in this direction is a number, and close."""
        errors = (self.output,) if direction == FORWARD else (self.output, self.gradient)
        return all(error is not None and error <= LIMIT for error in errors)


def checks(
    operator: Operator, length: int, able: Iterable[Contestant], made: Callable[[str, str], bool] = lambda name, direction: True
) -> dict[str, Check]:
    """Check everyone at this length, one after the other; ``made(name, direction)`` says which calls are made at all."""
    truth = next(output(form) for form in forms(operator.name) if form.__name__ == operator.truth)
    inputs = {name: x.to(torch.promote_types(x.dtype, torch.float64)) for name, x in draw(operator, length).items()}
    exact = cache(lambda row_scale: _run(Contestant("", truth, row_scale=row_scale), inputs))
    found = {}
    for one in able:
        if one.longest is None or length <= one.longest:
            directions = [direction for direction in (FORWARD, BOTH) if made(one.name, direction)]
            found[one.name] = _check(one, draw(operator, length), exact(one.row_scale), directions)
    return found


def _check(one: Contestant, inputs: dict[str, Tensor], truth: list[Tensor], directions: Iterable[str]) -> Check:
    errors, broken, milliseconds = {}, "", {}
    for direction in directions:
        begin = time.process_time()
        try:
            results = [_output(one, one.arrange(inputs)).detach()] if direction == FORWARD else _run(one, inputs)[1:]
        except Exception as reason:
            broken = f"{type(reason).__name__}: {reason}".splitlines()[0]
            break
        milliseconds[direction] = 1000 * (time.process_time() - begin)
        each = [_error(*pair) for pair in zip(results, truth[:1] if direction == FORWARD else truth[1:], strict=True)]
        if any(map(isnan, each)):
            broken = "NaN"
            break
        errors[direction] = max(each)
    return Check(errors.get(FORWARD), errors.get(BOTH), broken, milliseconds)


def _run(one: Contestant, inputs: dict[str, Tensor]) -> list[Tensor]:
    """The output and the gradients of a fixed weighted sum of it, time first."""
    leaves = {name: x.requires_grad_() for name, x in one.arrange(inputs).items()}
    o = _output(one, leaves)
    weights = torch.randn(o.shape, generator=torch.Generator().manual_seed(0)).to(o)
    return [o.detach(), *map(one.swap, torch.autograd.grad(o, list(leaves.values()), weights))]


def _output(one: Contestant, inputs: dict[str, Tensor]) -> Tensor:
    o = one.swap(one.call(**inputs))
    return normalize(o, dim=-1) if one.row_scale else o


def _error(x: Tensor, truth: Tensor) -> float:
    return float((x - truth).abs().max() / truth.abs().max())
