"""One law on the kernel, in the process that calls it; every comparison is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform.checking.containment import Notes, Tried, contained, settle
from isoform.checking.plan import CheckPlan
from isoform.checking.report import LawReport
from isoform.checking.setup import form_of, kernel, laws_of, operator_named
from isoform.checking.snippet import Log
from isoform.checking.survey import BUDGET, survey
from isoform.checking.target import Kernel
from isoform.checking.witness import as_dict, examine

if TYPE_CHECKING:
    from isoform.properties.laws import Comparison, Law, LawResult
    from isoform.properties.operator import Form, Operator
    from isoform.properties.strategies import Case


@dataclass
class Record:
    """What a law compared, also noted for those who come after: every comparison that tells anything.

    ``first`` is the case that failed first, before there was a search for a smaller one.
    """

    notes: Notes
    tried: list[Tried] = field(default_factory=list)
    first: Case | None = None

    def add(self, case: dict[str, Any], what: str, fine: bool) -> None:
        """Keep a comparison."""
        self.tried.append(Tried(case, what, fine))
        self.notes.write("tried", (what, fine))

def try_law(plan: CheckPlan, name: str, path: Path | None, function: Kernel | None = None) -> LawReport:
    """Hold the kernel against one law. What is done is noted to the path; without one, the process is not one that may die."""
    from isoform.properties.crosscheck import LEVELS
    from isoform.properties.running import run_law

    begin = time.perf_counter()
    notes = Notes(path, plan.call_limit)
    if notes.contained:
        settle(notes)
    operator = operator_named(plan.operator)
    log = Log()
    form = form_of(plan, operator, log.keeping(contained(kernel(plan, function), notes)))
    law = next(law for law in laws_of(plan) if law.name == name)
    record, effort = Record(notes), LEVELS[plan.level]
    watched = recorded(law, record)
    result = run_law(watched, operator, form, examples=effort.examples, seed=plan.seed, corners=effort.corners)
    found = _report(law, result, time.perf_counter() - begin)
    if result.witness is not None:
        cases = dict.fromkeys((result.witness.case, result.witness.worst_case))
        smallest, *worst = (examine(watched, operator, form, case, log, plan.target) for case in cases)
        if record.first is not None and not plan.fail_fast:
            survey(watched, operator, form, record.first, BUDGET[plan.level])
        found = replace(found, smallest=smallest, worst=worst[0] if worst else smallest)
    return replace(found, tried=tuple(record.tried))


def recorded(law: Law, record: Record) -> Law:
    """The law, which keeps and notes what it compares."""
    from isoform.properties.operator import FormRaised

    def check(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
        given = as_dict(case)
        record.notes.write("case", given)
        try:
            for c in law.check(operator, form, case):
                fine = c.worst <= 1
                if not fine or not (c.blind or c.vacuous):
                    record.add(given, c.what, fine)
                yield c
        except FormRaised as error:
            record.add(given, str(error), False)
            raise
        finally:
            if record.first is None and record.tried and not record.tried[-1].fine:
                record.first = case
            record.notes.write("done")

    return replace(law, check=check)


def _report(law: Law, result: LawResult, seconds: float) -> LawReport:
    return LawReport(
        law=law.name,
        says=law.says,
        verdict=result.verdict,
        examples=result.examples,
        worst_error_over_bound=result.worst_error_over_bound,
        detail=result.detail,
        seconds=seconds,
    )
