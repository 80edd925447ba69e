"""Run the cases of a witness file again, without a search: is the law still violated in them?"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import isoform
from isoform import pool
from isoform.checking import files, trial
from isoform.checking.files import WitnessFile
from isoform.checking.report import Witness
from isoform.checking.runner import died, warm_up
from isoform.checking.target import Target, Unusable
from isoform.exits import Exit

SCHEMA = 1


@dataclass(frozen=True)
class ReplayReport:
    """What came of a witness file: the cases in which the law is still violated, each with what it shows now.

    ``detail`` says why there is no verdict, where the law does not apply to the kernel any more.
    """

    file: str
    law: str
    operator: str
    target: str
    cases: int
    witnesses: tuple[Witness, ...] = ()
    detail: str = ""

    def __bool__(self) -> bool:
        raise TypeError("a ReplayReport is neither true nor false: read its exit_code")

    @property
    def verdict(self) -> str:
        """violated, holds, or unverified."""
        return "violated" if self.witnesses else "unverified" if self.detail else "holds"

    @property
    def exit_code(self) -> int:
        """1 if the law is still violated, 0 if it holds now, 3 if there is no verdict."""
        return int({"violated": Exit.VIOLATED, "holds": Exit.HELD, "unverified": Exit.UNVERIFIED}[self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """What `isoform replay --json` prints."""
        own = {n: getattr(self, n) for n in ("file", "law", "operator", "target", "verdict", "cases", "detail")}
        return {"schema": SCHEMA, "version": isoform.__version__, **own, "witnesses": [w.to_dict() for w in self.witnesses]}


def replay(path: str | Path, target: Target | None = None) -> ReplayReport:
    """Run the cases of a witness file again, each in a worker that may hang or crash. Raises Unusable for a file that is none."""
    given = files.read(Path(path), target)
    found: list[Witness] = []
    with tempfile.TemporaryDirectory(prefix="isoform-replay-") as folder:
        notes = {f"case {n}": (case, Path(folder) / str(n)) for n, case in enumerate(given.cases)}
        tasks = [pool.Task(key, again, (given, case, where), given.plan.patience) for key, (case, where) in notes.items()]
        for event in pool.run(tasks, jobs=1, warm_up=partial(warm_up, given.plan.operator)):
            if not isinstance(event, pool.Ended):
                continue
            outcome = outcome_of(given, event, notes[event.key][1])
            if isinstance(outcome, str):
                return ReplayReport(str(path), given.law, given.plan.operator, given.plan.name, len(given.cases), (), outcome)
            found += [outcome] if outcome else []
    return ReplayReport(str(path), given.law, given.plan.operator, given.plan.name, len(given.cases), tuple(found))


def again(given: WitnessFile, case: dict[str, Any], notes: Path) -> Witness | str | Unusable | None:
    """`trial.replay_case` in a worker; what cannot be done is handed back."""
    try:
        return trial.replay_case(given.plan, given.limits, given.law, case, notes)
    except Unusable as error:
        return error


def outcome_of(given: WitnessFile, ended: pool.Ended, notes: Path) -> Witness | str | None:
    """What a case showed, None where the law holds in it, or why there is no verdict."""
    if ended.kind != "done":
        return died(given.plan, ended, notes) or ended.reason
    if isinstance(ended.value, Unusable):
        raise ended.value
    value: Witness | str | None = ended.value
    return value
