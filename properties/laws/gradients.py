"""Gradients are those of the declaration: in a random direction of each input, by a complex step through the declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, FormRaised, Instance, Operator, invoke
from ..strategies import Case
from ..tensors import gradients
from .table import Check, Comparison, Law, instance, needs, needs_state, reference

Array = np.ndarray[Any, Any]
STATE = "initial state"
LONGEST = 12


def _check(by_inputs: bool, by_state: bool, of_output: bool, of_state: bool) -> Check:
    def check(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
        x, truth = instance(operator, case), reference(operator, case)
        if truth.output.size == 0 or operator.derive is None:
            return
        weights = np.asarray(case.rng(200).standard_normal(truth.output.shape) * of_output)
        final = None if truth.states is None else case.rng(201).standard_normal(truth.states[:, -1].shape) * of_state
        found = _gradients(operator, form, x, weights, final)
        names = [n for n in found if (by_state if n == STATE else by_inputs)]
        for number, name in enumerate(names):
            direction = case.rng(202, number).standard_normal(found[name].shape)
            toward = {n: direction if n == name else np.zeros_like(a) for n, a in x.inputs.items()}
            push = None if x.state is None else direction if name == STATE else np.zeros_like(x.state)
            value, bound = operator.derive(x, toward, push, weights, final)
            slope = (found[name] * direction).sum()
            yield Comparison(f"gradient by {name}", np.array([slope]), np.array([value]), np.array([bound]))

    return check


def _gradients(operator: Operator, form: Form, x: Instance, weights: Array, final: Array | None) -> Mapping[str, Array]:
    leaves = {n: a for n, a in x.inputs.items() if a.dtype.kind != "b"}
    leaves |= {} if x.state is None or "state" not in operator.capabilities else {operator.state_argument: x.state}
    fixed = {n: t for n, t in operator.tensors(x).items() if n not in leaves}

    def loss(given: Mapping[str, Any]) -> tuple[tuple[Any, Array], ...]:
        out, state = invoke(form.function, {**given, **fixed, **operator.arguments(form.function, x)})
        return tuple(operator.weighed(out, state, weights, final))

    try:
        found = gradients(loss, leaves, x.dtype)
    except FormRaised:
        raise
    except Exception as error:
        raise FormRaised(f"the backward pass raised {type(error).__name__}: {error}") from error
    return {STATE if n == operator.state_argument else n: g for n, g in found.items()}


def _smooth(*added: str) -> Callable[[Case], Case]:
    """A short float64 case with three chunks or more, without the structure that makes derivatives vanish."""

    def prepare(case: Case) -> Case:
        kept = tuple(f for f in case.flags if f not in ("complex", "hidden") and f not in added)
        sizes = dict(case.sizes)
        shorter = case.resized(t=max(1, min(sizes.get("t", 1), LONGEST)), chunk=min(sizes.get("chunk", 1), 5))
        return replace(shorter, dtype="float64", flags=(*kept, *added))

    return prepare


def _needs_gradient(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form)


def _needs_both(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form) or needs_state(operator, form)


LAWS = (
    Law(
        "gradient-of-inputs",
        "the gradient by every input is the declaration's",
        _check(True, False, True, False),
        _needs_gradient,
        _smooth(),
        0.5,
    ),
    Law(
        "gradient-of-initial-state",
        "the gradient by the initial state is the declaration's",
        _check(False, True, True, False),
        _needs_both,
        _smooth("start"),
        0.5,
    ),
    Law(
        "gradient-through-final-state",
        "the gradient of the final state is the declaration's",
        _check(True, True, False, True),
        _needs_both,
        _smooth("start"),
        0.5,
    ),
)
