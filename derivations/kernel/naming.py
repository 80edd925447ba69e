"""What recursions and named terms are called in print, and what the names stand for.

Everything that is printed together shares one ``Names``: there, different things have different names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

from sympy import Basic, Expr, Symbol, Tuple

from .formulas import Assumption, Equation, Formula, Statement
from .terms import PRIME, Apply, Cond, Eye, Named, Rec, ShapeError, Term, Var, Zero, free, index, substitute, unnamed, walk

Bound: TypeAlias = frozenset[Basic]
TIMES = ("t", "n", "s", "m", "r", "i", "j", "l")  # names for the index of a definition


@dataclass(frozen=True)
class Called:
    """How a member of a recursion or a named term is written: its name, subscripts, and what stands in parentheses."""

    name: str
    subscripts: tuple[Any, ...]
    arguments: tuple[Basic, ...]

    @property
    def form(self) -> tuple[str, int, int]:
        return self.name, len(self.subscripts), len(self.arguments)

    def primed(self, n: int) -> Called:
        head, bar, suffix = self.name.partition("_")
        return Called(f"{head}{chr(39) * n}{bar}{suffix}", self.subscripts, self.arguments)


@dataclass(frozen=True)
class Definition:
    """What a name stands for: the start and the update of a recursion, or one equation."""

    equations: tuple[Equation, ...]


def basics(x: Any) -> tuple[Basic, ...]:
    """The parts of something printable that are terms, formulas, conditions or indices."""
    if isinstance(x, Statement):
        return (x.conclusion, x.where, *[a.formula for a in x.assumptions])
    return (x.formula,) if isinstance(x, Assumption) else (x,) if isinstance(x, Basic) else ()


class Names:
    """The names in what is printed together; the first of two things of one name keeps it, the second gets a prime."""

    def __init__(self, parts: Iterable[Any] = ()) -> None:
        found = _Found.of(parts)
        self._hidden = found.hidden
        self._families: dict[Basic, tuple[str, Rec]] = {}
        self._labels: dict[Named, tuple[str, Named]] = {}
        self._taken = set(found.atoms)
        for rec in found.recs:
            if family(rec)[0] not in self._families:
                self._families[family(rec)[0]] = (self._free_name(_plainly(rec)), rec)
        labels = _Labels(self._free_name)
        for node in sorted(found.named, key=_specialty):
            self._labels[node] = labels.name(node)

    def _free_name(self, called: Called) -> str:
        n = next(n for n in range(len(self._taken) + 1) if called.primed(n).form not in self._taken)
        self._taken.add(called.primed(n).form)
        return called.primed(n).name

    def called(self, x: Rec | Named) -> Called | None:
        """How a node is written; None for a named term whose label would hide a bound index."""
        if isinstance(x, Named) and x in self._hidden:
            return None
        plain = _plainly(x)
        return Called(self._known(x)[0], plain.subscripts, plain.arguments)

    def definitions(self, parts: Iterable[Any]) -> tuple[Definition, ...]:
        """What the names in some of the parts stand for, in the order in which a reader meets them."""
        return tuple(dict.fromkeys(Definition(defining(self._known(x)[1])) for x in _Found.of(parts).all))

    def _known(self, x: Rec | Named) -> tuple[str, Rec | Named]:
        """The name of a node, and the node that defines it."""
        if isinstance(x, Rec):
            return self._families.get(family(x)[0], (x.name, x))
        return self._labels.get(x, (x.label, x))


def _plainly(x: Rec | Named) -> Called:
    if isinstance(x, Rec):
        return Called(x.name, (x.at,), family(x)[1])
    subscripts = tuple(a for a in x.arguments if not isinstance(a, Term))
    return Called(x.label, subscripts, tuple(a for a in x.arguments if isinstance(a, Term)))


# recursions


@lru_cache(maxsize=1 << 12)
def family(x: Rec) -> tuple[Basic, tuple[Symbol, ...]]:
    """The recursion as a function of the indices that it captures, and those indices."""
    whole = cast(Rec, unnamed(x.moved(0)))
    captured = tuple(dict.fromkeys(_indices(whole, frozenset())))
    places = {s: index(f"{PRIME}{n}") for n, s in enumerate(captured)}
    return cast(Basic, substitute(whole, places)), captured


def _indices(x: Basic, bound: Bound) -> Iterator[Symbol]:
    """The free symbols that are used other than as a size."""
    if isinstance(x, Expr) and not isinstance(x, Term):
        yield from sorted(cast("set[Symbol]", x.free_symbols - bound), key=str)
    elif isinstance(x, (Var, Apply)):
        yield from _indices(x.args[1], bound)
    elif not isinstance(x, (Zero, Eye)):
        for a, inside in _scopes(x, bound):
            yield from _indices(a, inside)


def _scopes(x: Basic, bound: Bound) -> Iterator[tuple[Basic, Bound]]:
    """The arguments of a node, without what it binds, and what is bound around each."""
    binds = getattr(x, "binds", {})
    for n, a in enumerate(x.args):
        if n not in binds:
            yield a, bound | {x.args[b] for b, scope in binds.items() if n in scope}


# named terms


def _specialty(x: Named) -> tuple[int, int]:
    """How far the arguments are from different symbols or variables, for which a definition is one for all."""
    repeated = len(x.arguments) - len(set(x.arguments))
    return repeated, sum(1 for a in x.arguments for _ in walk(a))


def _speaks_of(definition: Named, x: Named) -> Basic | None:
    """What the definition says that x is: its body for values of its symbols that give the arguments of x."""
    values: dict[Basic, Basic] = {}
    if definition.label != x.label or not _matches(definition.args[1], x.args[1], values):
        return None
    try:
        shown = [substitute(a, values) for a in definition.arguments]
        return cast(Basic, substitute(unnamed(definition.body), values)) if shown == list(x.arguments) else None
    except (TypeError, ShapeError):
        return None


def _matches(pattern: Basic, x: Basic, values: dict[Basic, Basic]) -> bool:
    """Collect values that may turn the pattern into x; whether they do is for the caller to see."""
    if isinstance(pattern, Symbol) or (isinstance(pattern, Var) and not pattern.indices):
        return values.setdefault(pattern, x) == x
    if pattern == x or (isinstance(pattern, Expr) and isinstance(x, Expr)):
        return True
    same = type(pattern) is type(x) and len(pattern.args) == len(x.args)
    return same and all(_matches(a, b, values) for a, b in zip(pattern.args, x.args, strict=True))


class _Labels:
    """Names for labels: under one name, no two definitions speak of one thing and say different things."""

    def __init__(self, free_name: Callable[[Called], str]) -> None:
        self._free_name = free_name
        self._defined: dict[str, list[Named]] = {}

    def name(self, x: Named) -> tuple[str, Named]:
        """The name of a node, and the node that defines it."""
        said = unnamed(x.body)
        for name, definitions in self._defined.items():
            found = [_speaks_of(d, x) for d in definitions]
            if definitions[0].label != x.label or _plainly(definitions[0]).form != _plainly(x).form:
                continue
            if all(f in (None, said) for f in found) and all(_speaks_of(x, d) in (None, unnamed(d.body)) for d in definitions):
                known = next((d for d, f in zip(definitions, found, strict=True) if f == said), x)
                if known is x:
                    definitions.append(x)
                return name, known
        name = self._free_name(_plainly(x))
        self._defined[name] = [x]
        return name, x


# what is found


def _is_time(x: Rec) -> bool:
    """Whether the index of a member can be that of the definition; a capital letter is a length."""
    return isinstance(x.at, Symbol) and x.at.name.islower() and x.at not in free(x.moved(0))


def defining(x: Rec | Named) -> tuple[Equation, ...]:
    """The equations that say what a name stands for."""
    if isinstance(x, Named):
        return (Equation(x, x.body),)
    spoken = free(x.moved(0))
    others = map(index, (*TIMES, *(f"t_{n}" for n in range(len(spoken)))))
    t = cast(Symbol, x.at) if _is_time(x) else next(s for s in others if s not in spoken)
    return Equation(x.moved(x.start), x.init), Equation(x.moved(t), x.step_at(t, x.moved(t - 1)))


class _Found:
    """The recursions and the named terms of some parts and of their definitions, in order."""

    def __init__(self) -> None:
        self.all: list[Rec | Named] = []
        self.hidden: set[Named] = set()
        self.atoms: set[tuple[str, int, int]] = set()
        self._seen: set[Named] = set()
        self._places: dict[Basic, int] = {}
        self._settled: dict[Basic, bool] = {}

    @staticmethod
    def of(parts: Iterable[Any]) -> _Found:
        out = _Found()
        nodes = [b for p in parts for b in basics(p)]
        if any(isinstance(n, (Rec, Named)) for b in nodes for n in walk(b)):
            for b in nodes:
                out._visit(b, frozenset())
        out.all = [x for x in out.all if x not in out.hidden]
        return out

    @property
    def recs(self) -> list[Rec]:
        return [x for x in self.all if isinstance(x, Rec)]

    @property
    def named(self) -> list[Named]:
        return [x for x in self.all if isinstance(x, Named)]

    def _visit(self, x: Basic, bound: Bound) -> None:
        if isinstance(x, Rec):
            self._recursion(x, bound)
        elif isinstance(x, Named):
            self._named(x, bound)
        elif isinstance(x, (Term, Formula, Cond, Tuple)):
            if isinstance(x, Var):
                self.atoms.add((x.name, len(x.indices), 0))
            if isinstance(x, Apply):
                self.atoms.add((x.name, 0, len(x.arguments)))
            for a, inside in _scopes(x, bound):
                self._visit(a, inside)

    def _recursion(self, x: Rec, bound: Bound) -> None:
        key = family(x)[0]
        # the index of the definition is the first one that stands free
        free_index = _is_time(x) and x.at not in bound
        if key in self._places and (self._settled[key] or not free_index):
            return
        self._settled[key] = free_index
        shown = x if free_index else x.moved(x.start)
        if key in self._places:
            self.all[self._places[key]] = shown
        else:
            self._places[key] = len(self.all)
            self.all.append(shown)
        start, update = defining(shown)
        for e in (start, update):
            self._visit(e, frozenset({cast(Rec, update.lhs).at}))

    def _named(self, x: Named, bound: Bound) -> None:
        shown = frozenset().union(*[free(a) for a in x.arguments])
        if (free(x.body) - shown) & bound:
            self.hidden.add(x)
            self._visit(x.body, bound)
            return
        if x not in self._seen:
            self._seen.add(x)
            self.all.append(x)
            # the body is printed in the definition, where nothing is bound
            self._visit(x.body, frozenset())
        self._visit(x.args[1], bound)
