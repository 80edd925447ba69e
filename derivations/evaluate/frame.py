"""Frames: what the program of a term reads while it runs, and index expressions as functions of index values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from typing import Any, Protocol, cast

import sympy
from sympy import Basic, Expr, Symbol

from ..kernel import terms as k
from .errors import Undefined, UnsupportedTerm
from .systems import System, Value

Index = Callable[[Mapping[Basic, int]], int]
Scope = frozenset[Basic]
TOP: Scope = frozenset()


class Atoms(Protocol):
    """Where the values of atoms and of uninterpreted functions come from."""

    def atom(self, name: str, indices: tuple[int, ...], rows: int, cols: int, field: str) -> Value: ...

    def function(self, name: str, arguments: list[Value], rows: int, cols: int, field: str) -> Value: ...


class Frame:
    """The state of one evaluation: index values, bound variables, and what has been computed.

    ``kept`` holds values, and lists of partial ones, by the term and the index values that they depend on; frames
    over the same atoms and sizes may share it.
    """

    __slots__ = ("analytic", "atoms", "bound", "index", "kept", "seen", "steps", "system")

    def __init__(self, system: System, atoms: Atoms, index: Mapping[Basic, int], kept: dict[Any, Any] | None = None) -> None:
        self.system = system
        self.atoms = atoms
        self.index: dict[Basic, int] = dict(index)
        self.bound: dict[Basic, Value] = {}
        self.analytic: frozenset[Basic] = frozenset()
        self.kept: dict[Any, Any] = {} if kept is None else kept
        self.seen: set[tuple[Basic, bool]] = set()
        self.steps = 0

    def each(self, i: Symbol, values: Sequence[int]) -> Iterator[int]:
        """Bind an index to each value in turn, and to what it was afterwards."""
        before = self.index.get(i)
        self.steps += len(values)
        try:
            for n in values:
                self.index[i] = n
                yield n
        finally:
            if before is None:
                self.index.pop(i, None)
            else:
                self.index[i] = before

    @contextmanager
    def binding(self, values: Mapping[Basic, Value], analytic: frozenset[Basic]) -> Iterator[None]:
        """Bind variables; ``analytic`` are those that vary in the complex plane meanwhile."""
        saved, saved_analytic = self.bound, self.analytic
        self.bound, self.analytic = {**saved, **values}, analytic
        try:
            yield
        finally:
            self.bound, self.analytic = saved, saved_analytic


Code = Callable[[Frame], Value]


@lru_cache(maxsize=1 << 14)
def cut(name: str, at: int) -> Basic:
    """One cut, the same object each time: index values are found by it fast."""
    return k.Cut(name, at)


@lru_cache(maxsize=1 << 14)
def index_code(e: Expr) -> Index:
    """An index expression as a function of the index values; Undefined at one that has none."""
    constant, symbols, others = 0, [], []
    for monomial, coefficient in sympy.expand(e).as_coefficients_dict().items():
        if not coefficient.is_Integer:
            raise UnsupportedTerm(f"the index expression {e} has a coefficient that is no integer")
        if monomial == 1:
            constant = int(coefficient)
        elif isinstance(monomial, Symbol):
            symbols.append((int(coefficient), monomial))
        else:
            others.append((int(coefficient), _monomial(monomial)))

    def run(values: Mapping[Basic, int]) -> int:
        total = constant
        try:
            for c, s in symbols:
                total += c * values[s]
        except KeyError as error:
            raise Undefined(f"the index {error.args[0]} has no value") from None
        for c, m in others:
            total += c * m(values)
        return total

    return run if symbols or others else lambda values: constant


def _monomial(e: Expr) -> Index:
    if isinstance(e, k.Cut):
        return _cut(e.name, index_code(e.at))
    if isinstance(e, sympy.Pow) and e.exp.is_Integer and e.exp > 0:
        base, n = index_code(e.base), int(e.exp)
        return lambda values: base(values) ** n
    if isinstance(e, sympy.Mul):
        factors = [index_code(a) for a in e.args]
        return lambda values: reduce(lambda x, y: x * y, [f(values) for f in factors])
    raise UnsupportedTerm(f"{e} is no polynomial index expression")


def _cut(family: str, at: Index) -> Index:
    def run(values: Mapping[Basic, int]) -> int:
        n = at(values)
        try:
            return values[cut(family, n)] if n else 0
        except KeyError as error:
            raise Undefined(f"the index {error.args[0]} has no value") from None

    return run


def size_code(x: k.Term) -> Callable[[Mapping[Basic, int]], tuple[int, int]]:
    """The shape of a term as a function of the index values; an empty range has size 0."""
    if all(e.is_Integer for e in x.shape):
        fixed = (max(0, int(x.shape[0])), max(0, int(x.shape[1])))
        return lambda values: fixed
    rows, cols = (index_code(e) for e in x.shape)
    return lambda values: (max(0, rows(values)), max(0, cols(values)))


def condition_code(c: k.Cond) -> Callable[[Mapping[Basic, int]], bool]:
    """Whether every expression of a condition is non-negative."""
    parts = [index_code(cast(Expr, e)) for e in c.args]
    return lambda values: all(p(values) >= 0 for p in parts)
