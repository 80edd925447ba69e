"""What many updates H_t = L_t H_{t-1} R_t + U_t make of a state, in terms that fit the kind of L and R."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from sympy import Basic, Symbol

from .. import affine
from ..kernel import terms as tm
from ..kernel.formulas import Declaration
from ..kernel.scripts import Lemma
from ..kernel.terms import Cuts, Index, Prod, Recurrence, Sum, Term, index, recurrence, substitute
from .classify import Update
from .linear import is_one, times
from .side import GENERAL, IDENTITY, LOW_RANK, RANK_ONE, SCALAR, Side


@dataclass(frozen=True)
class Names:
    """Names that a declaration does not use."""

    taken: frozenset[str]

    def index(self, name: str) -> Symbol:
        """An index."""
        return index(self.free(name))

    def cuts(self) -> Cuts:
        """A family of cuts."""
        return tm.cuts(self.free("b"))

    def free(self, name: str) -> str:
        """The name, or one that starts with it."""
        while name in self.taken:
            name += "_"
        return name


def names(declaration: Declaration) -> Names:
    """The names that are left beside those of a declaration."""
    nodes = [n for x in _spoken(declaration) for n in tm.walk(x)]
    symbols = {n.name for n in nodes if isinstance(n, (Symbol, tm.Var, tm.Rec, tm.Apply, tm.Cut))}
    return Names(frozenset(n.rstrip(tm.PRIME + "0123456789") for n in symbols) | symbols)


def _spoken(declaration: Declaration) -> tuple[Basic, ...]:
    inputs = [f if isinstance(f, Term) else f[declaration.t] for f in declaration.inputs.values()]
    return (declaration.output, declaration.t, *inputs)


@dataclass(frozen=True)
class Run:
    """The updates of one state, over ranges of tokens."""

    update: Update
    names: Names

    @property
    def t(self) -> Symbol:
        """The time that the update speaks of."""
        return self.update.t

    @property
    def H(self) -> Recurrence:
        """The state, as declared."""
        return self.update.state

    @property
    def start(self) -> Term:
        """The state before the first token."""
        return self.H.member.init

    @property
    def left(self) -> Side:
        """L."""
        return cast(Side, self.update.left)

    @property
    def right(self) -> Side:
        """R."""
        return cast(Side, self.update.right)

    @property
    def moves(self) -> bool:
        """Whether a transition changes the state."""
        return self.update.kind != IDENTITY

    @property
    def writes(self) -> bool:
        """Whether an update adds something."""
        return self.update.write is not None

    @cached_property
    def ordered(self) -> bool:
        """Whether transitions of different times need not commute."""
        kinds = (RANK_ONE, LOW_RANK, GENERAL)
        return any(s.kind in kinds and self.t in tm.free(s.matrix) for s in (self.left, self.right))

    @cached_property
    def constant(self) -> bool:
        """Whether a transition is the same at all times, so that many of them are a power."""
        return any(s.kind != IDENTITY and self.t not in tm.free(s.matrix) for s in (self.left, self.right))

    def at(self, x: Term, time: Index) -> Term:
        """A term of the update at another time."""
        return cast(Term, substitute(x, {self.t: time}))

    def write(self, time: Index) -> Term:
        """U at a time."""
        u = self.update.write
        return tm.Zero(*self.start.shape) if u is None else self.at(u, time)

    def acting(self, side: Side, first: Index, last: Index, *, decreasing: bool = False) -> Term:
        """The product of one side's transitions over a range: numbers and powers where they are."""
        if side.kind == IDENTITY:
            return side.matrix
        x = cast(Term, side.number) if side.kind == SCALAR else side.matrix
        if self.t not in tm.free(x):
            return x ** tm.index_expression(last - first + 1)
        r = self.names.index("r")
        return Prod(self.at(x, r), r, first, last, decreasing and side.kind != SCALAR)

    def passed(self, x: Term, first: Index, last: Index, *, reverse: bool = False) -> Term:
        """What the transitions first..last make of a term: L_last ... L_first x R_first ... R_last."""
        left = self.acting(self.left, first, last, decreasing=not reverse)
        right = self.acting(self.right, first, last, decreasing=reverse)
        numbers = [f for f in (left, right) if f.is_scalar_term]
        matrices = [[] if f.is_scalar_term or is_one(f) else [f] for f in (left, right)]
        return times(*numbers, *matrices[0], x, *matrices[1])

    def since(self, start: Term, first: Index, last: Index, own: Index = 0, *, reverse: bool = False) -> Term:
        """The state at ``last`` from a state before ``first``, and the writes since then, each through the transitions after it."""
        kept = self.passed(start, first, last, reverse=reverse)
        if not self.writes:
            return kept
        return kept + self.written(first, last, own, reverse=reverse)

    def written(self, first: Index, last: Index, own: Index = 0, *, reverse: bool = False) -> Term:
        """The writes first..last through the transitions after them; ``own`` = 1: and through their own."""
        j = self.names.index("j")
        return Sum(self.passed(self.write(j), j + 1 - own, last, reverse=reverse), j, first, last)

    @property
    def field(self) -> str:
        """real or complex."""
        return cast(tm.Var, self.H.member.args[3]).field

    # the same update as L H R + U, as the affine theorems have it

    @cached_property
    def canonical(self) -> Recurrence:
        """The recurrence that the affine theorems speak of, with these L, R and U."""
        left, right = self.left.matrix, self.right.matrix

        def step(t: Index, S: Term) -> Term:
            kept = [cast(Term, x) for x in tm.Mul(self.at(left, t), S, self.at(right, t)).args if not is_one(x)]
            return (kept[0] if len(kept) == 1 else tm.Mul(*kept)) + self.write(t)

        return recurrence(affine.H.member.name, self.start, step, field=self.field)

    @property
    def is_canonical(self) -> bool:
        """Whether the declared state is that one, by its name and its update as it is written."""
        return self.canonical[self.t] == self.H[self.t]

    def theorem(self, slug: str, part: int = 0, **at: Index) -> Lemma:
        """An instance of a theorem of the affine column, for this update."""
        rows, cols = self.start.shape
        fixed = {affine.d_v: rows, affine.d_k: cols} | {getattr(affine, i): e for i, e in at.items()}
        now = affine.t
        families = {
            "L": ((now,), self.at(self.left.matrix, now)),
            "R": ((now,), self.at(self.right.matrix, now)),
            "U": ((now,), self.write(now)),
            "H0": ((), self.start),
        }
        return Lemma(f"affine/{slug}", part, fixed, families)
