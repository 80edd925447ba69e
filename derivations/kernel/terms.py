"""Terms: the language in which every statement is written.

A term is an immutable SymPy node with a shape ``(rows, cols)``; a scalar is a 1 x 1 term. Sizes and
indices are integer SymPy expressions, affine in their symbols. Nothing is evaluated on construction:
terms only record what was written, and check that the shapes fit.

Conventions that every engine follows:

* a sum or an ordered product over ``lo..hi`` with ``hi < lo`` is empty: the zero matrix, the identity;
* ``x**0`` is the identity, also at ``x = 0``;
* ``Where`` evaluates only the branch that its condition selects;
* rows and entries are numbered from 1, those of a ``Stack`` by its own index;
* cuts are integers 0 = b_0 <= b_1 <= ..., index expressions like any other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from typing import Any, ClassVar, cast

import sympy
from sympy import Basic, Expr, Integer, Symbol, Tuple
from sympy.core.symbol import Str

from .base import (
    Add,
    BoundError,
    Conj,
    Cut,
    Cuts,
    Eye,
    Family,
    Ind,
    Index,
    Inverse,
    Like,
    Mul,
    NegInf,
    Num,
    Power,
    SameShape,
    ScalarTerm,
    ShapeError,
    Term,
    Transpose,
    Var,
    Zero,
    cuts,
    free,
    fresh,
    index,
    index_expression,
    indices,
    lift,
    matrices,
    matrix,
    put,
    same,
    scalar,
    scalars,
    shown_shape,
    square,
    substitute,
    tag,
    vector,
    vectors,
    walk,
)


class Hadamard(SameShape):
    """The entrywise product of two terms of one shape."""


    def __new__(cls, a: Like, b: Like) -> Hadamard:
        a, b = lift(a), lift(b)
        if not (same(a.rows, b.rows) and same(a.cols, b.cols)):
            raise ShapeError(f"the entrywise product needs one shape, not {shown_shape(a)} and {shown_shape(b)}")
        return cast(Hadamard, Basic.__new__(cls, a, b))


class Diag(Term):
    """The diagonal matrix of a column vector."""

    def __new__(cls, v: Like) -> Diag:
        v = lift(v)
        if v.cols != 1:
            raise ShapeError(f"Diag needs a column vector, not {shown_shape(v)}")
        return cast(Diag, Basic.__new__(cls, v))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        n = cast(Term, self.args[0]).rows
        return (n, n)


class Exp(SameShape):
    """The exponential of a scalar or of a square matrix."""

    def __new__(cls, x: Like) -> Exp:
        return cast(Exp, Basic.__new__(cls, square(lift(x), "exp")))


class Log(SameShape):
    """The natural logarithm of a positive scalar."""

    def __new__(cls, x: Like) -> Log:
        x = lift(x)
        if not x.is_scalar_term:
            raise ShapeError(f"log needs a scalar, not {shown_shape(x)}")
        return cast(Log, Basic.__new__(cls, x))


class Sqrt(SameShape):
    """The non-negative square root of a non-negative scalar."""

    def __new__(cls, x: Like) -> Sqrt:
        x = lift(x)
        if not x.is_scalar_term:
            raise ShapeError(f"sqrt needs a scalar, not {shown_shape(x)}")
        return cast(Sqrt, Basic.__new__(cls, x))


class Trace(ScalarTerm):
    """The trace of a square matrix."""

    def __new__(cls, x: Term) -> Trace:
        return cast(Trace, Basic.__new__(cls, square(x, "a trace")))


class Cond(Basic):
    """A conjunction of inequalities ``e >= 0`` between index expressions."""

    def __new__(cls, *exprs: Index) -> Cond:
        return cast(Cond, Basic.__new__(cls, *[index_expression(e) for e in exprs]))

    def __and__(self, other: Cond) -> Cond:
        return Cond(*cast("tuple[Expr, ...]", self.args + other.args))


def le(a: Index, b: Index) -> Cond:
    """The condition a <= b."""
    return Cond(index_expression(b) - index_expression(a))


def lt(a: Index, b: Index) -> Cond:
    """The condition a < b, between integers."""
    return Cond(index_expression(b) - index_expression(a) - 1)


def equal(a: Index, b: Index) -> Cond:
    """The condition a = b."""
    return le(a, b) & le(b, a)


class Where(SameShape):
    """``a`` where the condition holds, ``b`` elsewhere."""

    def __new__(cls, cond: Cond, a: Term, b: Term) -> Where:
        if not (same(a.rows, b.rows) and same(a.cols, b.cols)):
            raise ShapeError(f"the branches of Where need one shape, not {shown_shape(a)} and {shown_shape(b)}")
        return cast(Where, Basic.__new__(cls, cond, a, b))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[1]).shape


def indicator(cond: Cond) -> Term:
    """1 where the condition holds, 0 elsewhere."""
    return Where(cond, Num(1), Num(0))


class _Ranged(SameShape):
    """A body with a bound index that runs over lo..hi."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, i: Symbol, lo: Index, hi: Index) -> _Ranged:
        if not isinstance(i, Symbol):
            raise BoundError(f"a bound index is a symbol, not {i!r}")
        lo, hi = index_expression(lo), index_expression(hi)
        if lo.has(i) or hi.has(i):
            raise BoundError(f"the range {lo}..{hi} uses the index {i} that it binds")
        return cast(_Ranged, Basic.__new__(cls, body, i, lo, hi))

    @property
    def body(self) -> Term:
        return cast(Term, self.args[0])


