"""Formulas: true, false, or None where balls cannot tell. None is never read as either."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sympy import Basic, Expr, Symbol

from ..kernel import formulas as fm
from ..kernel import terms as k
from .degrees import gap
from .errors import UnsupportedTerm
from .frame import TOP, Frame, Scope, condition_code, index_code
from .program import compiled
from .systems import Truth, Value

OPEN_END = (0, 1, 2, 5)


@dataclass(frozen=True)
class Outcome:
    """The truth of a formula, the two sides that decided it, and the radius of their enclosures."""

    holds: Truth
    lhs: Value = None
    rhs: Value | str = None
    radius: float = 0.0
    where: str = ""

    @property
    def sided(self) -> bool:
        return self.lhs is not None


def check(x: fm.Formula, f: Frame, scope: Scope = TOP) -> Outcome:
    """Evaluate a formula; EvaluationError where one of its terms has no value."""
    return RULES[type(x)](x, f, scope)


def _equation(x: fm.Equation, f: Frame, scope: Scope) -> Outcome:
    a, b = compiled(x.lhs, scope)(f), compiled(x.rhs, scope)(f)
    comparison = f.system.equal(a, b)
    return Outcome(comparison.holds, a, b, comparison.radius)


def _order(strict: bool) -> Callable[[Any, Frame, Scope], Outcome]:
    def rule(x: Any, f: Frame, scope: Scope) -> Outcome:
        a, b = compiled(x.lhs, scope)(f), compiled(x.rhs, scope)(f)
        return Outcome(f.system.less(a, b, strict), a, b)

    return rule


def _nonzero(x: fm.NonZero, f: Frame, scope: Scope) -> Outcome:
    if not cast(k.Term, x.args[0]).is_scalar_term:
        raise UnsupportedTerm(f"a scalar is zero or not, and {x.args[0]} is none")
    a = compiled(cast(k.Term, x.args[0]), scope)(f)
    return Outcome(f.system.nonzero(a), a, "not zero")


def _invertible(x: fm.Invertible, f: Frame, scope: Scope) -> Outcome:
    a = compiled(cast(k.Term, x.args[0]), scope)(f)
    return Outcome(f.system.invertible(a), a, "invertible")


def _all(parts: Iterator[Outcome]) -> Outcome:
    unknown: Outcome | None = None
    radius, last = 0.0, Outcome(True)
    for part in parts:
        if part.holds is False:
            return part
        unknown = part if part.holds is None else unknown
        radius, last = max(radius, part.radius), part
    return replace(last if unknown is None else unknown, radius=radius)


def _and(x: fm.And, f: Frame, scope: Scope) -> Outcome:
    return _all(check(cast(fm.Formula, a), f, scope) for a in x.args)


def _implies(x: fm.Implies, f: Frame, scope: Scope) -> Outcome:
    premise = check(cast(fm.Formula, x.args[0]), f, scope)
    if premise.holds is False:
        return Outcome(True)
    conclusion = check(cast(fm.Formula, x.args[1]), f, scope)
    if premise.holds is None:
        return conclusion if conclusion.holds is True else Outcome(None)
    f.seen.add((x, True))
    return conclusion


def _iff(x: fm.Iff, f: Frame, scope: Scope) -> Outcome:
    a, b = (check(cast(fm.Formula, p), f, scope) for p in x.args)
    if a.holds is None or b.holds is None:
        return Outcome(None, radius=max(a.radius, b.radius))
    f.seen.update({(x, a.holds), (x, b.holds)})
    return Outcome(a.holds == b.holds, str(a.holds), str(b.holds))


def _forall(x: fm.ForAll, f: Frame, scope: Scope) -> Outcome:
    body, i = cast(fm.Formula, x.args[0]), cast(Symbol, x.args[1])

    def part(n: int) -> Outcome:
        found = check(body, f, scope | {i})
        return replace(found, where=f"{i}={n}{', ' if found.where else ''}{found.where}")

    return _all(part(n) for n in f.each(i, _values(x, f)))


def _values(x: fm.ForAll, f: Frame) -> Sequence[int]:
    lo, end = index_code(cast(Expr, x.args[2]))(f.index), x.args[3].args
    return range(lo, index_code(cast(Expr, end[0]))(f.index) + 1) if end else [lo + n for n in OPEN_END]


RULES: dict[type, Callable[[Any, Frame, Scope], Outcome]] = {
    fm.Equation: _equation, fm.LessEqual: _order(False), fm.Less: _order(True), fm.NonZero: _nonzero,
    fm.Invertible: _invertible, fm.And: _and, fm.Implies: _implies, fm.Iff: _iff, fm.ForAll: _forall,
}  # fmt: skip


def identity(x: Basic) -> bool:
    """Whether a formula is made of equations alone, so that a random point of a field decides it."""
    parts = [a for a in x.args if isinstance(a, fm.Formula)]
    return isinstance(x, fm.Equation) or (isinstance(x, (fm.And, fm.ForAll)) and all(map(identity, parts)))


def degree(x: Basic, f: Frame, scope: Scope = TOP) -> int:
    """A bound on the degree of an identity, in a frame over Degrees; UnsupportedTerm for another formula."""
    if isinstance(x, fm.Equation):
        return gap(compiled(x.lhs, scope)(f), compiled(x.rhs, scope)(f))
    if isinstance(x, fm.And):
        return max((degree(a, f, scope) for a in x.args), default=0)
    if isinstance(x, fm.ForAll):
        i = cast(Symbol, x.args[1])
        return max((degree(x.args[0], f, scope | {i}) for _ in f.each(i, _values(x, f))), default=0)
    raise UnsupportedTerm(f"no degree bounds {type(x).__name__}")


def holds(condition: k.Cond, index: Mapping[Basic, int]) -> bool:
    """Whether a condition on indices holds at their values."""
    return condition_code(condition)(index)
