"""How soon a check at its default level violates a planted fault, and what it says of a right kernel: calls for worker processes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import isoform
from isoform import pool

IMPL = {
    "linear-attention": "linear_attention:chunkwise",
    "retention": "retention:chunkwise",
    "gated-retention": "gated_retention:chunkwise",
    "gated-linear-attention": "gated_linear_attention:chunkwise",
    "delta-rule": "delta_rule:chunkwise",
    "gated-delta-rule": "gated_delta_rule:chunkwise",
    "attention": "attention:masked",
    "selective-scan": "mamba:scan",
    "lti": "state_space:convolution",
    "wkv": "rwkv.wkv:scan",
    "causal-conv1d": "mamba.convolution:convolution",
}
"""A form of ours for each operator."""
LIMIT = 600.0


@dataclass(frozen=True)
class Kill:
    """A planted fault: the law that was violated first, or "", and after how many seconds; ``trouble`` is why there is no answer."""

    name: str
    law: str = ""
    seconds: float = 0.0
    trouble: str = ""


def names() -> list[str]:
    """The planted faults, by name."""
    from tests.planted.catalogue import CATALOGUE

    return [planted.name for planted in CATALOGUE]


def kill(name: str) -> Kill:
    """Check a planted fault until the first violation."""
    from tests.planted import catalogue

    planted = next(p for p in catalogue.CATALOGUE if p.name == name)
    report = isoform.check(planted.kernel, planted.operator, fail_fast=True)
    law = next((law.law for law in report.violated), "")
    return Kill(name, law, report.seconds if report.first_violation is None else report.first_violation)


def kills(chosen: Sequence[str], jobs: int) -> Iterator[Kill]:
    """Kill planted faults, each alone on a thread of a worker that is warm."""
    tasks = [pool.Task(name, kill, (name,), LIMIT) for name in chosen]
    for event in pool.run(tasks, jobs=jobs, warm_up=warm):
        if isinstance(event, pool.Ended):
            yield event.value if event.kind == "done" else Kill(event.key, trouble=event.reason)


def warm() -> None:
    """Load what every check needs; one thread for each worker."""
    from isoform.checking.runner import warm_up

    torch.set_num_threads(1)
    warm_up()
    names()


def start() -> float:
    """Seconds from the call of a check to its first law, processes and imports included, beside those of the law."""
    begin = time.perf_counter()
    operator = "linear-attention"
    report = isoform.check(f"isoform.impl.{IMPL[operator]}", operator, laws=("state-on-request",), level="quick", jobs=1)
    return time.perf_counter() - begin - sum(law.seconds for law in report.laws)


def clean(operator: str, jobs: int) -> Any:
    """The report of a whole default check of a right form."""
    return isoform.check(f"isoform.impl.{IMPL[operator]}", operator, jobs=jobs)
