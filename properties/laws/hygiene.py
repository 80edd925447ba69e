"""A call leaves its arguments alone, answers the same twice, and hands out memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, Instance, Operator, invoke
from ..strategies import Case
from ..tensors import offsets, overwrite, same_bits, tensors_in
from .layout import members
from .table import Comparison, Law, instance, needs, outputs


def _same(what: str, a: Any, b: Any) -> Comparison:
    """Whether two tensors are the same bit for bit."""
    return Comparison(what, np.array([float(same_bits(a, b))]), np.ones(1), np.zeros(1))


def _calls(operator: Operator, form: Form, case: Case) -> Iterator[tuple[str, dict[str, Any], Callable[[], Any]]]:
    """The call of the form, alone and packed, and of its step on the first token, with the tensors that go in."""
    x = instance(operator, case)
    given = operator.tensors(x)
    yield "", given, lambda: invoke(form.function, given | operator.arguments(form.function, x))
    if form.takes("cu_seqlens"):
        packed = operator.tensors(in_two(operator, x)) | {"cu_seqlens": offsets((0, operator.length(x) // 2, operator.length(x)))}
        yield "packed: ", packed, lambda: invoke(form.function, packed | operator.arguments(form.function, x))
    if form.step is not None and operator.length(x) and operator.steps(x):
        token = operator.token(form.step, x, 0)
        yield "step: ", token, lambda: invoke(form.step, token)  # type: ignore[arg-type]


def in_two(operator: Operator, x: Instance) -> Instance:
    """The first of the batch, with a state for each of two packed sequences."""
    first = members(operator, x, 0, 1)
    return first if first.state is None else replace(first, state=np.concatenate([first.state, 0.5 * first.state]))


def _arguments_untouched(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for where, given, call in _calls(operator, form, case):
        before = {n: [t.clone() for t in tensors_in(g)] for n, g in given.items()}
        first = [t.clone() for t in tensors_in(call())]
        for name, g in given.items():
            for old, new in zip(before[name], tensors_in(g), strict=True):
                yield _same(f"{where}{name} is not the same after the call", old, new)
        second = tensors_in(call())
        alike = np.array([float(len(second) == len(first))])
        yield Comparison(f"{where}the same call again gives another number of results", alike, np.ones(1), np.zeros(1))
        for a, b in zip(first, second, strict=False):
            yield _same(f"{where}the same call again gives other bits", a, b)


def _results_own_memory(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for where, given, call in _calls(operator, form, case):
        results = tensors_in(call())
        kept = [r.clone() for r in results]
        for name, g in given.items():
            for t in tensors_in(g):
                overwrite(t)
            for a, b in zip(kept, results, strict=True):
                yield _same(f"{where}a result changes when {name} is overwritten", a, b)


def _calls_apart(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """With other content, and with fewer tokens: either would meet what a kernel has kept from a call."""
    x = instance(operator, case)
    own = operator.tensors(x) | operator.arguments(form.function, x)
    first = tensors_in(invoke(form.function, own))
    kept = [t.clone() for t in first]
    for what, other in _others(operator, form, case):
        found, _ = operator.run(form.function, other)
        yield outputs(f"the output of a call {what}", found, operator.refer(other))
        for a, b in zip(kept, first, strict=True):
            yield _same(f"an earlier result is changed by a call {what}", a, b)
        for a, b in zip(kept, tensors_in(invoke(form.function, own)), strict=True):
            yield _same(f"the same call gives other bits after one {what}", a, b)


def _others(operator: Operator, form: Form, case: Case) -> Iterator[tuple[str, Instance]]:
    other = instance(operator, replace(case, seed=case.seed + 1))
    yield "with other content", other
    if "sequence" in operator.capabilities:
        steps = operator.length(other)
        for half in form.limits.kept("t", {form.limits.fit_size("t", steps // 2)} & set(range(steps))):
            yield "of fewer tokens", operator.cut(other, 0, half)


def _dtypes(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x = instance(operator, case)
    for where, given, call in _calls(operator, form, case):
        out, state = call()
        wide = operator.state_tensor(x, np.zeros(1))
        for what, found, like in (("the output", out, given["v"]), ("the state", state, wide)):
            if found is not None:
                same = found.dtype == like.dtype
                yield Comparison(f"{where}{what} is {found.dtype}, right is {like.dtype}", np.array([float(same)]), np.ones(1), np.zeros(1))


LAWS = (
    Law("result-dtypes", "outputs have the dtype of the values, states that of the sums", _dtypes, needs("memory"), kinds=("K12",)),
    Law(
        "arguments-untouched",
        "a call changes none of its arguments, and the same call again gives the same bits",
        _arguments_untouched,
        kinds=("K11",),
    ),
    Law("results-own-memory", "overwriting an argument afterwards does not change a result", _results_own_memory, kinds=("K11",)),
    Law(
        "calls-apart",
        "another call in between changes neither an earlier result nor a later one",
        _calls_apart,
        weight=0.5,
        kinds=("K11",),
    ),
)
