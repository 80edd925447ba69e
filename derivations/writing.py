"""A claim in print: all its parts under common names, as a paper would put it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from .claim import Claim, Lines, NearMiss, Step
from .kernel.formulas import And, Equation, Formula, Statement, plain
from .kernel.naming import Definition, Names
from .kernel.printing import defined, latex, text
from .kernel.proof import Obligation, Proof
from .kernel.terms import unnamed


class Writing:
    """Spells the parts of a claim: one name for one thing, from the statement to the near misses."""

    def __init__(self, claim: Claim, proof: Proof | None) -> None:
        self._claim = claim
        self._obligations = proof.obligations if proof else ()
        written = () if claim.as_written is None else (claim.as_written,)
        self._own = (claim.statement, *written, *[o.formula for o in self._obligations])
        self._names = Names((*self._own, *[n.statement for n in claim.near_misses]))

    def text(self, x: Any) -> str:
        """A part of the claim as text."""
        return text(x, self._names)

    def latex(self, x: Any) -> str:
        """A part of the claim as LaTeX."""
        return latex(x, self._names)

    def parts(self) -> tuple[str, ...]:
        """The conjuncts of the statement."""
        return tuple(self.text(p) for p in _conjuncts(self._claim.statement.conclusion))

    def parts_latex(self) -> tuple[str, ...]:
        """The conjuncts of the statement as LaTeX."""
        return tuple(self.latex(p) for p in _conjuncts(self._claim.statement.conclusion))

    def as_written_latex(self) -> Lines:
        """The source's own form, line by line: conjuncts, conditions, assumptions; empty where it is the statement."""
        s = self._claim.as_written
        if s is None:
            return ()
        conditions = [("for", c) for c in (*s.cuts, *([s.where] if s.where.args else []))]
        return self._lines([*[("", p) for p in _conjuncts(s.conclusion)], *conditions, *[(f"{a.name}:", a.formula) for a in s.assumptions]])

    @cached_property
    def _defined(self) -> tuple[Definition, ...]:
        return self._names.definitions(self._own)

    def definitions(self) -> tuple[tuple[str, str], ...]:
        """What the recursions and the named terms of statement and derivation are, as text and as LaTeX."""
        return tuple(defined(d, self._names) for d in self._defined)

    def assumptions(self) -> tuple[str, ...]:
        """The cuts and the conditions on the indices, and the named assumptions."""
        return tuple(self._said(*line) for line in self._assumed())

    def assumptions_latex(self) -> Lines:
        """The same with LaTeX for the formulas."""
        return self._lines(self._assumed())

    def _assumed(self) -> list[tuple[str, Any]]:
        s = self._claim.statement
        where = [("", c) for c in (*s.cuts, *([s.where] if s.where.args else []))]
        return [*where, *[(f"{a.name}:", a.formula) for a in s.assumptions]]

    def steps(self) -> tuple[Step, ...]:
        """The derivation, obligation by obligation."""
        return tuple(map(self._step, self._obligations))

    def _step(self, o: Obligation) -> Step:
        sides = o.formula.args if isinstance(o.formula, Equation) else ()
        return Step(
            o.title,
            self.text(o.formula),
            self.latex(o.formula),
            o.method,
            o.by,
            tuple(map(self.text, sides)),
            tuple(map(self.latex, sides)),
            o.continues,
        )

    def changes(self, miss: NearMiss) -> tuple[str, ...]:
        """How a near miss differs from the statement."""
        return tuple(self._said(*line) for line in self._changed(miss))

    def changes_latex(self, miss: NearMiss) -> Lines:
        """The same with LaTeX for the formulas."""
        return self._lines(self._changed(miss))

    def _changed(self, miss: NearMiss) -> list[tuple[str, Any]]:
        old, new = self._claim.statement, miss.statement
        known = [unnamed(p) for p in _conjuncts(old.conclusion)]
        changed = [p for p in _conjuncts(new.conclusion) if unnamed(p) not in known]
        if not changed and plain(new).conclusion != plain(old).conclusion:
            changed = [new.conclusion]
        lines: list[tuple[str, Any]] = [("instead:", p) for p in changed]
        if new.where != old.where:
            lines.append(("for", new.where))
        lines += [(f"without the assumption: {a.name}", None) for a in old.assumptions if not _assumes(new, a.formula)]
        lines += [(f"assuming {a.name}:", a.formula) for a in new.assumptions if not _assumes(old, a.formula)]
        own = [d for d in self._names.definitions((new,)) if d not in self._defined]
        return [*lines, *[("where", d) for d in own]]

    def _said(self, words: str, x: Any) -> str:
        return " ".join(part for part in (words, self._spelt(x)[0]) if part)

    def _lines(self, lines: list[tuple[str, Any]]) -> Lines:
        return tuple((words, self._spelt(x)[1]) for words, x in lines)

    def _spelt(self, x: Any) -> tuple[str, str]:
        if x is None:
            return "", ""
        return defined(x, self._names) if isinstance(x, Definition) else (self.text(x), self.latex(x))


def _conjuncts(f: Formula) -> tuple[Any, ...]:
    return f.args if isinstance(f, And) else (f,)


def _assumes(s: Statement, f: Formula) -> bool:
    return unnamed(f) in [unnamed(a.formula) for a in s.assumptions]