class Sum(_Ranged):
    """The sum of a body over an index range."""



class Prod(Term):
    """The ordered product of square matrices over lo..hi: index increasing from left to right, or decreasing."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, i: Symbol, lo: Index, hi: Index, decreasing: Any = False) -> Prod:
        square(body, "an ordered product")
        checked = Sum(body, i, lo, hi)
        return cast(Prod, Basic.__new__(cls, *checked.args, sympy.true if decreasing else sympy.false))

    @property
    def decreasing(self) -> bool:
        return bool(self.args[4])

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[0]).shape


class Stack(Term):
    """The matrix whose row i is the body, i = lo..hi."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, i: Symbol, lo: Index, hi: Index) -> Stack:
        if body.rows != 1:
            raise ShapeError(f"Stack needs rows, not {shown_shape(body)}")
        return cast(Stack, Basic.__new__(cls, *Sum(body, i, lo, hi).args))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (sympy.expand(self.args[3] - self.args[2] + 1), cast(Term, self.args[0]).cols)


def entries(entry: Term, i: Symbol, i_range: tuple[Index, Index], j: Symbol, j_range: tuple[Index, Index]) -> Term:
    """The matrix with the given entry in row i and column j."""
    return Stack(Transpose(Stack(entry, j, *j_range)), i, *i_range)


class Row(Term):
    """Row i of a matrix."""


    def __new__(cls, x: Term, i: Index) -> Row:
        return cast(Row, Basic.__new__(cls, x, index_expression(i)))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (Integer(1), cast(Term, self.args[0]).cols)


class Entry(ScalarTerm):
    """The entry in row i and column j."""


    def __new__(cls, x: Term, i: Index, j: Index) -> Entry:
        return cast(Entry, Basic.__new__(cls, x, index_expression(i), index_expression(j)))


class Rows(Term):
    """Rows lo..hi of a matrix, numbered as they were: the prefix X_{1:t} is Rows(X, 1, t)."""


    def __new__(cls, x: Term, lo: Index, hi: Index) -> Rows:
        return cast(Rows, Basic.__new__(cls, x, index_expression(lo), index_expression(hi)))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (sympy.expand(self.args[2] - self.args[1] + 1), cast(Term, self.args[0]).cols)


class Block(Term):
    """A block matrix, given by its rows of blocks."""

    def __new__(cls, *rows: Iterable[Term]) -> Block:
        grid = [tuple(r) if not isinstance(r, Tuple) else r.args for r in rows]
        for r in grid:
            for c, b in enumerate(cast("tuple[Term, ...]", r)):
                top, left = cast(Term, grid[0][c]), cast(Term, r[0])
                if len(r) != len(grid[0]) or not (same(b.cols, top.cols) and same(b.rows, left.rows)):
                    raise ShapeError(f"the block {b} ({b.rows} x {b.cols}) does not fit its row and column")
        return cast(Block, Basic.__new__(cls, *[Tuple(*r) for r in grid]))

    @property
    def grid(self) -> tuple[tuple[Term, ...], ...]:
        return tuple(cast("tuple[Term, ...]", r.args) for r in self.args)

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        g = self.grid
        return (sympy.Add(*[r[0].rows for r in g]), sympy.Add(*[b.cols for b in g[0]]))


