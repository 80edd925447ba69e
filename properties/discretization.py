"""Discretisation rules under test: from (A, B, Δ) to (Ā, B̄), compared as the block row [Ā, B̄]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.discretization import DECLARATIONS

from . import oracle, strategies
from .bounds import EXACT
from .holding import RULES, Numerics, Slope
from .operator import FormRaised, Input, Instance, Operator, Reference
from .strategies import LARGE, ORDINARY, SMALL, Case
from .tensors import precision, rounded, tensors_in, values

Array = np.ndarray[Any, Any]
INPUTS = (Input("A", "b n n|b n", "any; (n) if diagonal"), Input("B", "b n"), Input("delta", "b", "delta >= 0"))
SHAPES = ("zero", "singular", "defective", "nilpotent", "stiff", "skew")
STEPS = ("step-zero", "step-tiny", "step-two", "step-ten")


def draw(case: Case) -> Instance:
    """A of the case's structure, B of its scale, and Δ: 0, 1e-8, 2, 10, or uniform in an interval."""
    b, n = case.size("b"), case.size("n")
    rng = case.rng(1)
    a = np.stack([matrix(case, n, rng) for _ in range(b)])
    drive = rng.standard_normal((b, n)) * case.unit
    if case.has("complex"):
        a, drive = a + 0.5j * rng.standard_normal(a.shape), drive + 1j * drive[:, ::-1]
    if case.has("equilibrium"):
        a = np.round(a * 16) / 16
        rest = equilibrium(case)
        drive = -(a * rest if a.ndim == 2 else np.einsum("bij,bj->bi", a, rest))
    low, high = {SMALL: (0.001, 0.02), LARGE: (0.2, 1.0), ORDINARY: (0.2, 1.0)}[case.scale]
    chosen = next((s for f, s in (("step-zero", 0.0), ("step-tiny", 1e-8), ("step-two", 2.0), ("step-ten", 10.0)) if case.has(f)), None)
    delta = rng.uniform(low, high, b) if chosen is None else np.full(b, chosen)
    inputs = {"A": rounded(a, case.dtype), "B": rounded(drive, case.dtype), "delta": rounded(delta, case.dtype)}
    return Instance(inputs, None, {"diagonal": True} if case.has("diagonal") else {}, case.dtype)


def equilibrium(case: Case) -> Array:
    """The state at which A x + B = 0 in a case with that flag: small integers."""
    return case.rng(2).integers(-2, 3, (case.size("b"), case.size("n"))).astype(float)


def matrix(case: Case, n: int, rng: np.random.Generator) -> Array:
    """One A (n, n), or its diagonal (n)."""
    poles = -rng.uniform(0.1, 2.0, n)
    if case.has("step-two"):
        poles[0] = -1.0  # at Δ = 2, where the bilinear rule has the pole 0 and Euler's -1
    if case.has("zero"):
        poles *= 0
    if case.has("singular"):
        poles[::2] = 0
    if case.has("stiff"):
        poles = np.where(np.arange(n) % 2, -1e-2, -(1e4 if case.dtype == "float64" else 30.0))
    if case.has("diagonal"):
        return poles
    if case.has("nilpotent"):
        return np.triu(rng.standard_normal((n, n)), 1)
    if case.has("defective"):
        return -0.5 * np.eye(n) + np.eye(n, k=1)
    if case.has("skew"):
        m = rng.standard_normal((n, n))
        return m - m.T
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return basis @ np.diag(poles) @ basis.T


def parts(x: Instance, row: int) -> tuple[Array, Array, float]:
    """A as a matrix, B and Δ of one member of the batch."""
    a = x.inputs["A"][row]
    return np.diag(a) if a.ndim == 1 else a, x.inputs["B"][row], float(x.inputs["delta"][row])


def refer(x: Instance, declaration: Any, numerics: Numerics) -> Reference:
    """The truth [Ā, B̄], (b, n, n + columns), and its bound; entries off the diagonal of a diagonal rule are exactly 0."""
    b, n = x.inputs["B"].shape
    kind = complex if np.iscomplexobj(x.inputs["A"]) or np.iscomplexobj(x.inputs["B"]) else float
    out, wide = np.zeros((b, n, n + numerics.columns), kind), np.zeros((b, n, n + numerics.columns))
    drives = range(n, n + numerics.columns)
    for row in range(b):
        a, drive, delta = parts(x, row)
        out[row] = oracle.pair(declaration, a, drive, delta)
        for p in (precision(x.dtype, x.precision), EXACT):
            if "diagonal" in x.options:
                for i in range(n):
                    own = [i, *drives]
                    each = numerics.pole(
                        delta * a[i : i + 1, i : i + 1], delta * drive[i : i + 1], out[row, i : i + 1, own].reshape(1, -1), p
                    )
                    wide[row, i, own] += each[0]
            else:
                wide[row] += numerics.bound(delta * a, delta * drive, out[row], p)
    return Reference(out, wide, wide)


