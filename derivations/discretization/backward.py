"""Backward Euler with a step e^z and A = -1: a gate."""

from __future__ import annotations

from sympy import Integer

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists
from ..kernel.terms import Block, Exp, Inverse, Num, Term, named, scalar
from .operators import BACKWARD_OPERATOR, LSSL, N, m

z = scalar("z")
before, after, drive = scalar("x"), scalar("y"), scalar("u")
one_entry = BACKWARD_OPERATOR.output.subs({N: Integer(1), m: Integer(1)})


def rule(step: Term) -> Term:
    """(Ā, B̄) for one entry with A = -1 and B = 1."""
    return one_entry.subs({scalar("A"): Num(-1), scalar("B"): Num(1), scalar("Delta"): step})


def sigmoid(at: Term) -> Term:
    """1 / (1 + e^{-z})."""
    return named("sigma", Inverse(Num(1) + Exp(-at)), at)


def gated(gate: Term, step: Term) -> Formula:
    """What is divided by is not 0; the pair is that of a gate; and a state obeys the implicit rule as far as it is the gate's."""
    update = (Num(1) - gate) * before + gate * drive
    implicit = before + step * (drive - after)
    return And(
        NonZero(1 + Exp(z)),
        NonZero(1 + Exp(-z)),
        Equation(rule(step), Block((Num(1) - gate, gate))),
        Equation(after - implicit, (1 + step) * (after - update)),
    )


gate = Statement(gated(sigmoid(z), Exp(z)))

GATE = Claim(
    id="discretization/backward-euler-gate",
    title="backward Euler with Δ = e^z, A = -1 and B = 1 is the gate x' = (1 - σ(z)) x + σ(z) u",
    statement=gate,
    sources=(Source(LSSL, "lemma 3.1", "one entry; the rule for a step that ends at x'"),),
    proof=Each(
        (
            Exists(),
            Exists(),
            Direct(note="1 / (1 + e^z) = 1 - σ(z)"),
            Direct(note="(1 + e^z) σ(z) = e^z"),
        )
    ),
    operator=BACKWARD_OPERATOR,
    near_misses=(
        variant(gate, "the gate the other way round", gated(Num(1) - sigmoid(z), Exp(z))),
        variant(gate, "a step of z", gated(sigmoid(z), z)),
        variant(gate, "a step of σ(z)", gated(sigmoid(z), sigmoid(z))),
    ),
)

CLAIMS = (GATE,)
