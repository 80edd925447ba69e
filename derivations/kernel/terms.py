"""Terms: the language in which every statement is written.

A term is an immutable SymPy node with a shape ``(rows, cols)``; a scalar is a 1 x 1 term. Sizes and
indices are integer SymPy expressions, affine in their symbols. Nothing is evaluated on construction:
terms only record what was written, and check that the shapes fit.

Conventions that every engine follows:

* a sum or an ordered product over ``lo..hi`` with ``hi < lo`` is empty: the zero matrix, the identity;
* ``x**0`` is the identity, also at ``x = 0``;
* ``Where`` evaluates only the branch that its condition selects;
* rows and entries are numbered from 1, those of a ``Stack`` by its own index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, TypeAlias, cast

import sympy
from sympy import Basic, Expr, Integer, Rational, Symbol, Tuple
from sympy.core.symbol import Str

Index: TypeAlias = Expr | int
Like: TypeAlias = Any  # a Term, or a number that lift() turns into one


class ShapeError(TypeError):
    """Two terms were combined whose shapes do not fit."""


class BoundError(ValueError):
    """A bound variable was used where only free ones make sense."""


def index(name: str) -> Symbol:
    """An integer symbol: a time, a length, a size or a summation index."""
    return Symbol(name, integer=True)


def indices(names: str) -> tuple[Symbol, ...]:
    """Several index symbols from a space-separated string."""
    return tuple(index(n) for n in names.split())


@cache
def same(a: Expr, b: Expr) -> bool:
    """Whether two index expressions are equal as polynomials."""
    return bool(a == b or sympy.expand(a - b) == 0)


def lift(x: Like) -> Term:
    """A number as a scalar term; a term as itself."""
    if isinstance(x, Term):
        return x
    if isinstance(x, (int, Fraction, sympy.Rational)):
        return Num(x)
    raise TypeError(f"{x!r} is no term: numbers are int or Fraction, index expressions are written Ind(...)")


class Term(Basic):
    """A node of the term language; see the module's docstring."""

    # binder position -> positions of the arguments in its scope
    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {}

    @property
    def shape(self) -> tuple[Expr, Expr]:
        raise NotImplementedError

    @property
    def rows(self) -> Expr:
        return self.shape[0]

    @property
    def cols(self) -> Expr:
        return self.shape[1]

    @property
    def is_scalar_term(self) -> bool:
        return bool(self.rows == 1 and self.cols == 1)

    @property
    def T(self) -> Term:
        return Transpose(self)

    @property
    def H(self) -> Term:
        return Transpose(Conj(self))

    def __add__(self, other: Like) -> Term:
        return Add(self, lift(other))

    def __radd__(self, other: Like) -> Term:
        return Add(lift(other), self)

    def __neg__(self) -> Term:
        return Mul(Num(-1), self)

    def __sub__(self, other: Like) -> Term:
        return Add(self, -lift(other))

    def __rsub__(self, other: Like) -> Term:
        return Add(lift(other), -self)

    def __mul__(self, other: Like) -> Term:
        return Mul(self, lift(other))

    def __rmul__(self, other: Like) -> Term:
        return Mul(lift(other), self)

    __matmul__ = __mul__

    def __truediv__(self, other: Like) -> Term:
        return Mul(self, Inverse(lift(other)))

    def __rtruediv__(self, other: Like) -> Term:
        return Mul(lift(other), Inverse(self))

    def __pow__(self, exponent: Index) -> Term:
        return Power(self, exponent)

    def subs(self, *args: Any, **_: Any) -> Term:  # type: ignore[override]
        """Capture-avoiding substitution; see :func:`substitute`."""
        pairs = dict(args[0]) if len(args) == 1 else {args[0]: args[1]}
        return substitute(self, pairs)

    def xreplace(self, rule: Mapping[Any, Any]) -> Term:  # type: ignore[override]
        return substitute(self, rule)

    def _eval_subs(self, old: Basic, new: Basic) -> Term:
        return substitute(self, {old: new})

    def _sympystr(self, printer: Any) -> str:
        from .printing import text

        return text(self)

    def _latex(self, printer: Any) -> str:
        from .printing import latex

        return latex(self)

    def __repr__(self) -> str:
        return str(self)


