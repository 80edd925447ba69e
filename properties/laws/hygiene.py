"""A call leaves its arguments alone, answers the same twice, and hands out memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, Instance, Operator, invoke
from ..strategies import Case
from ..tensors import offsets, overwrite, same_bits, tensors_in
from .layout import member
from .table import Comparison, Law, instance, needs


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
    first = member(operator, x, 0)
    return first if first.state is None else replace(first, state=np.concatenate([first.state, 0.5 * first.state]))


def _arguments_untouched(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for where, given, call in _calls(operator, form, case):
        before = {n: [t.clone() for t in tensors_in(g)] for n, g in given.items()}
        first = [t.clone() for t in tensors_in(call())]
        for name, g in given.items():
            for old, new in zip(before[name], tensors_in(g), strict=True):
                yield _same(f"{where}{name} after the call", old, new)
        second = tensors_in(call())
        yield Comparison(f"{where}number of results", np.array([float(len(second))]), np.array([float(len(first))]), np.zeros(1))
        for a, b in zip(first, second, strict=False):
            yield _same(f"{where}second identical call", a, b)


def _results_own_memory(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for where, given, call in _calls(operator, form, case):
        results = tensors_in(call())
        kept = [r.clone() for r in results]
        for name, g in given.items():
            for t in tensors_in(g):
                overwrite(t)
            for a, b in zip(kept, results, strict=True):
                yield _same(f"{where}result after {name} was overwritten", a, b)


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
    Law("result-dtypes", "outputs have the dtype of the values, states that of the sums", _dtypes, needs("memory")),
    Law("arguments-untouched", "a call changes none of its arguments, and the same call again gives the same bits", _arguments_untouched),
    Law("results-own-memory", "overwriting an argument afterwards does not change a result", _results_own_memory),
)
