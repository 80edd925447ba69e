"""Layout: values do not depend on strides, on the sharing of heads in memory, or on company in the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, Instance, Operator
from ..strategies import Case
from ..tensors import LAYOUTS
from .decoding import ways
from .table import Comparison, Law, instance, needs, outputs, reference, state_after


def _layout(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    for layout in LAYOUTS[1:]:
        found, state = operator.run(form.function, x, layout)
        yield outputs(f"output of {layout} inputs", found, truth)
        if truth.states is not None and state is not None:
            yield state_after(f"final state of {layout} inputs", state, truth, operator.length(x))


def _group_map(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, state = operator.run(form.function, x)
    yield outputs("output of grouped heads", found, truth)
    if truth.states is not None and state is not None:
        yield state_after("final state of grouped heads", state, truth, operator.length(x))


def _grouped(case: Case) -> Case:
    """Two or three groups of two or three heads: fewer could hide the map."""
    return case.resized(h=2 + case.seed % 2, groups=3 - case.seed % 2)


def _batch_company(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for how, function in (("", form.function), *ways(operator, form, case, instance(operator, case))):
        for c in _beside_others(operator, function, case):
            yield replace(c, what=f"{c.what} {how}".strip())


def _beside_others(operator: Operator, function: Callable[..., Any], case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, state = operator.run(function, x)
    batch = found.shape[0]
    for kind in ("other", "nan"):
        spoilt = _spoil(operator, x, kind)
        beside, beside_state = operator.run(function, spoilt)
        yield Comparison(f"output beside {kind} content", beside[:1], found[:1], np.zeros_like(truth.bound[:1]))
        if state is not None and beside_state is not None:
            yield Comparison(f"state beside {kind} content", beside_state[:1], state[:1], np.zeros_like(np.abs(state[:1])))
    yield outputs("output of all", found, truth)
    if truth.states is not None and state is not None:
        yield state_after("final state of all", state, truth, operator.length(x))
    for n in range(batch):
        alone, _ = operator.run(function, member(operator, x, n))
        yield Comparison("output alone", alone, truth.output[n : n + 1], truth.bound[n : n + 1], truth.sharp[n : n + 1])


def _batched(operator: Operator, x: Instance) -> set[str]:
    return {n for n, a in x.inputs.items() if "b" in operator.axes[n].of(a)}


def _spoil(operator: Operator, x: Instance, kind: str) -> Instance:
    """The instance with other content in every member of the batch but the first."""
    inputs = {n: a.copy() for n, a in x.inputs.items()}
    for n in _batched(operator, x):
        if inputs[n].dtype.kind != "b":
            inputs[n][1:] = np.nan if kind == "nan" else operator.axes[n].other(inputs[n][1:])
    return replace(x, inputs=inputs)


def member(operator: Operator, x: Instance, n: int) -> Instance:
    """One of the batch."""
    inputs = {m: a[n : n + 1] if m in _batched(operator, x) else a for m, a in x.inputs.items()}
    return replace(x, inputs=inputs, state=None if x.state is None else x.state[n : n + 1])


def _three(case: Case) -> Case:
    return case.resized(b=3)


LAWS = (
    Law("layout", "transposed, sliced and stride-0 inputs give the same values", _layout, weight=0.5),
    Law("group-map", "head i of the many belongs to head i // groups of the few", _group_map, needs("groups"), _grouped),
    Law("batch-company", "what else is in the batch does not matter", _batch_company, needs("batch"), _three, 0.5),
)