def _ix(x: Index) -> Expr:
    e = sympy.sympify(x)
    if not isinstance(e, Expr) or isinstance(e, Term):
        raise TypeError(f"{x!r} is no index expression")
    return cast(Expr, sympy.expand(e))


class Var(Term):
    """An atom: one member ``name[indices]`` of a family of matrices, or a single matrix, vector or scalar."""

    def __new__(
        cls, name: str | Str, indices: Iterable[Index], rows: Index, cols: Index, field: str | Str = "real"
    ) -> Var:
        if str(field) not in ("real", "complex"):
            raise ValueError(f"the field of {name} is 'real' or 'complex', not {str(field)!r}")
        ixs = Tuple(*[_ix(i) for i in indices])
        return cast(Var, Basic.__new__(cls, Str(str(name)), ixs, _ix(rows), _ix(cols), Str(str(field))))

    @property
    def name(self) -> str:
        return str(self.args[0])

    @property
    def indices(self) -> tuple[Expr, ...]:
        return tuple(self.args[1].args)  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[2], self.args[3])  # type: ignore[return-value]

    @property
    def field(self) -> str:
        return str(self.args[4])


@dataclass(frozen=True)
class Family:
    """A named family; ``family[t]`` is its member, ``family()`` the single member of a family without indices."""

    name: str
    rows: Any = 1
    cols: Any = 1
    field: str = "real"

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Var:
        ixs = indices if isinstance(indices, tuple) else (indices,)
        return Var(self.name, ixs, self.rows, self.cols, self.field)

    def __call__(self) -> Var:
        return Var(self.name, (), self.rows, self.cols, self.field)


def scalar(name: str, field: str = "real") -> Var:
    """One scalar."""
    return Family(name, 1, 1, field)()


def scalars(name: str, field: str = "real") -> Family:
    """A family of scalars."""
    return Family(name, 1, 1, field)


def vectors(name: str, n: Index, field: str = "real") -> Family:
    """A family of column vectors of size n."""
    return Family(name, n, 1, field)


def vector(name: str, n: Index, field: str = "real") -> Var:
    """One column vector of size n."""
    return Family(name, n, 1, field)()


def matrices(name: str, m: Index, n: Index, field: str = "real") -> Family:
    """A family of m x n matrices."""
    return Family(name, m, n, field)


def matrix(name: str, m: Index, n: Index, field: str = "real") -> Var:
    """One m x n matrix."""
    return Family(name, m, n, field)()


class Num(Term):
    """A rational number."""

    def __new__(cls, value: int | Fraction | Rational) -> Num:
        v = Rational(value.numerator, value.denominator) if isinstance(value, Fraction) else sympy.sympify(value)
        if not v.is_Rational:
            raise TypeError(f"Num holds a rational number, not {value!r}")
        return cast(Num, Basic.__new__(cls, v))

    @property
    def value(self) -> Rational:
        return cast(Rational, self.args[0])

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (Integer(1), Integer(1))


class _Scalar(Term):
    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (Integer(1), Integer(1))


class Ind(_Scalar):
    """An index expression used as a number, as in 1/t."""

    def __new__(cls, expr: Index) -> Ind:
        return cast(Ind, Basic.__new__(cls, _ix(expr)))

    @property
    def expr(self) -> Expr:
        return cast(Expr, self.args[0])


class NegInf(_Scalar):
    """The logarithm of zero: Exp(NegInf()) is 0. It may stand only under Exp, alone or as a branch of Where."""

    def __new__(cls) -> NegInf:
        return cast(NegInf, Basic.__new__(cls))


class Zero(Term):
    """The zero matrix."""

    def __new__(cls, rows: Index, cols: Index) -> Zero:
        return cast(Zero, Basic.__new__(cls, _ix(rows), _ix(cols)))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[0], self.args[1])  # type: ignore[return-value]


class Eye(Term):
    """The identity matrix."""

    def __new__(cls, n: Index) -> Eye:
        return cast(Eye, Basic.__new__(cls, _ix(n)))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[0], self.args[0])  # type: ignore[return-value]


