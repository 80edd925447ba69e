"""Time: no look ahead, and a sequence cut into pieces is the same sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..limits import LENGTHS, NONFINITE
from ..operator import Form, Instance, Operator
from ..strategies import Case
from .table import Comparison, Law, instance, needs, needs_state, outputs, reference, rows, state_after

Array = np.ndarray[Any, Any]


def _prefix_invariance(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    steps = operator.length(x)
    for n in form.limits.kept("t", {1, steps // 2, steps - 1, form.limits.fit_size("t", 1)} & set(range(1, steps))):
        alone, _ = operator.run(form.function, operator.cut(x, 0, n))
        yield outputs(f"the first {n} tokens alone", alone, truth, 0, n)
        quarantine = "quarantine" in operator.capabilities and NONFINITE not in form.limits.refuses
        kinds = ("other", "nan", "inf") if quarantine else ("other",)
        for kind in kinds:
            found, state = operator.run(form.function, later(operator, x, n, kind, case))
            yield outputs(f"the first {n} tokens, later ones {kind}", rows(found, 0, n), truth, 0, n)
            if kind == "nan" and found.shape == truth.bound.shape:  # a number would be the answer to another input
                yield _none("numbers from tokens that are nan", np.isfinite(found[:, n:]) & (truth.bound[:, n:] > 0))
                if "memory" in operator.capabilities and state is not None:  # every token writes to every entry
                    yield _none("numbers in the state after tokens that are nan", np.isfinite(state))


def _none(what: str, where: Array) -> Comparison:
    return Comparison(what, where.astype(float), np.zeros(where.shape), np.zeros(where.shape))


def later(operator: Operator, x: Instance, n: int, kind: str, case: Case) -> Instance:
    """The instance with other tokens from n on."""
    inputs = dict(x.inputs)
    steps = operator.length(x)
    fill = {"nan": np.nan, "inf": np.inf}.get(kind)
    for i in operator.inputs:
        given = inputs.get(i.name)
        axis = None if given is None else next((m for m, name in enumerate(i.of(given)) if name in ("t", "s")), None)
        if given is None or axis is None or given.dtype.kind == "b":
            continue
        spoilt = np.moveaxis(given.copy(), axis, 0)
        start = n + len(spoilt) - steps
        spoilt[start:] = i.other(spoilt[start:][::-1]) if fill is None else fill
        inputs[i.name] = np.moveaxis(spoilt, 0, axis)
    return replace(x, inputs=inputs)


def cuts(case: Case, steps: int) -> Iterator[tuple[int, ...]]:
    """Ways to cut a sequence: parts of 0, 1, 2 tokens and one more, exactly and one less than a chunk, in three parts or more."""
    chunk = case.chunk or 4
    a, b = sorted(int(n) for n in case.rng(101).integers(0, steps + 1, 2))
    yield (0, 0, 1, 3, steps)
    yield (0, chunk + 1, 2 * chunk + 1, 3 * chunk, steps)
    yield (0, a, b, steps)


def _split_and_resume(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    steps = operator.length(x)
    for places in cuts(case, steps):
        ends = form.limits.cut(places[1:], steps)
        if len(ends) < 3 and form.limits:
            continue
        found, state = [], None
        for a, b in zip(ends, ends[1:]):
            part, state = operator.run(form.function, operator.cut(x, a, b, state))
            found.append(part)
            if truth.states is not None:
                yield state_after(f"state after {b} tokens, cut at {ends}", state, truth, b)
        parts = [outputs(f"output of tokens {a} to {b}, cut at {ends}", part, truth, a, b) for a, b, part in zip(ends, ends[1:], found)]
        misfit = next((c for c in parts if np.shape(c.found) != np.shape(c.truth)), None)
        yield misfit or outputs(f"output, cut at {ends}", np.concatenate(found, 1), truth)


def _resumes(operator: Operator, form: Form) -> str:
    return form.limits.refuses.get(LENGTHS, "") if "resumes-by-keys" in operator.capabilities else needs_state(operator, form)


def _needs_step(operator: Operator, form: Form) -> str:
    return "" if form.step is not None else "there is no step form"


def _step_is_whole(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    assert form.step is not None
    x, truth = instance(operator, case), reference(operator, case)
    if not operator.steps(x):
        return
    found, states = operator.walk(form.step, x)
    if found:
        alike = len({np.shape(row) for row in found}) == 1
        yield outputs("output, step by step", np.stack(found, 1) if alike else found[-1], truth)
    if truth.states is not None:
        for n, state in enumerate(states, 1):
            yield state_after(f"state after step {n}", state, truth, n)


LAWS = (
    Law(
        "prefix-invariance",
        "later tokens, whatever they are, do not change earlier outputs",
        _prefix_invariance,
        needs("causal"),
        kinds=("K8",),
    ),
    Law(
        "split-and-resume",
        "a sequence cut anywhere and resumed from the state is the whole",
        _split_and_resume,
        _resumes,
        kinds=("K1", "K2", "K3"),
    ),
    Law("step-equals-whole", "one token at a time is the whole", _step_is_whole, _needs_step, kinds=("K1", "K2", "K17")),
)
