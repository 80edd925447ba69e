"""What a law is, what it compares, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..bounds import BLIND
from ..operator import Form, Instance, Operator, Reference
from ..strategies import Case

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Comparison:
    """What came out against what must come out, with a bound for every entry; a bound of 0 asks for the same value.

    ``sharp`` (the bound itself by default) decides whether the comparison is blind: whether it exceeds 2⁻⁸ of the
    largest true value anywhere. So is one in which nothing but zeros would pass. An infinite bound is blind; where the truth
    is NaN beside it, it is beyond the range of the form's numbers, and any value may come out.
    ``entries`` is the same of each entry, where one number is compared for many; ``by`` the argument of whose gradient they are.
    """

    what: str
    found: Array
    truth: Array
    bound: Array
    sharp: Array | None = None
    entries: Callable[[], Comparison] | None = None
    by: str = ""

    @property
    def ratios(self) -> Array:
        """Error over bound, entry by entry; NaN and a wrong shape count as infinite."""
        if np.shape(self.found) != np.shape(self.truth):
            return np.full((1,), np.inf)
        found, truth, bound = np.asarray(self.found), np.asarray(self.truth), np.broadcast_to(self.bound, np.shape(self.truth))
        with np.errstate(all="ignore"):
            error = np.abs(found - truth)
            same = (found == truth) | (np.isnan(truth) & np.isnan(found))
            ratio = np.where(same | (np.isnan(truth) & np.isposinf(bound)), 0.0, error / bound)
        return np.where(np.isnan(ratio), np.inf, ratio)

    @property
    def worst(self) -> float:
        """The largest error over bound; 0 where there is nothing to compare."""
        return float(self.ratios.max(initial=0.0))

    @property
    def blind(self) -> bool:
        """Whether passing means nothing: the bound is too wide, and not because nothing is there to be compared."""
        if not np.any(self.truth):
            return False
        sharp = self.bound if self.sharp is None else self.sharp
        wide = np.size(sharp) > 0 and bool(np.isposinf(np.max(sharp)) or np.max(sharp) > BLIND * np.max(np.abs(self.truth), initial=0.0))
        return wide or bool(np.all(np.abs(self.truth) <= self.bound))

    @property
    def vacuous(self) -> bool:
        """Whether there is no entry to compare, or the truth is 0 throughout."""
        return np.size(self.truth) == 0 or not np.any(self.truth)

    def first_bad(self) -> tuple[int, ...]:
        """The first index whose error exceeds its bound."""
        bad = np.argwhere(self.ratios > 1)
        return tuple(int(i) for i in bad[0]) if len(bad) else ()


KINDS = {
    "K1": "a state that is passed in is ignored, or used by one form only",
    "K2": "the state that is handed out is wrong",
    "K3": "tails, tiles and tiny sequences",
    "K4": "extreme gates",
    "K5": "only the gradient is wrong",
    "K6": "padding is not neutral",
    "K7": "packed sequences leak into each other",
    "K8": "the causal frontier and positions",
    "K9": "empty rows, and garbage behind the mask",
    "K10": "windows and ring caches",
    "K11": "aliasing, mutation and roll-back",
    "K12": "the precision of states and sums",
    "K13": "layout, groups and strides",
    "K14": "company in the batch",
    "K15": "another convention than meant",
    "K16": "discretisation",
    "K17": "convolutions and scans",
    "K18": "the symbolic engine is wrong",
    "K19": "the oracle, a tolerance or a generator is blind",
}
"""Kinds of fault. K18 is none of a form, and K19 none of a form alone: planted faults show that laws see."""
GARBAGE = "K9"
Check = Callable[[Operator, Form, Case], Iterable[Comparison]]


@dataclass(frozen=True)
class Law:
    """A property of every correct form: what it says, how a case is checked, and where it does not apply.

    ``missing`` says why the law does not apply to a form, or "". ``prepare`` makes a drawn case one that the law can
    use (another dtype, an added flag); ``weight`` is the share of the usual number of examples. ``kinds`` are the kinds of fault
    that it is there for, by the names of `KINDS`.
    """

    name: str
    says: str
    check: Check
    missing: Callable[[Operator, Form], str] = lambda operator, form: ""
    prepare: Callable[[Case], Case] = lambda case: case
    weight: float = 1.0
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Witness:
    """What a violated law hands back: the smallest case and the worst, the first bad entry, and how to run it again."""

    case: Case
    worst_case: Case
    what: str
    index: tuple[int, ...]
    error_over_bound: float
    detail: str
    snippet: str


@dataclass(frozen=True)
class LawResult:
    """How one form fared under one law: holds, violated, not-applicable or unverified."""

    law: str
    operator: str
    form: str
    verdict: str
    examples: int = 0
    worst_error_over_bound: float | None = None
    witness: Witness | None = field(default=None, compare=False)
    detail: str = ""


@lru_cache(maxsize=512)
def instance(operator: Operator, case: Case) -> Instance:
    """The arrays of a case; shared between forms, so nothing may write to them."""
    return replace(operator.draw(case), precision=case.precision)


@lru_cache(maxsize=512)
def reference(operator: Operator, case: Case) -> Reference:
    """The truth of a case, shared between forms and laws."""
    return operator.refer(instance(operator, case))


def rows(found: Array, start: int, stop: int) -> Array:
    """Rows of an output; one that has no time axis is left as it is, and fails for its shape."""
    return found[:, start:stop] if found.ndim > 1 else found


def outputs(what: str, found: Array, truth: Reference, start: int = 0, stop: int | None = None) -> Comparison:
    """Rows start..stop-1 of the output against the truth."""
    part = (slice(None), slice(start, stop))
    return Comparison(what, found, truth.output[part], truth.bound[part], truth.sharp[part])


def state_after(what: str, found: Array | None, truth: Reference, steps: int) -> Comparison:
    """A state against the truth after so many tokens. A missing state is a wrong one."""
    assert truth.states is not None and truth.states_bound is not None
    sharp = None if truth.states_sharp is None else truth.states_sharp[:, steps]
    return Comparison(what, np.zeros(0) if found is None else found, truth.states[:, steps], truth.states_bound[:, steps], sharp)


LACKING = {
    "batch": "axis of the batch",
    "causal": "order in which tokens see earlier ones alone",
    "discretization": "differential equation that it is a step of",
    "dyadic": "inputs on which every intermediate is exact",
    "edges": "edges of its domain",
    "equilibria": "equilibrium that it must keep",
    "gradient": "gradient that could be compared",
    "groups": "heads that share keys",
    "long": "bound that many tokens can be held to",
    "memory": "state of keys and values",
    "outside": "inputs outside of its domain",
    "packing": "packed sequences",
    "padding-mask": "mask of padding",
    "semigroup": "half steps that make a whole one",
    "sequence": "tokens",
    "window": "window",
}
"""What an operator without a capability lacks, in words."""


def needs(*capabilities: str) -> Callable[[Operator, Form], str]:
    """A law that applies where the operator has all these capabilities, and the form does not refuse them."""

    def missing(operator: Operator, form: Form) -> str:
        lacking = [LACKING[c] for c in capabilities if c not in operator.capabilities]
        refused = [form.limits.reason(c) for c in capabilities if c in form.limits.refuses]
        return f"{operator.name} has no {', no '.join(lacking)}" if lacking else "; ".join(refused)

    return missing


def packs(operator: Operator, form: Form) -> str:
    """A law that hands packed sequences in."""
    return needs("packing")(operator, form) or ("" if form.takes("cu_seqlens") else "the form has no argument cu_seqlens")


def needs_state(operator: Operator, form: Form) -> str:
    """A law that hands a state in and takes one out."""
    return _needs(operator, form, operator.state_argument, operator.final_argument)


def hands_out_state(operator: Operator, form: Form) -> str:
    """A law that takes a state out."""
    return _needs(operator, form, operator.final_argument)


def _needs(operator: Operator, form: Form, *arguments: str) -> str:
    if "state" not in operator.capabilities:
        return f"{operator.name} has no state"
    lacking = [a for a in arguments if not form.takes(a)]
    return f"the form has no argument {' and no '.join(lacking)}" if lacking else ""
