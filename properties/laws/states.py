"""What is remembered: a state that is handed in is heard, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, Instance, Operator
from ..strategies import SCALINGS, WIDE, Case
from .table import Comparison, Law, instance, needs, needs_state, outputs, state_after

Array = np.ndarray[Any, Any]
LASTING = ("gates-constant", "long-memory", "softplus", "bias", "complex", "value-gates")
"""Structure in which a start is not soon forgotten."""
SHIFT = 3
"""Silent tokens, at least, in front of a sequence."""


def _state_alone(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x = instance(operator, case)
    silent = replace(x, inputs=_without(x, operator.silent or ("v",), slice(None)))
    truth, steps = operator.refer(silent), operator.length(x)
    for n in form.limits.kept("t", {1, steps // 2, steps} - {0}):
        found, state = operator.run(form.function, operator.cut(silent, 0, n))
        yield outputs(f"{n} tokens without a value of their own", found, truth, 0, n)
        yield state_after(f"state after {n} tokens without a value", state, truth, n)


def _without(x: Instance, names: tuple[str, ...], where: slice, time: int = 1) -> Mapping[str, Array]:
    """The inputs with zeros in these at some tokens."""
    inputs = dict(x.inputs)
    for name in names:
        inputs[name] = inputs[name].copy()
        np.moveaxis(inputs[name], time, 0)[where] = 0
    return inputs


def _shift(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x = replace(instance(operator, case), state=None)
    steps = operator.length(x)
    first = form.limits.fit_size("t", SHIFT)
    if not form.limits.takes("t", steps - first):
        return
    name = operator.silent[0]
    time = operator.axes[name].of(x.inputs[name]).index("t")
    later = replace(x, inputs=_without(x, operator.silent, slice(0, first), time))
    wide, truth = operator.refer(later), operator.refer(operator.cut(x, first, steps))
    found, state = operator.run(form.function, later)
    what = f"behind {first} tokens without a value"
    own = found[:, first:] if found.ndim > 1 else found
    yield Comparison(f"output {what}", own, truth.output, wide.bound[:, first:], wide.sharp[:, first:])
    if state is not None and truth.states is not None:
        assert wide.states_bound is not None
        yield Comparison(f"final state {what}", state, truth.states[:, -1], wide.states_bound[:, -1])


def _started(case: Case) -> Case:
    """At least one token, and a start that is not soon forgotten."""
    kept = tuple(f for f in case.flags if f in (*SCALINGS, WIDE, *LASTING))
    return replace(case.resized(t=max(1, case.size("t"))), flags=("start", *kept))


def _longer(case: Case) -> Case:
    return replace(case.resized(t=case.size("t") + SHIFT), flags=tuple(f for f in case.flags if f not in ("start", "dyadic")))


def _silent(operator: Operator, form: Form) -> str:
    return needs("causal")(operator, form) or ("" if operator.silent else f"{operator.name} has no token that writes nothing")


LAWS = (
    Law(
        "state-alone",
        "tokens that add nothing leave the initial state to be heard",
        _state_alone,
        needs_state,
        _started,
        0.5,
        kinds=("K1", "K2", "K12"),
    ),
    Law(
        "shift-invariance",
        "tokens that write nothing to an empty state move the rest in time, and do no more",
        _shift,
        _silent,
        _longer,
        0.5,
        kinds=("K8",),
    ),
)
