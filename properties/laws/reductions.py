"""Special cases in which an operator is another one: the form is held against the other's declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import columns
from ..operator import Form, Operator, Reduction
from ..strategies import SCALINGS, Case
from .table import Comparison, Law, instance, reference

Array = np.ndarray[Any, Any]


def _reduces(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    for special in operator.reductions:
        flags = operator.entered(form, special.flags)
        if not any(operator.lacking(form, flag) for flag in flags):
            yield from _as_other(operator, form, replace(case, flags=(*case.flags, *flags)), special)


def _as_other(operator: Operator, form: Form, case: Case, special: Reduction) -> Iterator[Comparison]:
    """Against the other operator's truth, within the bounds of the two."""
    x, own = instance(operator, case), reference(operator, case)
    other = columns.operator(special.operator).refer(special.becomes(x))
    found, state = operator.run(form.function, x)
    assert own.states is not None and own.states_bound is not None and other.states is not None and other.states_bound is not None

    def last(states: Array) -> Array:
        return states[:, -1].reshape(*own.output.shape[:2], *states.shape[2:])[:, -1] if special.single else states[:, -1]

    shape = own.output.shape
    bound, sharp = own.bound + other.bound.reshape(shape), own.sharp + other.sharp.reshape(shape)
    yield Comparison(f"output of {special.says} beside {special.operator}", found, other.output.reshape(shape), bound, sharp)
    if state is not None:
        wide = own.states_bound[:, -1] + last(other.states_bound)
        yield Comparison(f"final state of {special.says} beside {special.operator}", state, last(other.states), wide)


def _has_special_cases(operator: Operator, form: Form) -> str:
    return "" if operator.reductions else f"{operator.name} has no special case that is another operator"


def _plain(case: Case) -> Case:
    """At least one token, without structure that the special cases set themselves."""
    return replace(case.resized(t=max(1, case.size("t"))), flags=tuple(f for f in case.flags if f in SCALINGS))


LAWS = (Law("reduction", "a special case is the other operator", _reduces, _has_special_cases, _plain, 0.5, ("K15",)),)
