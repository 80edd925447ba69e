"""Equations by their derivative and initial value, at stated sizes, and of inverses."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import cast

from . import scripts as sc
from . import terms as tm
from .affine import implied, read
from .formulas import Equation, Statement
from .goals import Goal, assume, discharge, equation_of, moved, show_equal
from .normal import Reader
from .printing import text
from .proof import Unproved
from .sizes import entries_of
from .terms import Term, substitute


def ode(goal: Goal, script: sc.Ode) -> None:
    e = equation_of(goal)
    s = script.s
    for a in goal.assumptions:
        if s in tm.free(a.formula):
            raise Unproved(f"the variable {s} is not free to vary: the assumption {a.name} speaks of it")
    gap = e.lhs - e.rhs
    zero = tm.Zero(*gap.shape)
    slope = tm.Deriv(gap, s)
    if s in tm.free(tm.lift(script.start)):
        raise Unproved(f"the starting value {script.start} depends on {s}")
    show_equal(goal, slope if script.matrix is None else slope - script.matrix * gap, zero, script.by, f"the same equation in {s}")
    show_equal(goal, tm.At(gap, s, script.start), zero, script.by, f"the same value at {s} = {script.start}")
    assume(goal, "zero-derivative" if script.matrix is None else "ode-uniqueness")


def integrands(goal: Goal, script: sc.Integrands) -> Goal:
    """What two integrals over one range need in order to be equal: their integrands at a generic value of the variable."""
    e, s = equation_of(goal), script.s
    sides = [tm.unnamed(x) for x in (e.lhs, e.rhs)]
    if not all(isinstance(x, tm.Integral) for x in sides) or sides[0].args[2:] != sides[1].args[2:]:
        raise Unproved(f"the two sides are no integrals over one range: {text(e)}")
    if not isinstance(s, tm.Var) or s.indices:
        raise Unproved(f"{s} is no variable: what is known may say its value")
    known = [a.formula for a in goal.assumptions] + [*goal.shown, *[x.formula for x in goal.supposed]]
    rules = [x for r in goal.hypothesis for x in (r.lhs, r.rhs)]
    if any(s in tm.free(x) for x in (goal.formula, *known, *rules)):
        raise Unproved(f"the variable {s} is not generic: it is spoken of elsewhere")
    reader = Reader(goal.facts)
    for end in cast("tuple[Term, Term]", sides[0].args[2:]):
        if not reader.real(end):
            raise Unproved(f"an integral over a real variable has real ends, and {end} is not known to be")
    discharge(goal, reader.trace)
    left, right = (cast(Term, substitute(x.args[0], {x.args[1]: s})) for x in sides)
    return replace(goal, formula=Equation(left, right), title=f"the integrands at {s}")


def at_sizes(goal: Goal, script: sc.Sizes) -> None:
    e = equation_of(goal)
    if not script.sizes or not all(script.sizes.values()):
        raise Unproved("a proof at stated sizes needs a size, and values for it")
    if any(set(v) - {0} != set(range(1, max(v) + 1)) for v in script.sizes.values()):
        raise Unproved("the stated sizes are all sizes up to a largest one")
    if others := script.sizes.keys() - Statement(goal.formula, assumptions=goal.assumptions).sizes:
        raise Unproved(f"{sorted(map(str, others))} are no sizes here: a proof at some of their values is none")
    # size 0 is a size too, where the conditions allow it
    smallest = [1 if implied(goal.facts, read(size) - 1) else 0 for size in script.sizes]
    for sizes in product(*[sorted({n, *v}) for n, v in zip(smallest, script.sizes.values(), strict=True)]):
        at = dict(zip(script.sizes, sizes, strict=True))
        if min(sizes) < 0 or any(s in tm.free(a.formula) for a in goal.assumptions for s in at):
            raise Unproved(f"the sizes {at} are negative, or an assumption speaks of them")
        left, right = (entries_of(cast(Term, tm.unnamed(substitute(x, at)))) for x in (e.lhs, e.rhs))
        title = f"at {', '.join(f'{s} = {n}' for s, n in at.items())}"
        for r, row in enumerate(left):
            for c, entry in enumerate(row):
                show_equal(moved(goal, at, title), entry, right[r][c], script.by, title)
    reached = [max(v) for v in script.sizes.values()]
    goal.ledger.largest = min(reached if goal.ledger.largest is None else [*reached, goal.ledger.largest])


def unique_inverse(goal: Goal, script: sc.UniqueInverse) -> None:
    e = equation_of(goal)
    inverse = tm.unnamed(e.lhs)
    if not isinstance(inverse, tm.Inverse):
        raise Unproved(f"the left side is the inverse to be found, not {e.lhs}")
    m = cast(Term, inverse.args[0])
    reader = Reader(goal.facts)
    reader.read(inverse)
    discharge(goal, reader.trace)
    show_equal(goal, m * e.rhs, tm.Eye(m.rows), script.by, "the product is the identity")