class Apply(Term):
    """An uninterpreted function of terms."""

    def __new__(
        cls, name: str | Str, args: Iterable[Term], rows: Index, cols: Index, field: str | Str = "real"
    ) -> Apply:
        given = Tuple(*args)
        return cast(Apply, Basic.__new__(cls, tag(name), given, index_expression(rows), index_expression(cols), tag(field)))

    @property
    def name(self) -> str:
        return cast(Str, self.args[0]).name

    @property
    def arguments(self) -> tuple[Term, ...]:
        return cast("tuple[Term, ...]", tuple(self.args[1].args))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[2], self.args[3])  # type: ignore[return-value]

    @property
    def field(self) -> str:
        return cast(Str, self.args[4]).name


PRIME = "ʹ"  # reserved for the names that a recursion binds


@cache
def _depth(step: Basic) -> int:
    """One more than the deepest nesting of recursions inside."""
    inner = max((_depth(a) for a in step.args), default=1)
    return max(inner, 1 + _depth(step.args[6])) if isinstance(step, Rec) else inner


class Rec(Term):
    """A member of a family defined by recursion: ``init`` at index ``start``, ``step(t, previous)`` at t > start."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {2: (6,), 3: (6,)}

    def __new__(
        cls, name: str | Str, at: Index, t: Symbol, prev: Var, start: Index, init: Term, step: Term
    ) -> Rec:
        if not (isinstance(t, Symbol) and isinstance(prev, Var) and not prev.indices):
            raise BoundError("a recursion binds an index symbol and a Var without indices")
        for x, what in ((prev, "previous state"), (step, "step")):
            if not (same(x.rows, init.rows) and same(x.cols, init.cols)):
                raise ShapeError(f"the {what} of {name} is {shown_shape(x)}, but its initial value is {shown_shape(init)}")
        # one spelling for equal recursions: bound names depend on the depth of nesting alone
        mark = PRIME * _depth(step)
        own_t, own_prev = index(f"t{mark}"), Var(f"{name}{mark}", (), *init.shape, prev.field)
        step = substitute(step, {t: own_t, prev: own_prev})
        t, prev = own_t, own_prev
        return cast(Rec, Basic.__new__(cls, tag(name), index_expression(at), t, prev, index_expression(start), init, step))

    @property
    def name(self) -> str:
        return cast(Str, self.args[0]).name

    @property
    def at(self) -> Expr:
        return cast(Expr, self.args[1])

    @property
    def start(self) -> Expr:
        return cast(Expr, self.args[4])

    @property
    def init(self) -> Term:
        return cast(Term, self.args[5])

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return self.init.shape

    def step_at(self, t: Index, previous: Term) -> Term:
        """The update's right-hand side at index t, from the given previous state."""
        return substitute(cast(Term, self.args[6]), {self.args[2]: index_expression(t), self.args[3]: previous})

    def moved(self, at: Index) -> Rec:
        """The same family's member at another index; its bound names are the same."""
        return cast(Rec, Basic.__new__(Rec, self.args[0], index_expression(at), *self.args[2:]))


@dataclass(frozen=True)
class Recurrence:
    """A family defined by recursion; ``family[t]`` is its member."""

    member: Rec

    def __getitem__(self, t: Index) -> Rec:
        return self.member.moved(t)


_handed_out = count(1)


def recurrence(
    name: str, init: Term, step: Callable[[Symbol, Term], Term], *, start: Index = 0, field: str = "real"
) -> Recurrence:
    """Define a family by its initial value at ``start`` and ``step(t, previous)`` for t > start.

    What ``step`` gets for t and the previous member is nowhere else: nothing that the author names is captured.
    """
    mark = f"{PRIME}{next(_handed_out)}"
    t, prev = index(f"t{mark}"), Var(f"{name}{mark}", (), init.rows, init.cols, field)
    return Recurrence(Rec(name, start, t, prev, start, init, step(t, prev)))


