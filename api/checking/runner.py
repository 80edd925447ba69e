"""Run a check: the one path behind `isoform check` and `isoform.check`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from signal import Signals
from typing import Any, Literal

import isoform
from isoform import pool
from isoform.checking import files, setup, trial
from isoform.checking import plan as planning
from isoform.checking.containment import WAIT, Left, Notes, Tried, settle
from isoform.checking.diagnosis import diagnose
from isoform.checking.plan import CheckPlan
from isoform.checking.report import CheckReport, LawReport, Witness
from isoform.checking.target import Kernel, Target, Unusable, named, parse, usable

PREPARE = "prepare"
PREPARE_LIMIT = 120.0
UNPROBED = "a first call of the kernel ended its process, so its limits are those that are declared"
Watch = Callable[[pool.Event], None]
UNCONTAINED = "the function has no name by which a worker could load it: it runs in this process, so a hang or a crash is not contained"


def check(
    target: str | Kernel, operator: str, *, witnesses: str | Path | None = None, expected: str | Path | None = None, **options: Any
) -> CheckReport:
    """Hold a kernel against the laws of an operator and report what was found.

    ``target`` is "MODULE:FUNCTION", "FILE.py:FUNCTION" or the function itself. The options are those of `isoform check`:
    ``signature``, ``map``, ``level``, ``seed``, ``precision``, ``discretization``, ``limits``, ``chunk``, ``laws`` (names),
    ``jobs``, ``call_limit`` (seconds) and ``fail_fast``. ``witnesses`` is a folder for the files that `isoform replay` reads,
    ``expected`` a file of expected failures.

    The report must be read: its ``exit_code`` is 0 only if every law that applies holds, ``violated`` are those that do
    not, each with a witness, and ``to_dict()`` is what `isoform check --json` prints. Raises Unusable (a ValueError) where
    the check cannot be made as it was asked for.
    """
    found, name, function = resolve(target)
    plan = planning.make(found, name, operator, **options)
    from isoform.checking import standing
    from isoform.checking.expected import read

    known = None if expected is None else read(Path(expected))
    report = run(plan, function, witnesses=None if witnesses is None else Path(witnesses))
    if report.state == "interrupted":
        raise KeyboardInterrupt
    return report if known is None else standing.beside(report, plan, function, known)


def resolve(target: str | Kernel) -> tuple[Target | None, str, Kernel | None]:
    """The target by the name under which a worker finds it, if it has one; what it is called; and the function at hand, if it is."""
    if isinstance(target, str):
        found = parse(target)
        return found, str(found), None
    name = getattr(target, "__qualname__", type(target).__name__)
    function = usable(target, name)
    by_name = named(function)
    return by_name, str(by_name) if by_name else name, function


@dataclass
class Progress:
    """How far a check is."""

    prepared: setup.Prepared | None = None
    laws: dict[str, LawReport] = field(default_factory=dict)
    state: Literal["complete", "stopped", "interrupted"] = "complete"
    first: float | None = None
    again: bool = False


def run(plan: CheckPlan, function: Kernel | None = None, watch: Watch = lambda event: None, witnesses: Path | None = None) -> CheckReport:
    """Run a plan to its end, its first violation (if it is to fail fast), or an interrupt; write witnesses to a folder."""
    begin = time.perf_counter()
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="isoform-check-") as folder:
        events = _elsewhere(plan, progress, Path(folder)) if plan.target else _here(plan, progress, function)
        try:
            for event in events:
                watch(event)
                if isinstance(event, pool.Ended) and event.key in progress.laws:
                    violated = progress.laws[event.key].verdict == "violated"
                    progress.first = time.perf_counter() - begin if violated and progress.first is None else progress.first
                    if violated and plan.fail_fast:
                        progress.state = "stopped"
                        break
        except KeyboardInterrupt:
            progress.state = "interrupted"
        finally:
            events.close()
    report = report_of(plan, progress, time.perf_counter() - begin)
    if witnesses is None or progress.prepared is None:
        return report
    try:
        return files.write(report, plan, progress.prepared.fitted, witnesses)
    except Unusable as error:  # what was found is worth more than its files
        return replace(report, notes=(*report.notes, str(error)))


def _elsewhere(plan: CheckPlan, progress: Progress, folder: Path) -> Generator[pool.Event, None, None]:
    """The events of a check whose calls are made in workers."""

    def follow(ended: pool.Ended) -> Sequence[pool.Task]:
        if ended.key != PREPARE:
            progress.laws[ended.key] = law_of(plan, progress, ended, folder / ended.key)
            return ()
        prepared = progress.prepared = prepared_of(plan, ended, folder / PREPARE, probe=not progress.again)
        if prepared is None:
            progress.again = True
            return [preparation(plan, folder / PREPARE, probe=False)]
        return [pool.Task(law, trial.try_law, (plan, prepared.fitted, law, folder / law), plan.patience) for law, _ in prepared.laws]

    first, jobs = preparation(plan, folder / PREPARE), min(plan.jobs, len(plan.laws) or plan.jobs)
    return pool.run([first], jobs=jobs, warm_up=partial(warm_up, plan.operator), follow=follow)


def _here(plan: CheckPlan, progress: Progress, function: Kernel | None) -> Generator[pool.Event, None, None]:
    """The events of a check in this process."""
    yield pool.Started(PREPARE)
    progress.prepared = setup.prepare(plan, function)
    yield pool.Ended(PREPARE, "done", progress.prepared, "", 0.0)
    for law, _ in progress.prepared.laws:
        yield pool.Started(law)
        progress.laws[law] = trial.try_law(plan, progress.prepared.fitted, law, None, function)
        yield pool.Ended(law, "done", progress.laws[law], "", progress.laws[law].seconds)


def warm_up(operator: str) -> None:
    """Load in a worker what every law of an operator needs."""
    from isoform.properties.laws import laws

    laws()
    with suppress(Unusable):
        setup.operator_named(operator)


def preparation(plan: CheckPlan, notes: Path, probe: bool = True) -> pool.Task:
    """The first task: to load the kernel, to prove its wiring, and to find its limits by calls if it is to ``probe``."""
    notes.unlink(missing_ok=True)
    return pool.Task(PREPARE, prepare, (plan, notes, probe), PREPARE_LIMIT)


def prepare(plan: CheckPlan, path: Path, probe: bool) -> setup.Prepared | str:
    """`setup.prepare` in a worker, or the sentence that says why there can be no check."""
    notes = Notes(path, plan.call_limit)
    settle(notes)
    try:
        found = setup.prepare(plan, None, notes, probe)
        return found if probe else replace(found, notes=(UNPROBED,))
    except Unusable as error:
        return str(error)


def prepared_of(plan: CheckPlan, ended: pool.Ended, notes: Path, probe: bool) -> setup.Prepared | None:
    """What the first task found, None if a probe ended it: it is to be done again without. Raises Unusable if there can be no check."""
    if ended.kind == "raised":
        raise RuntimeError(ended.reason)
    if ended.kind in ("died", "late"):
        called = Left.read(notes).called
        if called and probe:
            return None
        raise Unusable(f"{plan.name} cannot be {'called' if called else 'imported'}: {_ending(ended)}")
    if isinstance(ended.value, str):
        raise Unusable(ended.value)
    found: setup.Prepared = ended.value
    return found


def _ending(ended: pool.Ended) -> str:
    return f"its process was ended by {Signals(ended.signal).name}" if ended.signal and ended.kind == "died" else ended.reason


def law_of(plan: CheckPlan, progress: Progress, ended: pool.Ended, notes: Path) -> LawReport:
    """What a law's task found, or what its worker left when it died."""
    if ended.kind == "done":
        found: LawReport = ended.value
        return found
    assert progress.prepared is not None
    says = dict(progress.prepared.laws)[ended.key]
    left, seen = Left.read(notes), died(plan, ended, notes)
    if seen is None:
        return LawReport(ended.key, says, "unverified", detail=ended.reason, seconds=ended.seconds, tried=left.tried)
    cases = len({str(t.case) for t in left.tried}) + 1
    tried = (*left.tried, Tried(seen.case, seen.what, False))
    return LawReport(ended.key, says, "violated", cases, None, seen.breaks, ended.seconds, seen, seen, tried)


