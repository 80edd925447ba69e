"""What derived claims are about: one state of a declaration, and its read-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from sympy import Basic, Symbol

from ..claim import Claim, NearMiss, Source
from ..kernel import terms as tm
from ..kernel.formulas import Declaration, Statement
from ..kernel.scripts import Lemma, Script
from ..kernel.terms import Index, Recurrence, Term, recurrence
from .classify import Classification, Read, Update, classify, put
from .run import Names, Run, names


@dataclass(frozen=True)
class Subject:
    """One state of a declaration, with its read-out, and the ids of what is claimed of it.

    With several states the ids end in the name of the state.
    """

    declaration: Declaration
    update: Update
    read: Read
    names: Names
    several: bool

    @cached_property
    def run(self) -> Run:
        """The updates over ranges of tokens, of an affine state."""
        return Run(self.update, self.names)

    @property
    def H(self) -> Recurrence:
        """The state."""
        return self.update.state

    @property
    def field(self) -> str:
        """Whether the state is real or complex."""
        return cast(tm.Var, self.H.member.args[3]).field

    def resumed(self, start: Term, begin: Index) -> Recurrence:
        """The declared update, from a state at an index on."""
        step = self.H.member.step_at
        return recurrence(self.H.member.name, start, lambda t, S: step(t, S), start=begin, field=self.field)

    def id(self, slug: str) -> str:
        """The id of a claim."""
        name = self.H.member.name
        return f"{self.declaration.operator}/{slug}" + (f"-{name.lower().replace('_', '-')}" if self.several else "")

    def lemma(self, slug: str, part: int = 0, at: Mapping[Symbol, Index] | None = None) -> Lemma:
        """Another claim about this state."""
        return Lemma(self.id(slug), part, at or {})

    def claim(self, slug: str, title: str, says: Statement, proof: Script, near_misses: tuple[NearMiss, ...], *sources: Source) -> Claim:
        """A claim about this state, with the declaration's source."""
        own = Source(self.declaration.source, note="derived from the declaration")
        return Claim(self.id(slug), title, says, (own, *sources), near_misses, proof, operator=self.declaration)

    @cached_property
    def read_at(self) -> tuple[Index, ...]:
        """When the read-out at t reads the state: t or t - 1 or both; empty unless it is linear in this state and reads no other."""
        t = self.declaration.t
        found = {p.of for p in self.read.products}
        own = tuple(at for at in (t, t - 1) if self.H[at] in found)
        return own if self.read.linear and len(own) == len(found) else ()

    def output(self, state: Callable[[Index], Term]) -> Term:
        """The read-out with a term for the state at a time."""
        t = self.declaration.t
        members = {cast(Basic, tm.unnamed(self.H[at])): cast(Basic, tm.unnamed(state(at))) for at in (t, t - 1)}
        return cast(Term, put(cast(Basic, tm.unnamed(self.declaration.output)), members))


def subjects(declaration: Declaration) -> tuple[Subject, ...]:
    """The states of a declaration."""
    found: Classification = classify(declaration)
    left = names(declaration)
    return tuple(Subject(declaration, u, found.read, left, len(found.updates) > 1) for u in found.updates)