class Integral(SameShape):
    """The integral of a body over a scalar variable from lo to hi."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, s: Var, lo: Like, hi: Like) -> Integral:
        return cast(Integral, Basic.__new__(cls, body, _real_variable(s), lift(lo), lift(hi)))


def _real_variable(s: Term) -> Term:
    if not (isinstance(s, Var) and not s.indices and s.is_scalar_term and s.field == "real"):
        raise BoundError(f"a variable of integration or differentiation is a real scalar Var without indices, not {s!r}")
    return s


class Deriv(SameShape):
    """The derivative of a body by the scalar variable s, as a function of s."""


    def __new__(cls, body: Term, s: Var) -> Deriv:
        return cast(Deriv, Basic.__new__(cls, body, _real_variable(s)))

    def substituted(self, live: Mapping[Basic, Basic]) -> Basic | None:
        """A value for the variable is put after the derivative is taken."""
        body, s = cast("tuple[Term, Var]", self.args)
        others = {k: v for k, v in live.items() if k != s}
        if any(s in free(v) for v in others.values()):
            raise BoundError(f"cannot substitute under the derivative by {s}")
        if s not in live:
            return None
        return At(Deriv(cast(Term, put(body, others)), s), s, live[s])


class At(SameShape):
    """The value of a body at s = value."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, s: Var, value: Like) -> At:
        return cast(At, Basic.__new__(cls, body, _real_variable(s), lift(value)))


class Expect(SameShape):
    """The expectation of a body over the families named; everything else is deterministic."""

    def __new__(cls, body: Term, *names: str | Str) -> Expect:
        return cast(Expect, Basic.__new__(cls, body, *[tag(n) for n in names]))

    @property
    def random(self) -> frozenset[str]:
        return frozenset(cast(Str, n).name for n in self.args[1:])


class Named(Term):
    """Its body, under a label: for the reader only. ``arguments`` are what the label is printed with."""

    silent: ClassVar[frozenset[int]] = frozenset({0, 1})

    def __new__(cls, label: str | Str, arguments: Iterable[Index | Term], body: Term) -> Named:
        shown = Tuple(*[a if isinstance(a, Term) else index_expression(a) for a in arguments])
        return cast(Named, Basic.__new__(cls, tag(label), shown, body))

    @property
    def label(self) -> str:
        return cast(Str, self.args[0]).name

    @property
    def arguments(self) -> tuple[Basic, ...]:
        return tuple(self.args[1].args)

    @property
    def body(self) -> Term:
        return cast(Term, self.args[2])

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return self.body.shape


def named(label: str, body: Term, *arguments: Index | Term) -> Named:
    """The body under a label, with the indices and terms that it is shown to depend on.

    Raises BoundError for an index that the body does not depend on.
    """
    new = Named(label, arguments, body)
    for a in new.arguments:
        if isinstance(a, Expr) and not free(a) <= free(body):
            raise BoundError(f"{label} does not depend on {a}")
    return new


@cache
def unnamed(x: Basic) -> Basic:
    """What is said: every named term replaced by its body."""
    if type(x) is Named:
        return unnamed(x.body)
    args = [unnamed(a) for a in x.args]
    return x if all(map(operator.is_, args, x.args)) else cast(Basic, x.func(*args))


def norm2(x: Like) -> Term:
    """The squared Euclidean norm of a column vector."""
    x = lift(x)
    real = all(y.field == "real" for y in walk(unnamed(x)) if isinstance(y, (Var, Apply)))
    return Mul(Transpose(x if real else Conj(x)), x)


__all__ = [
    "PRIME",
    "Add",
    "Apply",
    "At",
    "Block",
    "BoundError",
    "Cond",
    "Conj",
    "Cut",
    "Cuts",
    "Deriv",
    "Diag",
    "Entry",
    "Exp",
    "Expect",
    "Eye",
    "Family",
    "Hadamard",
    "Ind",
    "Index",
    "Integral",
    "Inverse",
    "Like",
    "Log",
    "Mul",
    "Named",
    "NegInf",
    "Num",
    "Power",
    "Prod",
    "Rec",
    "Recurrence",
    "Row",
    "Rows",
    "SameShape",
    "ScalarTerm",
    "ShapeError",
    "Sqrt",
    "Stack",
    "Sum",
    "Term",
    "Trace",
    "Transpose",
    "Tuple",
    "Var",
    "Where",
    "Zero",
    "cuts",
    "entries",
    "equal",
    "free",
    "fresh",
    "index",
    "index_expression",
    "indicator",
    "indices",
    "le",
    "lift",
    "lt",
    "matrices",
    "matrix",
    "named",
    "norm2",
    "put",
    "recurrence",
    "same",
    "scalar",
    "scalars",
    "shown_shape",
    "square",
    "substitute",
    "unnamed",
    "vector",
    "vectors",
    "walk",
]
