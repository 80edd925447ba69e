"""Claims, and what a run finds out about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .kernel.formulas import Assumption, Declaration, Formula, Statement
from .kernel.scripts import Direct, Script

Lines: TypeAlias = tuple[tuple[str, str], ...]
"""Words, and the LaTeX of the formula that follows them; either may be empty."""


@dataclass(frozen=True)
class Source:
    """Where a statement comes from: the citation, the equation or section, and where we depart from it."""

    citation: str
    where: str = ""
    note: str = ""


@dataclass(frozen=True)
class NearMiss:
    """A false variant of a statement. ``at`` gives values to refute it at, where a search would not find any.

    ``drops`` names the assumption of the claim that the variant leaves out.
    """

    name: str
    statement: Statement
    drops: str = ""
    at: Mapping[Any, Any] | None = None


@dataclass(frozen=True)
class Claim:
    """A published statement under a permanent id, with its proof and what must be rejected beside it.

    ``as_written`` is the source's own form where that is false; ``expected`` is only ever compared with the
    verdict, as ``scope`` is with the proof's. ``operator`` is the declaration that the statement is about, where forms of
    it can be evidence.
    """

    id: str
    title: str
    statement: Statement
    sources: tuple[Source, ...]
    near_misses: tuple[NearMiss, ...]
    proof: Script = field(default_factory=Direct)
    expected: str = "proved"
    as_written: Statement | None = None
    as_written_at: Mapping[Any, Any] | None = None
    version: int = 1
    operator: Declaration | None = None
    scope: str = "all sizes"

    def fingerprint(self) -> str:
        """SHA-256 of the statements, 64 hex digits; the same for statements that differ in bound names only."""
        from .kernel.fingerprint import fingerprint

        return fingerprint(self.statement, self.as_written, tuple(n.statement for n in self.near_misses))


def variant(
    statement: Statement,
    name: str,
    conclusion: Formula | None = None,
    *,
    drop: str = "",
    add: tuple[Assumption, ...] = (),
    at: Mapping[Any, Any] | None = None,
) -> NearMiss:
    """A near miss of a statement: another conclusion, or the named assumption dropped.

    Raises ValueError if no assumption has that name, or nothing was changed.
    """
    if drop and drop not in [a.name for a in statement.assumptions]:
        raise ValueError(f"{name}: no assumption is named {drop!r}")
    if conclusion is None and not drop:
        raise ValueError(f"{name}: a near miss changes the conclusion or drops an assumption")
    kept = tuple(a for a in statement.assumptions if a.name != drop) + add
    new = replace(statement, conclusion=conclusion or statement.conclusion, assumptions=kept)
    return NearMiss(name, new, drop, at)


FORMS = "isoform properties"
"""The engine whose evidence is about the forms of a claim's operator."""


@dataclass(frozen=True)
class Evidence:
    """One engine's word: ``kind`` is proved, certified, enclosed, exact, bounded, tested or assumed."""

    kind: str
    engine: str
    engine_version: str
    detail: str


@dataclass(frozen=True)
class NearMissResult:
    """A near miss after a run: rejected only if both engines see it fail at one point.

    ``changes`` say how it differs from the statement; ``kind`` is exact where its counterexample was evaluated in
    exact numbers, enclosed where in balls, and empty without a counterexample. ``changes_latex`` says the same as ``changes``.
    """

    name: str
    rejected: bool
    counterexample: str
    engines: tuple[str, ...]
    reason: str = ""
    changes: tuple[str, ...] = ()
    kind: str = ""
    changes_latex: Lines = ()


@dataclass(frozen=True)
class Step:
    """One line of a derivation.

    ``sides`` are the two sides of an equation, empty for another formula; a step ``continues`` a chain where its
    left side is the right side of the step before.
    """

    title: str
    text: str
    latex: str
    method: str
    discharged: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    sides_latex: tuple[str, ...] = ()
    continues: bool = False


@dataclass(frozen=True)
class ClaimResult:
    """The verdict of a run on one claim, with all that it rests on.

    ``fingerprint`` is that of the claim as it was verified. ``parts`` are the conjuncts of the statement; ``definitions``
    say what its recursions and named terms are, as pairs of text and LaTeX. What ends in ``_latex`` says the same as its
    namesake.
    """

    id: str
    version: int
    title: str
    statement: str
    statement_latex: str
    verdict: str
    expected: str
    scope: str
    assumptions: tuple[str, ...] = ()
    unneeded: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    near_misses: tuple[NearMissResult, ...] = ()
    steps: tuple[Step, ...] = ()
    as_written: str = ""
    counterexample: str = ""
    lemmas: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    operator: str = ""
    seconds: float = 0.0
    reason: str = ""
    parts: tuple[str, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    parts_latex: tuple[str, ...] = ()
    assumptions_latex: Lines = ()
    as_written_latex: Lines = ()
    fingerprint: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim got its verdict, from two engines, is finished, and had every near miss rejected."""
        engines = {e.engine for e in self.evidence}
        rejected = bool(self.near_misses) and all(n.rejected for n in self.near_misses)
        got = self.verdict == self.expected and self.verdict != "unknown"
        return got and rejected and len(engines) >= 2 and not self.unfinished

    def _repr_latex_(self) -> str:
        """The verdict, the definitions and the statement, as a notebook shows them."""
        facts = ", ".join(filter(None, (self.verdict, *[f"assuming {name}" for name in self.assumed], self.scope)))
        formulas = [*[latex for _, latex in self.definitions], *self.parts_latex]
        lines = (rf"\text{{{self.id}: {facts}}}", *[rf"\displaystyle {latex}" for latex in formulas])
        return r"$$\begin{array}{l} " + r" \\ ".join(lines) + r" \end{array}$$"