class Add(Term):
    """A sum of terms of one shape."""


    def __new__(cls, *terms: Term) -> Add:
        flat = [t for x in terms for t in (x.args if isinstance(x, Add) else (x,))]
        first = cast(Term, flat[0])
        for t in cast("list[Term]", flat[1:]):
            if not (same(t.rows, first.rows) and same(t.cols, first.cols)):
                raise ShapeError(f"cannot add {_shape(t)} to {_shape(first)}: {t} to {first}")
        return cast(Add, Basic.__new__(cls, *flat))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[0]).shape


def _shape(t: Term) -> str:
    return f"a {t.rows} x {t.cols} term"


class Mul(Term):
    """An ordered product; 1 x 1 factors are scalars and may stand anywhere."""


    def __new__(cls, *terms: Term) -> Mul:
        # a scalar product stays whole: its factors may not fit between its neighbours
        splice = [isinstance(x, Mul) and not x.is_scalar_term for x in terms]
        flat = [cast(Term, t) for x, s in zip(terms, splice, strict=True) for t in (x.args if s else (x,))]
        _product_shape(flat)
        return cast(Mul, Basic.__new__(cls, *flat))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return _product_shape(cast("tuple[Term, ...]", self.args))


def _product_shape(factors: Iterable[Term]) -> tuple[Expr, Expr]:
    rows = cols = Integer(1)
    last: Term | None = None
    for f in factors:
        if f.is_scalar_term:
            continue
        if (rows, cols) == (1, 1):
            rows, cols = f.shape
        elif same(cols, f.rows):
            cols = f.cols
        else:
            raise ShapeError(f"cannot multiply {rows} x {cols} by {_shape(f)}: {f} after {last}")
        last = f
    return rows, cols


class Transpose(Term):
    """The transpose, without conjugation."""


    def __new__(cls, x: Term) -> Transpose:
        return cast(Transpose, Basic.__new__(cls, x))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        x = cast(Term, self.args[0])
        return (x.cols, x.rows)


class _SameShape(Term):
    @property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[0]).shape


class Conj(_SameShape):
    """The entrywise complex conjugate; ``x.H`` is the adjoint."""


    def __new__(cls, x: Term) -> Conj:
        return cast(Conj, Basic.__new__(cls, x))


class Hadamard(_SameShape):
    """The entrywise product of two terms of one shape."""


    def __new__(cls, a: Term, b: Term) -> Hadamard:
        if not (same(a.rows, b.rows) and same(a.cols, b.cols)):
            raise ShapeError(f"the entrywise product needs one shape, not {_shape(a)} and {_shape(b)}")
        return cast(Hadamard, Basic.__new__(cls, a, b))


class Diag(Term):
    """The diagonal matrix of a column vector."""

    def __new__(cls, v: Term) -> Diag:
        if v.cols != 1:
            raise ShapeError(f"Diag needs a column vector, not {_shape(v)}")
        return cast(Diag, Basic.__new__(cls, v))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        n = cast(Term, self.args[0]).rows
        return (n, n)


def _square(x: Term, what: str) -> Term:
    if not same(x.rows, x.cols):
        raise ShapeError(f"{what} needs a square matrix or a scalar, not {_shape(x)}")
    return x


class Power(_SameShape):
    """An integer power with a symbolic exponent; a negative one needs an inverse to exist."""


    def __new__(cls, x: Term, exponent: Index) -> Power:
        return cast(Power, Basic.__new__(cls, _square(x, "a power"), _ix(exponent)))


class Inverse(_SameShape):
    """The inverse of a square matrix, the reciprocal of a scalar."""


    def __new__(cls, x: Term) -> Inverse:
        return cast(Inverse, Basic.__new__(cls, _square(x, "an inverse")))


class Exp(_SameShape):
    """The exponential of a scalar or of a square matrix."""

    def __new__(cls, x: Term) -> Exp:
        return cast(Exp, Basic.__new__(cls, _square(x, "exp")))


