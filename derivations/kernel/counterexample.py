"""The kernel's own look at a counterexample: the statement at one point, exactly or by disjoint enclosures.

Truth has three values. An equation is true only between exact values, and false only where exact values differ or
enclosures are disjoint; None is never read as either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from sympy import Symbol

from . import formulas as fm
from . import terms as tm
from .dense import equal, invertible
from .enclosures import NoValue, Number, Truth, Undecided, below, precision
from .formulas import Formula, Statement
from .pointwise import Effort, Key, Point, Rows, Table, number, value

EFFORTS = (Effort(64, 4, 2), Effort(128, 10, 4))
OPEN_END = 5  # an open range is looked at for this many values at least, and for every index on record


def refuted_by(statement: Statement, sizes: Mapping[str, int], values: Mapping[Key, Rows]) -> str:
    """Empty if at this point every assumption and index condition holds and the conclusion is false, else why not.

    ``sizes`` are the values of the free symbols by name; ``values`` those of the atoms, by name and indices: rows
    of rational numbers, or of pairs of them. An atom without a value takes the one that an assumption's model
    (``solve``) gives; without one there is no refutation. An assumption over an open range has to hold from its
    lower end to the largest index on record, and at OPEN_END values at least; that such a point can be continued
    beyond is not looked at.
    """
    statement = fm.plain(statement)
    rules = tuple((v, tm.lift(t)) for a in statement.assumptions for v, t in a.solve.items())
    reason = ""
    for effort in EFFORTS:
        with precision(effort.bits):
            point = Point(Table(sizes, values, rules, effort))
            try:
                return _look(statement, point)
            except Undecided as e:
                reason = f"undecided at this point: {e}"
            except NoValue as e:
                return str(e)
    return reason


def _look(statement: Statement, p: Point) -> str:
    if not p.holds(statement.where):
        return "the point is outside the index conditions"
    for family in statement.cuts:
        if not _ordered(family, p.table.sizes):
            return f"the cuts {family.name} are not in order at this point"
    for a in statement.assumptions:
        if not _decided(_assumed(a.formula, p), f"the assumption {a.name}"):
            return f"the assumption {a.name} does not hold at this point"
    return "the conclusion holds at this point" if _decided(truth(statement.conclusion, p), "the conclusion") else ""


def _ordered(family: tm.Cuts, sizes: Mapping[str, int]) -> bool:
    """Whether the cuts on record are the first ones of some family: 0 <= b_1 <= ... <= b_n."""
    count = sum(name.startswith(f"{family.name}[") for name in sizes)
    values = [0, *[sizes.get(str(family[n]), -1) for n in range(1, count + 1)]]
    return values == sorted(values)


def _decided(found: Truth, what: str) -> bool:
    if found is None:
        raise Undecided(f"the enclosures do not decide {what}")
    return found


def truth(x: Formula, p: Point) -> Truth:
    """Whether a formula holds at a point. Raises NoValue where one of its terms certainly has no value."""
    return RULES[type(x)](x, p)


def _atomic(decide: Callable[[Any, Point], Truth]) -> Callable[[Any, Point], Truth]:
    def rule(x: Any, p: Point) -> Truth:
        try:
            return decide(x, p)
        except Undecided:
            return None

    return rule


def _order(strict: bool) -> Callable[[Any, Point], Truth]:
    return _atomic(lambda x, p: below(cast(Number, number(x.lhs, p)), cast(Number, number(x.rhs, p)), strict))


def _all(parts: Iterable[Truth]) -> Truth:
    """The conjunction; nothing is looked at after a part that is false."""
    found: Truth = True
    for part in parts:
        if part is False:
            return False
        found = None if part is None else found
    return found


def _implies(x: fm.Implies, p: Point) -> Truth:
    premise = truth(cast(Formula, x.args[0]), p)
    if premise is False:
        return True
    conclusion = truth(cast(Formula, x.args[1]), p)
    return conclusion if premise is True or conclusion is True else None


def _iff(x: fm.Iff, p: Point) -> Truth:
    a, b = (truth(cast(Formula, part), p) for part in x.args)
    return None if a is None or b is None else a == b


def _each(x: fm.ForAll, p: Point, judge: Callable[[Formula, Point], Truth]) -> Iterator[Truth]:
    body, i, lo, end = cast("tuple[Formula, Symbol, Any, Any]", x.args)
    span = p.range(lo, end.args[0]) if end.args else _opened(p.integer(lo), p)
    return (judge(body, p.at(i, n)) for n in span)


def _opened(lo: int, p: Point) -> range:
    on_record = [*p.table.sizes.values(), *[n for _, at in p.table.values for n in at]]
    return range(lo, max([lo + OPEN_END, *on_record]) + 1)


def _forall(x: fm.ForAll, p: Point) -> Truth:
    """Over an open range one failure is enough to be false, and nothing is enough to be true."""
    found = _all(_each(x, p, truth))
    return found if x.args[3].args else (None if found is True else found)


def _assumed(x: Formula, p: Point) -> Truth:
    """A hypothesis, where an open range is looked at as far as the point goes."""
    if isinstance(x, fm.And):
        return _all(_assumed(cast(Formula, a), p) for a in x.args)
    return _all(_each(x, p, _assumed)) if isinstance(x, fm.ForAll) else truth(x, p)


RULES: dict[type, Callable[[Any, Point], Truth]] = {
    fm.Equation: _atomic(lambda x, p: equal(value(x.lhs, p), value(x.rhs, p))),
    fm.LessEqual: _order(False),
    fm.Less: _order(True),
    fm.NonZero: _atomic(lambda x, p: invertible(value(x.args[0], p))),
    fm.Invertible: _atomic(lambda x, p: invertible(value(x.args[0], p))),
    fm.And: lambda x, p: _all(truth(a, p) for a in x.args),
    fm.Implies: _implies,
    fm.Iff: _iff,
    fm.ForAll: _forall,
}