def derive(x: Instance, declaration: Any, numerics: Numerics, toward: Mapping[str, Array], weights: Array) -> tuple[float, float]:
    """The derivative of Σ weights · [Ā, B̄] in a direction, and its bound; a diagonal rule pole by pole."""
    moves = replace(x, inputs={**x.inputs, **toward})
    p = precision(x.dtype, x.precision)
    value = size = 0.0
    for row in range(len(x.inputs["B"])):
        (a, b, delta), (da, db, dd) = parts(x, row), parts(moves, row)
        diagonal = "diagonal" in x.options
        for i in [np.array([i]) for i in range(len(b))] if diagonal else [np.arange(len(b))]:
            here, there = (a[np.ix_(i, i)], b[i], delta), (da[np.ix_(i, i)], db[i], dd)
            w = weights[row][np.ix_(i, [*i, *range(len(b), len(b) + numerics.columns)])]
            value += float((w * oracle.pair_slope(declaration, here, there)).sum())
            truth = oracle.pair(declaration, *here)
            change = dd * here[0] + delta * there[0], dd * here[1] + delta * there[1]
            at = Slope(delta * here[0], delta * here[1], truth, *change, np.abs(w))
            size += (numerics.pole_slope if diagonal else numerics.slope)(at, p)
    return value, size + p.tiny


@dataclass(frozen=True, eq=False)
class Rule(Operator):
    """A discretisation rule: its two results are compared as one block row. ``columns`` are those of B̄, one an input that it reads."""

    columns: int = 1
    series: tuple[tuple[float, ...], ...] = ()

    def run(self, function: Callable[..., Any], x: Instance, layout: str = "contiguous", **more: Any) -> tuple[Array, Any]:
        """[Ā, B̄] as one array (b, n, n + columns), a diagonal Ā as a matrix."""
        a, b = self.call(function, x, layout, **more)
        if not tensors_in(b):
            raise FormRaised(f"returned {type(b).__name__} for B̄, which is no tensor")
        a, b = values(a), values(b)
        wide = b[..., None] if self.columns == 1 else b
        if "diagonal" in x.options and a.shape == wide.shape[:-1]:
            a = a[..., None] * np.eye(a.shape[-1])
        if a.shape[:-1] != wide.shape[:-1] or wide.shape[-1] != self.columns:
            raise FormRaised(f"returned Ā of shape {a.shape} and B̄ of shape {b.shape}")
        return np.concatenate([a, wide], -1), None

    def weighed(self, out: Any, state: Any, weights: Array, final: Array | None) -> list[tuple[Any, Array]]:
        """Ā and B̄ beside their columns of the weights."""
        square, drive = weights[..., : -self.columns], weights[..., -self.columns :]
        return [
            (out, square if out.ndim == square.ndim else np.einsum("bii->bi", square)),
            (state, drive[..., 0] if self.columns == 1 else drive),
        ]


def independent(x: Instance, numerics: Numerics) -> Array:
    """SciPy's [Ā, B̄], a diagonal rule pole by pole."""
    rows = []
    for row in range(len(x.inputs["B"])):
        a, b, delta = parts(x, row)
        n, columns = len(b), numerics.columns
        poles = [np.array([i]) for i in range(n)] if "diagonal" in x.options else [np.arange(n)]
        out = np.zeros((n, n + columns), np.result_type(a, b))
        for i in poles:
            out[np.ix_(i, i)], drive = numerics.rule(a[np.ix_(i, i)], b[i], delta)
            out[i, n:] = drive.reshape(-1, columns)
        rows.append(out)
    return np.stack(rows)


SHAPE = strategies.sizes(b=st.integers(1, 3), n=st.integers(1, 5))


def corners(name: str) -> Iterator[Case]:
    """Cases that every run has."""
    for seed, (n, scale, dtype, flags) in enumerate(
        (
            (3, SMALL, "float32", ()),
            (3, LARGE, "float32", ("singular",)),
            (2, LARGE, "float32", ("defective",)),
            (4, SMALL, "float32", ("singular", "diagonal")),
            (4, LARGE, "float32", ("diagonal", "complex")),
            (3, LARGE, "float64", ("stiff",)),
            (4, LARGE, "float32", ("nilpotent",)),
            (3, SMALL, "float32", ("diagonal", "step-tiny")),
            (3, LARGE, "float64", ("diagonal", "step-ten", "stiff")),
            (3, LARGE, "float32", ("zero",)),
            (4, LARGE, "float32", ("skew", "step-two")),
            (2, LARGE, "float32", ("complex",)),
            (3, LARGE, "float32", ("diagonal", "step-two")),
        )
    ):
        yield Case(name, (("b", 2), ("n", n)), seed, dtype, scale, flags)


def operator(declaration: Any, numerics: Numerics) -> Operator:
    """One rule."""
    structure = strategies.flags(("diagonal",), SHAPES, ("complex",), STEPS)
    name = declaration.operator
    return Rule(
        name=name,
        declaration=declaration,
        inputs=INPUTS,
        state_axes="",
        capabilities=frozenset({"discretization", "batch", "gradient", *numerics.capabilities}),
        cases=strategies.cases(name, SHAPE, structure),
        corners=lambda: tuple(corners(name)),
        draw=draw,
        refer=lambda x: refer(x, declaration, numerics),
        derive=lambda x, toward, push, weights, final: derive(x, declaration, numerics, toward, weights),
        independent=lambda x: independent(x, numerics),
        columns=numerics.columns,
        series=numerics.series,
    )


def halved(x: Instance) -> Instance:
    """The instance with half the step, exactly."""
    return replace(x, inputs={**x.inputs, "delta": x.inputs["delta"] / 2})


OPERATORS = tuple(operator(d, RULES[d.operator]) for d in DECLARATIONS)
