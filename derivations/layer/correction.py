"""Transitions that correct what one key finds: B (I - β k kᵀ), or B - β k kᵀ, with a number or a diagonal matrix B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ..kernel import terms as tm
from ..kernel.terms import Eye, Num, Term
from .linear import factors, plus, times, transposed
from .run import Run
from .side import IDENTITY, RANK_ONE, Side


@dataclass(frozen=True)
class Correction:
    """The transition of a column x -> B (x - β k (kᵀ x)) where it is ``inside``, else x -> B x - β k (kᵀ x).

    ``number`` or ``diagonal`` is B; both None is 0. ``turned`` says that it acts from the left, so on the columns of the state.
    """

    key: Term
    rate: Term
    number: Term | None
    diagonal: Term | None
    inside: bool
    turned: bool

    def decayed(self, x: Term) -> Term:
        """x B, or B x from the left."""
        if self.number is not None:
            return times(self.number, x)
        if self.diagonal is None:
            return tm.Zero(*x.shape)
        return times(self.diagonal, x) if self.turned else times(x, self.diagonal)


def correction(run: Run) -> Correction | None:
    """What the updates of a state correct, where one side does it with a key of its own and the other does nothing."""
    sides = {run.left.kind: run.left, run.right.kind: run.right}
    if set(sides) != {IDENTITY, RANK_ONE}:
        return None
    return _of_side(sides[RANK_ONE], turned=run.left.kind == RANK_ONE)


def _of_side(side: Side, *, turned: bool) -> Correction | None:
    if len({(o.column, o.row) for o in side.outers}) != 1:
        return None
    outer = side.outers[0]
    column, row = (transposed(outer.row), transposed(outer.column)) if turned else (outer.column, outer.row)
    rate = times(Num(-1), cast(Term, plus(o.scale for o in side.outers)))
    key = transposed(row)
    if side.diagonal is not None and column == times(side.diagonal, key):
        return Correction(key, rate, None, side.diagonal, True, turned)
    if column != key:
        return None
    inner = None if side.number is None else divided(rate, side.number)
    if inner is not None:
        return Correction(key, inner, side.number, None, True, turned)
    return Correction(key, rate, side.number, side.diagonal, False, turned)


def divided(x: Term, y: Term) -> Term | None:
    """The number x / y where y is, as it is written, among the factors of x."""
    left = factors(x)
    for f in factors(y):
        if isinstance(f, Num) and f.value != 0:
            left.append(Num(1 / f.value))
        elif f in left:
            left.remove(f)
        else:
            return None
    return times(Num(1), *left)


def reflection(c: Correction) -> Term:
    """I - β k kᵀ."""
    return Eye(c.key.rows) - c.rate * c.key * transposed(c.key)
