"""Decoding with a cache: tokens in parts of any size, taken back, and continued in two ways from one cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..decoding import FORK, ROLL_BACK, Plan
from ..operator import Form, FormRaised, Instance, Operator, Reference
from ..strategies import Case
from ..tensors import LAYOUTS
from . import gradients
from .table import Comparison, Law, instance, needs, needs_state, outputs, reference, state_after
from .time import cuts, later

DEEP = 4
"""Tokens taken back from a ring at once."""
BY_INPUTS = next(law for law in gradients.LAWS if law.name == "gradient-of-inputs")


def ways(operator: Operator, form: Form, case: Case, x: Instance, **detour: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The whole by a cache, cut in several ways, and token by token; called as the form is."""
    if not form.cached or not operator.decodes(x):
        return
    steps = operator.length(x)
    for places in cuts(case, steps):
        ends = tuple(min(p, steps) for p in places)
        yield f"in parts {ends}", operator.decode(form, Plan(ends, **detour))
    if form.step is not None and steps:
        yield "token by token", operator.decode(form, Plan(tuple(range(steps + 1)), single=True, **detour))


def _in_parts(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    for how, whole in ways(operator, form, case, x):
        for layout in LAYOUTS[:: 1 + case.seed % 3]:
            found, _ = operator.run(whole, x, layout)
            yield outputs(f"output of {layout} inputs {how}", found, truth)


def _two_continuations(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    if not needs_state(operator, form):
        yield from _from_one_state(operator, form, case, x, truth)
    for how, whole in ways(operator, form, case, x, detour=FORK, content=_content(case)):
        found, _ = operator.run(whole, x)
        yield outputs(f"output {how} beside other continuations", found, truth)


def _from_one_state(operator: Operator, form: Form, case: Case, x: Instance, truth: Reference) -> Iterator[Comparison]:
    """Tokens from a state, others from the same state, and the first ones again: what was tried and rejected leaves no trace."""
    steps = operator.length(x)
    ends = form.limits.cut((1 + case.seed % max(1, steps - 1),), steps)
    if len(ends) < 3 or ends[1] == steps:
        return
    n = ends[1]
    _, state = operator.call(form.function, operator.cut(x, 0, n))
    for turn in ("", "others in between"):
        rest = {operator.state_argument: state}
        found, last = operator.arrays(*operator.call(form.function, operator.cut(x, n, steps), **rest))
        yield outputs(f"output from the state after {n} tokens {turn}".strip(), found, truth, n)
        yield state_after(f"final state from that after {n} tokens {turn}".strip(), last, truth, steps)
        operator.call(form.function, operator.cut(later(operator, x, n, "other", case), n, steps), **rest)


def _content(case: Case) -> float:
    """What other tokens consist of: numbers, or NaN, of which a trace cannot be missed."""
    return 7.0 if case.seed % 2 else np.nan


def _rolled_back(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    count = 1 + case.seed % 3
    for how, whole in ways(operator, form, case, x, detour=ROLL_BACK, count=count, content=_content(case), spare=count - 1):
        found, _ = operator.run(whole, x)
        yield outputs(f"output {how} after {count} other tokens that were taken back", found, truth)
    for how, whole in ways(operator, form, case, x, detour=ROLL_BACK, count=DEEP, content=_content(case)):
        try:
            found, _ = operator.run(whole, x)
        except FormRaised as error:
            if "ValueError" not in str(error):
                raise
            yield Comparison("refused", np.ones(1), np.ones(1), np.zeros(1))
            continue
        yield outputs(f"output {how} after {DEEP} other tokens that were not refused", found, truth)


def _gradient(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for how, whole in ways(operator, form, case, instance(operator, case)):
        for c in BY_INPUTS.check(operator, replace(form, function=whole), case):
            yield replace(c, what=f"{c.what}, {how}")


def _of_tokens(case: Case) -> Case:
    """Every token has its key, and a mask is of tokens."""
    other = {"shorter": "longer", "mask": "padding-left"}
    return replace(case, flags=tuple(dict.fromkeys(other.get(f, f) for f in case.flags)))


def _smooth(case: Case) -> Case:
    return _of_tokens(BY_INPUTS.prepare(case))


def _continues(operator: Operator, form: Form) -> str:
    return _cached(operator, form) and needs_state(operator, form)


def _cached(operator: Operator, form: Form) -> str:
    return "" if form.cached else "there are no functions with a cache"


def _differentiable(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form) or _cached(operator, form)


LAWS = (
    Law(
        "cached-parts",
        "tokens that enter a cache in parts of any size are the whole",
        _in_parts,
        _cached,
        _of_tokens,
        kinds=("K1", "K3", "K8", "K9", "K10"),
    ),
    Law(
        "two-continuations",
        "what else is continued from a state or a cache does not change it",
        _two_continuations,
        _continues,
        _of_tokens,
        0.5,
        ("K1", "K11"),
    ),
    Law(
        "roll-back",
        "tokens taken back from a cache have never been there, or it is refused",
        _rolled_back,
        _cached,
        _of_tokens,
        0.5,
        ("K10", "K11"),
    ),
    Law("gradient-of-parts", "the gradient through a cache is the declaration's", _gradient, _differentiable, _smooth, 0.5, ("K5",)),
)
