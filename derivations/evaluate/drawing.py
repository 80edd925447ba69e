"""Which number system fits a statement, and which sizes and indices to try it at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, cast

import sympy
from sympy import Basic, Expr, Symbol

from ..kernel import formulas as fm
from ..kernel import terms as k
from .balls import Balls
from .errors import Undefined, UnsupportedTerm
from .frame import cut, index_code
from .logic import holds, identity
from .program import ROOT_OF_UNITY
from .systems import Gaussian, Prime, Rationals, System

ANALYTIC = (k.Exp, k.Log, k.Sqrt, k.Integral, k.Deriv)
ORDERED = (fm.Less, fm.LessEqual)
SIZE_WEIGHTS = {0: 1, 1: 3, 2: 4, 3: 4, 4: 2, 5: 1, 6: 1}
TRIES = 300
NONE: Mapping[Basic, int] = MappingProxyType({})
MARGIN = 16  # cuts that are drawn beyond the places where the indices can be


@dataclass(frozen=True)
class Limits:
    """The largest length and the largest size to draw."""

    length: int
    size: int


def parts(statement: fm.Statement) -> Iterator[Basic]:
    """The formulas of a statement, and the terms that solve its assumptions."""
    yield statement.conclusion
    for a in statement.assumptions:
        yield a.formula
        yield from (k.lift(t) for t in a.solve.values())


def fit(statement: fm.Statement) -> System:
    """The number system of a statement: a field for identities, QQ for orders and logic, balls for limits.

    Raises UnsupportedTerm for an expectation.
    """
    nodes = [n for p in parts(statement) for n in k.walk(p)]
    if any(isinstance(n, k.Expect) for n in nodes):
        raise UnsupportedTerm("an expectation is not evaluated")
    if any(isinstance(n, ANALYTIC) for n in nodes):
        return Balls()
    ordered = any(isinstance(n, ORDERED) for n in nodes)
    roots = any(isinstance(n, k.Apply) and n.name == ROOT_OF_UNITY for n in nodes)
    base = Prime() if roots or (identity(statement.conclusion) and not ordered) else Rationals()
    is_complex = any(isinstance(n, (k.Var, k.Apply)) and n.field == "complex" for n in nodes)
    return Gaussian(base) if roots or is_complex else base


def exact_fit(statement: fm.Statement) -> System:
    """The number system in which a counterexample reads well: QQ where a field would do."""
    system = fit(statement)
    if isinstance(system, Prime):
        return Rationals()
    return Gaussian(Rationals()) if isinstance(system, Gaussian) and not _needs_roots(statement) else system


def _needs_roots(statement: fm.Statement) -> bool:
    nodes = (n for p in parts(statement) for n in k.walk(p))
    return any(isinstance(n, k.Apply) and n.name == ROOT_OF_UNITY for n in nodes)


def limits(statement: fm.Statement, system: System) -> Limits:
    """How far to draw: exact identities are cheap, functions of functions grow, balls cost most."""
    nodes = [n for p in parts(statement) for n in k.walk(p)]
    if isinstance(system, Balls):
        return Limits(3 if any(isinstance(n, (k.Integral, k.Deriv)) for n in nodes) else 6, 3)
    rationals = system == Rationals() or system == Gaussian(Rationals())
    if any(isinstance(n, k.Apply) and n.name != ROOT_OF_UNITY for n in nodes):
        return Limits(3, 2) if rationals else Limits(12, 4)
    return Limits(8, 3) if rationals else Limits(64, 6)


def _index_symbols(x: Basic) -> frozenset[Basic]:
    """The free symbols that are used other than as a size."""
    if isinstance(x, Expr) and not isinstance(x, k.Term):
        return frozenset(x.free_symbols)
    used = x.args
    if isinstance(x, k.Var):
        used = x.args[1:2]
    elif isinstance(x, k.Apply):
        used = x.arguments
    elif isinstance(x, (k.Zero, k.Eye)):
        used = ()
    bound = {x.args[b] for b in getattr(x, "binds", {})}
    return frozenset().union(*[_index_symbols(a) for a in used]) - bound


def _size_symbols(x: Basic) -> frozenset[Basic]:
    """The symbols that occur in the shape of an atom."""
    found = frozenset().union(*[_size_symbols(a) for a in x.args])
    if isinstance(x, (k.Var, k.Apply, k.Zero, k.Eye)):
        found |= frozenset().union(*[e.free_symbols for e in x.shape])
    return found


@dataclass(frozen=True)
class Bound:
    """An inequality ``sum of coefficient * (symbol or cut) + constant >= 0``."""

    coefficients: Mapping[Expr, int]
    constant: int

    def limit(self, s: Symbol, known: Mapping[Basic, int]) -> tuple[int | None, int | None]:
        """The lower and the upper limit that it sets on a symbol once all its others are known."""
        c = self.coefficients.get(s, 0)
        if c == 0 or any(o != s and not o.free_symbols <= known.keys() for o in self.coefficients):
            return None, None
        rest = self.constant + sum(a * index_code(o)(known) for o, a in self.coefficients.items() if o != s)
        return (-(rest // c), None) if c > 0 else (None, rest // -c)


@dataclass(frozen=True)
class Shape:
    """The free symbols of a statement: those that only measure sizes, the others, and their conditions.

    Its cuts are drawn with them: the index values of a point hold ``b[1]``, ``b[2]``, ... beside the symbols.
    """

    sizes: tuple[Symbol, ...]
    indices: tuple[Symbol, ...]
    natural: frozenset[Symbol]
    where: k.Cond
    bounds: tuple[Bound, ...]
    cuts: tuple[k.Cuts, ...]
    places: frozenset[Basic]
    ends: frozenset[Expr]  # the cuts that stand at free indices

    def draw(
        self, rng: Random, limits: Limits, scale: int, *, size: int | None = None, high: float = 0.3, fixed: Mapping[Basic, int] = NONE
    ) -> dict[Basic, int] | None:
        """Values of all symbols, ``fixed`` ones kept, lengths up to ``scale``, as long as possible with probability ``high`` each.

        None if none was found.
        """
        sizes = {s: min(size, limits.size) if size is not None else _size(rng, limits.size) for s in self.sizes}
        for attempt in range(TRIES):
            reach = scale + attempt // 50
            try:
                found = self._indices(rng, reach, {**sizes, **self._cuts(rng, reach), **fixed}, high)
            except Undefined:  # the conditions ask for a cut that was not drawn
                continue
            if found is not None:
                return found
        return None

    def _cuts(self, rng: Random, scale: int) -> dict[Basic, int]:
        """Cuts that repeat, start at 0 and leap often enough, up to a last one at about ``scale``."""
        out: dict[Basic, int] = {}
        for family in self.cuts:
            last, reach = 0, rng.randint(scale, 2 * scale + 1)
            for n in range(1, 2 * scale + MARGIN):
                last = min(reach, last + rng.choice((0, 0, 1, 1, 2, 3, scale)))
                out[cut(family.name, n)] = last
        return out

    def _indices(self, rng: Random, scale: int, known: dict[Basic, int], high: float) -> dict[Basic, int] | None:
        open_ = [s for s in self.indices if s not in known]
        # what a cut is at comes first: it is limited by cuts only once it is known
        for s in sorted(rng.sample(open_, len(open_)), key=lambda s: s not in self.places):
            found = [b.limit(s, known) for b in self.bounds]
            lowest = [0] if s in self.natural else []
            lo = max([x for x, _ in found if x is not None] + lowest, default=-2)
            hi = min([x for _, x in found if x is not None] + [max(scale, lo)])
            if hi < lo:
                return None
            known[s] = hi if rng.random() < high else rng.randint(lo, hi)
        return known if holds(self.where, known) else None


def _size(rng: Random, largest: int) -> int:
    sizes = [n for n in SIZE_WEIGHTS if n <= largest]
    return rng.choices(sizes, [SIZE_WEIGHTS[n] for n in sizes])[0]


def shape_of(statement: fm.Statement) -> Shape:
    """The free symbols of a statement, sorted by how they are used."""
    formulas = [statement.conclusion, *(a.formula for a in statement.assumptions)]
    free = frozenset(s for p in (*formulas, statement.where) for s in k.free(p) if isinstance(s, Symbol))
    cuts = frozenset(c for p in (*formulas, statement.where) for c in k.walk(p) if isinstance(c, k.Cut))
    natural = frozenset().union(*[_size_symbols(p) for p in formulas]) & free
    used = frozenset().union(*[_index_symbols(p) for p in formulas]) | statement.where.free_symbols
    by_name = sorted(free, key=str)
    return Shape(
        tuple(s for s in by_name if s not in used),
        tuple(s for s in by_name if s in used),
        natural,
        statement.where,
        tuple(_bound(cast(Expr, e)) for e in statement.where.args if _affine(cast(Expr, e))),
        statement.cuts,
        frozenset(s for c in cuts for s in c.free_symbols),
        frozenset(c for c in cuts if c.free_symbols <= free),
    )


def _affine(e: Expr) -> bool:
    e = e.xreplace({c: sympy.Dummy() for c in e.atoms(k.Cut)})
    return bool(sympy.Poly(e, *e.free_symbols).total_degree() <= 1) if e.free_symbols else False


def _bound(e: Expr) -> Bound:
    found: dict[Any, Any] = dict(sympy.expand(e).as_coefficients_dict())
    constant = int(found.pop(sympy.Integer(1), 0))
    return Bound({s: int(c) for s, c in found.items()}, constant)
