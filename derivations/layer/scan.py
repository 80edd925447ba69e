"""The scan form: updates as pairs (transition, write), which compose in any grouping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from .. import affine
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each
from ..kernel.terms import Index, Term, le
from .linear import times
from .run import Run
from .sequence import BLELLOCH
from .side import IDENTITY, SCALAR, Side
from .subject import Subject

MARTIN = Source(affine.MARTIN, "the parallel scan of a linear recurrence", "there with one transition, diagonal")


@dataclass(frozen=True)
class Pair:
    """X -> left X right + write. A transition that is I is left out, and a number stands for itself."""

    left: Term | None
    right: Term | None
    write: Term

    def of(self, x: Term) -> Term:
        """What the transition makes of a term."""
        sides = [s for s in (self.left, self.right) if s is not None and s.is_scalar_term]
        left = [self.left] if self.left is not None and not self.left.is_scalar_term else []
        right = [self.right] if self.right is not None and not self.right.is_scalar_term else []
        return times(*sides, *left, x, *right)

    def after(self, first: Pair) -> Pair:
        """Two updates as one, the other first."""
        return Pair(_times(self.left, first.left), _times(first.right, self.right), self.of(first.write) + self.write)

    def parts(self) -> tuple[Term, ...]:
        """The transitions that there are, and the write."""
        return tuple(x for x in (self.left, self.right, self.write) if x is not None)


def _times(a: Term | None, b: Term | None) -> Term | None:
    return None if a is None or b is None else times(a, b)


def _one(run: Run, side: Side, at: Index) -> Term | None:
    return None if side.kind == IDENTITY else run.at(cast(Term, side.number) if side.kind == SCALAR else side.matrix, at)


def pair(run: Run, at: Index) -> Pair:
    """One update."""
    return Pair(_one(run, run.left, at), _one(run, run.right, at), run.write(at))


def segment(run: Run, first: Index, last: Index) -> Pair:
    """The updates first + 1..last as one."""
    left = run.acting(run.left, first + 1, last, decreasing=True)
    right = run.acting(run.right, first + 1, last)
    kept = [None if s.kind == IDENTITY else x for s, x in ((run.left, left), (run.right, right))]
    return Pair(kept[0], kept[1], run.written(first + 1, last))


def scan(s: Subject) -> Claim | None:
    """Pairs compose in any grouping, neighbouring segments make one, and one makes the state at its end of that at its start."""
    run, n = s.run, s.run.names
    if not run.writes:
        return None
    p, q, r, first, middle = (n.index(x) for x in ("p", "q", "m", "s", "n"))
    last = run.t
    three = [pair(run, at) for at in (p, q, r)]

    def says(compose: Callable[[Pair, Pair], Pair] = Pair.after, since: Index = first) -> Formula:
        left = compose(three[2], compose(three[1], three[0]))
        right = compose(compose(three[2], three[1]), three[0])
        joined, whole = compose(segment(run, middle, last), segment(run, since, middle)), segment(run, first, last)
        return And(
            *map(Equation, left.parts(), right.parts()),
            *map(Equation, joined.parts(), whole.parts()),
            Equation(run.H[last], whole.of(run.H[first]) + whole.write),
        )

    def earlier_last(second: Pair, first: Pair) -> Pair:
        return Pair(_times(second.left, first.left), _times(first.right, second.right), first.of(second.write) + first.write)

    def unpassed(second: Pair, first: Pair) -> Pair:
        return Pair(_times(second.left, first.left), _times(first.right, second.right), first.write + second.write)

    def one_write(second: Pair, first: Pair) -> Pair:
        return Pair(_times(second.left, first.left), _times(first.right, second.right), second.write + second.write)

    statement = Statement(says(), le(0, first) & le(first, middle) & le(middle, last))
    wrong = (
        {"the later write passes the earlier transition": earlier_last, "the earlier write passes nothing": unpassed} if run.moves else {}
    )
    misses = [variant(statement, name, says(f)) for name, f in wrong.items()]
    misses += [variant(statement, "only the later write is kept", says(one_write))]
    misses += [variant(statement, "segments that overlap in one token", says(since=first - 1))]
    count = len(three[0].parts())
    from_the_cut = Direct((s.lemma("split-resume", 1, {first: first, last: last}),), "the run, cut where the segment begins")
    return s.claim(
        "scan",
        "pairs of a transition and a write compose in any grouping: a tree of them over a segment takes its first state to its last",
        statement,
        Each(
            (
                *[Direct(note="in either grouping")] * count,
                *[Direct(note="neighbouring products are one")] * (count - 1),
                Direct(note="the writes of the first segment pass the second one"),
                from_the_cut,
            )
        ),
        tuple(misses),
        BLELLOCH,
        MARTIN,
    )
