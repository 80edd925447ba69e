"""Run a plan: the one path behind `isoform verify` and `isoform.verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import isoform
from isoform import plan as planning
from isoform import pool
from isoform.exits import Exit
from isoform.outcome import Failure, Law, Report, judge_claim, judge_laws
from isoform.selection import column

if TYPE_CHECKING:
    from isoform.derivations.claim import Claim, ClaimResult, Evidence

Watch = Callable[[pool.Event], None]
_EXITS = {"late": Exit.UNVERIFIED, "raised": Exit.FAILED, "died": Exit.FAILED}
_NOT_RUN = {
    "complete": "it did not run",
    "stopped": "not run: stopped at the first failure",
    "interrupted": "not run: interrupted",
}


def verify(
    *names: str,
    seed: int = 0,
    level: str = "quick",
    jobs: int | None = None,
    time_limit: float = 60.0,
    symbolic_only: bool = False,
    fail_fast: bool = False,
) -> Report:
    """Prove the named claims and architectures (all, if none is named) and cross-check their implementations.

    The report must be read: `report.exit_code` is 0 only if everything held, `report.failures` says what did not, and
    `report.to_dict()` is what `isoform verify --json` prints.
    """
    report = run(
        planning.make(names, seed=seed, level=level, jobs=jobs, time_limit=time_limit, symbolic_only=symbolic_only, fail_fast=fail_fast)
    )
    if report.state == "interrupted":
        raise KeyboardInterrupt
    return report


def run(plan: planning.Plan, watch: Watch = lambda event: None) -> Report:
    """Run a plan to its end, its first failure (if it is to fail fast), or an interrupt, and report what was found."""
    ended: dict[str, pool.Ended] = {}
    state: Literal["complete", "stopped", "interrupted"] = "complete"
    events = pool.run(plan.tasks(), jobs=plan.jobs, warm_up=planning.warm_up)
    try:
        for event in events:
            if isinstance(event, pool.Ended):
                ended[event.key] = event
            watch(event)
            if plan.fail_fast and isinstance(event, pool.Ended) and _failures(plan, event):
                state = "stopped"
                break
    except KeyboardInterrupt:
        state = "interrupted"
    finally:
        events.close()
    return _report(plan, ended, state)


def _failures(plan: planning.Plan, ended: pool.Ended) -> tuple[Failure, ...]:
    if ended.kind != "done":
        return (Failure(ended.key, _EXITS[ended.kind], ended.reason),)
    return judge_laws(_laws(ended)) if ended.key in plan.columns else judge_claim(ended.value)


def _report(plan: planning.Plan, ended: dict[str, pool.Ended], state: Literal["complete", "stopped", "interrupted"]) -> Report:
    keys = (*(claim.id for claim in plan.claims), *plan.columns)
    missing = {key: pool.Ended(key, "late", None, _NOT_RUN[state], 0.0) for key in keys if key not in ended}
    all_ended = {**ended, **missing}
    evidence = {name: _evidence(all_ended[name]) for name in plan.columns}
    return Report(
        version=isoform.__version__,
        seed=plan.seed,
        level=plan.level,
        claims=tuple(_with_evidence(_result(claim, all_ended[claim.id]), evidence) for claim in plan.claims),
        laws=tuple(law for name in plan.columns for law in _laws(all_ended[name])),
        failures=(*map(_lost, plan.lost), *(failure for key in keys for failure in _failures(plan, all_ended[key]))),
        state=state,
    )


def _lost(id: str) -> Failure:
    return Failure(id, Exit.VIOLATED, "the lock lists it, but the claim is gone: ids are permanent")


def _result(claim: Claim, ended: pool.Ended) -> ClaimResult:
    return ended.value if ended.kind == "done" else unknown(claim, ended.reason, ended.seconds)


def unknown(claim: Claim, reason: str, seconds: float) -> ClaimResult:
    """Return the result of a claim that was not decided."""
    from isoform.derivations.claim import ClaimResult

    return ClaimResult(
        id=claim.id,
        version=claim.version,
        fingerprint=claim.fingerprint(),
        title=claim.title,
        statement="",
        statement_latex="",
        verdict="unknown",
        expected=claim.expected,
        scope="",
        seconds=seconds,
        reason=reason,
    )


def _evidence(ended: pool.Ended) -> Mapping[str, tuple[Evidence, ...]]:
    """What a cross-check adds to its column's claims, by operator: nothing, if any of its laws is violated."""
    if ended.kind != "done" or any(law.verdict == "violated" for law in _laws(ended)):
        return {}
    evidence: Mapping[str, tuple[Evidence, ...]] = ended.value.evidence
    return evidence


def _with_evidence(result: ClaimResult, evidence: dict[str, Mapping[str, tuple[Evidence, ...]]]) -> ClaimResult:
    """Forms are evidence for the claims about their operator, and for no others."""
    found = evidence.get(column(result.id), {}) if result.verdict != "unknown" else {}
    more = found.get(result.operator, ())
    return replace(result, evidence=(*result.evidence, *more))


def _laws(ended: pool.Ended) -> tuple[Law, ...]:
    if ended.kind != "done":
        return (Law(ended.key, "cross-check", ended.key, "every form", "unverified", 0, None, ended.reason),)
    rows = tuple(
        Law(ended.key, row.law, row.operator, row.form, row.verdict, row.examples, row.worst_error_over_bound, row.detail)
        for row in ended.value.laws
    )
    return rows or (Law(ended.key, "cross-check", ended.key, "every form", "unverified", 0, None, "no law ran"),)