class Log(_SameShape):
    """The natural logarithm of a positive scalar."""

    def __new__(cls, x: Term) -> Log:
        if not x.is_scalar_term:
            raise ShapeError(f"log needs a scalar, not {_shape(x)}")
        return cast(Log, Basic.__new__(cls, x))


class Sqrt(_SameShape):
    """The non-negative square root of a non-negative scalar."""

    def __new__(cls, x: Term) -> Sqrt:
        if not x.is_scalar_term:
            raise ShapeError(f"sqrt needs a scalar, not {_shape(x)}")
        return cast(Sqrt, Basic.__new__(cls, x))


class Trace(_Scalar):
    """The trace of a square matrix."""

    def __new__(cls, x: Term) -> Trace:
        return cast(Trace, Basic.__new__(cls, _square(x, "a trace")))


class Cond(Basic):
    """A conjunction of inequalities ``e >= 0`` between index expressions."""

    def __new__(cls, *exprs: Index) -> Cond:
        return cast(Cond, Basic.__new__(cls, *[_ix(e) for e in exprs]))

    def __and__(self, other: Cond) -> Cond:
        return Cond(*cast("tuple[Expr, ...]", self.args + other.args))


def le(a: Index, b: Index) -> Cond:
    """The condition a <= b."""
    return Cond(_ix(b) - _ix(a))


def lt(a: Index, b: Index) -> Cond:
    """The condition a < b, between integers."""
    return Cond(_ix(b) - _ix(a) - 1)


def equal(a: Index, b: Index) -> Cond:
    """The condition a = b."""
    return le(a, b) & le(b, a)


class Where(_SameShape):
    """``a`` where the condition holds, ``b`` elsewhere."""

    def __new__(cls, cond: Cond, a: Term, b: Term) -> Where:
        if not (same(a.rows, b.rows) and same(a.cols, b.cols)):
            raise ShapeError(f"the branches of Where need one shape, not {_shape(a)} and {_shape(b)}")
        return cast(Where, Basic.__new__(cls, cond, a, b))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[1]).shape


def indicator(cond: Cond) -> Term:
    """1 where the condition holds, 0 elsewhere."""
    return Where(cond, Num(1), Num(0))


class _Ranged(_SameShape):
    """A body with a bound index that runs over lo..hi."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, i: Symbol, lo: Index, hi: Index) -> _Ranged:
        if not isinstance(i, Symbol):
            raise BoundError(f"a bound index is a symbol, not {i!r}")
        lo, hi = _ix(lo), _ix(hi)
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
        _square(body, "an ordered product")
        checked = Sum(body, i, lo, hi)
        return cast(Prod, Basic.__new__(cls, *checked.args, sympy.true if decreasing else sympy.false))

    @property
    def decreasing(self) -> bool:
        return bool(self.args[4])

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[0]).shape


class Stack(Term):
    """The matrix whose row i is the body, i = lo..hi."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, i: Symbol, lo: Index, hi: Index) -> Stack:
        if body.rows != 1:
            raise ShapeError(f"Stack needs rows, not {_shape(body)}")
        return cast(Stack, Basic.__new__(cls, *Sum(body, i, lo, hi).args))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (sympy.expand(self.args[3] - self.args[2] + 1), cast(Term, self.args[0]).cols)


def entries(entry: Term, i: Symbol, i_range: tuple[Index, Index], j: Symbol, j_range: tuple[Index, Index]) -> Term:
    """The matrix with the given entry in row i and column j."""
    return Stack(Transpose(Stack(entry, j, *j_range)), i, *i_range)


class Row(Term):
    """Row i of a matrix."""


    def __new__(cls, x: Term, i: Index) -> Row:
        return cast(Row, Basic.__new__(cls, x, _ix(i)))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (Integer(1), cast(Term, self.args[0]).cols)


class Entry(_Scalar):
    """The entry in row i and column j."""


    def __new__(cls, x: Term, i: Index, j: Index) -> Entry:
        return cast(Entry, Basic.__new__(cls, x, _ix(i), _ix(j)))


