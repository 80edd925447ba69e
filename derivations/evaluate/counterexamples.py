"""Counterexamples: found by a search that tries small sizes and plain numbers first, and evaluated again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any

from sympy import Basic, Symbol

from ..kernel import formulas as fm
from ..kernel import terms as k
from .balls import ARB, Balls
from .drawing import Limits, Shape, exact_fit, limits, shape_of
from .environment import Environment, Key, Pool, choice, rules_of
from .errors import EvaluationError, UnsupportedTerm
from .frame import cut
from .logic import holds
from .points import evaluated
from .systems import Number, Numbers, System

HALF = Fraction(1, 2)
POOLS: tuple[Pool, ...] = (
    choice(1),
    choice(0, 1),
    choice(0, 1, 1, 2),
    choice(-1, 0, 1, 2),
    choice(-2, -1, -HALF, HALF, 1, 2),
    choice(-2, -1, -HALF, 0, HALF, 1, 2),
)
SHRINKS = 200
BALL_SHARE = 8
ROUGH = Balls(64)  # where points are looked for first; a point that is found is one in full precision


@dataclass(frozen=True)
class Counterexample:
    """A point where the assumptions hold and the conclusion does not.

    ``values`` holds every atom that the statement asks for: its name and indices, and its rows of rational
    numbers (pairs of them if complex). ``lhs`` and ``rhs`` are the two sides, or the formula that fails.
    """

    sizes: tuple[tuple[str, int], ...]
    values: tuple[tuple[Key, Numbers], ...]
    lhs: str
    rhs: str
    system: str
    where: str = ""

    @property
    def kind(self) -> str:
        """enclosed if the two sides are disjoint balls, else exact."""
        return "enclosed" if self.system.startswith(ARB) else "exact"

    def __str__(self) -> str:
        sizes = ", ".join(f"{n.replace('[', '_').rstrip(']')}={v}" for n, v in self.sizes)
        values = ", ".join(f"{_atom(key)}={_matrix(m)}" for key, m in self.values)
        at = f" at {self.where}" if self.where else ""
        return f"{': '.join(x for x in (sizes, values) if x)}{at}: lhs = {self.lhs}, rhs = {self.rhs}"

    def to_dict(self) -> dict[str, Any]:
        """The counterexample as plain JSON data."""
        values = [{"name": key[0], "indices": list(key[1]), "rows": [[_plain(x) for x in r] for r in m]} for key, m in self.values]
        return {
            "sizes": dict(self.sizes), "values": values, "lhs": self.lhs, "rhs": self.rhs,
            "system": self.system, "where": self.where,
        }  # fmt: skip


def _order(item: tuple[Basic, int]) -> tuple[str, int]:
    """By name; the cuts of a family by their places."""
    x, _ = item
    return (x.name, int(x.at)) if isinstance(x, k.Cut) else (str(x), 0)


def _atom(key: Key) -> str:
    return "_".join([key[0], ",".join(map(str, key[1]))]) if key[1] else key[0]


def _number(x: Number) -> str:
    return f"{x[0]}+{x[1]}i" if isinstance(x, tuple) else str(x)


def _plain(x: Number) -> str | list[str]:
    return [str(x[0]), str(x[1])] if isinstance(x, tuple) else str(x)


def _matrix(m: Numbers) -> str:
    rows = [[_number(x) for x in r] for r in m]
    if len(m) == 1 and len(m[0]) == 1:
        return rows[0][0]
    if all(len(r) == 1 for r in rows):
        return f"[{', '.join(r[0] for r in rows)}]"
    return f"[{', '.join('[' + ', '.join(r) + ']' for r in rows)}]"


def counterexample(statement: fm.Statement, e: Environment) -> Counterexample | None:
    """The point as a counterexample if it is one, else None; EvaluationError where a term has no value."""
    point = evaluated(statement, e)
    if point is None or point.outcome.holds is not False:
        return None
    outcome = point.outcome
    asked = {key: m for key, v in e.asked.items() if (m := e.system.numbers(v)) is not None}
    values = asked if len(asked) == len(e.asked) else e.used
    with e.system.context():
        lhs, rhs = (x if isinstance(x, str) else e.system.text(x) for x in (outcome.lhs, outcome.rhs))
    return Counterexample(
        tuple((str(s), n) for s, n in sorted(e.index.items(), key=_order)),
        tuple(sorted(values.items(), key=lambda item: item[0])),
        lhs, rhs, e.system.name, outcome.where,
    )  # fmt: skip


def refute(statement: fm.Statement, *, seed: int = 0, tries: int = 2000, at: Mapping[Any, Any] | None = None) -> Counterexample | None:
    """Search for a point where the assumptions hold and the conclusion is false, exactly or by disjoint balls.

    ``at`` fixes sizes and indices (by symbol or name) and values (by ``Var`` or ``(name, indices)``: a number, a
    column, rows, or a term in the pattern's indices); what it leaves open is searched. None if nothing was found;
    EvaluationError if the statement cannot be evaluated, KeyError if ``at`` names no symbol of the statement.
    """
    statement = fm.plain(statement)
    system = exact_fit(statement)
    tries = tries // BALL_SHARE if isinstance(system, Balls) else tries
    fixed = _Fixed.of(statement, at or {})
    for coarse in (ROUGH, system) if isinstance(system, Balls) else (system,):
        search = _Search(statement, coarse, fixed)
        for n in range(tries):
            e = search.point(Random(f"{seed}:{n}"), n, tries)
            found = None if e is None else _attempt(statement, e)
            sure = None if found is None else _attempt(statement, search.again(search.shrunk(found), system))
            if sure is not None:
                return sure
    return None


def _attempt(statement: fm.Statement, e: Environment) -> Counterexample | None:
    try:
        return counterexample(statement, e)
    except UnsupportedTerm:
        raise
    except EvaluationError:
        return None


@dataclass(frozen=True)
class _Fixed:
    """What the caller has fixed: indices, values and rules."""

    index: Mapping[Symbol, int]
    values: Mapping[Key, Any]
    rules: Mapping[Any, Any]

    @staticmethod
    def of(statement: fm.Statement, at: Mapping[Any, Any]) -> _Fixed:
        shape = shape_of(statement)
        symbols = {str(s): s for s in (*shape.sizes, *shape.indices)}
        index: dict[Symbol, int] = {}
        values: dict[Key, Any] = {}
        rules: dict[Any, Any] = {}
        for key, value in at.items():
            if isinstance(key, (str, Symbol)):
                index[symbols[str(key)]] = int(value)
            elif isinstance(key, tuple):
                values[key[0], tuple(map(int, key[1]))] = value
            elif isinstance(value, k.Term) or any(e.free_symbols for e in key.indices):
                rules[key] = value
            else:
                values[key.name, tuple(int(e) for e in key.indices)] = value
        return _Fixed(index, values, rules)

    def holds(self, key: Key) -> bool:
        """Whether the caller has fixed an atom's value."""
        return key in self.values or any(v.name == key[0] for v in self.rules)


class _Search:
    def __init__(self, statement: fm.Statement, system: System, fixed: _Fixed) -> None:
        self.statement = statement
        self.system = system
        self.fixed = fixed
        self.shape: Shape = shape_of(statement)
        self.limits: Limits = limits(statement, system)

    def point(self, rng: Random, n: int, tries: int) -> Environment | None:
        """The n-th point of the search, larger sizes and richer numbers later."""
        largest = min(self.limits.length, 6)
        scale = (largest + 1) * n // tries
        size = max(1, min(scale, self.limits.size)) if n % 2 else None
        bounds = Limits(largest, max(1, min(scale + 1, self.limits.size)))
        index = self.shape.draw(rng, bounds, scale, size=size, fixed=self.fixed.index)
        if index is None:
            return None
        return self._environment(index, self.fixed.values, rng.random(), POOLS[n % len(POOLS)])

    def _environment(self, index: Mapping[Any, int], values: Any, seed: object, pool: Pool | None) -> Environment:
        rules = rules_of([self.fixed.rules, *(a.solve for a in self.statement.assumptions)])
        return Environment(self.system, index, seed=seed, pool=pool, values=values, rules=rules)

    def shrunk(self, found: Counterexample) -> Counterexample:
        """Fewer cuts, fewer and plainer numbers, as long as the point stays a counterexample."""
        for family in self.shape.cuts:
            while (fewer := self._without_last(found, family)) is not None:
                found = fewer
        budget = SHRINKS
        for simple in (0, 1):
            for key, entry in _entries(found, simple):
                if budget == 0 or self.fixed.holds(key):
                    continue
                budget -= 1
                smaller = _attempt(self.statement, self.again(_replaced(found, key, entry, simple)))
                found = smaller or found
        return found

    def _without_last(self, c: Counterexample, family: k.Cuts) -> Counterexample | None:
        """Without the last cut on record, if the point does not ask for it."""
        last = str(family[len(_recorded(family, dict(c.sizes)))])
        shorter = replace(c, sizes=tuple(x for x in c.sizes if x[0] != last))
        return _attempt(self.statement, self.again(shorter)) if shorter != c and self._inside(shorter) else None

    def _inside(self, c: Counterexample) -> bool:
        """Whether the conditions on the indices hold, and ask for no cut that is not on record."""
        try:
            return holds(self.statement.where, self.again(c).index)
        except EvaluationError:
            return False

    def again(self, c: Counterexample, system: System | None = None) -> Environment:
        """The recorded point, in the search's number system or another."""
        return again(self.statement, self.shape, c, system or self.system, self.fixed.rules)


def _entries(c: Counterexample, simple: int) -> Iterator[tuple[Key, tuple[int, int]]]:
    for key, m in c.values:
        for i, row in enumerate(m):
            for j, x in enumerate(row):
                if x not in (0, simple):
                    yield key, (i, j)


def _replaced(c: Counterexample, key: Key, entry: tuple[int, int], x: int) -> Counterexample:
    """With another number in one entry, if the point still asks for that atom."""

    def put(m: Numbers) -> Numbers:
        return tuple(tuple(x if (i, j) == entry else y for j, y in enumerate(r)) for i, r in enumerate(m))

    return replace(c, values=tuple((name, put(m) if name == key else m) for name, m in c.values))


def again(statement: fm.Statement, shape: Shape, c: Counterexample, system: System, rules: Mapping[Any, Any] | None = None) -> Environment:
    """An environment with the recorded values and no others. KeyError if a size is missing."""
    sizes = dict(c.sizes)
    index: dict[Any, int] = {s: sizes[str(s)] for s in (*shape.sizes, *shape.indices)}
    for family in shape.cuts:
        index |= _recorded(family, sizes)
    found = rules_of([rules or {}, *(a.solve for a in statement.assumptions)])
    return Environment(system, index, values=dict(c.values), rules=found)


def _recorded(family: k.Cuts, sizes: Mapping[str, int]) -> dict[Basic, int]:
    """The cuts of a family on record."""
    first = (cut(family.name, n) for n in range(1, len(sizes) + 1))
    return {c: sizes[str(c)] for c in first if str(c) in sizes}


def recheck(statement: fm.Statement, c: Counterexample) -> bool:
    """Whether the recorded values, evaluated again, satisfy the assumptions and break the conclusion."""
    statement = fm.plain(statement)
    try:
        e = again(statement, shape_of(statement), c, exact_fit(statement))
        for family in statement.cuts:
            ends = [0, *_recorded(family, dict(c.sizes)).values()]
            if ends != sorted(ends):
                return False
        return holds(statement.where, e.index) and counterexample(statement, e) is not None
    except (EvaluationError, KeyError):
        return False
