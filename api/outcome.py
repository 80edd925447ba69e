"""What a run of `isoform verify` found, as one value: the table and the JSON are both made of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from isoform.exits import Exit, worst

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult, Evidence, NearMissResult

SCHEMA = 1
VERDICTS = ("proved", "qualified", "refuted", "unknown")
LAW_VERDICTS = ("holds", "violated", "not-applicable", "unverified")


@dataclass(frozen=True)
class Law:
    """How one form fared under one law."""

    column: str
    law: str
    operator: str
    form: str
    verdict: str
    examples: int
    worst_error_over_bound: float | None
    detail: str


@dataclass(frozen=True)
class Failure:
    """Why a run is not green: where, which exit code that means, and the reason."""

    where: str
    exit: Exit
    reason: str


@dataclass(frozen=True)
class Report:
    """The result of a run; it is to be read, so it has no truth value."""

    version: str
    seed: int
    level: str
    claims: tuple[ClaimResult, ...]
    laws: tuple[Law, ...]
    failures: tuple[Failure, ...]
    state: Literal["complete", "stopped", "interrupted"] = "complete"
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        raise TypeError("a Report is neither true nor false: read its exit_code, or its failures")

    @property
    def summary(self) -> dict[str, int]:
        """The number of claims by verdict, and their total."""
        counts = Counter(claim.verdict for claim in self.claims)
        return {**{verdict: counts[verdict] for verdict in VERDICTS}, "total": len(self.claims)}

    @property
    def law_summary(self) -> dict[str, int]:
        """The number of law checks by verdict, and their total."""
        counts = Counter(law.verdict for law in self.laws)
        return {**{verdict: counts[verdict] for verdict in LAW_VERDICTS}, "total": len(self.laws)}

    @property
    def exit_code(self) -> int:
        """0 if everything held, else the code of the failure that weighs most."""
        return int(Exit.INTERRUPTED) if self.state == "interrupted" else exit_code(self.failures)

    def _repr_html_(self) -> str:
        from isoform.notebook import report_html

        return report_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return what `isoform verify --json` prints."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "seed": self.seed,
            "level": self.level,
            "state": self.state,
            "claims": [claim_to_dict(claim) for claim in self.claims],
            "laws": [law_to_dict(law) for law in self.laws],
            "failures": [failure_to_dict(failure) for failure in self.failures],
            "notes": list(self.notes),
            "summary": self.summary,
        }


def exit_code(failures: Iterable[Failure]) -> int:
    """Return the exit code that the failures amount to; 0 if there is none."""
    return int(worst(*(failure.exit for failure in failures)))


def judge_claim(result: ClaimResult) -> tuple[Failure, ...]:
    """Return what keeps a claim from holding."""
    failures = [Failure(result.id, Exit.VIOLATED, _kept(miss)) for miss in result.near_misses if not miss.rejected]
    if result.verdict != result.expected:
        reason = f"{result.verdict}, where {result.expected} is expected" + (f": {result.reason}" if result.reason else "")
        failures.insert(0, Failure(result.id, Exit.VIOLATED, reason))
    if not failures and (result.verdict == "unknown" or not result.holds):
        engines = ", ".join(engines_of(result.evidence)) or "none"
        why = "undecided" if result.verdict == "unknown" else f"one engine does not suffice (engines: {engines})"
        failures.append(Failure(result.id, Exit.UNVERIFIED, result.reason or why))
    return tuple(failures)


def judge_laws(laws: Iterable[Law]) -> tuple[Failure, ...]:
    """Return what keeps the laws from holding; a form of which no law ran is unverified."""
    laws = tuple(laws)
    weight = {"holds": None, "not-applicable": None, "violated": Exit.VIOLATED}
    failures = [Failure(_where(law), code, law.detail or law.verdict) for law in laws if (code := weight.get(law.verdict, Exit.UNVERIFIED))]
    ran = {_form(law) for law in laws if law.verdict != "not-applicable"}
    idle = dict.fromkeys(_form(law) for law in laws if _form(law) not in ran)
    return (*failures, *(Failure(form, Exit.UNVERIFIED, "no law applies, so none ran") for form in idle))


def engines_of(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return the engines that gave the evidence, each once, in order."""
    return tuple(dict.fromkeys(item.engine for item in evidence))


def verdict_line(result: ClaimResult) -> str:
    """Return the verdict with the assumed lemmas that it rests on."""
    return result.verdict + (f", assuming {', '.join(result.assumed)}" if result.assumed else "")


def claim_to_dict(result: ClaimResult) -> dict[str, Any]:
    """Return a claim's result as `isoform verify --json` prints it."""
    return {
        "id": result.id,
        "version": result.version,
        "fingerprint": result.fingerprint,
        "title": result.title,
        "verdict": result.verdict,
        "expected": result.expected,
        "scope": result.scope,
        "statement": result.statement,
        "as_written": result.as_written,
        "counterexample": result.counterexample,
        "assumptions": list(result.assumptions),
        "unneeded": list(result.unneeded),
        "lemmas": list(result.lemmas),
        "assumed": list(result.assumed),
        "sources": [{"citation": s.citation, "where": s.where, "note": s.note} for s in result.sources],
        "evidence": [evidence_to_dict(item) for item in result.evidence],
        "near_misses": {
            "total": len(result.near_misses),
            "rejected": sum(miss.rejected for miss in result.near_misses),
            "list": [near_miss_to_dict(miss) for miss in result.near_misses],
        },
        "seconds": round(result.seconds, 4),
        "reason": result.reason,
    }


def evidence_to_dict(item: Evidence) -> dict[str, str]:
    """Return one piece of evidence."""
    return {"kind": item.kind, "engine": item.engine, "engine_version": item.engine_version, "detail": item.detail}


def failure_to_dict(failure: Failure) -> dict[str, Any]:
    """Return one failure."""
    return {"where": failure.where, "exit": int(failure.exit), "reason": failure.reason}


def near_miss_to_dict(miss: NearMissResult) -> dict[str, Any]:
    """Return a near miss with its counterexample."""
    return {
        "name": miss.name,
        "rejected": miss.rejected,
        "kind": miss.kind,
        "counterexample": miss.counterexample,
        "engines": list(miss.engines),
        "reason": miss.reason,
        "changes": list(miss.changes),
    }


def law_to_dict(law: Law) -> dict[str, Any]:
    """Return a law's row; a ratio that is not a finite number is null in JSON and named in the detail."""
    ratio = law.worst_error_over_bound
    finite = ratio is not None and math.isfinite(ratio)
    detail = law.detail if finite or ratio is None else f"error/bound is {ratio}. {law.detail}".strip()
    return {**vars(law), "worst_error_over_bound": ratio if finite else None, "detail": detail}


def _kept(miss: NearMissResult) -> str:
    return f"the near miss {miss.name!r} was not rejected" + (f": {miss.reason}" if miss.reason else "")


def _form(law: Law) -> str:
    return f"{law.operator}.{law.form}"


def _where(law: Law) -> str:
    return f"{_form(law)} / {law.law}"
