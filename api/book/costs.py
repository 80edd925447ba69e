"""What one token costs an operator as it is declared: polynomials in its sizes, all of them at least 1."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, cast

import sympy
from sympy import Expr

from isoform.derivations import cost
from isoform.derivations.kernel import terms as tm
from isoform.derivations.kernel.printing import latex

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration


class Undecided(Exception):
    """Which branch holds depends on more than that sizes are at least 1, or the count is no polynomial."""


def of(declaration: Declaration) -> tuple[tuple[str, str], ...]:
    """Return the operations of one token by kind, each with the LaTeX of its count.

    A count that is no polynomial for all sizes from 1 on is written as it was counted. Raises Uncounted.
    """
    counts = cost.operations(*cost.step(declaration))
    return tuple((kind, _written(count)) for kind, count in sorted(counts.items()))


def _written(count: tm.Term) -> str:
    try:
        return str(sympy.latex(sympy.expand(polynomial(count))))
    except Undecided:
        return latex(count)


def polynomial(count: tm.Term) -> Expr:
    """Return a count as a polynomial in its sizes and indices, all of them at least 1. Raises Undecided."""
    if isinstance(count, tm.Num):
        return sympy.Rational(count.value.p, count.value.q)
    if isinstance(count, tm.Ind):
        return count.expr
    if isinstance(count, (tm.Add, tm.Mul)):
        parts = [polynomial(cast(tm.Term, part)) for part in count.args]
        return reduce(lambda a, b: a + b if isinstance(count, tm.Add) else a * b, parts)
    if isinstance(count, tm.Where):
        cond, a, b = count.args
        return polynomial(cast(tm.Term, a if _holds(cast(tm.Cond, cond)) else b))
    if isinstance(count, tm.Sum) and count.args[1] not in tm.free(cast(tm.Term, count.args[0])):
        body, _, lo, hi = count.args
        return polynomial(cast(tm.Term, body)) * (hi - lo + 1) if _holds(tm.le(lo - 1, hi)) else sympy.Integer(0)
    raise Undecided


def _holds(cond: tm.Cond) -> bool:
    """Whether a condition holds whatever the sizes from 1 on are; False if it never does. Raises Undecided otherwise."""
    return all(sign == 1 for sign in [_sign(cast(Expr, e)) for e in cond.args])


def _sign(e: Expr) -> int:
    """1 if an affine expression is at least 0 for all sizes from 1 on, -1 if it is below 0 for all. Raises Undecided."""
    terms = e.expand().as_coefficients_dict()
    slopes, at_ones = [c for n, c in terms.items() if n != 1], sum(terms.values())
    if all(c >= 0 for c in slopes) and at_ones >= 0:
        return 1
    if all(c <= 0 for c in slopes) and at_ones < 0:
        return -1
    raise Undecided