class Rows(Term):
    """Rows lo..hi of a matrix, numbered as they were: the prefix X_{1:t} is Rows(X, 1, t)."""


    def __new__(cls, x: Term, lo: Index, hi: Index) -> Rows:
        return cast(Rows, Basic.__new__(cls, x, _ix(lo), _ix(hi)))

    @property
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

    @property
    def shape(self) -> tuple[Expr, Expr]:
        g = self.grid
        return (sympy.Add(*[r[0].rows for r in g]), sympy.Add(*[b.cols for b in g[0]]))


class Apply(Term):
    """An uninterpreted function of terms."""

    def __new__(
        cls, name: str | Str, args: Iterable[Term], rows: Index, cols: Index, field: str | Str = "real"
    ) -> Apply:
        given = Tuple(*args)
        return cast(Apply, Basic.__new__(cls, Str(str(name)), given, _ix(rows), _ix(cols), Str(str(field))))

    @property
    def name(self) -> str:
        return str(self.args[0])

    @property
    def arguments(self) -> tuple[Term, ...]:
        return cast("tuple[Term, ...]", tuple(self.args[1].args))

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[2], self.args[3])  # type: ignore[return-value]

    @property
    def field(self) -> str:
        return str(self.args[4])


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
                raise ShapeError(f"the {what} of {name} is {_shape(x)}, but its initial value is {_shape(init)}")
        # one spelling for equal recursions: bound names depend on the depth of nesting alone
        mark = PRIME * _depth(step)
        own_t, own_prev = index(f"t{mark}"), Var(f"{name}{mark}", (), *init.shape, prev.field)
        step = substitute(step, {t: own_t, prev: own_prev})
        t, prev = own_t, own_prev
        return cast(Rec, Basic.__new__(cls, Str(str(name)), _ix(at), t, prev, _ix(start), init, step))

    @property
    def name(self) -> str:
        return str(self.args[0])

    @property
    def at(self) -> Expr:
        return cast(Expr, self.args[1])

    @property
    def start(self) -> Expr:
        return cast(Expr, self.args[4])

    @property
    def init(self) -> Term:
        return cast(Term, self.args[5])

    @property
    def shape(self) -> tuple[Expr, Expr]:
        return self.init.shape

    def step_at(self, t: Index, previous: Term) -> Term:
        """The update's right-hand side at index t, from the given previous state."""
        return substitute(cast(Term, self.args[6]), {self.args[2]: _ix(t), self.args[3]: previous})

    def moved(self, at: Index) -> Rec:
        """The same family's member at another index."""
        return Rec(self.name, at, *self.args[2:])  # type: ignore[arg-type]


@dataclass(frozen=True)
class Recurrence:
    """A family defined by recursion; ``family[t]`` is its member."""

    member: Rec

    def __getitem__(self, t: Index) -> Rec:
        return self.member.moved(t)


def recurrence(
    name: str, init: Term, step: Callable[[Symbol, Term], Term], *, start: Index = 0, field: str = "real"
) -> Recurrence:
    """Define a family by its initial value at ``start`` and ``step(t, previous)`` for t > start."""
    t = index("t")
    prev = Var(f"{name}'", (), init.rows, init.cols, field)
    return Recurrence(Rec(name, start, t, prev, start, init, step(t, prev)))


class Integral(_SameShape):
    """The integral of a body over a scalar variable from lo to hi."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, s: Var, lo: Like, hi: Like) -> Integral:
        return cast(Integral, Basic.__new__(cls, body, _real_variable(s), lift(lo), lift(hi)))


def _real_variable(s: Term) -> Term:
    if not (isinstance(s, Var) and not s.indices and s.is_scalar_term and s.field == "real"):
        raise BoundError(f"a variable of integration or differentiation is a real scalar Var without indices, not {s!r}")
    return s


class Deriv(_SameShape):
    """The derivative of a body by the scalar variable s, as a function of s."""


    def __new__(cls, body: Term, s: Var) -> Deriv:
        return cast(Deriv, Basic.__new__(cls, body, _real_variable(s)))


class At(_SameShape):
    """The value of a body at s = value."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Term, s: Var, value: Like) -> At:
        return cast(At, Basic.__new__(cls, body, _real_variable(s), lift(value)))


