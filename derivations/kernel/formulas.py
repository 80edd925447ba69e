"""Formulas: what a statement says about terms, and the statement itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from sympy import Basic, Symbol, Tuple

from .terms import Apply, Cond, Cut, Cuts, Eye, Index, Inverse, Like, Num, ShapeError, Sum, Term, Var, Zero, lift, same, unnamed, walk


class Formula(Basic):
    """A node that is true or false once its atoms have values."""

    def __repr__(self) -> str:
        from .printing import text

        return text(self)

    def _sympystr(self, printer: Any) -> str:
        return repr(self)

    def _latex(self, printer: Any) -> str:
        from .printing import latex

        return latex(self)


class Equation(Formula):
    """Two terms of one shape are equal."""

    def __new__(cls, lhs: Like, rhs: Like) -> Equation:
        a, b = lift(lhs), lift(rhs)
        if not (same(a.rows, b.rows) and same(a.cols, b.cols)):
            raise ShapeError(f"the sides of an equation need one shape, not {a.shape} and {b.shape}: {a} = {b}")
        return cast(Equation, Basic.__new__(cls, a, b))

    @property
    def lhs(self) -> Term:
        return cast(Term, self.args[0])

    @property
    def rhs(self) -> Term:
        return cast(Term, self.args[1])


class _Order(Formula):
    def __new__(cls, lhs: Like, rhs: Like) -> _Order:
        a, b = lift(lhs), lift(rhs)
        if not (a.is_scalar_term and b.is_scalar_term):
            raise ShapeError(f"only scalars are ordered, not {a.shape} and {b.shape}")
        return cast(_Order, Basic.__new__(cls, a, b))

    lhs = Equation.lhs
    rhs = Equation.rhs


class LessEqual(_Order):
    """lhs <= rhs, between real scalars."""


class Less(_Order):
    """lhs < rhs, between real scalars."""


class NonZero(Formula):
    """A scalar is not zero."""

    def __new__(cls, x: Like) -> NonZero:
        return cast(NonZero, Basic.__new__(cls, Inverse(lift(x)).args[0]))


class Invertible(Formula):
    """A square matrix has an inverse."""

    def __new__(cls, x: Term) -> Invertible:
        return cast(Invertible, Basic.__new__(cls, Inverse(x).args[0]))


class And(Formula):
    """All parts hold."""

    def __new__(cls, *parts: Formula) -> And:
        return cast(And, Basic.__new__(cls, *parts))


class Implies(Formula):
    """The conclusion holds where the premise does."""

    def __new__(cls, premise: Formula, conclusion: Formula) -> Implies:
        return cast(Implies, Basic.__new__(cls, premise, conclusion))


class Iff(Formula):
    """Both sides hold, or neither does."""

    def __new__(cls, a: Formula, b: Formula) -> Iff:
        return cast(Iff, Basic.__new__(cls, a, b))


class ForAll(Formula):
    """A formula holds for every integer value of the index in lo..hi; hi may be None for no upper end."""

    binds: ClassVar[Mapping[int, tuple[int, ...]]] = {1: (0,)}

    def __new__(cls, body: Formula, i: Symbol, lo: Index, hi: Index | Tuple | None = None) -> ForAll:
        # args hold the upper end as a Tuple of one or none, and a node is rebuilt from its args
        end = hi.args if isinstance(hi, Tuple) else () if hi is None else (hi,)
        checked = Sum(Num(0), i, lo, *(end or (lo,)))
        return cast(ForAll, Basic.__new__(cls, body, i, checked.args[2], Tuple(*checked.args[3:]) if end else Tuple()))


@dataclass(frozen=True)
class Assumption:
    """A hypothesis of a statement.

    ``name`` is how it is printed and dropped. ``solve`` tells how to draw a model: values, as terms in fresh
    atoms, for Vars of the hypothesis such that it holds; the engines check that it does hold.
    """

    name: str
    formula: Formula
    solve: Mapping[Any, Term] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """For all indices in their ranges and all values of the atoms: the assumptions imply the conclusion.

    ``where`` holds the conditions on the free indices, as ``le(0, t) & le(t, T)``; sizes are >= 0, and cuts ordered.
    """

    conclusion: Formula
    where: Cond = field(default_factory=Cond)
    assumptions: tuple[Assumption, ...] = ()

    @property
    def cuts(self) -> tuple[Cuts, ...]:
        """The families of cuts that it speaks of, by name."""
        parts = (self.conclusion, self.where, *[a.formula for a in self.assumptions])
        return tuple(map(Cuts, sorted({n.name for p in parts for n in walk(p) if isinstance(n, Cut)})))

    @property
    def sizes(self) -> frozenset[Symbol]:
        """The free indices that are a size of an atom: those are >= 0."""
        return frozenset().union(*map(_sizes, (self.conclusion, *[a.formula for a in self.assumptions])))


def _sizes(x: Basic, bound: frozenset[Basic] = frozenset()) -> frozenset[Symbol]:
    """A bound state has the shape of what it stands for, which may be an empty range: it is no atom."""
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    scopes = [bound.union(x.args[b] for b, scope in binds.items() if n in scope) for n in range(len(x.args))]
    found = [_sizes(a, scopes[n]) for n, a in enumerate(x.args) if n not in binds]
    own = x.shape if isinstance(x, (Var, Apply, Zero, Eye)) and x not in bound else ()
    return frozenset(e for e in own if isinstance(e, Symbol) and e not in bound).union(*found)


def plain(statement: Statement) -> Statement:
    """What a statement says: its terms without the names that they are printed under."""
    said = tuple(
        replace(a, formula=unnamed(a.formula), solve={v: unnamed(lift(t)) for v, t in a.solve.items()})
        for a in statement.assumptions
    )
    return replace(statement, conclusion=cast(Formula, unnamed(statement.conclusion)), assumptions=said)


@dataclass(frozen=True)
class Declaration:
    """An operator as its recurrence or read-out: the object that proofs are about and that the oracle runs.

    ``inputs`` maps the names of the plain call to the family that holds their values at time t, ``domains``
    says where they live, in words; ``state`` is None for an operator without one, a tuple for several.
    ``output`` is the read-out at index ``t``, with ``length`` the number of steps where the read-out needs it.
    """

    operator: str
    inputs: Mapping[str, Any]
    output: Term
    t: Symbol
    state: Any = None
    initial_state: Var | tuple[Var, ...] | None = None
    length: Symbol | None = None
    domains: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
