"""Rows, columns and entries of composite terms: matrices with a time axis are read row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import sympy
from sympy import Basic, Expr, Symbol

from . import terms as tm
from .affine import Affine, Guards, implied, read
from .algebra import fresh_name
from .terms import Term, free

Span = tuple[Expr, Expr]
PARTIAL = (tm.Inverse, tm.Log, tm.Sqrt, tm.Power, tm.Rec)  # what has a value only under conditions


class OutOfRange(ValueError):
    """A row was asked for that is not known to exist."""


def _split(x: tm.Mul) -> tuple[list[Term], list[Term]]:
    args = cast("tuple[Term, ...]", x.args)
    return [a for a in args if a.is_scalar_term], [a for a in args if not a.is_scalar_term]


def ranged(x: Term) -> Span | None:
    """The range of the time axis along the rows, if the term has one."""
    match x:
        case tm.Stack():
            return cast(Span, x.args[2:4])
        case tm.Rows():
            return cast(Span, x.args[1:3])
        case tm.Transpose():
            return ranged_columns(cast(Term, x.args[0]))
        case tm.Mul() if not x.is_scalar_term:
            return ranged(_split(x)[1][0])
        case tm.Add() | tm.Hadamard() | tm.Conj() | tm.Where():
            return next((r for a in x.args if isinstance(a, Term) and (r := ranged(a))), None)
        case tm.Rec():
            return ranged(x.init)
        case tm.Integral() | tm.Deriv() | tm.At() | tm.Diag():
            return ranged(cast(Term, x.args[0]))
        case tm.Sum():
            span = ranged(x.body)
            return None if span is None or any(e.has(x.args[1]) for e in span) else span
    return None


def ranged_columns(x: Term) -> Span | None:
    """The range of the time axis along the columns, if the term has one."""
    match x:
        case tm.Transpose():
            return ranged(cast(Term, x.args[0]))
        case tm.Stack() | tm.Sum():
            span = ranged_columns(cast(Term, x.args[0]))
            return None if span is None or any(e.has(x.args[1]) for e in span) else span
        case tm.Row() | tm.Rows():
            return ranged_columns(cast(Term, x.args[0]))
        case tm.Rec():
            return ranged_columns(x.init)
        case tm.Integral() | tm.Deriv() | tm.At():
            return ranged_columns(cast(Term, x.args[0]))
        case tm.Diag():
            return ranged(cast(Term, x.args[0]))
        case tm.Mul() if not x.is_scalar_term:
            return ranged_columns(_split(x)[1][-1])
        case tm.Add() | tm.Hadamard() | tm.Conj() | tm.Where():
            return next((r for a in x.args if isinstance(a, Term) and (r := ranged_columns(a))), None)
    return None


def firsts(x: Term) -> tuple[Affine, Affine]:
    """The numbers of the first row and of the first column of a term."""
    rows, cols = (read(span[0] if span else sympy.Integer(1)) for span in (ranged(x), ranged_columns(x)))
    return rows, cols


def row(x: Term, i: Expr, facts: Guards) -> Term:
    """Row i of a term. Raises OutOfRange if the row is not known to exist."""
    match x:
        case tm.Stack():
            body, s, lo, hi = x.args
            _inside(cast(Expr, lo), i, cast(Expr, hi), facts, x)
            return cast(Term, tm.substitute(body, {s: i}))
        case tm.Rows():
            _inside(cast(Expr, x.args[1]), i, cast(Expr, x.args[2]), facts, x)
            return row(cast(Term, x.args[0]), i, facts)
        case tm.Mul() if not x.is_scalar_term:
            scalars, rest = _split(x)
            return tm.Mul(*scalars, row(rest[0], i, facts), *rest[1:])
        case tm.Transpose() if _has_columns(cast(Term, x.args[0]), facts):
            return tm.Transpose(column(cast(Term, x.args[0]), i, facts))
        case tm.Add() | tm.Hadamard() | tm.Conj():
            _one_numbering(x, ranged)
            return cast(Term, x.func(*[row(cast(Term, a), i, facts) for a in x.args]))
        case tm.Zero():
            return tm.Zero(1, x.cols)
        case tm.Sum():
            return _through_sum(x, i, facts, row)
        case tm.Integral():
            return tm.Integral(row(cast(Term, x.args[0]), i, facts), *x.args[1:])  # type: ignore[arg-type]
        case tm.Deriv() | tm.At() if ranged(x) or ranged_columns(x):
            return cast(Term, x.func(row(cast(Term, x.args[0]), i, facts), *x.args[1:]))
        case tm.Where():
            return _through_where(x, i, facts, row)
        case tm.Diag():
            return _diagonal_row(cast(Term, x.args[0]), i, facts)
        case tm.Exp() | tm.Eye() | tm.Power() if (v := _as_diagonal(x, facts)) is not None:
            return _diagonal_row(v, i, facts)
    return x if x.rows == 1 and ranged(x) is None and i == 1 else tm.Row(x, i)


WITH_COLUMNS = (tm.Transpose, tm.Stack, tm.Mul, tm.Add, tm.Hadamard, tm.Conj, tm.Zero, tm.Sum, tm.Where, tm.Row, tm.Diag)


def _has_columns(x: Term, facts: Guards) -> bool:
    """Whether there is a rule for the columns of a term."""
    if isinstance(x, tm.Integral | tm.Deriv | tm.At):
        return (ranged(x) or ranged_columns(x)) is not None
    return isinstance(x, WITH_COLUMNS) or _as_diagonal(x, facts) is not None


def column(x: Term, j: Expr, facts: Guards) -> Term:
    """Column j of a term. Raises OutOfRange if the column is not known to exist."""
    match x:
        case tm.Transpose():
            return tm.Transpose(row(cast(Term, x.args[0]), j, facts))
        case tm.Stack():
            body, s, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", x.args)
            return tm.Stack(column(body, j, facts), s, lo, hi)
        case tm.Mul() if not x.is_scalar_term:
            scalars, rest = _split(x)
            return tm.Mul(*scalars, *rest[:-1], column(rest[-1], j, facts))
        case tm.Add() | tm.Hadamard() | tm.Conj():
            _one_numbering(x, ranged_columns)
            return cast(Term, x.func(*[column(cast(Term, a), j, facts) for a in x.args]))
        case tm.Zero():
            return tm.Zero(x.rows, 1)
        case tm.Sum():
            return _through_sum(x, j, facts, column)
        case tm.Integral():
            return tm.Integral(column(cast(Term, x.args[0]), j, facts), *x.args[1:])  # type: ignore[arg-type]
        case tm.Deriv() | tm.At() if ranged(x) or ranged_columns(x):
            return cast(Term, x.func(column(cast(Term, x.args[0]), j, facts), *x.args[1:]))
        case tm.Where():
            return _through_where(x, j, facts, column)
        case tm.Diag():
            return tm.Transpose(row(x, j, facts))
        case tm.Exp() | tm.Eye() | tm.Power() if _as_diagonal(x, facts) is not None:
            return tm.Transpose(row(x, j, facts))
        case tm.Row():
            return tm.Transpose(row(tm.Transpose(x), j, facts)) if ranged_columns(x) else tm.Entry(x.args[0], x.args[1], j)  # type: ignore[arg-type]
    return tm.Transpose(tm.Row(tm.Transpose(x), j))


def entry(x: Term, i: Expr, j: Expr, facts: Guards) -> Term:
    """The entry in row i and column j."""
    if isinstance(x, tm.Transpose):
        return entry(cast(Term, x.args[0]), j, i, facts)
    return column(simplify_head(row(x, i, facts), facts), j, facts)


def _diagonal_row(v: Term, i: Expr, facts: Guards) -> Term:
    """Row i of diag(v): entry i of v, in column i."""
    lo, hi = ranged(v) or (sympy.Integer(1), v.rows)
    _inside(lo, i, hi, facts, v)
    n = Symbol(fresh_name(), integer=True)
    return tm.Mul(row(v, i, facts), tm.Transpose(tm.Stack(tm.indicator(tm.equal(n, i)), n, lo, hi)))


def _as_diagonal(x: Term, facts: Guards) -> Term | None:
    """The v with diag(v) = x, for an identity, exp(c diag(w)) and a power of diag(w), where w has no labels of its own; else None.

    What has no value has no rows: the base of a zeroth power has one, and all entries of a negative power are asked for.
    """
    n = Symbol(fresh_name(), integer=True)
    if x.is_scalar_term:
        return None
    match x:
        case tm.Eye():
            return tm.Stack(tm.Num(1), n, 1, x.rows)
        case tm.Power() if ranged(cast(Term, x.args[0])) is None:
            base, e = cast("tuple[Term, Expr]", x.args)
            if e == 0 and not any(isinstance(a, PARTIAL) for a in tm.walk(base)):
                return tm.Stack(tm.Num(1), n, 1, x.rows)
            if e != 0 and isinstance(base, tm.Diag):
                w, k = cast(Term, base.args[0]), Symbol(fresh_name(), integer=True)
                entry = tm.Power(tm.Row(w, n), e)
                if not implied(facts, read(e)):
                    entry += 0 * tm.Sum(tm.Power(tm.Row(w, k), e), k, 1, x.rows)
                return tm.Stack(entry, n, 1, x.rows)
        case tm.Exp():
            of = cast(Term, x.args[0])
            numbers, rest = _split(of) if isinstance(of, tm.Mul) else ([], [of])
            if len(rest) == 1 and isinstance(rest[0], tm.Diag) and ranged(rest[0]) is None:
                w = cast(Term, rest[0].args[0])
                return tm.Stack(tm.Exp(tm.Mul(*numbers, tm.Row(w, n))), n, 1, w.rows)
    return None


def _inside(lo: Expr, i: Expr, hi: Expr, facts: Guards, x: Term) -> None:
    for gap in (read(i) - read(lo), read(hi) - read(i)):
        if not implied(facts, gap):
            raise OutOfRange(f"row {i} of {x}: {lo} <= {i} <= {hi} is not known here")


def _through_sum(x: tm.Sum, i: Expr, facts: Guards, pick: object) -> Term:
    body, s, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", x.args)
    new = Symbol(fresh_name(), integer=True)
    inside = facts | {read(new - lo), read(hi - new)}
    return tm.Sum(pick(tm.substitute(body, {s: new}), i, inside), new, lo, hi)  # type: ignore[operator]


def _one_numbering(x: Term, span: Callable[[Term], Span | None]) -> None:
    """The parts of a sum must number their rows alike; a part without a time axis numbers them from 1."""
    parts = [a for a in x.args if isinstance(a, Term)]
    spans = [span(a) or (sympy.Integer(1), a.rows if span is ranged else a.cols) for a in parts]
    if any(not tm.same(s[0], spans[0][0]) for s in spans):
        raise OutOfRange(f"the parts of {x} number their rows differently")


def _through_where(x: tm.Where, i: Expr, facts: Guards, pick: object) -> Term:
    _one_numbering(x, ranged if pick is row else ranged_columns)
    cond, a, b = cast("tuple[tm.Cond, Term, Term]", x.args)
    holds = frozenset(read(cast(Expr, e)) for e in cond.args)
    # the other branch is read where the condition fails, which is no conjunction: it gets the outer facts
    return tm.Where(cond, pick(a, i, facts | holds), pick(b, i, facts))  # type: ignore[operator]


def simplify_head(x: Term, facts: Guards) -> Term:
    """Push rows and entries inwards and write products along a time axis as sums, at the top of a term."""
    while True:
        new = _step(x, facts)
        if new is None or new == x:
            return x
        x = new


def _step(x: Term, facts: Guards) -> Term | None:
    match x:
        case tm.Row():
            of, i = cast("tuple[Term, Expr]", x.args)
            return row(simplify_head(of, facts), i, facts)
        case tm.Entry():
            of, i, j = cast("tuple[Term, Expr, Expr]", x.args)
            return entry(simplify_head(of, facts), i, j, facts)
        case tm.Rows():
            return _cut(x, facts)
        case tm.Mul():
            return _contract(x, facts)
        case tm.Transpose():
            inner = cast(Term, x.args[0])
            return simplify_head(inner, facts) if inner.is_scalar_term else None
    return None


def _cut(x: tm.Rows, facts: Guards) -> Term | None:
    of = simplify_head(cast(Term, x.args[0]), facts)
    lo, hi = cast(Span, x.args[1:])
    if isinstance(of, tm.Stack):
        body, s, first, last = cast("tuple[Term, Symbol, Expr, Expr]", of.args)
        # an empty cut asks for no row, whatever its ends are
        empty = implied(facts, read(lo) - read(hi) - 1)
        if not empty:
            for gap in (read(lo) - read(first), read(last) - read(hi)):
                if not implied(facts, gap):
                    raise OutOfRange(f"rows {lo}..{hi} of {of}: not known to lie within {first}..{last}")
        return tm.Stack(body, s, lo, hi)
    if isinstance(of, tm.Rows):
        inner, first, last = cast("tuple[Term, Expr, Expr]", of.args)
        for end in (lo, hi):
            _inside(first, end, last, facts, of)
        return tm.Rows(inner, lo, hi)
    return None


def _contract(x: tm.Mul, facts: Guards) -> Term | None:
    """left * right = sum over i of column_i(left) * row_i(right), where they meet along a time axis."""
    scalars, rest = _split(x)
    for n in range(len(rest) - 1):
        left, right = tm.Mul(*rest[: n + 1]), tm.Mul(*rest[n + 1 :])
        a, b = ranged_columns(rest[n]), ranged(rest[n + 1])
        if a is None and b is None:
            continue
        if not _along_time(rest[n], rest[n + 1]):
            continue
        lo, hi = cast(Span, a or b)
        i = Symbol(fresh_name(), integer=True)
        inside = facts | {read(i - lo), read(hi - i)}
        term = tm.Mul(*scalars, _pick(left, a, i, lo, inside, column), _pick(right, b, i, lo, inside, row))
        return tm.Sum(term, i, lo, hi)
    return None


def _along_time(x: Term, y: Term) -> bool:
    """Whether the columns of x and the rows of y, some of them numbered, meet number by number.

    A function of a column, entry by entry, is multiplied as a whole, but for the number that a row of such makes with a column.
    """
    if x.rows == y.cols == 1 and ranged_columns(x) and ranged(y):
        return True
    sides = ((x, ranged_columns), (y, ranged))
    return not all(_by_entries(side, span) for side, span in sides if span(side) is not None)


def _by_entries(x: Term, span: Callable[[Term], Span | None]) -> bool:
    """Whether the numbers along an axis are all those of a function of columns, entry by entry.

    A column that is written as that of its own entries, or of a number, is written so in order to be summed over.
    """
    match x:
        case tm.Stack() if span is ranged:
            body, i, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", x.args)
            function = body.is_scalar_term and i in free(body) and not isinstance(body, tm.Row)
            return function and lo == 1 and _entry_by_entry(body, i, hi)
        case tm.Transpose():
            return _by_entries(cast(Term, x.args[0]), ranged_columns if span is ranged else ranged)
        case tm.Diag():
            return _by_entries(cast(Term, x.args[0]), ranged)
        case tm.Conj() | tm.Sum():
            return _by_entries(cast(Term, x.args[0]), span)
        case tm.Mul() if not x.is_scalar_term:
            return _by_entries(_split(x)[1][0 if span is ranged else -1], span)
        case tm.Add() | tm.Hadamard() | tm.Where():
            return all(_by_entries(a, span) for a in x.args if isinstance(a, Term) and span(a) is not None)
    return False


def _entry_by_entry(x: Basic, i: Symbol, size: Expr) -> bool:
    """Whether a term speaks of an index only as that of an entry of columns of a size."""
    if i not in free(x):
        return True
    if isinstance(x, tm.Row) and x.args[1] == i:
        of = cast(Term, x.args[0])
        return i not in free(of) and tm.same(of.rows, size) and (ranged(of) is None or _by_entries(of, ranged))
    return isinstance(x, (Term, tm.Tuple)) and all(_entry_by_entry(a, i, size) for a in x.args)


def _pick(x: Term, span: Span | None, i: Symbol, lo: Expr, facts: Guards, pick: object) -> Term:
    """The row or column at summation index i; an axis without its own labels is numbered from 1."""
    start: Affine = read(span[0]) if span else read(sympy.Integer(1))
    shift = start - read(lo)
    at = sympy.expand(i + cast(Expr, _expr(shift)))
    inner = x.args[0] if isinstance(x, tm.Mul) and len(x.args) == 1 else x
    return cast(Term, pick(cast(Term, inner), at, facts))  # type: ignore[operator]


def _expr(a: Affine) -> Expr:
    from .affine import write

    return write(a)


__all__ = ["OutOfRange", "column", "entry", "firsts", "free", "ranged", "ranged_columns", "row", "simplify_head"]
