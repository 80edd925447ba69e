"""What a reading relies on: conditions, proved equations as rewrite rules, and assumed theorems of analysis."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Symbol

from .affine import Guards
from .algebra import Normal
from .terms import Term


@dataclass(frozen=True)
class Condition:
    """Something a step relies on: ``kind`` is nonzero, positive, nonnegative or invertible, under index facts."""

    kind: str
    what: Normal
    facts: Guards
    text: str


@dataclass(frozen=True)
class Rule:
    """A proved equation used from left to right, for all values of ``params`` that satisfy ``where``."""

    label: str
    lhs: Term
    rhs: Term
    params: tuple[Symbol, ...] = ()
    where: Guards = frozenset()


@dataclass
class Trace:
    """What a reading relied on."""

    conditions: dict[str, Condition] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)
    assumed: set[str] = field(default_factory=set)
