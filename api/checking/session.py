"""A check whose laws are tried one by one, as they are asked for: in one worker that is kept, or in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isoform import pool
from isoform.checking import files, replaying, runner, setup, trial
from isoform.checking.plan import CheckPlan
from isoform.checking.report import LawReport
from isoform.checking.target import Kernel, Unusable


class Session:
    """A kernel that is held to laws. Whoever makes one must close it."""

    def __init__(self, plan: CheckPlan, function: Kernel | None = None) -> None:
        """Load the kernel, prove its wiring, find its limits. Raises Unusable."""
        self.plan, self._function = plan, function
        self._folder = tempfile.TemporaryDirectory(prefix="isoform-session-")
        self._crew = pool.Crew(1, partial(runner.warm_up, plan.operator)) if plan.target else None
        try:
            self._prepared = self._prepare()
        except BaseException:
            self.close()
            raise

    def law(self, name: str) -> LawReport:
        """How the kernel fares under a law."""
        limits = self._prepared.fitted
        if self._crew is None:
            return trial.try_law(self.plan, limits, name, None, self._function)
        notes = self._notes()
        ended = self._do(pool.Task(name, trial.try_law, (self.plan, limits, name, notes), self.plan.patience))
        return runner.law_of(self.plan, runner.Progress(self._prepared), ended, notes)

    def fails(self, law: str, case: Mapping[str, Any]) -> bool:
        """Whether a law does not hold in a case. Raises Unusable for what is no case of the operator, and where there is no verdict."""
        given = files.WitnessFile(replace(self.plan, laws=(law,)), self._prepared.fitted, law, (case,))
        if self._crew is None:
            found = trial.replay_case(given.plan, given.limits, law, dict(case), None, self._function)
        else:
            notes = self._notes()
            ended = self._do(pool.Task("case", replaying.again, (given, dict(case), notes), self.plan.patience))
            found = replaying.outcome_of(given, ended, notes)
        if isinstance(found, str):
            raise Unusable(f"the witness of {law} decides nothing: {found}")
        return found is not None

    def written(self, found: LawReport, folder: Path) -> LawReport:
        """What was found, with its cases in a file that `isoform replay` reads."""
        progress = runner.Progress(replace(self._prepared, laws=((found.law, found.says),)), {found.law: found})
        (law,) = files.write(runner.report_of(self.plan, progress, 0.0), self.plan, self._prepared.fitted, folder).laws
        return law

    def close(self) -> None:
        """End the worker."""
        if self._crew is not None:
            self._crew.stop()
        self._folder.cleanup()

    def _prepare(self) -> setup.Prepared:
        if self._crew is None:
            return setup.prepare(self.plan, self._function)
        for probe in (True, False):
            notes = self._notes()
            found = runner.prepared_of(self.plan, self._do(runner.preparation(self.plan, notes, probe)), notes, probe)
            if found is not None:
                break
        assert found is not None
        return found

    def _notes(self) -> Path:
        """A file for the notes of the next task."""
        path = Path(self._folder.name) / "notes"
        path.unlink(missing_ok=True)
        return path

    def _do(self, task: pool.Task) -> pool.Ended:
        assert self._crew is not None
        self._crew.add([task])
        while True:
            event = self._crew.events.get()
            if isinstance(event, pool.Ended):
                return event
