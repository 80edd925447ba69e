"""What holds of every recurrence, affine or not: a run is cut and resumed; and whether its update is affine at all."""

from __future__ import annotations

from typing import cast

from ..claim import Claim, variant
from ..kernel import terms as tm
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Script, Unfold
from ..kernel.terms import Index, Term, le
from .classify import NOT_AFFINE, TWO_SIDED
from .linear import plus
from .subject import Subject


def split(s: Subject) -> Claim:
    """A run that is cut is the whole run. That the update is affine is refuted here where it is not."""
    t, cut = s.declaration.t, s.names.index("s")

    def says(start: Term, begin: Index = cut) -> Formula:
        return Equation(s.resumed(start, begin)[t], s.H[t])

    statement = Statement(says(s.H[cut]), le(0, cut) & le(cut, t))
    misses = [variant(statement, "resumed from the start", says(s.H.member.init))]
    misses += [variant(statement, "the update at the cut is made twice", says(s.H[cut], cut - 1))]
    affine = And(says(s.H[cut]), _affine(s))
    misses += [variant(statement, "the update is affine in the state", affine)] if s.update.kind == NOT_AFFINE else []
    return s.claim(
        "split-resume",
        f"a run that is cut and resumed from its state is the whole run ({s.update})",
        statement,
        Induction(t, Direct(note="the state at the cut"), Direct((Hypothesis(),), "the same update of the same state"), start=cut),
        tuple(misses),
    )


def _affine(s: Subject) -> Equation:
    """The update of a state between two, and beyond, is as far between their updates."""
    t = s.declaration.t
    X, Y = (tm.Var(s.names.free(x), (), *s.H.member.shape, s.field) for x in ("X", "Y"))
    c = tm.scalar(s.names.free("c"))
    one, other, mixed = (s.H.member.step_at(t + 1, x) for x in (X, Y, c * X + (1 - c) * Y))
    return Equation(mixed, c * one + (1 - c) * other)


def products(s: Subject) -> Claim | None:
    """An update that is affine, but no single product L H R + U: a sum of products."""
    if s.update.kind != TWO_SIDED:
        return None
    t = s.declaration.t

    def says(parts: tuple[Term, ...]) -> Formula:
        step = cast(Term, tm.substitute(cast(Term, plus(parts)), {t: t + 1}))
        return And(Equation(s.H[t + 1], step), _affine(s))

    terms = tuple(p.term for p in s.update.products)
    write = () if s.update.write is None else (s.update.write,)
    statement = Statement(says((*terms, *write)), le(0, t))
    scripts: tuple[Script, ...] = (Direct((Unfold(s.H[t + 1]),), "the update, as declared"), Direct(note="each product is linear"))
    misses = [variant(statement, "the last product is left out", says((*terms[:-1], *write)))]
    misses += [variant(statement, "the first product comes twice", says((terms[0], *terms, *write)))]
    return s.claim("update", "the update is affine in the state: a sum of products", statement, Each(scripts), tuple(misses))
