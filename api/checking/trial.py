"""One law on the kernel, in the process that calls it; every comparison is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform.checking.containment import Notes, Tried, contained, settle
from isoform.checking.plan import CheckPlan
from isoform.checking.report import LawReport, Witness
from isoform.checking.setup import form_of, kernel, laws_of, operator_named
from isoform.checking.smallest import plainer, simplicity
from isoform.checking.snippet import Log
from isoform.checking.survey import BUDGET, survey
from isoform.checking.target import Kernel, Unusable
from isoform.checking.witness import as_dict, examine, unsteady
from isoform.worker import describe

if TYPE_CHECKING:
    from isoform.properties.laws import Comparison, Law, LawResult
    from isoform.properties.operator import Form, Operator
    from isoform.properties.strategies import Case


@dataclass
class Record:
    """What a law compared, also noted for those who come after: every comparison that tells anything.

    ``failing`` are the cases that failed, in order: the first was there before there was a search for a smaller one.
    """

    notes: Notes
    tried: list[Tried] = field(default_factory=list)
    failing: list[Case] = field(default_factory=list)

    def add(self, case: dict[str, Any], what: str, fine: bool) -> None:
        """Keep a comparison."""
        self.tried.append(Tried(case, what, fine))
        self.notes.write("tried", (what, fine))


def try_law(plan: CheckPlan, limits: Mapping[str, Any], name: str, path: Path | None, function: Kernel | None = None) -> LawReport:
    """Hold the kernel against one law. What is done is noted to the path; without one, the process is not one that may die."""
    from isoform.properties.crosscheck import LEVELS
    from isoform.properties.running import run_law

    begin = time.perf_counter()
    notes = Notes(path, plan.call_limit)
    if notes.contained:
        settle(notes)
    operator = operator_named(plan.operator)
    log = Log()
    form = form_of(plan, operator, log.keeping(contained(kernel(plan, function), notes)), limits)
    law = next(law for law in laws_of(plan) if law.name == name)
    record, effort = Record(notes), LEVELS[plan.level]
    watched = recorded(law, record)
    result = run_law(watched, operator, form, examples=effort.examples, seed=plan.seed, corners=effort.corners)
    found = _report(law, result, time.perf_counter() - begin)
    if result.witness is not None:
        if record.failing and not plan.fail_fast:
            survey(watched, operator, form, record.failing[0], BUDGET[plan.level])
        least, worst = min(record.failing, key=simplicity, default=result.witness.case), result.witness.worst_case
        again = recorded(law, Record(notes))
        shown = partial(examine, again, operator, form, log=log, target=plan.target)
        near = (*plainer(law, operator, form, least), least, result.witness.case)
        smallest = next(filter(None, map(shown, near)), None) or unsteady(law.name, least)
        found = replace(found, smallest=smallest, worst=smallest if worst.sizes == least.sizes else shown(worst) or smallest)
    return replace(found, tried=tuple(record.tried))


def replay_case(
    plan: CheckPlan, limits: Mapping[str, Any], name: str, given: dict[str, Any], path: Path | None, function: Kernel | None = None
) -> Witness | str | None:
    """Hold the kernel against one law on one case: what that shows, None where the law holds, or why it cannot be said.

    Raises Unusable for a case that is none.
    """
    notes, log = Notes(path, plan.call_limit), Log()
    if notes.contained:
        settle(notes)
    operator = operator_named(plan.operator)
    case = read_case(operator, given)
    form = form_of(plan, operator, log.keeping(contained(kernel(plan, function), notes)), limits)
    (law,) = laws_of(plan)
    reason = law.missing(operator, form)
    record = Record(notes)
    found = None if reason else examine(recorded(law, record), operator, form, case, log, plan.target)
    return found if found or record.tried else reason or "there was nothing to compare"


def read_case(operator: Operator, given: dict[str, Any]) -> Case:
    """A case of an operator. Raises Unusable."""
    from isoform.properties.strategies import Case

    try:
        case = Case.from_json(json.dumps(given))
        operator.draw(case)
    except Exception as error:
        raise Unusable(f"the case {given} is none of {operator.name}: {describe(error)}") from None
    return case


def recorded(law: Law, record: Record) -> Law:
    """The law, which keeps and notes what it compares."""
    from isoform.properties.operator import FormRaised
    from isoform.properties.tensors import kept_surroundings

    def check(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
        given, right = as_dict(case), True
        record.notes.write("case", given)
        try:
            with kept_surroundings():
                for c in law.check(operator, form, case):
                    fine = c.worst <= 1
                    right = right and fine
                    if not fine or not (c.blind or c.vacuous):
                        record.add(given, c.what, fine)
                    yield c
        except FormRaised as error:
            record.add(given, str(error), False)
            right = False
            raise
        finally:
            if not right:
                record.failing.append(case)
            record.notes.write("done")

    return replace(law, check=check)


def _report(law: Law, result: LawResult, seconds: float) -> LawReport:
    return LawReport(
        law=law.name,
        says=law.says,
        kinds=law.kinds,
        verdict=result.verdict,
        examples=result.examples,
        worst_error_over_bound=result.worst_error_over_bound,
        detail=result.detail,
        seconds=seconds,
    )
