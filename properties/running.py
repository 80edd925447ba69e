"""Hold a form against a law: corner cases first, then drawn ones, and a witness where it fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.errors import Flaky

from .laws.table import GARBAGE, Comparison, Law, LawResult, Witness
from .operator import Form, FormRaised, Operator
from .strategies import HIDDEN, SCALES, Case
from .tensors import DTYPES, one_thread

SEARCH = 50
"""Drawn cases, at least, among which a failure of a corner case is looked for again to be shrunk."""


class Broken(AssertionError):
    """A case in which the law does not hold; the search for smaller ones needs an exception."""


@dataclass
class _Tally:
    """What has been seen so far."""

    examples: int = 0
    blind: int = 0
    sharp: int = 0
    worst: float = 0.0
    bad: dict[str, tuple[Case, Comparison]] = field(default_factory=dict)
    passed: set[Case] = field(default_factory=set)
    lacking: str = ""

    def add(self, case: Case, comparisons: Iterable[Comparison]) -> None:
        """Count the comparisons of a case. Raises Broken at the first that fails."""
        seen = False
        for c in comparisons:
            self.blind += c.blind
            self.sharp += not c.blind and not c.vacuous
            seen = True
            ratio = c.worst
            if ratio > 1:
                self._keep(case, c, ratio)
                raise Broken(c.what)
            self.worst = max(self.worst, 0.0 if c.blind else ratio)
        self.examples += seen

    def _keep(self, case: Case, c: Comparison, ratio: float) -> None:
        self.bad["last"] = (case, c)
        if "worst" not in self.bad or ratio > self.bad["worst"][1].worst:
            self.bad["worst"] = (case, c)


def run_law(
    law: Law,
    operator: Operator,
    form: Form,
    *,
    examples: int = 20,
    seed: int = 0,
    scales: Sequence[str] = SCALES,
    dtypes: Sequence[str] = DTYPES,
    corners: int | None = None,
    minimise: bool = True,
) -> LawResult:
    """Check one law on one form: all corner cases (or the first so many), then drawn cases, the first failure shrunk.

    ``minimise`` says whether the failure of a corner case is followed by a search for a smaller one.

    Whatever the form raises is a violation: a kernel that crashes when called as its operator says is not a form of it.
    """
    reason = law.missing(operator, form)
    if reason:
        return LawResult(law.name, operator.name, form.name, "not-applicable", detail=reason)
    tally = _Tally()
    wanted, dtypes = dtypes, [d for d in dtypes if d in form.limits.dtypes] or form.limits.dtypes

    def once(drawn: Case) -> None:
        case = prepared(law, operator, form, drawn)
        if case is None:
            return
        lacking = next((a for f in case.flags if (a := operator.lacking(form, f))), "")
        if lacking or case in tally.passed:
            tally.lacking = lacking or tally.lacking
            return
        try:
            with one_thread():
                comparisons = list(law.check(operator, form, case))
            tally.add(case, comparisons)
        except FormRaised as error:
            tally.add(case, (crash(str(error)),))
        tally.passed.add(case)

    drawn = math.ceil(examples * law.weight)
    try:
        for case in [c for c in operator.corners() if c.scale in scales and c.dtype in wanted][:corners]:
            once(case)
        if drawn:
            _search(once, operator, drawn, seed, scales, dtypes)
    except Broken:
        if minimise:
            with suppress(Broken):
                _search(once, operator, max(drawn, SEARCH), seed, scales, dtypes)
        return _violated(law, operator, form, tally)
    if not tally.examples and tally.lacking:
        return LawResult(law.name, operator.name, form.name, "not-applicable", detail=f"the form has no argument {tally.lacking}")
    if not tally.examples and form.limits:
        detail = f"nothing is left of it: {'; '.join(form.limits.reasons)}"
        return LawResult(law.name, operator.name, form.name, "not-applicable", detail=detail)
    if not tally.sharp:
        detail = f"all {tally.blind} comparisons are blind" if tally.blind else "there was nothing to compare"
        return LawResult(law.name, operator.name, form.name, "unverified", tally.examples, None, None, detail)
    detail = f"{tally.sharp} comparisons" + (f", {tally.blind} more are blind" if tally.blind else "")
    return LawResult(law.name, operator.name, form.name, "holds", tally.examples, tally.worst, None, detail)


def prepared(law: Law, operator: Operator, form: Form, case: Case) -> Case | None:
    """A drawn case as the law uses it and the form takes it, or None where these are not one.

    Structure that needs an argument which the form does not have is left out before, a state that it does not take behind too.
    Garbage behind a mask is for the laws that are there for it: one fault is not to break all others.
    """
    other = () if GARBAGE in law.kinds else (HIDDEN,)
    kept = tuple(f for f in operator.entered(form, case.flags) if not operator.lacking(form, f) and f not in other)
    drawn = form.limits.fit(form.limits.spread(replace(case, flags=kept, precision=form.precision)))
    fitted = None if drawn is None else form.limits.fit(law.prepare(drawn))
    fitted = None if fitted is None else replace(fitted, flags=operator.entered(form, fitted.flags))
    return fitted.resized(chunk=form.chunk) if fitted is not None and form.chunk else fitted


def crash(what: str) -> Comparison:
    """What a form raised, as a comparison that fails."""
    return Comparison(what, np.zeros(0), np.ones(1), np.zeros(1))


def _search(
    once: Callable[[Case], None], operator: Operator, examples: int, seed: int, scales: Sequence[str], dtypes: Sequence[str]
) -> None:
    @hypothesis.seed(seed)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(operator.cases(scales=scales, wanted=dtypes))
    def run(case: Case) -> None:
        once(case)

    try:
        run()
    except Flaky as error:
        raise Broken("a case that failed did not fail again") from error


def _violated(law: Law, operator: Operator, form: Form, tally: _Tally) -> LawResult:
    case, c = tally.bad["last"]
    worst_case, worst = tally.bad["worst"]
    witness = Witness(case, worst_case, c.what, c.first_bad(), c.worst, _describe(c), snippet(law.name, form, case))
    detail = f"{c.what}: error/bound {c.worst:.3g} in {case.to_json()}"
    return LawResult(law.name, operator.name, form.name, "violated", tally.examples + 1, max(worst.worst, c.worst), witness, detail)


def _describe(c: Comparison) -> str:
    if np.shape(c.found) != np.shape(c.truth):
        return f"{c.what}: shape {np.shape(c.found)} where {np.shape(c.truth)} is right"
    at = c.first_bad()
    bound = np.broadcast_to(c.bound, np.shape(c.truth))
    return f"{c.what}{list(at)}: {c.found[at]!r} where {c.truth[at]!r} is right, within {bound[at]:.3g}"


def snippet(law: str, form: Form, case: Case) -> str:
    """Python that runs one case again, without a search."""
    function = form.function
    name = getattr(function, "__qualname__", form.name)
    return (
        f"from {getattr(function, '__module__', 'MODULE')} import {name}\n"
        f"from isoform.properties.replay import replay\n\n"
        f"print(replay({name}, {law!r}, {case.to_json()!r}))\n"
    )
