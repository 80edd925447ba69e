"""The recurrence: unrolled, and cut and resumed."""

from __future__ import annotations

from typing import Any

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Part
from ..kernel.terms import Recurrence, Sum, Term, le, recurrence
from .operator import DECLARATION, GU, Abar, Bbar, C, D, j, k, s, textbook, u, x, x0, y


def states(first: Any = 1, last: Any = k, shift: Any = 0, power: Any = k) -> Formula:
    """Both recurrences, unrolled over the inputs first..last."""
    seen = Sum(Abar ** (k - j - shift) * Bbar * u[j], j, first, last)
    earlier = Sum(Abar ** (k - 1 - j - shift) * Bbar * u[j], j, first - 1, last - 1)
    return And(
        Equation(x[k], Abar**power * x0 + seen),
        Equation(textbook[k], Abar**power * x0 + earlier),
    )


unrolled = Statement(states(), le(0, k))
step = Direct((Hypothesis(),), "one more step")

UNROLLED = Claim(
    id="state-space/unrolled",
    title="the state is the start and every input, each propagated by its own power of Ā",
    statement=unrolled,
    sources=(Source(GU, "section 2.4, the unrolled recurrence", "with a start; there x_{-1} = 0"),),
    proof=Induction(k, base=Each((Direct(), Direct())), step=Each((step, step))),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "one power less for the start", states(power=k + 1)),
        variant(unrolled, "the last input is left out", states(last=k - 1)),
        variant(unrolled, "one input too many", states(first=0)),
    ),
)


def resumed(start: Term, shift: Any = 0) -> Recurrence:
    """The same recurrence from the given state at index s on."""
    return recurrence("r", start, lambda k, r: Abar * r + Bbar * u[k - shift], start=s)


def continues(r: Recurrence) -> Formula:
    """A resumed run has the states and the outputs of the whole one."""
    return And(Equation(r[k], x[k]), Equation(C * r[k] + D * u[k], y))


split = Statement(continues(resumed(x[s])), le(0, s) & le(s, k))

SPLIT = Claim(
    id="state-space/split-resume",
    title="a run that is cut at s and resumed from its state is the whole run",
    statement=split,
    sources=(Source(GU, "section 2.3", "the recurrent view: all that a step needs of the past is its state"),),
    proof=Each((Induction(k, step=step, start=s), Direct((Part(1),), "the same state is read"))),
    operator=DECLARATION,
    near_misses=(
        NearMiss("resumed from the state one step earlier", Statement(continues(resumed(x[s - 1])), le(1, s) & le(s, k))),
        variant(split, "resumed from the start", continues(resumed(x0))),
        variant(split, "the inputs are read again from the first one", continues(resumed(x[s], shift=s))),
    ),
)

CLAIMS = (UNROLLED, SPLIT)
