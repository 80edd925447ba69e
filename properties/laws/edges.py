"""Edges: no token, one token, and inputs so large, small or degenerate that a careless formula overflows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..operator import Form, FormRaised, Operator
from ..strategies import SCALINGS, Case
from .table import Comparison, Law, instance, needs, outputs, reference, state_after


def _finite(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, state = operator.run(form.function, x)
    yield outputs("output", found, truth)
    known = ~np.isnan(truth.output)
    yield Comparison("finite outputs", np.isfinite(found).astype(float), known.astype(float), (~known).astype(float))
    if truth.states is not None and state is not None:
        yield state_after("final state", state, truth, operator.length(x))


def _extreme(case: Case) -> Case:
    """The case at an edge of the domain; float16, which has no room, becomes float32."""
    edge = ("huge", "vanishing", "edge")[case.seed % 3]
    kept = tuple(f for f in case.flags if f != "dyadic")
    return replace(case, dtype="float32" if case.dtype == "float16" else case.dtype, flags=(*kept, edge))


def _outside(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    try:
        found, state = operator.run(form.function, x)
    except FormRaised:
        yield Comparison("refused", np.ones(1), np.ones(1), np.zeros(1))
        return
    yield outputs("output outside the domain", found, truth)
    if truth.states is not None and state is not None:
        yield state_after("final state outside the domain", state, truth, operator.length(x))


def _beyond(case: Case) -> Case:
    """A short case outside of the domain: errors grow there."""
    kept = tuple(f for f in case.flags if f in ("start", *SCALINGS))
    return replace(case.resized(t=min(case.size("t"), 8)), flags=(*kept, "outside"))


def _empty_and_single(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    for n in form.limits.kept("t", (0, 1)):
        found, state = operator.run(form.function, operator.cut(x, 0, n))
        if n == 0:
            shape = np.array(truth.output[:, :0].shape, float)
            yield Comparison("shape for no token", np.array(np.shape(found), float), shape, np.zeros_like(shape))
        else:
            yield outputs("output of one token", found, truth, 0, 1)
        if truth.states is not None and form.takes(operator.final_argument):
            yield state_after(f"state after {n} tokens", state, truth, n)


def _some(case: Case) -> Case:
    """At least one token; of none, a state may come back as it is."""
    sizes = dict(case.sizes)
    return case.resized(t=max(1, sizes["t"])) if "t" in sizes else case


LAWS = (
    Law("finite-at-the-edges", "at the edges of the domain outputs are finite and right", _finite, needs("edges"), _extreme, kinds=("K4",)),
    Law(
        "outside-the-domain",
        "outside the domain: the recurrence as it is written, or an error",
        _outside,
        needs("outside"),
        _beyond,
        0.5,
        kinds=("K4",),
    ),
    Law(
        "empty-and-single",
        "no token hands the state back, one token is the closed form",
        _empty_and_single,
        needs("sequence", "causal"),
        _some,
        kinds=("K2", "K3", "K15"),
    ),
)
