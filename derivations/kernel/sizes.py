"""Statements at stated sizes: matrices written out entry by entry, where scalars commute."""

from __future__ import annotations

from typing import cast

from sympy import Basic

from . import terms as tm
from .terms import Term

Grid = list[list[Term]]


class NotExplicit(ValueError):
    """A term cannot be written out entry by entry."""


def entries_of(x: Term) -> Grid:
    """The entries of a term whose shape is two numbers, as scalar terms. Raises NotExplicit."""
    if not (x.rows.is_Integer and x.cols.is_Integer):
        raise NotExplicit(f"the size of {x} is not a number: {x.rows} x {x.cols}")
    rows, cols = int(x.rows), int(x.cols)
    args = cast("tuple[Term, ...]", x.args)
    match x:
        case tm.Mul():
            return _product(args)
        case tm.Add():
            grids = [entries_of(a) for a in args]
            return [[tm.Add(*[g[r][c] for g in grids]) for c in range(cols)] for r in range(rows)]
        case tm.Transpose():
            g = entries_of(args[0])
            return [[g[c][r] for c in range(cols)] for r in range(rows)]
        case tm.Trace():
            g = entries_of(args[0])
            return [[tm.Add(tm.Num(0), *[g[k][k] for k in range(len(g))])]]
        case tm.Power() if rows != 1 and x.args[1].is_Integer and x.args[1] >= 0:  # type: ignore[operator]
            return entries_of(tm.Mul(tm.Eye(rows), *[args[0]] * int(x.args[1])))  # type: ignore[call-overload]
        case tm.Eye() if rows != 1:
            return [[tm.Num(int(r == c)) for c in range(cols)] for r in range(rows)]
        case tm.Zero():
            return [[tm.Num(0) for _ in range(cols)] for _ in range(rows)]
        case tm.Var() if (rows, cols) != (1, 1):
            return [[tm.Entry(x, r + 1, c + 1) for c in range(cols)] for r in range(rows)]
    if (rows, cols) == (1, 1):
        return [[_scalar(x)]]
    raise NotExplicit(f"no entries of {type(x).__name__}: {x}")


def _product(factors: tuple[Term, ...]) -> Grid:
    scalars = [entries_of(f)[0][0] for f in factors if f.is_scalar_term]
    out: Grid | None = None
    for f in factors:
        if not f.is_scalar_term:
            g = entries_of(f)
            out = g if out is None else _times(out, g, int(f.cols))
    # a grid without rows is a product too
    return [[tm.Mul(*scalars, e) for e in r] for r in ([[tm.Num(1)]] if out is None else out)]


def _times(a: Grid, b: Grid, cols: int) -> Grid:
    if any(len(r) != len(b) for r in a):
        raise NotExplicit("a factor that is a number only as a product: write it with brackets")
    zero = tm.Num(0)
    return [[tm.Add(zero, *[r[k] * b[k][c] for k in range(len(b))]) for c in range(cols)] for r in a]


def _scalar(x: Term) -> Term:
    """A scalar with the matrices inside it written out."""
    if isinstance(x, (tm.Var, tm.Num, tm.Ind, tm.Entry)):
        return x
    parts: list[Basic] = [entries_of(a)[0][0] if isinstance(a, Term) else a for a in x.args]
    if any(isinstance(a, Term) and not a.is_scalar_term for a in x.args):
        raise NotExplicit(f"no entries of {type(x).__name__}: {x}")
    return cast(Term, x.func(*parts))
