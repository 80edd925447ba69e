"""Look at single claims: what is stated and how it is shown (`show`), and what that rests on (`trust`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoform import plan, pool
from isoform.outcome import (
    SCHEMA,
    Failure,
    claim_to_dict,
    evidence_to_dict,
    exit_code,
    failure_to_dict,
    judge_claim,
    verdict_line,
)
from isoform.runner import unknown
from isoform.selection import UnknownName, select

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult, Evidence, Step
    from isoform.derivations.lock import LockEntry

TRUSTED = (
    "Machine-checked by computer algebra, not formally verified: the result is as good as isoform's kernel and the libraries "
    "that it calls (SymPy, python-flint, NumPy), and Python itself. The second engine shares the kernel's term classes and nothing else."
)


@dataclass(frozen=True)
class Trust:
    """What a claim's verdict rests on."""

    id: str
    verdict: str
    expected: str
    scope: str
    methods: tuple[str, ...]
    obligations: tuple[Step, ...]
    evidence: tuple[Evidence, ...]
    lemmas: tuple[str, ...]
    assumed: tuple[str, ...]
    unneeded: tuple[str, ...]
    failures: tuple[Failure, ...]
    trusted: str = TRUSTED

    @property
    def exit_code(self) -> int:
        """0 if the claim holds."""
        return exit_code(self.failures)

    def _repr_html_(self) -> str:
        from isoform.notebook import trust_html

        return trust_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return what `isoform trust --json` prints."""
        return {
            "schema": SCHEMA,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()},
            "obligations": [step_to_dict(step) for step in self.obligations],
            "evidence": [evidence_to_dict(item) for item in self.evidence],
            "failures": [failure_to_dict(failure) for failure in self.failures],
        }


def claims(*names: str) -> tuple[LockEntry, ...]:
    """Return what the lock file says of the named claims and architectures (all, if none is named), and what other packages claim."""
    from isoform.derivations import lock, registry
    from isoform.derivations.guests import guests

    others = map(lock.entry_of, registry.claims(guests())) if guests() else ()
    entries = {entry.id: entry for entry in (*lock.read(), *others)}
    return tuple(entries[id] for id in select(names, tuple(entries)))


def show(id: str, *, seed: int = 0, time_limit: float = 60.0) -> ClaimResult:
    """Return a claim as verified just now: statement, assumptions, sources, steps, near misses with their counterexamples."""
    (claim,) = plan.selected_claims([_one(id)])
    task = pool.Task(claim.id, plan.prove, (claim.id, seed), time_limit)
    for event in pool.run([task], jobs=1, warm_up=plan.warm_up):
        if isinstance(event, pool.Ended):
            if event.kind in ("raised", "died"):
                raise RuntimeError(f"{id} could not be verified: {event.reason}")
            return event.value if event.kind == "done" else unknown(claim, event.reason, event.seconds)
    raise RuntimeError(f"{id} was not verified")


def trust(id: str, *, seed: int = 0, time_limit: float = 60.0) -> Trust:
    """Return what a claim's verdict rests on: methods, engines with their versions, assumed lemmas."""
    result = show(id, seed=seed, time_limit=time_limit)
    methods = dict.fromkeys(step.method for step in result.steps if step.method)
    return Trust(
        id=result.id,
        verdict=verdict_line(result),
        expected=result.expected,
        scope=result.scope,
        methods=tuple(methods),
        obligations=result.steps,
        evidence=result.evidence,
        lemmas=result.lemmas,
        assumed=result.assumed,
        unneeded=result.unneeded,
        failures=judge_claim(result),
    )


def show_to_dict(result: ClaimResult) -> dict[str, Any]:
    """Return what `isoform show --json` prints: the claim as in `verify --json`, its LaTeX, definitions and steps."""
    return {
        "schema": SCHEMA,
        **claim_to_dict(result),
        "statement_latex": result.statement_latex,
        "parts": list(result.parts),
        "definitions": [{"text": text, "latex": latex} for text, latex in result.definitions],
        "steps": [step_to_dict(step) for step in result.steps],
    }


def step_to_dict(step: Step) -> dict[str, Any]:
    """Return one line of a derivation: an obligation of the proof, with its method and what discharged it."""
    return {
        "title": step.title,
        "text": step.text,
        "latex": step.latex,
        "method": step.method,
        "discharged": list(step.discharged),
        "sides": list(step.sides),
        "sides_latex": list(step.sides_latex),
        "continues": step.continues,
    }


def _one(id: str) -> str:
    if "/" not in id:
        raise UnknownName(f"{id!r} is no claim id: an id reads architecture/slug; `isoform list` shows them")
    return id
