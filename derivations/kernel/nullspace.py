"""A vector that a matrix with more columns than rows sends to 0."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from sympy import Expr, Symbol

from . import scripts as sc
from . import terms as tm
from .affine import implied, read
from .algebra import fresh_name
from .formulas import And, Assumption, Equation
from .goals import Goal, assume, discharge, record
from .language import clean
from .normal import Reader
from .proof import Unproved

NAMES = ("null vector", "length 1")


def with_null_vector(goal: Goal, script: sc.NullVector) -> Goal:
    """The goal, where x is known to be a vector of length 1 that the columns send to 0."""
    column, j, last = cast(tm.Term, tm.unnamed(script.column)), script.j, tm.index_expression(script.last)
    rows, x = column.rows, tm.scalars(script.x)
    clean(x[j])
    if column.cols != 1 or j in rows.free_symbols | last.free_symbols:
        raise Unproved(f"{column} is no column at {j}, of one size")
    if not (implied(goal.facts, read(last - rows) - 1) and implied(goal.facts, read(rows))):
        raise Unproved(f"a null vector needs more columns than rows: {last} > {rows} >= 0 is not known here")
    if any(n.field != "real" for n in tm.walk(column) if isinstance(n, (tm.Var, tm.Apply))):
        raise Unproved(f"{column} is not known to be real")
    if x.name in _names(goal, column):
        raise Unproved(f"{x.name} is not new: it occurs in the goal")
    if {a.name for a in goal.assumptions} & set(NAMES):
        raise Unproved("a null vector is already known here")
    _exists(goal, column, j, last)
    assume(goal, "null-vector")
    said = (Equation(tm.Sum(x[j] * column, j, 1, last), tm.Zero(rows, 1)), Equation(tm.Sum(x[j] ** 2, j, 1, last), 1))
    record(goal, f"more than {rows} columns: some x sends them to 0", And(*said), "null vector", ())
    return replace(goal, assumptions=goal.assumptions + tuple(map(Assumption, NAMES, said)))


def _exists(goal: Goal, column: tm.Term, j: Symbol, last: Expr) -> None:
    """Every column has a value; under a name of its own, since what is known of an index j says nothing of a bound one."""
    own = Symbol(fresh_name(), integer=True)
    reader = Reader(goal.facts | {read(own) - 1, read(last) - read(own)})
    reader.read(cast(tm.Term, tm.substitute(column, {j: own})))
    discharge(goal, reader.trace)


def _names(goal: Goal, column: tm.Term) -> set[str]:
    """The names of all that the goal, what is known and the columns speak of."""
    rules = (*goal.hypothesis, *goal.unfolded)
    formulas = [goal.formula, *goal.shown, *[a.formula for a in goal.assumptions], *[s.formula for s in goal.supposed]]
    parts = [column, *formulas, *[side for r in rules for side in (r.lhs, r.rhs)]]
    return {n.name for p in parts for n in tm.walk(tm.unnamed(p)) if isinstance(n, (tm.Var, tm.Apply, tm.Rec))}


__all__ = ["with_null_vector"]
