"""Times of calls that take turns, so that whatever else the machine does meets all of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from benchmarks.contestants import Contestant
from benchmarks.operators import FORWARD, Operator, draw

LAPS = (3, 25)
"""The fewest and the most laps of a call."""


@dataclass(frozen=True)
class Time:
    """Medians over the laps, in milliseconds: processor time of the whole process, and time on the clock."""

    processor: float
    clock: float
    laps: int


def forecast(past: Mapping[int, float], length: int) -> float:
    """What a call should take at this length, from what it took at shorter ones: the last step's exponent, and at least 1."""
    lengths = sorted(past)
    if not lengths:
        return 0.0
    last = lengths[-1]
    slope = exponent({n: past[n] for n in lengths[-2:]}) if len(lengths) > 1 else 1.0
    return past[last] * (length / last) ** max(slope, 1.0)


def interleaved(calls: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, Time]:
    """Give every call about so many seconds of a processor, in rounds in which each is made once; those that had theirs drop out.

    A first call of each warms up and is not counted. A call so long that the fewest laps would take ten times as long is made
    only that once, and counted.
    """
    gc.collect()
    first = {name: _lap(call) for name, call in calls.items()}
    wanted = {name: _laps(seconds, processor) for name, (processor, _) in first.items()}
    laps = {name: [] if wanted[name] else [lap] for name, lap in first.items()}
    for n in range(max(wanted.values(), default=0)):
        names = [name for name in calls if n < wanted[name]]
        for name in names[n % len(names) :] + names[: n % len(names)]:
            laps[name].append(_lap(calls[name]))
    return {name: Time(*(1000 * median(column) for column in zip(*rows)), len(rows)) for name, rows in laps.items()}


def prepared(one: Contestant, operator: Operator, length: int, direction: str) -> Callable[[], object]:
    """A call with its inputs laid out; the gradient is that of a weighted sum, with respect to every input."""
    inputs = one.arrange(draw(operator, length))
    if direction == FORWARD:
        return lambda: one.call(**inputs)
    leaves = [x.requires_grad_() for x in inputs.values()]
    weights = torch.randn_like(inputs[operator.like])
    return lambda: torch.autograd.grad(one.call(**inputs), leaves, weights)


def exponent(times: Mapping[int, float]) -> float:
    """The slope of the least-squares line through log time against log length."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def matrix_product_rate(size: int = 2048, laps: int = 5) -> tuple[float, float]:
    """Multiplications and additions a millisecond in a product of large float32 matrices, by processor and by clock: the best lap."""
    a, b = torch.randn(2, size, size)
    best = [min(column) for column in zip(*(_lap(lambda: a @ b) for _ in range(laps)))]
    return 2 * size**3 / (1000 * best[0]), 2 * size**3 / (1000 * best[1])


def _laps(seconds: float, lap: float) -> int:
    fewest, most = LAPS
    if fewest * lap > 10 * seconds:
        return 0
    return most if most * lap <= seconds else max(fewest, int(seconds / lap))


def _lap(call: Callable[[], object]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - processor, time.perf_counter() - clock
