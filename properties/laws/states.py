"""What is remembered: a state that is handed in is heard, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..memory import KEYS
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
    silent = replace(x, inputs=_without(x, _values(operator), slice(None)))
    truth, steps = operator.refer(silent), operator.length(x)
    for n in form.limits.kept("t", {1, steps // 2, steps} - {0}):
        found, state = operator.run(form.function, operator.cut(silent, 0, n))
        yield outputs(f"{n} tokens without a value of their own", found, truth, 0, n)
        yield state_after(f"state after {n} tokens without a value", state, truth, n)


def _one_step(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """Each member of the batch has one entry of the state that is 1, or one of what is written, and no other: the map, column by column.

    A form that takes no single token is asked for as few as it takes.
    """
    x = instance(operator, case)
    assert x.state is not None
    silent = {name: x.inputs[name] for name in operator.silent}
    written = np.concatenate([a.ravel() for a in silent.values()])
    entries, writes = x.state.size, len(written)
    many = {n: np.repeat(a, entries + writes, 0) if "b" in operator.axes[n].of(a) else a for n, a in x.inputs.items()}
    state = np.zeros((entries + writes, *x.state.shape[1:]), x.state.dtype)
    state[:entries] = np.eye(entries).reshape(entries, *x.state.shape[1:])
    first = entries
    for name, a in silent.items():
        many[name] = np.zeros((entries + writes, *a.shape[1:]), a.dtype)
        many[name][first : first + a.size] = np.eye(a.size).reshape(a.size, *a.shape[1:])
        first += a.size
    probe = replace(x, inputs=many, state=state)
    truth = operator.refer(probe)
    found, last = operator.run(form.function, probe)
    for what, part in (("entry of the state", slice(entries)), ("value that is written", slice(entries, None))):
        own = found[part] if found.shape == truth.output.shape else found
        yield Comparison(f"output of each {what}", own, truth.output[part], truth.bound[part], truth.sharp[part])
        assert truth.states is not None and truth.states_bound is not None
        kept = last[part] if np.shape(last) == truth.states[:, -1].shape else last
        yield Comparison(f"state after each {what}", kept, truth.states[part, -1], truth.states_bound[part, -1])


def _values(operator: Operator) -> tuple[str, ...]:
    """The inputs without which only the state is heard: what writes, or the values of a mean."""
    return operator.silent or tuple({"v"} & set(operator.axes))


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


def _single(case: Case) -> Case:
    """One token of a few heads and features, in float32; gates, keys and weights are any."""
    small = case.resized(b=1, t=1, h=2, groups=2, g=2, k=3, v=2, d=2, n=2, w=3, chunk=4)
    kept = tuple(f for f in case.flags if f not in ("start", *KEYS))
    return replace(small, seed=case.seed % 2, dtype="float32", flags=("start", *kept))


def _longer(case: Case) -> Case:
    return replace(case.resized(t=case.size("t") + SHIFT), flags=tuple(f for f in case.flags if f not in ("start", "dyadic")))


def _starts(operator: Operator, form: Form) -> str:
    silenced = f"{operator.name} has no input without which only the state is heard"
    return needs_state(operator, form) or ("" if _values(operator) else silenced)


def _linear(operator: Operator, form: Form) -> str:
    return needs_state(operator, form) or _silent(operator, form)


def _silent(operator: Operator, form: Form) -> str:
    return needs("causal")(operator, form) or ("" if operator.silent else f"{operator.name} has no token that writes nothing")


LAWS = (
    Law(
        "state-alone",
        "tokens that add nothing leave the initial state to be heard",
        _state_alone,
        _starts,
        _started,
        0.5,
        kinds=("K1", "K2", "K12"),
    ),
    Law(
        "one-step-map",
        "one token maps every entry of the state, and of what is written, as the declaration does",
        _one_step,
        _linear,
        _single,
        0.5,
        kinds=("K1", "K2", "K15"),
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
