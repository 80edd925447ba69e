"""Terms at one point, by direct recursion over their definition with explicit matrices.

No normal form, no rewriting, nothing of the other engine: a second look at a point where a statement is said to
fail. Rational terms are exact; exponentials, logarithms, roots and integrals are enclosed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, lru_cache, reduce
from itertools import count
from typing import Any, cast

from sympy import Add, Basic, Expr, Integer, Mul, Pow, Rational, Symbol

from . import terms as tm
from .dense import Matrix, combined, diagonal, exponential, exponential_of, eye, inverse, power, single, stacked, zeros
from .enclosures import ONE, ZERO, Element, NoValue, coefficients, conjugate, exact, logarithm, numbers, series, square_root
from .quadrature import Integrand

Key = tuple[str, tuple[int, ...]]
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Effort:
    """How hard to try: bits of the intervals, terms of a Taylor series (even), first pieces of an integral."""

    bits: int
    order: int
    pieces: int


@dataclass(frozen=True)
class Table:
    """What a point is made of, and what has been computed there."""

    sizes: Mapping[str, int]
    values: Mapping[Key, Rows]
    rules: tuple[tuple[tm.Var, tm.Term], ...]
    effort: Effort
    known: dict[Any, Any] = field(default_factory=dict)
    levels: count[int] = field(default_factory=lambda: count(1))
    solving: set[Key] = field(default_factory=set)


@dataclass(frozen=True)
class Point:
    """A table with the values of the bound indices and of the bound variables."""

    table: Table
    index: Mapping[Basic, int] = field(default_factory=dict)
    bound: Mapping[Basic, Matrix] = field(default_factory=dict)

    def at(self, i: Basic, n: int) -> Point:
        """The point where an index is bound to a value."""
        return replace(self, index={**self.index, i: n})

    def where(self, v: Basic, value: Matrix) -> Point:
        """The point where a variable is bound to a value."""
        return replace(self, bound={**self.bound, v: value})

    def integer(self, e: Basic) -> int:
        """The value of an index expression. Raises NoValue where a symbol has none, or the value is no integer."""
        found = self._rational(e)
        if found.denominator != 1:
            raise NoValue(f"the index expression {e} is {found} here")
        return int(found)

    def _rational(self, e: Basic) -> Fraction:
        match e:
            case Rational():
                return Fraction(int(e.p), int(e.q))
            case Symbol():
                if e in self.index:
                    return Fraction(self.index[e])
                if e.name in self.table.sizes:
                    return Fraction(self.table.sizes[e.name])
                raise NoValue(f"the index {e} has no value")
            case tm.Cut():
                return Fraction(self.cut(e))
            case Add():
                return sum((self._rational(a) for a in e.args), Fraction(0))
            case Mul():
                return reduce(lambda x, y: x * y, [self._rational(a) for a in e.args])
            case Pow() if isinstance(e.exp, Integer) and e.exp >= 0:
                return self._rational(e.base) ** int(e.exp)
        raise NoValue(f"the index expression {e} is not read")

    def cut(self, e: tm.Cut) -> int:
        """The value on record of a cut, under the name of its place. Raises NoValue where there is none."""
        found = tm.Cut(e.name, self.integer(e.at))
        if found == 0:
            return 0
        if str(found) not in self.table.sizes:
            raise NoValue(f"the cut {found} has no value")
        return self.table.sizes[str(found)]

    def size(self, e: Basic) -> int:
        """A size; that of an empty range is 0. Raises NoValue for a negative symbol."""
        n = self.integer(e)
        if n < 0 and isinstance(e, Symbol):
            raise NoValue(f"the size {e} is {n}")
        return max(0, n)

    def holds(self, condition: tm.Cond) -> bool:
        """Whether a condition on indices holds."""
        return all(self.integer(e) >= 0 for e in condition.args)

    def range(self, lo: Basic, hi: Basic) -> range:
        """The values of a bound index."""
        return range(self.integer(lo), self.integer(hi) + 1)

    def kept(self, x: Any, parts: Sequence[Basic], make: Callable[[], Any]) -> Any:
        """What ``make`` computes from some parts, computed once unless a bound variable occurs in them."""
        used = frozenset().union(*map(tm.free, parts))
        if used & self.bound.keys():
            return make()
        key = (x, tuple([self.index.get(s, self.table.sizes.get(s.name)) for s in _symbols(used)]))
        if key not in self.table.known:
            self.table.known[key] = make()
        return self.table.known[key]

    def once(self, f: Callable[[Matrix], Matrix], a: Matrix) -> Matrix:
        """A function at a matrix, computed once for equal matrices of exact numbers."""
        if not all(n.exact for e in a.entries for n in numbers(e)):
            return f(a)
        if (f, a) not in self.table.known:
            self.table.known[f, a] = f(a)
        return cast(Matrix, self.table.known[f, a])


@lru_cache(maxsize=1 << 12)
def _symbols(used: frozenset[Basic]) -> list[Symbol]:
    """The index symbols among what is free, in order."""
    return sorted((s for s in used if isinstance(s, Symbol)), key=str)


def value(x: tm.Term, p: Point) -> Matrix:
    """The value of a term. Raises NoValue where it has none, Undecided where the enclosures cannot tell."""
    rule = RULES.get(type(x))
    if rule is None:
        raise NoValue(f"{type(x).__name__} is not evaluated here: {x}")
    return cast(Matrix, p.kept(x, (x,), lambda: rule(x, p)) if isinstance(x, KEPT) else rule(x, p))


def number(x: tm.Term, p: Point) -> Element:
    """The value of a scalar term."""
    return value(x, p).rows[0][0]


def _var(x: tm.Var, p: Point) -> Matrix:
    if x in p.bound:
        return p.bound[x]
    return _atom(x.name, tuple(map(p.integer, x.indices)), p.size(x.rows), p.size(x.cols), x.field, p)


def _atom(name: str, at: tuple[int, ...], rows: int, cols: int, field: str, p: Point) -> Matrix:
    if rows == 0 or cols == 0:
        return zeros(rows, cols)
    found = _recorded((name, at), p)
    if found is None:
        raise NoValue(f"{name}{list(at) if at else ''} has no value at this point")
    if (found.height, found.cols) != (rows, cols):
        raise NoValue(f"the value of {name} is {found.height} x {found.cols}, not {rows} x {cols}")
    if field == "real" and not all(n.real for e in found.entries for n in numbers(e)):
        raise NoValue(f"{name} is declared real, and its value is not")
    return found


def _recorded(key: Key, p: Point) -> Matrix | None:
    """The value that was recorded, else the one that an assumption's model gives, else None."""
    if key in p.table.values:
        rows = tuple(tuple(map(exact, r)) for r in p.table.values[key])
        if len({len(r) for r in rows}) != 1:
            raise NoValue(f"the value of {key[0]} is no matrix")
        return Matrix(rows, len(rows[0]))
    for pattern, term in p.table.rules:
        wildcards = _matched(pattern, key, p)
        if wildcards is not None and key not in p.table.solving:
            p.table.solving.add(key)
            try:
                return replace(value(term, Point(p.table, wildcards)), top=1, left=1)
            finally:
                p.table.solving.discard(key)
    return None