class Expect(_SameShape):
    """The expectation of a body over the families named; everything else is deterministic."""

    def __new__(cls, body: Term, *names: str | Str) -> Expect:
        return cast(Expect, Basic.__new__(cls, body, *[Str(str(n)) for n in names]))

    @property
    def random(self) -> frozenset[str]:
        return frozenset(str(n) for n in self.args[1:])


def norm2(x: Term) -> Term:
    """The squared Euclidean norm of a column vector."""
    return Mul(Transpose(Conj(x)), x)


@cache
def free(x: Basic) -> frozenset[Basic]:
    """The free symbols and the free Vars without indices of a term."""
    if isinstance(x, Symbol):
        return frozenset({x})
    out: set[Basic] = set()
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    for n, a in enumerate(x.args):
        if n in binds:
            continue
        inner = free(a)
        bound = {x.args[b] for b, scope in binds.items() if n in scope}
        out |= inner - bound
    if isinstance(x, Var) and not x.indices:
        out.add(x)
    return frozenset(out)


def _fresh(v: Basic, taken: frozenset[Basic]) -> Basic:
    n = 1
    while True:
        if isinstance(v, Symbol):
            new: Basic = Symbol(f"{v.name}_{n}", **v.assumptions0)
        else:
            w = cast(Var, v)
            new = Var(f"{w.name}_{n}", (), w.rows, w.cols, w.field)
        if new not in taken:
            return new
        n += 1


def substitute(x: Any, mapping: Mapping[Any, Any]) -> Any:
    """Replace free symbols and free Vars without indices; bound ones are renamed where they would capture.

    Raises TypeError for any other key: a compound term is replaced only by a proved equation.
    """
    clean: dict[Basic, Basic] = {}
    for old, new in mapping.items():
        if isinstance(old, Symbol):
            clean[old] = _ix(new)
        elif isinstance(old, Var) and not old.indices:
            value = lift(new)
            if not (same(old.rows, value.rows) and same(old.cols, value.cols)):
                raise ShapeError(f"cannot replace {_shape(old)} by {_shape(value)}")
            clean[old] = value
        else:
            raise TypeError(f"cannot substitute for {old!r}: only for symbols and Vars without indices")
    return _substitute(x, clean)


def _substitute(x: Basic, m: Mapping[Basic, Basic]) -> Basic:
    live = {k: v for k, v in m.items() if k in free(x)}
    if not live:
        return x
    if x in live:
        return live[x]
    if isinstance(x, Expr):
        return cast(Basic, sympy.expand(Expr.subs(x, list(live.items()), simultaneous=True)))
    if isinstance(x, Deriv) and x.args[1] in live:
        value = live.pop(x.args[1])
        inner = cast(Term, _substitute(x.args[0], live)) if live else cast(Term, x.args[0])
        if any(x.args[1] in free(v) for v in live.values()):
            raise BoundError(f"cannot substitute under the derivative by {x.args[1]}")
        return At(Deriv(inner, cast(Var, x.args[1])), cast(Var, x.args[1]), value)
    args = list(x.args)
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    incoming = frozenset().union(*[free(v) for v in live.values()])
    resized: dict[Basic, Basic] = {}
    for b in binds:
        # a bound state has the size of what it stands for
        if isinstance(args[b], Var) and free(args[b]) & live.keys():
            resized[args[b]] = args[b].func(*[_substitute(a, live) for a in args[b].args])
    for b, scope in binds.items():
        if args[b] in incoming:
            taken = incoming.union(*[free(args[n]) for n in scope], frozenset(live), {args[c] for c in binds})
            new = _fresh(args[b], taken)
            for n in scope:
                args[n] = _substitute(args[n], {args[b]: new})
            args[b] = new
    out = []
    for n, a in enumerate(args):
        if n in binds:
            out.append(resized.get(a, a))
            continue
        bound = {args[b] for b, scope in binds.items() if n in scope}
        inside = {k: v for k, v in live.items() if k not in bound}
        out.append(_substitute(a, inside | {k: v for k, v in resized.items() if k in bound}))
    return x.func(*out)


def walk(x: Basic) -> Iterable[Basic]:
    """Every node of a term, the term itself first."""
    yield x
    for a in x.args:
        yield from walk(a)
