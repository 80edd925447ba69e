"""A statement at one point: its assumptions and its conclusion."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Basic

from ..kernel import formulas as fm
from .environment import Environment
from .logic import Outcome, check


@dataclass(frozen=True)
class Point:
    """A point that satisfies the assumptions, and what the conclusion was found to be there.

    ``seen`` are the truth values that premises and the sides of equivalences had; ``steps`` counts the work.
    """

    environment: Environment
    outcome: Outcome
    seen: frozenset[tuple[Basic, bool]]
    steps: int


def evaluated(statement: fm.Statement, e: Environment) -> Point | None:
    """The statement at the values of an environment; None where an assumption does not certainly hold.

    Raises EvaluationError where a term has no value.
    """
    frame = e.frame()
    with e.system.context():
        if not all(check(a.formula, frame).holds is True for a in statement.assumptions):
            return None
        outcome = check(statement.conclusion, frame)
    return Point(e, outcome, frozenset(frame.seen), frame.steps + e.steps)