def _matched(pattern: tm.Var, key: Key, p: Point) -> dict[Basic, int] | None:
    """The values of the pattern's own indices: the symbols that are none of the statement's."""
    if pattern.name != key[0] or len(pattern.indices) != len(key[1]):
        return None
    own: dict[Basic, int] = {}
    for e, n in zip(pattern.indices, key[1], strict=True):
        if isinstance(e, Symbol) and e.name not in p.table.sizes:
            own.setdefault(e, n)
    inner = Point(p.table, own)
    return own if all(inner.integer(e) == n for e, n in zip(pattern.indices, key[1], strict=True)) else None


def _add(x: tm.Add, p: Point) -> Matrix:
    return reduce(lambda a, b: a + b, (value(cast(tm.Term, a), p) for a in x.args))


def _mul(x: tm.Mul, p: Point) -> Matrix:
    """Scalars in front; matrices from left to right, where a product that became a scalar joins the scalars."""
    factor: Element = ONE
    total: Matrix | None = None
    rows = cols = cast(Expr, Integer(1))
    for a in cast("tuple[tm.Term, ...]", x.args):
        if a.is_scalar_term:
            factor = factor * number(a, p)
        elif rows == 1 and cols == 1:
            factor = factor if total is None else factor * total.rows[0][0]
            total, (rows, cols) = value(a, p), a.shape
        else:
            total, cols = cast(Matrix, total) * value(a, p), a.cols
    return single(factor) if total is None else total.scaled(factor)


