"""How a kernel is to be checked, as one value that workers are sent; what needs nothing heavy is validated here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isoform.checking.target import Target, Unusable, nearest
from isoform.levels import LEVELS
from isoform.pool import default_jobs

ALIASES = {"simple-gla": "gated-retention", "ssd": "gated-retention"}
"""Other names of operators."""
DISCRETIZATIONS = {"euler": "selective-scan", "zoh": "selective-scan-zoh"}
"""Of the selective scan: B̄ = ΔB, which released code has, or the zero-order hold of the paper."""
CHUNK = 64
"""The chunk size of a kernel that has no argument for it and of which nothing is said: bounds of a smaller one are tighter."""
PATIENCE = {"quick": 60.0, "default": 300.0, "deep": 3000.0}
"""Seconds of processor time that one law may take; one that needs more is unverified."""


@dataclass(frozen=True)
class CheckPlan:
    """What is checked (None: a function that has no name, so in this process), against which operator, how called, and how hard."""

    target: Target | None
    name: str
    operator: str
    signature: str
    map: str
    level: str
    seed: int
    precision: str
    limits: str
    chunk: int
    laws: tuple[str, ...]
    jobs: int
    call_limit: float
    fail_fast: bool

    @property
    def patience(self) -> float:
        """Seconds of processor time for one law."""
        return PATIENCE[self.level]


def make(
    target: Target | None,
    name: str,
    operator: str,
    *,
    signature: str = "plain",
    map: str = "",
    level: str = "default",
    seed: int = 0,
    precision: str = "",
    discretization: str | None = None,
    limits: str = "",
    chunk: int | None = None,
    laws: Sequence[str] = (),
    jobs: int | None = None,
    call_limit: float = 10.0,
    fail_fast: bool = False,
) -> CheckPlan:
    """The plan of a check. Raises Unusable for a value that nothing can be done with."""
    if level not in LEVELS:
        raise Unusable(f"there is no level {level!r}; it is one of {', '.join(LEVELS)}")
    if chunk is not None and chunk < 1:
        raise Unusable(f"chunk is a number of tokens, 1 or more, not {chunk}")
    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise Unusable(f"jobs is a number of processes, 1 or more, not {jobs}")
    if seed < 0:
        raise Unusable(f"seed is a number, 0 or more, not {seed}")
    if not 0 < call_limit < math.inf:
        raise Unusable(f"call_limit is a positive number of seconds, not {call_limit}")
    return CheckPlan(
        target=target,
        name=name,
        operator=_operator(operator, discretization),
        signature=signature,
        map=map,
        level=level,
        seed=seed,
        precision=precision,
        limits=limits,
        chunk=chunk or CHUNK,
        laws=(laws,) if isinstance(laws, str) else tuple(laws),
        jobs=jobs,
        call_limit=call_limit,
        fail_fast=fail_fast,
    )


def _operator(name: str, discretization: str | None) -> str:
    """The operator's own name; whether there is such a one is known where operators are."""
    name = name.strip().lower().replace("_", "-")
    name = ALIASES.get(name, name)
    if discretization is None:
        return name
    if name not in DISCRETIZATIONS.values():
        raise Unusable(f"{name} has no discretization to choose: only selective-scan has one")
    if discretization not in DISCRETIZATIONS:
        raise Unusable(f"there is no discretization {discretization!r}; {nearest(discretization, DISCRETIZATIONS)}")
    return DISCRETIZATIONS[discretization]
