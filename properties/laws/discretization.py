"""Discretisation rules: steps compose, equilibria stay, and a small step is the differential equation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import scipy_truth
from ..discretization import Rule, equilibrium, halved, parts
from ..operator import Form, Operator
from ..strategies import Case
from .table import Comparison, Law, instance, needs, reference

Array = np.ndarray[Any, Any]
HELD = 3
"""How many inputs are held in a row."""


def _semigroup(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    half = halved(x)
    known = operator.refer(half)
    whole, _ = operator.run(form.function, x)
    found, _ = operator.run(form.function, half)
    n = found.shape[1]
    size, wide = np.abs(known.output), known.bound
    spread = _after(size, wide[..., :n], wide[..., n:]) + _after(wide, size[..., :n], 0 * wide[..., n:])
    twice = _after(found, found[..., :n], found[..., n:])
    yield Comparison("two half steps", twice, whole, (spread + truth.bound) * (1 + 2.0**-7), spread + truth.bound)


def _after(first: Array, a: Array, b: Array) -> Array:
    """The rule [a, b] after the first one, with an input that is held, or a line: in the middle it is the mean of the ends."""
    n = first.shape[1]
    driven = a @ first[..., n:]
    if b.shape[-1] == 1:
        return np.concatenate([a @ first[..., :n], driven + b], -1)
    middle = (driven[..., 1:] + b[..., :1]) / 2
    return np.concatenate([a @ first[..., :n], driven[..., :1] + middle, middle + b[..., 1:]], -1)


def _equilibrium_stays(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, _ = operator.run(form.function, x)
    rest = equilibrium(case)
    n = found.shape[1]
    after = np.einsum("bij,bj->bi", found[..., :n], rest) + found[..., n:].sum(-1)
    bound = np.einsum("bij,bj->bi", truth.bound[..., :n], np.abs(rest)) + truth.bound[..., n:].sum(-1)
    yield Comparison("the state after a step from the equilibrium", after, rest.astype(found.dtype), bound)


def _small_step(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """Against the first terms of the rule's series in z = ΔA, where ‖z‖ <= 2⁻¹², in float64 2⁻²⁶.

    The coefficients are at most 1, so that of p terms what is left out is at most ‖z‖^p / (1 - ‖z‖): of Ā, and of B̄ beside ΔB.
    """
    assert isinstance(operator, Rule)
    x = instance(operator, case)
    norms = [float(np.abs(parts(x, r)[0]).sum(-1).max()) for r in range(len(x.inputs["B"]))]
    small = 26 if case.dtype == "float64" else 12
    x = replace(x, inputs={**x.inputs, "delta": np.array([2.0 ** -(small + max(0, int(np.ceil(np.log2(m or 1))))) for m in norms])})
    truth = operator.refer(x)
    found, _ = operator.run(form.function, x)
    n = found.shape[1]
    for r in range(len(norms)):
        a, b, delta = parts(x, r)
        z, drive = delta * a, delta * b
        size = float(np.abs(z).sum(-1).max())
        square, *columns = operator.series
        series = np.column_stack([_series(square, z, np.eye(n)), *(_series(c, z, drive) for c in columns)])
        sizes = np.full(series.shape, size ** len(square) / (1 - size))
        for k, c in enumerate(columns):
            sizes[:, n + k] = size ** len(c) / (1 - size) * float(np.abs(drive).max())
        yield Comparison("[I + ΔA + …, ΔB + …]", found[r], series, sizes + truth.bound[r])


def _series(coefficients: tuple[float, ...], z: Array, start: Array) -> Array:
    """Σ cᵢ zⁱ start."""
    found, term = np.zeros(start.shape, np.result_type(z, start)), start
    for c in coefficients:
        found, term = found + c * term, z @ term
    return found


def _held_input(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    assert isinstance(operator, Rule)
    x, truth = instance(operator, case), reference(operator, case)
    found, _ = operator.run(form.function, x)
    n, line = found.shape[1], operator.columns - 1
    for r in range(len(found)):
        a, b, delta = parts(x, r)
        u, start = case.rng(400).standard_normal(HELD + line), case.rng(401).standard_normal(n) * delta * float(np.abs(b).max())
        exact = scipy_truth.response(a, b, u, delta, start, bool(line))
        state, wide = start, np.zeros(n)
        for k in range(HELD):
            now = u[k : k + 1 + line]
            local = truth.bound[r, :, :n] @ np.abs(exact[k]) + truth.bound[r, :, n:] @ np.abs(now)
            state, wide = found[r, :, :n] @ state + found[r, :, n:] @ now, np.abs(truth.output[r, :, :n]) @ wide + local
        yield Comparison(f"the state after {HELD} held inputs", state, exact[-1], wide * (1 + 2.0**-7))


def _real(case: Case) -> Case:
    """A real case with a step that is not 0, next to whose float32 SciPy's float64 is exact."""
    return replace(case, dtype="float32", flags=tuple(f for f in case.flags if f not in ("complex", "step-zero")))


def _resting(case: Case) -> Case:
    kept = tuple(f for f in case.flags if f != "complex")
    return replace(case, dtype="float64" if case.dtype == "float64" else "float32", flags=(*kept, "equilibrium"))


LAWS = (
    Law("semigroup", "two half steps are a whole one", _semigroup, needs("semigroup"), kinds=("K16",)),
    Law(
        "equilibrium-stays",
        "a state at which the derivative is 0 stays where it is",
        _equilibrium_stays,
        needs("equilibria"),
        _resting,
        kinds=("K16",),
    ),
    Law(
        "held-input",
        "steps with inputs held, or lines, are the solution of the differential equation",
        _held_input,
        needs("semigroup"),
        _real,
        kinds=("K16",),
    ),
    Law("small-step", "a small step is the Taylor series of the rule", _small_step, needs("discretization"), kinds=("K16",)),
)
