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
    parts = {(n, n + 1) for n in range(batch)} | {(0, n) for n in range(1, batch)}
    for a, b in sorted(parts):
        some, _ = operator.run(function, members(operator, x, a, b))
        yield Comparison(f"output of {a}..{b - 1} of the batch alone", some, truth.output[a:b], truth.bound[a:b], truth.sharp[a:b])


def _batched(operator: Operator, x: Instance) -> set[str]:
    return {n for n, a in x.inputs.items() if "b" in operator.axes[n].of(a)}


def _spoil(operator: Operator, x: Instance, kind: str) -> Instance:
    """The instance with other content in every member of the batch but the first."""
    inputs = {n: a.copy() for n, a in x.inputs.items()}
    for n in _batched(operator, x):
        if inputs[n].dtype.kind != "b":
            inputs[n][1:] = np.nan if kind == "nan" else operator.axes[n].other(inputs[n][1:])
    return replace(x, inputs=inputs)


def members(operator: Operator, x: Instance, start: int, stop: int) -> Instance:
    """Some of the batch."""
    inputs = {m: a[start:stop] if m in _batched(operator, x) else a for m, a in x.inputs.items()}
    return replace(x, inputs=inputs, state=None if x.state is None else x.state[start:stop])


def _several(case: Case) -> Case:
    """Two to eight members with few heads, groups and tokens."""
    most = {"t": 8, "h": 2, "groups": 1} if case.seed % 7 > 1 else {}
    return case.resized(**{n: min(s, most.get(n, s)) for n, s in case.sizes} | {"b": 2 + case.seed % 7})


LAWS = (
    Law("layout", "transposed, sliced and stride-0 inputs give the same values", _layout, weight=0.5, kinds=("K13",)),
    Law("group-map", "head i of the many belongs to head i // groups of the few", _group_map, needs("groups"), _grouped, kinds=("K13",)),
    Law("batch-company", "what else is in the batch does not matter", _batch_company, needs("batch"), _several, 0.5, ("K14",)),
)
