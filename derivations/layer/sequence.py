"""Claims about the state of an affine layer: what an update is, many of them, a run that is cut, and chunk after chunk."""

from __future__ import annotations

from collections.abc import Callable

from .. import affine
from ..claim import Claim, NearMiss, Source, variant
from ..kernel import terms as tm
from ..kernel.formulas import And, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Direct, Each, ForEach, Hypothesis, Induction, Lemma, Part, Reason, Script, Unfold, Using
from ..kernel.terms import Index, Num, Recurrence, Term, le, recurrence
from .linear import plus, times
from .run import Run
from .subject import Subject

BLELLOCH = Source(affine.BLELLOCH, "section 1.4.1, first-order recurrences", "one transition, on the left")

# One update -----------------------------------------------------------------------------------------


def update(s: Subject) -> Claim:
    """H_{t+1} = L H_t R + U: the pieces are those of the declared update, and all updates those of the affine theorems."""
    run, t = s.run, s.run.t
    now, write = run.H[t], run.update.write
    left, right = (run.at(side.matrix, t + 1) for side in (run.left, run.right))
    acted, written = times(left, now, right), None if write is None else run.at(write, t + 1)
    as_affine = Equation(now, run.canonical[t])

    def says(*parts: Term | None) -> Formula:
        step = plus(p for p in parts if p is not None)
        found = Equation(run.H[t + 1], tm.Zero(*now.shape) if step is None else step)
        return found if run.is_canonical else And(found, as_affine)

    statement = Statement(says(acted, written), le(0, t))
    declared = Direct((Unfold(run.H[t + 1]),), "the update, as declared")
    same = Induction(t, Direct(note="the same start"), Direct((Hypothesis(),), "the same update of the same state"))
    misses = [variant(statement, "the state before comes twice", says(Num(2) * acted, written))]
    misses += [variant(statement, "the state before is forgotten", says(written))]
    misses += [variant(statement, "the state before is kept as it is", says(now, written))] if run.moves else []
    misses += [variant(statement, "the write comes twice", says(acted, Num(2) * written))] if written is not None else []
    return s.claim(
        "update",
        f"the update is affine in the state; its transition: {run.update}",
        statement,
        declared if run.is_canonical else Each((declared, same)),
        tuple(misses),
    )


def _affine(s: Subject, theorem: Reason, start: Index, note: str) -> Script:
    """By a theorem about affine updates; those are about real products, so powers and complex states go by the same induction."""
    if s.run.field == "real" and not s.run.constant:
        return Direct((theorem,) if s.run.is_canonical else (s.lemma("update", 1), theorem), note)
    return Induction(s.run.t, Direct(note="no update"), Direct((Hypothesis(),), "one more update"), start=start)


# Many updates ---------------------------------------------------------------------------------------


def unrolled(s: Subject) -> Claim:
    """The state as its start and every write, each through the transitions after it; and what is read of that."""
    run, t = s.run, s.run.t

    def says(state: Term) -> Formula:
        return Equation(run.H[t], state)

    statement = Statement(says(run.since(run.start, 1, t)), le(0, t))
    return s.claim(
        "unrolled",
        "the state is the start and every write, each through the transitions after it" if run.moves else "the state is a sum",
        statement,
        _affine(s, run.theorem("unrolled"), 0, "the affine update, unrolled"),
        _misses_of_a_sum(run, statement, says),
        BLELLOCH,
    )


def _misses_of_a_sum(run: Run, statement: Statement, says: Callable[[Term], Formula]) -> tuple[NearMiss, ...]:
    t, start = run.t, run.start
    states = {}
    if run.moves and run.writes:
        states["a write passes its own transition"] = run.since(start, 1, t, own=1)
    if run.moves:
        states["the start is not transformed"] = start + run.written(1, t) if run.writes else start
    if run.ordered:
        states["the transitions in reversed order"] = run.since(start, 1, t, reverse=True)
    if run.writes:
        states["the last write is left out"] = run.passed(start, 1, t) + run.written(1, t - 1)
    if run.moves and not run.writes:
        states["the last transition is left out"] = run.passed(start, 1, t - 1)
    if run.writes and not run.moves:
        states["the first write is left out"] = run.passed(start, 1, t) + run.written(2, t)
    return tuple(variant(statement, name, says(state)) for name, state in states.items())


# Cut and resumed ------------------------------------------------------------------------------------


def split(s: Subject) -> Claim:
    """A run that is cut is the whole run, and the state at the cut is all that it needs of the past."""
    run, t, n = s.run, s.run.t, s.run.names
    cut = n.index("s")

    def says(start: Term, state: Term) -> Formula:
        return And(Equation(s.resumed(start, cut)[t], run.H[t]), Equation(run.H[t], state))

    state = run.since(run.H[cut], cut + 1, t)
    statement = Statement(says(run.H[cut], state), le(0, cut) & le(cut, t))
    misses = [variant(statement, "resumed from the start", says(run.start, state))]
    misses += [variant(statement, "the update at the cut is made twice", says(run.H[cut], run.since(run.H[cut], cut, t)))]
    return s.claim(
        "split-resume",
        "a run that is cut and resumed from its state is the whole run, and needs nothing else of the past",
        statement,
        Each(
            (
                Induction(t, Direct(note="the state at the cut"), Direct((Hypothesis(),), "the same update of the same state"), start=cut),
                _affine(s, Using(run.theorem("split-resume", 1, s=cut, t=t)), cut, "the affine update, cut at s"),
            )
        ),
        tuple(misses),
        BLELLOCH,
    )


# Chunk after chunk ----------------------------------------------------------------------------------


def chunkwise(s: Subject) -> Claim:
    """Chunks of any sizes, from state to state; inside one, a state and what is read of it from the state at its start."""
    run, t, n = s.run, s.run.t, s.run.names
    i, b = n.index("i"), n.cuts()
    name = n.free("S")

    def loop(shift: int = 0) -> Recurrence:
        return recurrence(name, run.start, lambda i, S: run.since(S, b[i - 1] + 1 + shift, b[i]), field=run.field)

    S = loop()

    def since(start: Term, begin: Index) -> Formula:
        """The outputs of a chunk, or its states where another state is read too."""
        if not s.read_at:
            return ForAll(Equation(run.H[t], run.since(start, begin + 1, t)), t, b[i] + 1, b[i + 1])
        read = s.output(lambda at: run.since(start, begin + 1, at))
        return ForAll(Equation(s.declaration.output, read), t, b[i] + 1, b[i + 1])

    def until(last: Index) -> Lemma:
        return s.lemma("split-resume", 1, {n.index("s"): b[i], t: last})

    def says(states: Recurrence = S, start: Term = S[i], begin: Index = b[i]) -> Formula:
        return And(Equation(states[i], run.H[b[i]]), since(start, begin))

    statement = Statement(says(), le(0, i))
    return s.claim(
        "chunkwise",
        "chunks of any sizes: each needs the state at its start and its own tokens, and hands on the state at its end",
        statement,
        Each(
            (
                Induction(
                    i,
                    Direct(note="no chunk"),
                    Direct((Hypothesis(), until(b[i + 1])), "the run, cut where the chunk begins"),
                ),
                ForEach(Direct((*map(until, s.read_at or (t,)), Part(1)), "the same up to t")),
            )
        ),
        tuple(
            variant(statement, name, miss)
            for name, miss in (
                ("the state at the end of the chunk", says(start=S[i + 1])),
                ("the update at the cut is made twice", says(begin=b[i] - 1)),
                ("the chunk's first token is left out", says(loop(1))),
            )
        ),
        BLELLOCH,
    )