def died(plan: CheckPlan, ended: pool.Ended, notes: Path) -> Witness | None:
    """The case in which a kernel ended its process, or None where that cannot be laid on the kernel."""
    left = Left.read(notes)
    if ended.kind != "died" or left.case is None:
        return None
    limits = {Signals.SIGVTALRM: f"{plan.call_limit:g} s of its own time", Signals.SIGALRM: f"{WAIT * plan.call_limit:g} s"}
    late = limits.get(Signals(ended.signal)) if left.calling and ended.signal else None
    what = f"did not return within {late}" if late else f"crashed: {_ending(ended)}"
    return Witness(left.case, what, f"the call {what}{f' (given {left.given})' if left.given else ''}")


def report_of(plan: CheckPlan, progress: Progress, seconds: float) -> CheckReport:
    """What was found so far; laws that did not run are unverified."""
    prepared = progress.prepared or setup.Prepared(plan.operator, ())
    missing = {"complete": "it did not run", "stopped": "not run: stopped at the first violation", "interrupted": "not run: interrupted"}
    laws = tuple(
        progress.laws.get(law) or LawReport(law, says, "unverified", detail=missing[progress.state]) for law, says in prepared.laws
    )
    return CheckReport(
        version=isoform.__version__,
        operator=prepared.operator,
        target=plan.name,
        signature=plan.signature,
        map=plan.map,
        level=plan.level,
        seed=plan.seed,
        precision=plan.precision,
        chunk=plan.chunk,
        laws=laws,
        wiring=prepared.wiring,
        limits=prepared.limits,
        diagnosis=diagnose(laws),
        notes=(*prepared.notes, *(() if plan.target else (UNCONTAINED,))),
        state=progress.state,
        seconds=seconds,
        first_violation=progress.first,
    )
