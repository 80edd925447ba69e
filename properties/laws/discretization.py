"""Discretisation rules: steps compose, equilibria stay, and a small step is the differential equation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..discretization import equilibrium, halved, parts
from ..operator import Form, Operator
from ..strategies import Case
from .table import Comparison, Law, instance, needs, reference


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
    x = instance(operator, case)
    norms = [float(np.abs(parts(x, r)[0]).sum(-1).max()) for r in range(len(x.inputs["B"]))]
    x = replace(x, inputs={**x.inputs, "delta": np.array([2.0 ** -(12 + max(0, int(np.ceil(np.log2(m or 1))))) for m in norms])})
    truth = operator.refer(x)
    found, _ = operator.run(form.function, x)
    n = found.shape[1]
    for r in range(len(norms)):
        a, b, delta = parts(x, r)
        z = float(np.abs(delta * a).sum(-1).max())
        first = np.hstack([np.eye(n) + delta * a, (delta * b)[:, None]])
        left_out = np.hstack([np.full((n, n), z * z), np.full((n, 1), z * float(np.abs(delta * b).max()))])
        yield Comparison("[I + ΔA, ΔB]", found[r], first, left_out + truth.bound[r])


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
    Law("small-step", "a small step is I + ΔA and ΔB, up to its square", _small_step, needs("discretization")),
)
