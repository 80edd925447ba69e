"""One law on the kernel, in the process that calls it; every comparison is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform.checking.containment import Notes, Tried, settle
from isoform.checking.plan import CheckPlan
from isoform.checking.report import LawReport, Witness
from isoform.checking.setup import form_of, kernel, laws_of, operator_named
from isoform.checking.target import Kernel

if TYPE_CHECKING:
    from isoform.properties.laws import Comparison, Law, LawResult
    from isoform.properties.operator import Form, Operator
    from isoform.properties.strategies import Case


@dataclass
class Record:
    """What a law compared: every comparison that can see, and of each case the first that failed."""

    tried: list[Tried] = field(default_factory=list)
    failed: dict[Case, Comparison | str] = field(default_factory=dict)

    def add(self, case: Case, c: Comparison) -> bool:
        """Keep a comparison; whether it is one that tells anything."""
        fine = c.worst <= 1
        if not fine:
            self.failed.setdefault(case, c)
        telling = not fine or not (c.blind or c.vacuous)
        if telling:
            self.tried.append(Tried(as_dict(case), c.what, fine))
        return telling

    def raised(self, case: Case, what: str) -> None:
        """Keep what the kernel raised instead of a result."""
        self.failed.setdefault(case, what)
        self.tried.append(Tried(as_dict(case), what, False))


def as_dict(case: Case) -> dict[str, Any]:
    """A case as JSON has it."""
    import json

    found: dict[str, Any] = json.loads(case.to_json())
    return found


def try_law(plan: CheckPlan, name: str, path: Path | None, function: Kernel | None = None) -> LawReport:
    """Hold the kernel against one law. What is done is noted to the path; without one, the process is not one that may die."""
    from isoform.properties.crosscheck import LEVELS
    from isoform.properties.running import run_law

    begin = time.perf_counter()
    notes = Notes(path, plan.call_limit)
    if notes.contained:
        settle(notes)
    operator = operator_named(plan.operator)
    form = form_of(plan, operator, kernel(plan, function), notes)
    law = next(law for law in laws_of(plan) if law.name == name)
    record = Record()
    effort = LEVELS[plan.level]
    result = run_law(recorded(law, record, notes), operator, form, examples=effort.examples, seed=plan.seed, corners=effort.corners)
    return _report(law, result, record, time.perf_counter() - begin)


def recorded(law: Law, record: Record, notes: Notes) -> Law:
    """The law, which keeps and notes what it compares."""
    from isoform.properties.operator import FormRaised

    def check(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
        notes.write("case", as_dict(case))
        try:
            for c in law.check(operator, form, case):
                if record.add(case, c):
                    notes.write("tried", (c.what, record.tried[-1].fine))
                yield c
        except FormRaised as error:
            record.raised(case, str(error))
            notes.write("tried", (str(error), False))
            raise
        finally:
            notes.write("done")

    return replace(law, check=check)


def _report(law: Law, result: LawResult, record: Record, seconds: float) -> LawReport:
    smallest = worst = None
    if result.witness is not None:
        smallest = witness(record, result.witness.case)
        worst = witness(record, result.witness.worst_case)
    return LawReport(
        law=law.name,
        says=law.says,
        verdict=result.verdict,
        examples=result.examples,
        worst_error_over_bound=result.worst_error_over_bound,
        detail=result.detail,
        seconds=seconds,
        smallest=smallest,
        worst=worst,
        tried=tuple(record.tried),
    )


def witness(record: Record, case: Case) -> Witness:
    """What came out wrong in a case, and where first."""
    import numpy as np

    c = record.failed[case]
    if isinstance(c, str):
        return Witness(as_dict(case), c, f"the call {c}")
    if np.shape(c.found) != np.shape(c.truth):
        return Witness(as_dict(case), c.what, f"{c.what} has shape {np.shape(c.found)} where {np.shape(c.truth)} is right")
    at = c.first_bad()
    found, right = complex(c.found[at]), complex(c.truth[at])
    bound = float(np.broadcast_to(c.bound, np.shape(c.truth))[at])
    return Witness(as_dict(case), c.what, f"{c.what} is wrong", (), at, found.real, right.real, bound, c.worst)
