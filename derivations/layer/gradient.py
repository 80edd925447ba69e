"""The loss whose gradient step a correction is: ½ |X k - v|², at the state that it reads."""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..delta_rule.operator import SCHLAG, d_k, d_v
from ..delta_rule.operator import t as now
from ..kernel import terms as tm
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Lemma, Unfold, Using
from ..kernel.terms import At, Deriv, Num, Term, Trace, le, named, norm2
from .correction import Correction, correction, divided
from .linear import column_and_row, plus, times, transposed
from .side import monomials
from .subject import Subject

DELTA = Source(SCHLAG, "section 4.2: the correction of what a key finds", "as a gradient step")


def gradient_step(s: Subject) -> Claim | None:
    """An update as one step against the gradient of a recall error; None where it is not written as one."""
    run = s.run
    if run.field != "real" or not run.writes:
        return None
    found = correction(run)
    value = None if found is None else _value(s, found)
    if found is None or value is None:
        return None
    t, k, rate = run.t, found.key, found.rate
    height = value.rows
    X, E = (tm.matrix(s.names.free(x), height, k.rows) for x in ("X", "E"))
    eps = tm.scalar(s.names.free("epsilon"))
    before, kept = run.H[t - 1], found.decayed(run.H[t - 1])
    read = kept if found.inside else before

    def turn(x: Term) -> Term:
        return transposed(x) if found.turned else x

    def gradient(state: Term) -> Term:
        return (times(state, k) - value) * transposed(k)

    def loss(state: Term) -> Term:
        return named("L", Num(Fraction(1, 2)) * norm2(state * k - value), t, state)

    slope = At(Deriv(loss(X + eps * E), eps), eps, 0)

    along = Trace(gradient(X).T * E)

    def says(along: Term = along, step: Term = rate, at: Term = read, start: Term = kept) -> Formula:
        return And(
            Equation(slope, along),
            Equation(run.H[t], start - step * turn(gradient(turn(at)))),
        )

    statement = Statement(says(), le(1, t))
    misses = [variant(statement, "twice the gradient", says(Num(2) * along)), variant(statement, "a step uphill", says(step=-rate))]
    misses += [variant(statement, "the gradient at the new state", says(at=run.H[t]))]
    if kept != before:
        misses += [variant(statement, "nothing fades", says(start=before))]
        other = before if found.inside else kept
        misses += [variant(statement, "the gradient at another state", says(at=other))]
    families = {"k": ((now,), run.at(k, now)), "v": ((now,), run.at(value, now)), "X": ((), X), "E": ((), E)}
    slopes = Lemma("delta-rule/gradient-step", 0, {d_k: k.rows, d_v: height, now: t}, families)
    return s.claim(
        "gradient-step",
        f"the update is one gradient step of size {rate} on the recall error ½ |X k - v|², with k = {k} and v = {value}",
        statement,
        Each((Direct((Using(slopes),), "the slope of the error"), Direct((Unfold(run.H[t]),), "the error is in the gradient"))),
        tuple(misses),
        DELTA,
    )


def _value(s: Subject, found: Correction) -> Term | None:
    """v, of a write β v kᵀ with the rate and the key of the correction."""
    parts = [(scale, column_and_row(tm.Mul(Num(1), *word))) for scale, word in monomials(s.run.write(s.run.t))]
    values = []
    for scale, cut in parts:
        if cut is None:
            return None
        column, row = (transposed(cut[1]), transposed(cut[0])) if found.turned else cut
        strength = divided(scale, found.rate)
        if row != transposed(found.key) or strength is None:
            return None
        values.append(times(strength, column))
    return plus(values)
