"""Sight: a row depends on the keys that it may see, all of them and no other, whatever stands behind the mask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..limits import NONFINITE
from ..operator import Form, Instance, Operator
from ..strategies import Case
from . import gradients
from .decoding import ways
from .table import Comparison, Law, instance, needs, outputs, reference

SPOILT = 8
"""Keys that are spoilt in turn, at most."""
BY_INPUTS = next(law for law in gradients.LAWS if law.name == "gradient-of-inputs")


def _sight(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    assert operator.sees is not None
    x, truth = instance(operator, case), reference(operator, case)
    seen = operator.sees(x)
    keys = seen.shape[2]
    for j in case.rng(600).permutation(keys)[:SPOILT]:
        name = "vk"[int(j) % 2]
        spoilt = _nan_at(x, name, int(j))
        nan = np.broadcast_to(seen[:, :, j, None, None], truth.output.shape)
        for how, function in (("", form.function), *ways(operator, form, case, x)):
            found, _ = operator.run(function, spoilt)
            what = f"{how} with NaN in {name}[{j}]".strip()
            if found.shape != nan.shape:
                yield outputs(f"output {what}", found, truth)
                continue
            yield Comparison(f"rows that are NaN {what}", np.isnan(found).astype(float), nan.astype(float), np.zeros(nan.shape))
            others, right = (np.where(nan, 0, a) for a in (found, truth.output))
            yield Comparison(f"rows that do not see it {what}", others, right, truth.bound, truth.sharp)


def _nan_at(x: Instance, name: str, key: int) -> Instance:
    spoilt = x.inputs[name].copy()
    spoilt[:, key] = np.nan
    return replace(x, inputs={**x.inputs, name: spoilt})


def _window(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    width = case.size("window")
    for n in form.limits.kept("t", {1, width - 1, width, width + 1, 2 * width + 1} - {0}):
        part = operator.cut(x, 0, n)
        for how, function in (("", form.function), *ways(operator, form, case, part)):
            found, _ = operator.run(function, part)
            yield outputs(f"{n} tokens {how} in a window of {width}", found, truth, 0, n)


def _around(case: Case) -> Case:
    """Tokens for two windows and one more."""
    kept = tuple(f for f in case.flags if f != "window")
    return replace(case.resized(t=2 * case.size("window") + 1), flags=(*kept, "window"))


def _behind(case: Case) -> Case:
    """A few tokens, with NaN and infinity behind a mask that leaves rows without a key."""
    padding = ("padding-left", "padding", "padding-right")[case.seed % 3]
    smooth = BY_INPUTS.prepare(case)
    kept = tuple(f for f in smooth.flags if f not in ("mask", "padding", "padding-left", "padding-right"))
    return replace(smooth.resized(t=min(smooth.size("t"), gradients.FEW)), flags=(*kept, padding, "hidden"))


def _sees(operator: Operator, form: Form) -> str:
    if operator.sees is None:
        return f"{operator.name} has no keys that a row could be kept from seeing"
    return form.limits.reason(NONFINITE) if NONFINITE in form.limits.refuses else ""


def _masks(operator: Operator, form: Form) -> str:
    return needs("gradient")(operator, form) or _sees(operator, form)


LAWS = (
    Law("sight", "a row is NaN where a key that it sees is, and no other row changes", _sight, _sees, weight=0.5, kinds=("K8", "K9")),
    Law("window", "a row sees as many of the latest keys as the window is wide, or all", _window, needs("window"), _around, kinds=("K10",)),
    Law(
        "gradient-behind-the-mask", "gradients are right and finite whatever is masked", BY_INPUTS.check, _masks, _behind, 0.5, ("K5", "K9")
    ),
)
