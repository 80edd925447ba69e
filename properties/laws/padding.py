"""Padding: tokens that change nothing, before, behind and between the others, whatever else they contain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..limits import NONFINITE
from ..operator import Form, Instance, Operator
from ..strategies import Case
from ..tensors import rounded
from .decoding import ways
from .table import Comparison, Law, instance, needs, reference

Array = np.ndarray[Any, Any]
ADDED = 3
"""Tokens of padding, at least."""
LOUD = 64.0
"""The size of what padding contains, next to the largest entry of the inputs."""


def _padding(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    assert truth.states is not None
    steps, rng = operator.length(x), case.rng(500)
    total = form.limits.fit_size("t", steps + ADDED)
    for number, (where, positions) in enumerate(_places(steps, total, truth.output.shape[0], rng).items()):
        zero = operator.neutral[(case.seed + number) % len(operator.neutral)]
        padded = _spread(operator, x, positions, total, zero, rng)
        beside = operator.refer(padded)
        assert beside.states_bound is not None
        found, state = operator.run(form.function, padded)
        for n, at in enumerate(positions):
            beneath = f"of sequence {n} with padding {where} ({' = '.join((*zero, '0'))})"
            own = found[n, at] if found.shape == beside.output.shape else found
            yield Comparison(f"output {beneath}", own, truth.output[n, : len(at)], beside.bound[n, at], beside.sharp[n, at])
            if state is not None:
                yield Comparison(f"final state {beneath}", state[n], truth.states[n, len(at)], beside.states_bound[n, -1])


def _places(steps: int, total: int, batch: int, rng: Any) -> dict[str, list[Array]]:
    """Where the tokens of each sequence stand, by where the padding does; the sequences have fewer and fewer tokens."""
    real = [max(0, steps - n) for n in range(batch)]
    return {
        "behind": [np.arange(n) for n in real],
        "before": [np.arange(total - n, total) for n in real],
        "between": [np.sort(rng.permutation(total)[:n]) for n in real],
    }


def _spread(operator: Operator, x: Instance, positions: list[Array], total: int, zero: tuple[str, ...], rng: Any) -> Instance:
    """The tokens at these places of each sequence, and loud ones elsewhere of which some inputs are 0."""
    inputs = dict(x.inputs)
    for name, whole in x.inputs.items():
        i = operator.axes[name]
        if "t" not in i.of(whole):
            continue
        time = i.of(whole).index("t")
        given = np.moveaxis(whole, time, 1)
        shape = (len(positions), total, *given.shape[2:])
        largest = np.abs(given[np.isfinite(given)]).max(initial=0.0) or 1.0
        padded = rounded(i.other(-(rng.standard_normal(shape) ** 2) * LOUD * largest), x.dtype)
        padded = padded.astype(np.result_type(padded, whole))
        if name in zero:
            padded = np.moveaxis(np.broadcast_to(operator.neutral_value(x, name), np.moveaxis(padded, 1, time).shape), time, 1).copy()
        for n, at in enumerate(positions):
            padded[n, at] = given[n, : len(at)]
        inputs[name] = np.moveaxis(padded, 1, time)
    return replace(x, inputs=inputs)


def _masked(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """A weight that is 0 adds no rounding, so the bound is that of the tokens alone."""
    x, rng = instance(operator, case), case.rng(501)
    batch = reference(operator, case).output.shape[0]
    total = form.limits.fit_size("t", operator.length(x) + ADDED)
    for where, positions in _places(operator.length(x), total, batch, rng).items():
        alone = [operator.refer(operator.cut(x, 0, len(at))) for at in positions]
        for kind, content in (("numbers", LOUD), ("NaN", np.nan))[: 1 if NONFINITE in form.limits.refuses else 2]:
            padded = _hidden(operator, x, positions, total, content, rng)
            for how, function in (("", form.function), *ways(operator, form, case, padded)):
                found, _ = operator.run(function, padded)
                for n, (at, truth) in enumerate(zip(positions, alone, strict=True)):
                    own = found[n, at] if found.shape[:2] == (batch, operator.length(padded)) else found
                    right = (a[n] for a in (truth.output, truth.bound, truth.sharp))
                    what = f"output {how} of sequence {n} with masked {kind} {where}".replace("  ", " ")
                    yield Comparison(what, own, *right)


def _hidden(operator: Operator, x: Instance, positions: list[Array], total: int, content: float, rng: Any) -> Instance:
    """The tokens at these places of each sequence, a mask that shows them alone, and other content elsewhere."""
    inputs = {}
    for name, given in x.inputs.items():
        if not {"t", "s"} & set(operator.axes[name].of(given)):
            inputs[name] = given
            continue
        shape = (len(positions), total, *given.shape[2:])
        inputs[name] = rounded(rng.standard_normal(shape) * content * (np.abs(given).max(initial=0.0) or 1.0), x.dtype)
        for n, at in enumerate(positions):
            inputs[name][n, at] = given[n, : len(at)]
    shown = np.zeros((len(positions), total), bool)
    for n, at in enumerate(positions):
        shown[n, at] = True
    return replace(x, inputs=inputs | {"mask": shown})


def _unmasked(case: Case) -> Case:
    """A case without a mask and a window, in which each token has its key: a window would count the padding."""
    others = ("mask", "padding", "padding-left", "padding-right", "edge", "hidden", "window", "longer", "shorter")
    return replace(case, flags=tuple(f for f in case.flags if f not in others))


def _takes_a_mask(operator: Operator, form: Form) -> str:
    return needs("padding-mask")(operator, form) or ("" if form.takes("mask") else "the form has no argument mask")


def _has_neutral_tokens(operator: Operator, form: Form) -> str:
    return "" if operator.neutral else f"{operator.name} has no token that changes nothing"


LAWS = (
    Law(
        "padding",
        "tokens that change nothing change nothing, the final state included",
        _padding,
        _has_neutral_tokens,
        weight=0.5,
        kinds=("K6",),
    ),
    Law(
        "padding-mask",
        "tokens that are masked change nothing, whatever they contain",
        _masked,
        _takes_a_mask,
        _unmasked,
        0.5,
        ("K6", "K9"),
    ),
)
