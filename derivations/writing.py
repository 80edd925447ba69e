"""A claim in print: all its parts under common names, as a paper would put it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from .claim import Claim, NearMiss, Step
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

    @cached_property
    def _defined(self) -> tuple[Definition, ...]:
        return self._names.definitions(self._own)

    def definitions(self) -> tuple[tuple[str, str], ...]:
        """What the recursions and the named terms of statement and derivation are, as text and as LaTeX."""
        return tuple(defined(d, self._names) for d in self._defined)

    def assumptions(self) -> tuple[str, ...]:
        """The cuts and the conditions on the indices, and the named assumptions."""
        s = self._claim.statement
        where = (*map(self.text, s.cuts), *((self.text(s.where),) if s.where.args else ()))
        return (*where, *[f"{a.name}: {self.text(a.formula)}" for a in s.assumptions])

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
        old, new = self._claim.statement, miss.statement
        known = [unnamed(p) for p in _conjuncts(old.conclusion)]
        changed = [p for p in _conjuncts(new.conclusion) if unnamed(p) not in known]
        if not changed and plain(new).conclusion != plain(old).conclusion:
            changed = [new.conclusion]
        lines = [f"instead: {self.text(p)}" for p in changed]
        if new.where != old.where:
            lines.append(f"for {self.text(new.where)}")
        lines += [f"without the assumption: {a.name}" for a in old.assumptions if not _assumes(new, a.formula)]
        lines += [f"assuming {a.name}: {self.text(a.formula)}" for a in new.assumptions if not _assumes(old, a.formula)]
        own = [d for d in self._names.definitions((new,)) if d not in self._defined]
        return (*lines, *[f"where {defined(d, self._names)[0]}" for d in own])


def _conjuncts(f: Formula) -> tuple[Any, ...]:
    return f.args if isinstance(f, And) else (f,)


def _assumes(s: Statement, f: Formula) -> bool:
    return unnamed(f) in [unnamed(a.formula) for a in s.assumptions]
