"""A form computes its operator: outputs and states are those of the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Form, Operator
from ..strategies import LARGE, SMALL, Case
from ..tensors import SHORT
from .gradients import WEAK
from .table import Comparison, Law, hands_out_state, instance, needs, outputs, reference, state_after

LONG = 1025
"""Tokens of a long sequence: not a whole number of chunks."""
TILES = (64, 65, 128)
"""Tokens that are whole tiles of a kernel whose chunk size is its own, and one more."""


def _form_is_oracle(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, _ = operator.run(form.function, x)
    yield outputs("output", found, truth)


def _state_is_oracle(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    steps = operator.length(x)
    drawn = case.rng(100).integers(0, steps + 1, 2)
    for n in form.limits.kept("t", {0, 1, max(0, steps - 1), steps, *TILES, *(int(d) for d in drawn)} & set(range(steps + 1))):
        found, state = operator.run(form.function, operator.cut(x, 0, n))
        if n in TILES:
            yield outputs(f"output of {n} tokens", found, truth, 0, n)
        yield state_after(f"state after {n} tokens", state, truth, n)


def _state_on_request(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    not_asked: dict[str, Any] = {operator.final_argument: False}
    found, _ = operator.run(form.function, x, **not_asked)
    yield outputs("output where no state is asked for", found, truth)


def _exact_bits(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, state = operator.run(form.function, x)
    yield Comparison("output", found, truth.output, np.zeros_like(truth.bound))
    if truth.states is not None and state is not None:
        yield Comparison("final state", state, truth.states[:, -1], np.zeros(truth.states[:, -1].shape))


def _independent(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    assert operator.independent is not None
    x, truth = instance(operator, case), reference(operator, case)
    found, _ = operator.run(form.function, x)
    other = operator.independent(x)
    yield Comparison("output beside SciPy", found, other, truth.bound, truth.sharp)
    yield Comparison("the declaration beside SciPy", truth.output, other, truth.bound, truth.sharp)


def _long_sequence(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, state = operator.run(form.function, x)
    yield outputs("output", found, truth)
    if truth.states is not None and state is not None:
        yield state_after("final state", state, truth, operator.length(x))


def many_tokens(case: Case) -> Case:
    """One case per scale, and one in 16 bits: many tokens of one small head, whose gates, if there are any, forget little.

    In 16 bits all tokens add the same, of which a sum in 16 bits would soon take no notice. Large inputs come with weak
    corrections, next to which the bound of a form in long chunks is narrow.
    """
    small = replace(case.resized(b=1, t=LONG, h=1, groups=1, k=4, v=2, chunk=16, c=2, d=2, g=1, n=2, w=4), seed=0)
    if case.dtype in SHORT:
        return replace(small, dtype="bfloat16", scale=SMALL, flags=("long-memory", "constant", "time-invariant"))
    return replace(small, dtype="float32", flags=("start", "long-memory", *([WEAK] if case.scale == LARGE else [])))


def _has_independent(operator: Operator, form: Form) -> str:
    return "" if operator.independent is not None else f"SciPy has no {operator.name}"


def _single(case: Case) -> Case:
    """In float32 or in 16 bits, next to which SciPy's float64 is exact."""
    return case if case.dtype in SHORT else replace(case, dtype="float32")


def _dyadic(case: Case) -> Case:
    kept = tuple(f for f in case.flags if f in ("start",))
    dtype = "float64" if case.dtype == "float64" else "float32"
    return replace(case, flags=(*kept, "dyadic"), dtype=dtype)


LAWS = (
    Law("form-equals-oracle", "the outputs are those of the declaration", _form_is_oracle, kinds=("K1", "K4", "K9", "K12", "K15", "K17")),
    Law(
        "state-equals-oracle",
        "the state handed out is that of the declaration after exactly n tokens",
        _state_is_oracle,
        hands_out_state,
        kinds=("K2", "K12"),
    ),
    Law(
        "state-on-request",
        "the outputs are the same where no state is asked for",
        _state_on_request,
        hands_out_state,
        weight=0.5,
        kinds=("K2",),
    ),
    Law("long-sequence", "errors do not pile up over many tokens", _long_sequence, needs("long"), many_tokens, kinds=("K12",)),
    Law("scipy-agrees", "the outputs are those of SciPy", _independent, _has_independent, _single, 0.5, ("K16", "K17", "K19")),
    Law(
        "exact-bits",
        "where every intermediate is representable, every bit is right",
        _exact_bits,
        needs("dyadic"),
        _dyadic,
        kinds=("K15", "K17", "K19"),
    ),
)