def _exponent(x: tm.Term, p: Point) -> Matrix | None:
    """The value of an exponent, None for the logarithm of 0."""
    match x:
        case tm.NegInf():
            return None
        case tm.Where():
            return _exponent(_branch(x, p), p)
        case tm.Add():
            parts = [_exponent(cast(tm.Term, a), p) for a in x.args]
            return None if None in parts else reduce(lambda a, b: a + b, cast("list[Matrix]", parts))
    return value(x, p)


def _exp(x: tm.Exp, p: Point) -> Matrix:
    found = _exponent(cast(tm.Term, x.args[0]), p)
    return single(ZERO) if found is None else p.once(exponential, found)


def _branch(x: tm.Where, p: Point) -> tm.Term:
    return cast(tm.Term, x.args[1] if p.holds(cast(tm.Cond, x.args[0])) else x.args[2])


def _each(x: Any, p: Point, values: Sequence[int]) -> list[Matrix]:
    return [value(x.args[0], p.at(x.args[1], n)) for n in values]


def _sum(x: tm.Sum, p: Point) -> Matrix:
    found = _each(x, p, p.range(*x.args[2:4]))
    return reduce(lambda a, b: a + b, found) if found else zeros(p.size(x.rows), p.size(x.cols))


def _prod(x: tm.Prod, p: Point) -> Matrix:
    order = p.range(*x.args[2:4])
    found = _each(x, p, order[::-1] if x.decreasing else order)
    return reduce(lambda a, b: a * b, found) if found else eye(p.size(x.rows))


def _stack(x: tm.Stack, p: Point) -> Matrix:
    span = p.range(*x.args[2:4])
    found = _each(x, p, span)
    return replace(stacked(found, found[0].cols if found else p.size(x.cols)), top=span.start)


def _row(x: tm.Row, p: Point) -> Matrix:
    return _rows_of(value(cast(tm.Term, x.args[0]), p), p.range(x.args[1], x.args[1]))


def _rows_of(m: Matrix, rows: range) -> Matrix:
    found = replace(m, left=1).part(rows, range(1, m.cols + 1))
    return replace(found, left=m.left)


def _rows(x: tm.Rows, p: Point) -> Matrix:
    span = p.range(*x.args[1:3])
    return replace(_rows_of(value(cast(tm.Term, x.args[0]), p), span), top=span.start)


def _entry(x: tm.Entry, p: Point) -> Matrix:
    of, i, j = x.args
    return value(cast(tm.Term, of), p).part(p.range(i, i), p.range(j, j))


def _block(x: tm.Block, p: Point) -> Matrix:
    bands = []
    for r in x.grid:
        turned = [value(b, p).transposed for b in r]
        bands.append(stacked(turned, turned[0].cols).transposed)
    return replace(stacked(bands, bands[0].cols), left=1)


def _apply(x: tm.Apply, p: Point) -> Matrix:
    """A function is recorded as the atoms name#0..3: for the arguments' entries and a 1, as a column u,
    its entries are those of A0 u + (A1 u)(A2 u)(A3 u), multiplied entry by entry."""
    inputs = [*[e for a in x.arguments for e in value(a, p).entries], ONE]
    column = Matrix(tuple((e,) for e in inputs), 1)
    rows, cols, n = p.size(x.rows), p.size(x.cols), len(inputs)
    if rows == 0 or cols == 0:
        return zeros(rows, cols)
    parts = [_atom(f"{x.name}#{i}", (n,), rows * cols, n, x.field, p) * column for i in range(4)]
    flat = (parts[0] + reduce(_hadamard_of, parts[1:])).entries
    if x.field == "real" and not all(m.real for e in flat for m in numbers(e)):
        raise NoValue(f"{x.name} is declared real, and its value is not")
    return Matrix(tuple(tuple(flat[i * cols : (i + 1) * cols]) for i in range(rows)), cols)


