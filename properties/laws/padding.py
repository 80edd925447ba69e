"""Padding: tokens that change nothing, before, behind and between the others, whatever else they contain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, Instance, Operator
from ..strategies import Case
from ..tensors import rounded
from .table import Comparison, Law, instance, reference

Array = np.ndarray[Any, Any]
ADDED = 3
"""Tokens of padding, at least."""
LOUD = 64.0
"""The size of what padding contains, next to the largest entry of the inputs."""


def _padding(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    assert truth.states is not None
    steps, batch = operator.length(x), truth.output.shape[0]
    real = [max(0, steps - n) for n in range(batch)]
    rng = case.rng(500)
    total = steps + ADDED
    places = {
        "behind": [np.arange(n) for n in real],
        "before": [np.arange(total - n, total) for n in real],
        "between": [np.sort(rng.permutation(total)[:n]) for n in real],
    }
    for number, (where, positions) in enumerate(places.items()):
        zero = operator.neutral[(case.seed + number) % len(operator.neutral)]
        padded = _spread(operator, x, positions, total, zero, rng)
        beside = operator.refer(padded)
        assert beside.states_bound is not None
        found, state = operator.run(form.function, padded)
        for n, at in enumerate(positions):
            what = f"padding {where}, {' and '.join(zero)} being 0"
            own = found[n, at] if found.shape == beside.output.shape else found
            yield Comparison(f"output beside {what}", own, truth.output[n, : len(at)], beside.bound[n, at], beside.sharp[n, at])
            if state is not None:
                yield Comparison(f"final state with {what}", state[n], truth.states[n, len(at)], beside.states_bound[n, -1])


def _spread(operator: Operator, x: Instance, positions: list[Array], total: int, zero: tuple[str, ...], rng: Any) -> Instance:
    """The tokens at these places of each sequence, and loud ones elsewhere of which some inputs are 0."""
    inputs = dict(x.inputs)
    for i in operator.inputs:
        if i.name not in inputs or "t" not in i.axes.split():
            continue
        given = inputs[i.name]
        shape = (len(positions), total, *given.shape[2:])
        largest = np.abs(given[np.isfinite(given)]).max(initial=0.0) or 1.0
        loud = rounded(i.other(-rng.standard_normal(shape) ** 2 * LOUD * largest), x.dtype)
        inputs[i.name] = np.zeros_like(loud) if i.name in zero else loud
        for n, at in enumerate(positions):
            inputs[i.name][n, at] = given[n, : len(at)]
    return replace(x, inputs=inputs)


def _has_neutral_tokens(operator: Operator, form: Form) -> str:
    return "" if operator.neutral else f"{operator.name} has no token that changes nothing"


LAWS = (Law("padding", "tokens that change nothing change nothing, the final state included", _padding, _has_neutral_tokens, weight=0.5),)
