"""Certificates: a statement evaluated at random sizes and values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import flint
from sympy import Basic, Symbol

from ..kernel import formulas as fm
from ..kernel import terms as k
from .balls import Balls
from .counterexamples import Counterexample, counterexample, refute
from .degrees import Degrees
from .drawing import Limits, Shape, fit, limits, shape_of
from .environment import Environment, Pool, dyadic, rational, rules_of, uniform
from .errors import EvaluationError, Singular, Undefined
from .frame import index_code
from .logic import degree, identity
from .points import Point, evaluated
from .systems import MERSENNE, Gaussian, Prime, System

SCALES = (0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
FIXED_SIZES = {3: 0, 4: 1, 5: 2}
ATTEMPTS = 60
PATIENCE = 20  # times the usual number of draws, at most, for a premise that holds rarely
STEPS = 60_000
BALL_STEPS = 20_000
ENOUGH = 8
PRECISIONS = (256, 512)
MEANINGFUL = 2.0**-20


@dataclass(frozen=True)
class Certificate:
    """What the evaluation of a statement found.

    ``holds`` is None where nothing can be said; ``reason`` then says why. ``draws`` were accepted and decided,
    ``rejected`` ones broke an assumption, ``singular`` ones left an operation's domain, ``undecided`` ones stayed
    so at every precision. ``failure_probability`` bounds the chance that one draw accepts a false identity.
    """

    holds: bool | None
    system: str
    draws: int = 0
    rejected: int = 0
    singular: int = 0
    undecided: int = 0
    acceptance: float = 0.0
    failure_probability: float | None = None
    radius: float | None = None
    sizes: str = ""
    counterexample: Counterexample | None = None
    reason: str = ""
    engine_version: str = field(default_factory=lambda: f"python-flint {flint.__version__}")


@dataclass
class _Count:
    accepted: int = 0
    rejected: int = 0
    singular: int = 0
    undecided: int = 0
    radius: float = 0.0
    failure: float = 0.0
    steps: int = 0

    @property
    def acceptance(self) -> float:
        tried = self.accepted + self.undecided + self.rejected
        return (self.accepted + self.undecided) / tried if tried else 0.0


def certify(statement: fm.Statement, *, seed: int = 0, draws: int = 24) -> Certificate:
    """Evaluate a statement at random points that satisfy its assumptions.

    Lengths 0 and 1 are always among the points. Nothing is raised for a statement that cannot be evaluated:
    ``holds`` is None and ``reason`` says why.
    """
    statement = fm.plain(statement)
    try:
        return _Run(statement, fit(statement), seed).certificate(draws)
    except EvaluationError as error:
        return Certificate(None, "none", reason=f"cannot evaluate: {error}")


class _Run:
    def __init__(self, statement: fm.Statement, system: System, seed: int) -> None:
        self.statement = statement
        self.system = system
        self.seed = seed
        self.shape: Shape = shape_of(statement)
        self.limits: Limits = limits(statement, system)
        self.count = _Count()
        self.points: list[Mapping[Basic, int]] = []
        self.seen: set[Any] = set()
        self.tried: dict[Basic, set[int]] = {}

    def certificate(self, draws: int) -> Certificate:
        longest = self.limits.length
        for n in range(draws * PATIENCE):
            if n >= draws and (not self.count.accepted or self._unreached() is None):
                break
            if n < draws and isinstance(self.system, Balls) and self.count.steps > BALL_STEPS and self.count.accepted >= ENOUGH:
                continue
            scale = min(_scale(n, draws, self.limits.length) if n < draws else n % 5, longest)
            found = self._draw(n, scale)
            if found is None:
                continue
            if found.outcome.holds is False:
                return self._false(found)
            self._keep(found)
            if n < draws and not self._may_grow(found, scale, _scale(n + 1, draws, self.limits.length)):
                longest = scale
        return self._certificate(*self._judgement())

    def _draw(self, n: int, scale: int) -> Point | None:
        for attempt in range(ATTEMPTS):
            name = f"{self.seed}:{n}:{attempt}"
            index = self._index(Random(name), n, attempt, scale)
            if index is None:
                return None
            for s, n in self._measures(index).items():
                self.tried.setdefault(s, set()).add(n)
            try:
                found = self._at(name, index, self.system)
            except Singular:
                self.count.singular += 1
                continue
            if found is not None:
                return found
            self.count.rejected += 1
        return None

    def _index(self, rng: Random, n: int, attempt: int, scale: int) -> Mapping[Symbol, int] | None:
        """The sizes of one draw: fixed ones and the longest at some first attempts, smaller ones after many failures."""
        longest = attempt == 0 and (n == 1 or scale == self.limits.length)
        size = FIXED_SIZES.get(n) if attempt < ATTEMPTS // 3 else None
        return self.shape.draw(rng, self.limits, scale >> (3 * attempt // ATTEMPTS), size=size, high=1.0 if longest else 0.3)

    def _at(self, name: str, index: Mapping[Symbol, int], system: System) -> Point | None:
        """The conclusion at one point, at more precision while it stays undecided; None where an assumption fails."""
        found = evaluated(self.statement, environment(self.statement, system, index, name))
        if found is None or found.outcome.holds is not None or not isinstance(system, Balls):
            return found
        finer = next((p for p in PRECISIONS if p > system.prec), None)
        return found if finer is None else self._at(name, index, Balls(finer))

    def _keep(self, found: Point) -> None:
        self.count.steps += found.steps
        if found.outcome.holds is None:
            self.count.undecided += 1
            return
        self.count.accepted += 1
        self.count.radius = max(self.count.radius, found.outcome.radius)
        self.count.failure = max(self.count.failure, self._failure(found.environment.index))
        self.points.append(self._measures(found.environment.index))
        self.seen |= found.seen

    def _measures(self, index: Mapping[Any, int]) -> dict[Basic, int]:
        """The values of the indices, of the sizes, and of the cuts at free indices that have one."""
        out: dict[Basic, int] = {s: index[s] for s in (*self.shape.indices, *self.shape.sizes)}
        for c in self.shape.ends:
            with suppress(Undefined):
                out[c] = index_code(c)(index)
        return out

    def _failure(self, index: Mapping[Any, int]) -> float:
        if not self._probable:
            return 0.0
        e = Environment(Degrees(), index, rules=rules_of(a.solve for a in self.statement.assumptions))
        return min(1.0, degree(self.statement.conclusion, e.frame()) / MERSENNE)

    @property
    def _probable(self) -> bool:
        field_ = isinstance(self.system, Prime) or (isinstance(self.system, Gaussian) and self.system.base == Prime())
        return field_ and identity(self.statement.conclusion)

    def _may_grow(self, found: Point, scale: int, following: int) -> bool:
        if self.count.failure > MEANINGFUL:
            return False
        return found.steps * (max(following, 1) / max(scale, 1)) ** 3 < STEPS

    def _judgement(self) -> tuple[bool | None, str]:
        count = self.count
        if count.accepted + count.undecided == 0:
            return None, f"no model found: {count.rejected} draws broke an assumption, {count.singular} were singular"
        if count.accepted <= count.undecided:
            return None, f"undecided at {count.undecided} of {count.accepted + count.undecided} draws"
        if stuck := self._stuck():
            return None, f"every model that was found has {stuck}"
        if (node := self._unreached()) is not None:
            return None, f"no draw reached the premise of {node}"
        return True, ""

    def _unreached(self) -> Basic | None:
        """An implication or equivalence whose premise held at no draw."""
        logic = (n for n in k.walk(self.statement.conclusion) if isinstance(n, (fm.Implies, fm.Iff)))
        return next((n for n in logic if (n, True) not in self.seen), None)

    def _stuck(self) -> str:
        """The sizes, indices and cuts that no model takes beyond their least values, though larger ones were tried.

        Assumptions that contradict each other hold where there is nothing that they speak of.
        """
        least = {s: min(tried) for s, tried in self.tried.items() if len(tried) > 1}
        if any(all(p.get(s, n) > n for s, n in least.items()) for p in self.points):
            return ""
        alone = [f"{s} = {n}" for s, n in least.items() if all(p.get(s) == n for p in self.points)]
        return " and ".join(sorted(alone)) or " or ".join(sorted(f"{s} = {n}" for s, n in least.items()))

    def _false(self, found: Point) -> Certificate:
        self.points = [self._measures(found.environment.index)]
        self.count.accepted += 1
        witness = refute(self.statement, seed=self.seed)
        if witness is None and not self._probable:
            witness = counterexample(self.statement, found.environment)
        return self._certificate(False, f"false at {_ranges(self.points) or 'some values'}", witness)

    def _certificate(self, verdict: bool | None, reason: str, witness: Counterexample | None = None) -> Certificate:
        c = self.count
        return Certificate(
            holds=verdict,
            system=self.system.name,
            draws=c.accepted,
            rejected=c.rejected,
            singular=c.singular,
            undecided=c.undecided,
            acceptance=c.acceptance,
            failure_probability=c.failure if self._probable and verdict else None,
            radius=c.radius if isinstance(self.system, Balls) else None,
            sizes=_ranges(self.points),
            counterexample=witness,
            reason=reason,
        )


def environment(statement: fm.Statement, system: System, index: Mapping[Symbol, int], seed: object) -> Environment:
    """A random environment for a statement, over the numbers that fit the system."""
    rules = rules_of(a.solve for a in statement.assumptions)
    return Environment(system, index, seed=seed, pool=_pool(system), rules=rules)


@cache
def _pool(system: System) -> Pool:
    if isinstance(system, Gaussian):
        return _pool(system.base)
    return uniform if isinstance(system, Prime) else dyadic if isinstance(system, Balls) else rational


def _scale(n: int, draws: int, longest: int) -> int:
    scale = SCALES[min(n * len(SCALES) // max(draws, 1) if draws > len(SCALES) else n, len(SCALES) - 1)]
    return scale if scale <= longest else 2 + n % max(longest - 1, 1)


def _ranges(points: list[Mapping[Basic, int]]) -> str:
    names = sorted({s for p in points for s in p if isinstance(s, Symbol)}, key=str)
    found = {s: sorted({p[s] for p in points}) for s in names}
    return ", ".join(f"{s}={v[0]}" if len(v) == 1 else f"{s}={v[0]}..{v[-1]}" for s, v in found.items())
