"""Discretisation rules: steps compose, equilibria stay, and a small step is the differential equation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import scipy_truth
from ..discretization import Rule, equilibrium, halved, parts
from ..operator import Form, Operator
from ..strategies import Case
from .table import Comparison, Law, instance, needs, reference

HELD = 3
"""How many inputs are held in a row."""


def _semigroup(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    half = halved(x)
    known = operator.refer(half)
    whole, _ = operator.run(form.function, x)
    found, _ = operator.run(form.function, half)
    n = found.shape[1]
    a, b = found[..., :n], found[..., n:]
    twice = np.concatenate([a @ a, a @ b + b], -1)
    size, wide = np.abs(known.output), known.bound
    a_size, a_wide = size[..., :n], wide[..., :n]
    spread = a_size @ wide + a_wide @ size + np.concatenate([np.zeros_like(a_wide), wide[..., n:]], -1)
    yield Comparison("two half steps", twice, whole, (spread + truth.bound) * (1 + 2.0**-7), spread + truth.bound)


def _equilibrium_stays(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, _ = operator.run(form.function, x)
    rest = equilibrium(case)
    n = found.shape[1]
    after = np.einsum("bij,bj->bi", found[..., :n], rest) + found[..., n]
    bound = np.einsum("bij,bj->bi", truth.bound[..., :n], np.abs(rest)) + truth.bound[..., n]
    yield Comparison("the state after a step from the equilibrium", after, rest.astype(found.dtype), bound)


def _small_step(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """Against I + z + … + z^p / p! and the like for ΔB, where p is the rule's order and ‖z‖ <= 2⁻¹², in float64 2⁻²⁶.

    What a rule leaves out is a power series from z^{p+1} on (from z^p on beside ΔB) whose coefficients are at most ¼:
    less than ‖z‖^{p+1}, and beside ΔB less than ‖z‖^p, which at p = 2 is about a unit of rounding.
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
        z = float(np.abs(delta * a).sum(-1).max())
        first = np.hstack([delta * a, (delta * b)[:, None]])
        series = np.eye(n, n + 1) + (first if operator.order == 1 else first + delta * a @ first / 2)
        sizes = np.full((n, n + 1), z ** (operator.order + 1))
        sizes[:, n] = z**operator.order * float(np.abs(delta * b).max())
        yield Comparison("[I + ΔA + …, ΔB + …]", found[r], series, sizes + truth.bound[r])


def _held_input(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x, truth = instance(operator, case), reference(operator, case)
    found, _ = operator.run(form.function, x)
    n = found.shape[1]
    for r in range(len(found)):
        a, b, delta = parts(x, r)
        u, start = case.rng(400).standard_normal(HELD), case.rng(401).standard_normal(n) * delta * float(np.abs(b).max())
        exact = scipy_truth.response(a, b, u, delta, start)
        state, wide = start, np.zeros(n)
        for k in range(HELD):
            local = truth.bound[r, :, :n] @ np.abs(exact[k]) + truth.bound[r, :, n] * np.abs(u[k])
            state, wide = found[r, :, :n] @ state + found[r, :, n] * u[k], np.abs(truth.output[r, :, :n]) @ wide + local
        yield Comparison(f"the state after {HELD} held inputs", state, exact[-1], wide * (1 + 2.0**-7))


def _real(case: Case) -> Case:
    """A real case with a step that is not 0, next to whose float32 SciPy's float64 is exact."""
    return replace(case, dtype="float32", flags=tuple(f for f in case.flags if f not in ("complex", "step-zero")))


def _resting(case: Case) -> Case:
    kept = tuple(f for f in case.flags if f != "complex")
    return replace(case, dtype="float64" if case.dtype == "float64" else "float32", flags=(*kept, "equilibrium"))


LAWS = (
    Law("semigroup", "two half steps are a whole one", _semigroup, needs("semigroup")),
    Law(
        "equilibrium-stays",
        "a state at which the derivative is 0 stays where it is",
        _equilibrium_stays,
        needs("discretization"),
        _resting,
    ),
    Law("held-input", "steps with held inputs are the solution of the differential equation", _held_input, needs("semigroup"), _real),
    Law("small-step", "a small step is the Taylor series of the solution, to the order of the rule", _small_step, needs("discretization")),
)
