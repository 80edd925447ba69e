"""Environments: the sizes, the number system, and a value for every atom, drawn when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, cast

import sympy
from sympy import Basic, Symbol

from ..kernel import terms as k
from .degrees import Degrees
from .errors import Undefined
from .frame import TOP, Frame, index_code
from .program import compiled
from .systems import MERSENNE, Number, Numbers, Real, System, Value

Key = tuple[str, tuple[int, ...]]
Pool = Callable[[Random], Real]
Rules = tuple[tuple[k.Var, k.Term], ...]


def uniform(rng: Random) -> Real:
    """A residue modulo 2^61 - 1."""
    return rng.randrange(MERSENNE)


def rational(rng: Random) -> Real:
    """A rational number; 0 and +-1 often enough to reach boundaries."""
    if rng.random() < 0.25:
        return rng.choice((0, 1, -1))
    return Fraction(rng.randint(-12, 12), rng.choice((1, 2, 3, 4, 5)))


def dyadic(rng: Random) -> Real:
    """A sixteenth between -2 and 2, exact as a ball."""
    return Fraction(rng.randint(-32, 32), 16)


def choice(*numbers: Real) -> Pool:
    """A pool of few numbers."""
    return lambda rng: rng.choice(numbers)


def numbers(value: Any, rows: int, cols: int) -> Numbers:
    """Rows of numbers, or a column, or one number, as rows of exact numbers; Undefined if the shape is another.

    A pair is a complex number where the shape asks for one number.
    """
    given = value.tolist() if hasattr(value, "tolist") else value
    for candidate in (lambda: given, lambda: [[x] for x in given], lambda: [[given]]):
        try:
            found = tuple(tuple(exact(x) for x in r) for r in candidate())
        except (TypeError, ValueError, OverflowError):
            continue
        if len(found) == rows and all(len(r) == cols for r in found):
            return found
    raise Undefined(f"{value!r} is no {rows} x {cols} matrix of numbers")


def exact(x: Any) -> Number:
    """A number as a rational, or as a pair of them: every float is a dyadic rational."""
    if type(x) is Fraction:
        return x
    if isinstance(x, tuple):
        re, im = x
        return (Fraction(re), Fraction(im))
    if isinstance(x, complex):
        return (Fraction(x.real), Fraction(x.imag))
    if isinstance(x, sympy.Rational):
        return Fraction(int(x.p), int(x.q))
    return Fraction(x)


@dataclass(frozen=True)
class Match:
    """A rule that gives an atom's value: the term, and the wildcards of its pattern."""

    term: k.Term
    wildcards: Mapping[Basic, int]


class Environment:
    """Values for the atoms of a statement.

    ``index`` gives the sizes and the free indices. An atom's value is taken from ``values``, else from a
    rule that matches it, else drawn from ``pool``, depending on ``seed`` and the atom alone. In a rule's
    pattern an index symbol that ``index`` knows stands for its value, any other for every integer.
    """

    def __init__(
        self,
        system: System,
        index: Mapping[Symbol, int],
        *,
        seed: object = 0,
        pool: Pool | None = None,
        values: Mapping[Key, Any] | None = None,
        rules: Rules = (),
    ) -> None:
        self.system = system
        self.index: dict[Basic, int] = dict(index)
        self.values = dict(values or {})
        self.rules = rules
        self.used: dict[Key, Numbers] = {}
        self.asked: dict[Key, Value] = {}
        self._seed = seed
        self._pool = pool
        self._known: dict[tuple[Any, ...], Value] = {}
        self._solving: list[Key] = []
        self._solved: dict[Any, Any] = {}
        self.steps = 0

    def frame(self) -> Frame:
        """A fresh frame over these values."""
        return Frame(self.system, self, self.index)

    def atom(self, name: str, indices: tuple[int, ...], rows: int, cols: int, field: str) -> Value:
        """The value of one atom; Undefined if there is none and nothing may be drawn."""
        full = (name, indices, rows, cols, field)
        if full not in self._known:
            self._known[full] = self._find(*full)
        if not self._solving and rows and cols:
            self.asked[name, indices] = self._known[full]
        return self._known[full]

    def _find(self, name: str, indices: tuple[int, ...], rows: int, cols: int, field: str) -> Value:
        key = (name, indices)
        if rows == 0 or cols == 0:
            return self.system.zeros(rows, cols)
        if key in self.values:
            self.used[key] = numbers(self.values[key], rows, cols)
            return self.system.of(rows, cols, self.used[key])
        match = self._match(name, indices)
        if match is not None:
            return self._solve(key, match)
        if isinstance(self.system, Degrees):
            return self.system.atom(rows, cols)
        if self._pool is None:
            raise Undefined(f"{name}{list(indices)} has no value")
        rng, pool = Random(repr((self._seed, key, rows, cols))), self._pool
        pair = field == "complex" and self.system.complex
        self.used[key] = tuple(tuple((pool(rng), pool(rng)) if pair else pool(rng) for _ in range(cols)) for _ in range(rows))
        return self.system.of(rows, cols, self.used[key])

    def _match(self, name: str, indices: tuple[int, ...]) -> Match | None:
        for pattern, term in self.rules:
            if pattern.name != name or len(pattern.indices) != len(indices):
                continue
            wildcards: dict[Basic, int] = {}
            for e, n in zip(pattern.indices, indices, strict=True):
                if isinstance(e, Symbol) and e not in self.index:
                    wildcards.setdefault(e, n)
            known = {**self.index, **wildcards}
            if all(index_code(e)(known) == n for e, n in zip(pattern.indices, indices, strict=True)):
                return Match(term, wildcards)
        return None

    def _solve(self, key: Key, match: Match) -> Value:
        if key in self._solving:
            raise Undefined(f"the rule for {key[0]}{list(key[1])} uses the atom itself")
        self._solving.append(key)
        frame = Frame(self.system, self, {**self.index, **match.wildcards}, self._solved)
        try:
            return compiled(match.term, TOP)(frame)
        finally:
            self._solving.pop()
            self.steps += frame.steps

    def function(self, name: str, arguments: list[Value], rows: int, cols: int, field: str) -> Value:
        """An uninterpreted function: a random cubic map, the same one for the same sizes of arguments.

        c + L x + (A x) (B x) (C x), entry by entry, with affine A, B, C.
        """
        s = self.system
        parts = [s.reshape(a, s.shape(a)[0] * s.shape(a)[1], 1) for a in arguments]
        x = s.block([[p] for p in (*parts, s.number(1))])
        n, out = s.shape(x)[0], rows * cols
        linear, *factors = [s.mul(self.atom(f"{name}#{i}", (n,), out, n, field), x) for i in range(4)]
        cubic = s.hadamard(s.hadamard(factors[0], factors[1]), factors[2])
        return s.reshape(s.add(linear, cubic), rows, cols)


def rules_of(given: Iterable[Mapping[Any, Any]]) -> Rules:
    """The rules of several mappings from atoms to terms; TypeError for another key."""
    found = [(v, cast(k.Term, k.unnamed(k.lift(t)))) for m in given for v, t in m.items()]
    for v, _ in found:
        if not isinstance(v, k.Var):
            raise TypeError(f"a rule gives the value of a Var, not of {v!r}")
    return tuple(found)
