"""Forms of one operator agree with each other, whatever their chunk size."""

from __future__ import annotations

from collections.abc import Iterator

from ..operator import Form, Operator
from ..strategies import Case
from .table import Comparison, Law, instance, outputs, reference, state_after


def _siblings(operator: Operator, form: Form) -> str:
    return "" if form.siblings else "there is no other form"


def _forms_agree(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, state = operator.run(form.function, x)
    for other in form.siblings:
        theirs, their_state = operator.run(other, x)
        yield Comparison(f"output beside {other.__name__}", found, theirs, 2 * truth.bound, 2 * truth.sharp)
        if truth.states_bound is not None and state is not None and their_state is not None:
            yield Comparison(f"final state beside {other.__name__}", state, their_state, 2 * truth.states_bound[:, -1])


def _chunk_size(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x = instance(operator, case)
    steps = operator.length(x)
    for size in form.limits.kept("chunk", {1, 2, 3, 16, 64, max(1, steps - 1), max(1, steps), steps + 1}):
        truth = reference(operator, case.resized(chunk=size))
        found, state = operator.run(form.function, x, chunk_size=size)
        yield outputs(f"output in chunks of {size}", found, truth)
        if truth.states is not None and state is not None:
            yield state_after(f"final state in chunks of {size}", state, truth, steps)


def _chunked(operator: Operator, form: Form) -> str:
    return "" if form.takes("chunk_size") else "the form has no argument chunk_size"


LAWS = (
    Law("forms-agree", "two forms of an operator give one answer", _forms_agree, _siblings, kinds=("K1", "K17")),
    Law("chunk-size", "the chunk size changes nothing", _chunk_size, _chunked, weight=0.5, kinds=("K3",)),
)
