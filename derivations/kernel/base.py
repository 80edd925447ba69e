"""What all terms share: shapes, indices, the algebra's nodes, and substitution that captures nothing.

Import from ``terms``, which re-exports everything here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
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


def tag(name: str | Str) -> Str:
    """A name as a node of a term."""
    return name if isinstance(name, Str) else Str(str(name))


class Cut(Expr):  # type: ignore[misc]
    """An index expression: member ``at`` of a family of cuts, integers 0 = b_0 <= b_1 <= b_2 <= ...

    The cut at 0 is the number 0; one at a negative place may be any integer.
    """

    is_commutative = True
    is_integer = True

    def __new__(cls, name: str | Str, at: Index) -> Expr:
        e = index_expression(at)
        return Integer(0) if e == 0 else cast(Cut, Expr.__new__(cls, tag(name), e))

    @property
    def name(self) -> str:
        return cast(Str, self.args[0]).name

    @property
    def at(self) -> Expr:
        return cast(Expr, self.args[1])

    def _sympystr(self, printer: Any) -> str:
        return f"{self.name}[{printer.doprint(self.at)}]"


@dataclass(frozen=True)
class Cuts:
    """A family of cuts: where the chunks of a sequence end; ``family[i]`` is the end of chunk i."""

    name: str

    def __getitem__(self, at: Index) -> Expr:
        return Cut(self.name, at)


def cuts(name: str) -> Cuts:
    """A family of cuts 0 = b_0 <= b_1 <= b_2 <= ...: chunks of any sizes, empty ones among them."""
    return Cuts(name)


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
    # positions of arguments that are only printed
    silent: ClassVar[frozenset[int]] = frozenset()

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        raise NotImplementedError

    @property
    def rows(self) -> Expr:
        return self.shape[0]

    @property
    def cols(self) -> Expr:
        return self.shape[1]

    @cached_property
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

    def substituted(self, live: Mapping[Basic, Basic]) -> Basic | None:
        """The term after a substitution, where the rule for binders is not enough; else None."""
        return None

    def _sympystr(self, printer: Any) -> str:
        from .printing import text

        return text(self)

    def _latex(self, printer: Any) -> str:
        from .printing import latex

        return latex(self)

    def __repr__(self) -> str:
        return str(self)


def index_expression(x: Index) -> Expr:
    if isinstance(x, (Symbol, Integer)):
        return x
    e = sympy.sympify(x)
    if not isinstance(e, Expr) or isinstance(e, Term):
        raise TypeError(f"{x!r} is no index expression")
    return cast(Expr, sympy.expand(e))


class Var(Term):
    """An atom: one member ``name[indices]`` of a family of matrices, or a single matrix, vector or scalar."""

    def __new__(
        cls, name: str | Str, indices: Iterable[Index], rows: Index, cols: Index, field: str | Str = "real"
    ) -> Var:
        kind = tag(field)
        if kind.name not in ("real", "complex"):
            raise ValueError(f"the field of {name} is 'real' or 'complex', not {kind.name!r}")
        ixs = Tuple(*[index_expression(i) for i in indices])
        return cast(Var, Basic.__new__(cls, tag(name), ixs, index_expression(rows), index_expression(cols), kind))

    @property
    def name(self) -> str:
        return cast(Str, self.args[0]).name

    @property
    def indices(self) -> tuple[Expr, ...]:
        return tuple(self.args[1].args)  # type: ignore[arg-type]

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[2], self.args[3])  # type: ignore[return-value]

    @property
    def field(self) -> str:
        return cast(Str, self.args[4]).name


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

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (Integer(1), Integer(1))


class ScalarTerm(Term):
    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (Integer(1), Integer(1))


class Ind(ScalarTerm):
    """An index expression used as a number, as in 1/t."""

    def __new__(cls, expr: Index) -> Ind:
        return cast(Ind, Basic.__new__(cls, index_expression(expr)))

    @property
    def expr(self) -> Expr:
        return cast(Expr, self.args[0])


class NegInf(ScalarTerm):
    """The logarithm of zero: Exp(NegInf()) is 0. It may stand only under Exp, alone or as a branch of Where."""

    def __new__(cls) -> NegInf:
        return cast(NegInf, Basic.__new__(cls))


class Zero(Term):
    """The zero matrix."""

    def __new__(cls, rows: Index, cols: Index) -> Zero:
        return cast(Zero, Basic.__new__(cls, index_expression(rows), index_expression(cols)))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[0], self.args[1])  # type: ignore[return-value]


class Eye(Term):
    """The identity matrix."""

    def __new__(cls, n: Index) -> Eye:
        return cast(Eye, Basic.__new__(cls, index_expression(n)))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return (self.args[0], self.args[0])  # type: ignore[return-value]


class Add(Term):
    """A sum of terms of one shape."""


    def __new__(cls, *terms: Term) -> Add:
        flat = [t for x in terms for t in (x.args if isinstance(x, Add) else (x,))]
        first = cast(Term, flat[0])
        for t in cast("list[Term]", flat[1:]):
            if not (same(t.rows, first.rows) and same(t.cols, first.cols)):
                raise ShapeError(f"cannot add {shown_shape(t)} to {shown_shape(first)}: {t} to {first}")
        return cast(Add, Basic.__new__(cls, *flat))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[0]).shape


def shown_shape(t: Term) -> str:
    return f"a {t.rows} x {t.cols} term"


class Mul(Term):
    """An ordered product; 1 x 1 factors are scalars and may stand anywhere."""


    def __new__(cls, *terms: Term) -> Mul:
        # a scalar product stays whole: its factors may not fit between its neighbours
        splice = [isinstance(x, Mul) and not x.is_scalar_term for x in terms]
        flat = [cast(Term, t) for x, s in zip(terms, splice, strict=True) for t in (x.args if s else (x,))]
        _product_shape(flat)
        return cast(Mul, Basic.__new__(cls, *flat))

    @cached_property
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
            raise ShapeError(f"cannot multiply {rows} x {cols} by {shown_shape(f)}: {f} after {last}")
        last = f
    return rows, cols


class Transpose(Term):
    """The transpose, without conjugation."""


    def __new__(cls, x: Term) -> Transpose:
        return cast(Transpose, Basic.__new__(cls, x))

    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        x = cast(Term, self.args[0])
        return (x.cols, x.rows)


class SameShape(Term):
    @cached_property
    def shape(self) -> tuple[Expr, Expr]:
        return cast(Term, self.args[0]).shape


class Conj(SameShape):
    """The entrywise complex conjugate; ``x.H`` is the adjoint."""


    def __new__(cls, x: Like) -> Conj:
        return cast(Conj, Basic.__new__(cls, lift(x)))


def square(x: Term, what: str) -> Term:
    if not same(x.rows, x.cols):
        raise ShapeError(f"{what} needs a square matrix or a scalar, not {shown_shape(x)}")
    return x


class Power(SameShape):
    """An integer power with a symbolic exponent; a negative one needs an inverse to exist."""


    def __new__(cls, x: Term, exponent: Index) -> Power:
        return cast(Power, Basic.__new__(cls, square(x, "a power"), index_expression(exponent)))


class Inverse(SameShape):
    """The inverse of a square matrix, the reciprocal of a scalar."""


    def __new__(cls, x: Term) -> Inverse:
        return cast(Inverse, Basic.__new__(cls, square(x, "an inverse")))


@cache
def free(x: Basic) -> frozenset[Basic]:
    """The free symbols and the free Vars without indices of a term."""
    if isinstance(x, Symbol):
        return frozenset({x})
    out: set[Basic] = set()
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    silent: frozenset[int] = getattr(x, "silent", frozenset())
    for n, a in enumerate(x.args):
        if n in binds or n in silent:
            continue
        inner = free(a)
        bound = {x.args[b] for b, scope in binds.items() if n in scope}
        out |= inner - bound
    if isinstance(x, Var) and not x.indices:
        out.add(x)
    return frozenset(out)


def fresh(v: Basic, taken: frozenset[Basic]) -> Basic:
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
            clean[old] = index_expression(new)
        elif isinstance(old, Var) and not old.indices:
            value = lift(new)
            if not (same(old.rows, value.rows) and same(old.cols, value.cols)):
                raise ShapeError(f"cannot replace {shown_shape(old)} by {shown_shape(value)}")
            clean[old] = value
        else:
            raise TypeError(f"cannot substitute for {old!r}: only for symbols and Vars without indices")
    return put(x, clean)


def put(x: Basic, m: Mapping[Basic, Basic]) -> Basic:
    reach = free(x)
    live = {k: v for k, v in m.items() if k in reach}
    if not live:
        return x
    if x in live:
        return live[x]
    if isinstance(x, Expr):
        return cast(Basic, sympy.expand(Expr.subs(x, list(live.items()), simultaneous=True)))
    special = x.substituted(live) if isinstance(x, Term) else None
    if special is not None:
        return special
    args = list(x.args)
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    if not binds:
        return x.func(*[put(a, live) for a in args])
    incoming = frozenset().union(*[free(v) for v in live.values()])
    resized: dict[Basic, Basic] = {}
    for b in binds:
        # a bound state has the size of what it stands for
        if isinstance(args[b], Var) and free(args[b]) & live.keys():
            resized[args[b]] = args[b].func(*[put(a, live) for a in args[b].args])
    for b, scope in binds.items():
        if args[b] in incoming:
            taken = incoming.union(*[free(args[n]) for n in scope], frozenset(live), {args[c] for c in binds})
            new = fresh(args[b], taken)
            for n in scope:
                args[n] = put(args[n], {args[b]: new})
            args[b] = new
    out = []
    for n, a in enumerate(args):
        if n in binds:
            out.append(resized.get(a, a))
            continue
        bound = {args[b] for b, scope in binds.items() if n in scope}
        inside = {k: v for k, v in live.items() if k not in bound}
        out.append(put(a, inside | {k: v for k, v in resized.items() if k in bound}))
    return x.func(*out)


def walk(x: Basic) -> Iterable[Basic]:
    """Every node of a term, the term itself first."""
    ahead = [x]
    while ahead:
        node = ahead.pop()
        yield node
        ahead += reversed(node.args)
