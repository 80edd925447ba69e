"""Affine index expressions, and what inequalities between integers imply.

Everything here answers soundly and may be incomplete: ``implied`` says True only where the inequality
follows; where it cannot tell it says False.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from math import gcd

import sympy
from sympy import Expr, Symbol


class NotAffine(ValueError):
    """An index expression is not affine with integer coefficients."""


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

    @property
    def names(self) -> frozenset[str]:
        return frozenset(s for s, _ in self.terms)

    @property
    def is_const(self) -> bool:
        return not self.terms

    def subs(self, m: Mapping[str, Affine]) -> Affine:
        if not any(s in m for s, _ in self.terms):
            return self
        out = Affine((), self.const)
        for s, c in self.terms:
            out = out + (m[s].scale(c) if s in m else Affine(((s, c),)))
        return out

    def __str__(self) -> str:
        return " + ".join([f"{c}*{s}" for s, c in self.terms] + [str(self.const)])


def affine(coefficients: Mapping[str, int], const: int = 0) -> Affine:
    """An affine expression from its coefficients."""
    return Affine(tuple(sorted((s, c) for s, c in coefficients.items() if c)), const)


def name(s: str) -> Affine:
    """The affine expression that is one symbol."""
    return Affine(((s, 1),))


@cache
def read(e: Expr) -> Affine:
    """A SymPy index expression as an affine one. Raises NotAffine."""
    const, rest = sympy.expand(e).as_coeff_Add()
    out: dict[str, int] = {}
    for part in sympy.Add.make_args(rest):
        if part == 0:
            continue
        c, s = part.as_coeff_Mul()
        # one name, one symbol: a second symbol of this name with other assumptions would be taken for it
        if not (isinstance(s, Symbol) and s == Symbol(s.name, integer=True) and c.is_Integer):
            raise NotAffine(f"{e} is not affine with integer coefficients in integer symbols")
        out[s.name] = int(c)
    if not const.is_Integer:
        raise NotAffine(f"{e} is not affine with integer coefficients in integer symbols")
    return affine(out, int(const))


def write(a: Affine) -> Expr:
    """The SymPy expression of an affine one."""
    return sympy.Add(*[c * Symbol(s, integer=True) for s, c in a.terms], sympy.Integer(a.const))


Guards = frozenset[Affine]


def _tight(e: Affine) -> Affine:
    """The strongest integer form of e >= 0: coefficients divided by their gcd, the constant rounded down."""
    g = reduce(gcd, (c for _, c in e.terms), 0)
    return e if g <= 1 else Affine(tuple((s, c // g) for s, c in e.terms), e.const // g)


@cache
def feasible(guards: Guards) -> bool:
    """False only if no integers satisfy every e >= 0 (Fourier-Motzkin with integer tightening)."""
    live = {_tight(e) for e in guards}
    while True:
        if any(e.is_const and e.const < 0 for e in live):
            return False
        live = _strongest(e for e in live if not e.is_const)
        if not live:
            return True
        live = _eliminate(live)


def _strongest(live: Iterable[Affine]) -> set[Affine]:
    best: dict[tuple[tuple[str, int], ...], int] = {}
    for e in live:
        best[e.terms] = min(e.const, best.get(e.terms, e.const))
    return {Affine(t, c) for t, c in best.items()}


def _eliminate(live: set[Affine]) -> set[Affine]:
    count: dict[str, list[int]] = {}
    for e in live:
        for s, c in e.terms:
            count.setdefault(s, [0, 0])[c > 0] += 1
    v = min(sorted(count), key=lambda s: count[s][0] * count[s][1])
    below = [e for e in live if e.coefficient(v) > 0]
    above = [e for e in live if e.coefficient(v) < 0]
    out = {e for e in live if not e.coefficient(v)}
    for lo in below:
        for hi in above:
            out.add(_tight(lo.scale(-hi.coefficient(v)) + hi.scale(lo.coefficient(v))))
    return out


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