def _hadamard_of(a: Matrix, b: Matrix) -> Matrix:
    return combined(a, b, lambda x, y: x * y)


@cache
def _family(x: tm.Rec) -> tm.Rec:
    return x.moved(x.start)


def _rec(x: tm.Rec, p: Point) -> Matrix:
    """A loop from the start; its states are kept for the next member that is asked for."""
    _, _, t, prev, start, init, step = x.args
    first, last = p.integer(start), p.integer(x.at)
    if last < first:
        raise NoValue(f"{x.name} at {last}, before its start at {first}")
    family = _family(x)
    states = p.kept(("states", family), (family,), lambda: [value(cast(tm.Term, init), p).unlabelled])
    for n in range(first + len(states), last + 1):
        states.append(value(cast(tm.Term, step), p.at(t, n).where(prev, states[-1])).unlabelled)
    return cast(Matrix, states[last - first])


def _at(x: tm.At, p: Point) -> Matrix:
    body, s, to = x.args
    return value(cast(tm.Term, body), p.where(s, value(cast(tm.Term, to), p)))


def _deriv(x: tm.Deriv, p: Point) -> Matrix:
    """The coefficient of e in the body at s + e, for e² = 0."""
    body, s = cast("tuple[tm.Term, tm.Var]", x.args)
    level = next(p.table.levels)
    found = value(body, p.where(s, single(series(level, 2, (number(s, p), ONE)))))
    return found.mapped(lambda e: (*coefficients(e, level), ZERO)[1]).unlabelled


def _integral(x: tm.Integral, p: Point) -> Matrix:
    body, s = cast("tuple[tm.Term, Basic]", x.args[:2])
    lo, hi = (number(cast(tm.Term, a), p) for a in x.args[2:])
    found = Integrand(lambda e: value(body, p.where(s, single(e))), p.table.levels, p.table.effort.order)
    return found.integral(lo, hi, p.table.effort.pieces).unlabelled


def _unary(f: Callable[[Matrix], Matrix]) -> Callable[[Any, Point], Matrix]:
    return lambda x, p: f(value(x.args[0], p))


KEPT = (tm.Var, tm.Sum, tm.Prod, tm.Stack, tm.Rows, tm.Exp, tm.Inverse, tm.Power, tm.Integral, tm.Deriv, tm.Apply)
RULES: dict[type, Callable[[Any, Point], Matrix]] = {
    tm.Var: _var,
    tm.Num: lambda x, p: single(exact(Fraction(int(x.value.p), int(x.value.q)))),
    tm.Ind: lambda x, p: single(exact(p.integer(x.expr))),
    tm.Zero: lambda x, p: zeros(p.size(x.rows), p.size(x.cols)),
    tm.Eye: lambda x, p: eye(p.size(x.rows)),
    tm.Add: _add,
    tm.Mul: _mul,
    tm.Transpose: _unary(lambda m: m.transposed),
    tm.Conj: _unary(lambda m: m.mapped(conjugate)),
    tm.Hadamard: lambda x, p: _hadamard_of(value(x.args[0], p), value(x.args[1], p)),
    tm.Diag: _unary(lambda m: replace(diagonal(m.entries), top=m.top, left=m.top).unlabelled),
    tm.Power: lambda x, p: power(value(x.args[0], p), p.integer(x.args[1])).unlabelled,
    tm.Inverse: _unary(inverse),
    tm.Exp: _exp,
    tm.Log: _unary(lambda m: single(logarithm(m.rows[0][0], exponential_of))),
    tm.Sqrt: _unary(lambda m: single(square_root(m.rows[0][0]))),
    tm.Trace: _unary(lambda m: single(reduce(lambda a, b: a + b, (r[i] for i, r in enumerate(m.rows)), ZERO))),
    tm.Where: lambda x, p: value(_branch(x, p), p),
    tm.Sum: _sum,
    tm.Prod: _prod,
    tm.Stack: _stack,
    tm.Row: _row,
    tm.Rows: _rows,
    tm.Entry: _entry,
    tm.Block: _block,
    tm.Apply: _apply,
    tm.Rec: _rec,
    tm.At: _at,
    tm.Integral: _integral,
    tm.Deriv: _deriv,
}
