"""Affine index expressions, and what inequalities between integers imply.

Everything here answers soundly and may be incomplete: ``implied`` says True only where the inequality
follows; where it cannot tell it says False. A cut is one more unknown integer, under a name that knows its place:
substitution reaches inside, and where two places of a family are known to be ordered, the cuts there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from itertools import permutations
from math import gcd

import sympy
from sympy import Expr, Symbol

from .base import Cut


class NotAffine(ValueError):
    """An index expression is not affine with integer coefficients."""


class Place(str):
    """The name of a cut: its family, and where in it."""

    family: str
    at: Affine

    def __new__(cls, family: str, at: Affine) -> Place:
        if any(isinstance(s, Place) for s, _ in at.terms):
            raise NotAffine(f"the cut {family} at {at}: a cut at a cut is not read")
        # names of symbols and families hold no brackets: no two cuts, and no cut and symbol, share a name
        out = super().__new__(cls, f"{family}[{at}]")
        out.family, out.at = family, at
        return out


@dataclass(frozen=True, order=True)
class Affine:
    """``sum(coefficient * symbol) + const`` over integers; terms are sorted by name and never zero."""

    terms: tuple[tuple[str, int], ...] = ()
    const: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.const))

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other)
        out = dict(self.terms)
        for s, c in other.terms:
            out[s] = out.get(s, 0) + c
        return affine(out, self.const + other.const)

    def __neg__(self) -> Affine:
        return Affine(tuple((s, -c) for s, c in self.terms), -self.const)

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other)

    def scale(self, k: int) -> Affine:
        return Affine(tuple((s, k * c) for s, c in self.terms), k * self.const) if k else Affine()

    def coefficient(self, name: str) -> int:
        return next((c for s, c in self.terms if s == name), 0)

    @cached_property
    def names(self) -> frozenset[str]:
        """The symbols and cuts that occur, symbols in the places of cuts among them."""
        return frozenset(s for s, _ in self.terms) | self.placed

    @cached_property
    def placed(self) -> frozenset[str]:
        """The symbols in the places of cuts."""
        return frozenset(n for s, _ in self.terms if isinstance(s, Place) for n in s.at.names)

    @property
    def is_const(self) -> bool:
        return not self.terms

    @property
    def is_name(self) -> bool:
        """Whether it is one symbol or cut and nothing else."""
        return self.const == 0 and len(self.terms) == 1 and self.terms[0][1] == 1

    def subs(self, m: Mapping[str, Affine]) -> Affine:
        if not self.names & m.keys():
            return self
        out = Affine((), self.const)
        for s, c in self.terms:
            value = m[s] if s in m else cut(s.family, s.at.subs(m)) if isinstance(s, Place) else name(s)
            out = out + value.scale(c)
        return out

    def __str__(self) -> str:
        return " + ".join([f"{c}*{s}" for s, c in self.terms] + [str(self.const)])


def affine(coefficients: Mapping[str, int], const: int = 0) -> Affine:
    """An affine expression from its coefficients."""
    return Affine(tuple(sorted((s, c) for s, c in coefficients.items() if c)), const)


def name(s: str) -> Affine:
    """The affine expression that is one symbol or cut."""
    return Affine(((s, 1),))


def cut(family: str, at: Affine) -> Affine:
    """A cut as an affine expression: the one at 0 is 0. Raises NotAffine for a cut at a cut."""
    return name(Place(family, at)) if at.terms or at.const else Affine()


@cache
def read(e: Expr) -> Affine:
    """A SymPy index expression as an affine one. Raises NotAffine."""
    const, rest = sympy.expand(e).as_coeff_Add()
    out: dict[str, int] = {}
    for part in sympy.Add.make_args(rest):
        if part == 0:
            continue
        c, s = part.as_coeff_Mul()
        if isinstance(s, Cut) and c.is_Integer:
            out[Place(s.name, read(s.at))] = int(c)
            continue
        # one name, one symbol: a second symbol of this name with other assumptions would be taken for it
        if not (isinstance(s, Symbol) and s == Symbol(s.name, integer=True) and c.is_Integer):
            raise NotAffine(f"{e} is not affine with integer coefficients in integer symbols")
        out[s.name] = int(c)
    if not const.is_Integer:
        raise NotAffine(f"{e} is not affine with integer coefficients in integer symbols")
    return affine(out, int(const))


def write(a: Affine) -> Expr:
    """The SymPy expression of an affine one."""
    return sympy.Add(*[c * _written(s) for s, c in a.terms], sympy.Integer(a.const))


def _written(s: str) -> Expr:
    return Cut(s.family, write(s.at)) if isinstance(s, Place) else Symbol(s, integer=True)


Guards = frozenset[Affine]
Terms = tuple[tuple[str, int], ...]


def _tight(e: Affine) -> Affine:
    """The strongest integer form of e >= 0: coefficients divided by their gcd, the constant rounded down."""
    g = reduce(gcd, (c for _, c in e.terms), 0)
    return e if g <= 1 else Affine(tuple((s, c // g) for s, c in e.terms), e.const // g)


@cache
def feasible(guards: Guards) -> bool:
    """False only if no integers and no cuts satisfy every e >= 0."""
    return _feasible(guards | _ordered(guards))


def _ordered(guards: Guards) -> Guards:
    """What the guards imply of the cuts in them: 0 <= b_x <= b_y where 0 <= x <= y follows."""
    found = {s for g in guards for s, _ in g.terms if isinstance(s, Place)}
    places = [s for s in sorted(found) if _follows(guards, s.at)]
    pairs = [(x, y) for x, y in permutations(places, 2) if x.family == y.family and _follows(guards, y.at - x.at)]
    return frozenset({*map(name, places), *[name(y) - name(x) for x, y in pairs]})


def _follows(guards: Guards, e: Affine) -> bool:
    """Whether e >= 0 follows from the guards, whatever the cuts are."""
    return e.const >= 0 if e.is_const else not _feasible(guards | {-e - 1})


@cache
def _feasible(guards: Guards) -> bool:
    """False only if no integers satisfy every e >= 0, cuts taken for unknowns (Fourier-Motzkin with integer tightening)."""
    live: dict[Terms, int] = {}
    fine = all(_impose(live, e.terms, e.const) for e in guards)
    while fine and live:
        live, fine = _eliminate(live)
    return fine


def _impose(live: dict[Terms, int], terms: Terms, const: int) -> bool:
    """Add terms + const >= 0 in its strongest integer form; False if it says that a negative number is >= 0."""
    if not terms:
        return const >= 0
    g = gcd(*[c for _, c in terms])
    if g > 1:
        terms, const = tuple([(s, c // g) for s, c in terms]), const // g
    live[terms] = min(const, live.get(terms, const))
    return True


def _eliminate(live: Mapping[Terms, int]) -> tuple[dict[Terms, int], bool]:
    """Without one unknown: each lower bound of it is at most each upper bound; whether no contradiction shows."""
    count: dict[str, list[int]] = {}
    for terms in live:
        for s, c in terms:
            count.setdefault(s, [0, 0])[c > 0] += 1
    v = min(sorted(count), key=lambda s: count[s][0] * count[s][1])
    below: list[tuple[int, Terms, int]] = []
    above: list[tuple[int, Terms, int]] = []
    out: dict[Terms, int] = {}
    for terms, const in live.items():
        c = dict(terms).get(v, 0)
        if c:
            (below if c > 0 else above).append((abs(c), terms, const))
        else:
            out[terms] = const
    for a, lower, x in below:
        for b, upper, y in above:
            total = {s: b * c for s, c in lower}
            for s, c in upper:
                total[s] = total.get(s, 0) + a * c
            if not _impose(out, tuple(sorted([(s, c) for s, c in total.items() if c])), b * x + a * y):
                return out, False
    return out, True


def _strongest(live: Iterable[Affine]) -> set[Affine]:
    best: dict[Terms, int] = {}
    for e in live:
        best[e.terms] = min(e.const, best.get(e.terms, e.const))
    return {Affine(t, c) for t, c in best.items()}


@cache
def implied(guards: Guards, e: Affine) -> bool:
    """Whether e >= 0 follows from the guards, for integers."""
    if e.is_const:
        return e.const >= 0
    return not feasible(guards | {-e - 1})


def relevant(guards: Guards, names: frozenset[str]) -> Guards:
    """The guards that are connected to the given names."""
    reach, rest = set(names), set(guards)
    out: set[Affine] = set()
    while True:
        hit = {g for g in rest if g.names & reach}
        if not hit:
            return frozenset(out)
        out |= hit
        rest -= hit
        reach |= {s for g in hit for s in g.names}


@cache
def irredundant(guards: Guards, context: Guards) -> Guards:
    """An equivalent subset of the guards, given the context, without implied members."""
    kept = sorted(_strongest(_tight(g) for g in guards))
    for g in list(kept):
        rest = [h for h in kept if h != g]
        if implied(context | frozenset(rest), g):
            kept = rest
    return frozenset(kept)


@cache
def forced(guards: Guards, context: Guards, v: str) -> Affine | None:
    """The value of v if the guards determine it as an affine expression."""
    for g in sorted(guards):
        c = g.coefficient(v)
        if abs(c) == 1 and implied(context | guards, -g):
            return name(v) - g if c == 1 else g + name(v)
    return None
