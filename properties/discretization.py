"""Discretisation rules under test: from (A, B, Δ) to (Ā, B̄), compared as the block row [Ā, B̄]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import linalg

from isoform.derivations.discretization import DECLARATIONS

from . import oracle, scipy_truth, strategies
from .bounds import EXACT, gamma
from .operator import FormRaised, Input, Instance, Operator, Reference
from .strategies import LARGE, SMALL, Case
from .tensors import Precision, precision, rounded, tensors_in, values

Array = np.ndarray[Any, Any]
PairBound = Callable[[Array, Array, Array, Precision], Array]
"""(ΔA, ΔB, true [Ā, B̄], precision) to the bounds of [Ā, B̄]."""



@dataclass(frozen=True)
class Slope:
    """Where a derivative is taken: ΔA, ΔB, the true [Ā, B̄], the changes of ΔA and ΔB, and |weights|."""

    z: Array
    drive: Array
    truth: Array
    dz: Array
    ddrive: Array
    weights: Array


INPUTS = (Input("A", "b n n|b n", "any; (n) if diagonal"), Input("B", "b n"), Input("delta", "b", "delta >= 0"))
SHAPES = ("zero", "singular", "defective", "nilpotent", "stiff", "skew")
STEPS = ("step-zero", "step-tiny", "step-two")
HUMP = 8
"""Points at which norms of e^{θ ΔA}, θ in [0, 1], are looked at."""


def draw(case: Case) -> Instance:
    """A of the case's structure, B of its scale, and Δ: 0, 1e-8, 2, or uniform in an interval."""
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
    low, high = {SMALL: (0.001, 0.02), LARGE: (0.2, 1.0)}[case.scale]
    chosen = next((s for f, s in (("step-zero", 0.0), ("step-tiny", 1e-8), ("step-two", 2.0)) if case.has(f)), None)
    delta = rng.uniform(low, high, b) if chosen is None else np.full(b, chosen)
    inputs = {"A": rounded(a, case.dtype), "B": rounded(drive, case.dtype), "delta": rounded(delta, case.dtype)}
    return Instance(inputs, None, {"diagonal": True} if case.has("diagonal") else {}, case.dtype)


def equilibrium(case: Case) -> Array:
    """The state at which A x + B = 0 in a case with that flag: small integers."""
    return case.rng(2).integers(-2, 3, (case.size("b"), case.size("n"))).astype(float)


def matrix(case: Case, n: int, rng: np.random.Generator) -> Array:
    """One A (n, n), or its diagonal (n)."""
    poles = -rng.uniform(0.1, 2.0, n)
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


def refer(x: Instance, declaration: Any, bound: PairBound, pole: PairBound) -> Reference:
    """The truth [Ā, B̄], (b, n, n + 1), and its bound; entries off the diagonal of a diagonal rule are exactly 0."""
    b, n = x.inputs["B"].shape
    kind = complex if np.iscomplexobj(x.inputs["A"]) or np.iscomplexobj(x.inputs["B"]) else float
    out, wide = np.zeros((b, n, n + 1), kind), np.zeros((b, n, n + 1))
    for row in range(b):
        a, drive, delta = parts(x, row)
        out[row] = oracle.pair(declaration, a, drive, delta)
        for p in (precision(x.dtype), EXACT):
            if "diagonal" in x.options:
                for i in range(n):
                    each = pole(delta * a[i : i + 1, i : i + 1], delta * drive[i : i + 1], out[row, i : i + 1, [i, n]].reshape(1, 2), p)
                    wide[row, i, [i, n]] += each[0]
            else:
                wide[row] += bound(delta * a, delta * drive, out[row], p)
    return Reference(out, wide, wide)


def pole_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """Zero-order hold of one pole by e^z and (e^z - 1)/z: an error δ in z costs e^z|δ|, in the quotient at most as much."""
    growth = np.abs(np.exp(z[0, 0]))
    of_b = np.abs(truth[0, 1]) + np.abs(drive[0]) * growth
    return np.array([[gamma(6, p.unit) * (1 + np.abs(z[0, 0])) * growth, gamma(9, p.unit) * of_b]]) + p.tiny


def largest_growth(w: Array) -> float:
    """The largest product of the norms of e^{aW}, e^{bW}, e^{cW} with a + b + c <= 1."""
    norms = np.array([np.linalg.norm(linalg.expm(w * m / HUMP), np.inf) for m in range(HUMP + 1)])
    m = np.arange(HUMP + 1)
    total = m[:, None, None] + m[None, :, None] + m[None, None, :]
    return float((norms[:, None, None] * norms[None, :, None] * norms[None, None, :])[total <= HUMP].max())


def hold_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """Zero-order hold by one exponential of the block W = [[ΔA, ΔB / s], [0, 0]], s the size of ΔB.

    The powers that a squaring starts from are off by γ, each of s levels rounds |e^{hW}|² with γ_{n+1}, in 2^s h
    places, and W itself is rounded: together γ_{n+8} (4‖W‖ + 4) at most, times the norms of the exact exponentials
    around an error.
    """
    n = len(drive)
    size = float(np.abs(drive).max()) or 1.0
    w = np.zeros((n + 1, n + 1), truth.dtype)
    w[:n, :n], w[:n, n] = z, drive / size
    hump = largest_growth(w)
    scale = np.ones(n + 1)
    scale[n] = size
    return gamma((n + 8) * (4 * float(np.linalg.norm(w, np.inf)) + 4), p.unit) * hump * np.tile(scale, (n, 1)) + p.tiny


def pole_slope(at: Slope, p: Precision) -> float:
    """Of one pole: e^z dz, φ₁ dB and φ₁' B dz, where |φ₁'| <= max(1, |e^z|); an error in z costs |z| more."""
    (z,), (drive,), (dz,), (dd,) = (np.abs(x).ravel() for x in (at.z, at.drive, at.dz, at.ddrive))
    growth = max(1.0, float(np.exp(at.z[0, 0])))
    terms = at.weights @ np.array([growth * dz, growth * (dd + drive * dz)])
    return float(gamma(24, p.unit) * (1 + z) * terms[0])


def hold_slope(at: Slope, p: Precision) -> float:
    """By one exponential of [[W, G], [0, W]] with the weights G, as backward passes have it: as `hold_bound`, for it."""
    n = len(at.drive)
    size = float(np.abs(at.drive).max()) or 1.0
    w, dw = np.zeros((2, n + 1, n + 1))
    w[:n, :n], w[:n, n], dw[:n, :n], dw[:n, n] = at.z, at.drive / size, at.dz, at.ddrive / size
    pull = float(at.weights[:, :n].sum() + size * at.weights[:, n].sum())
    norm = float(np.linalg.norm(w, np.inf))
    hump = largest_growth(w)
    count = (2 * n + 16) * (4 * (norm + pull) + 4)
    return gamma(count, p.unit) * hump**2 * (1 + hump * pull) * pull * float(np.linalg.norm(dw, np.inf))


def euler_slope(at: Slope, p: Precision) -> float:
    """Of ΔA and ΔB: 3 products a term, and sums of n (n + 1) of them here and where the gradient meets the direction."""
    n = len(at.drive)
    return gamma(2 * n * (n + 1) + 8, p.unit) * float((at.weights * np.hstack([np.abs(at.dz), np.abs(at.ddrive)[:, None]])).sum())


def bilinear_slope(at: Slope, p: Precision) -> float:
    """Of M⁻¹ R: M⁻¹ (dR + dz/2 X), where each use of M⁻¹ is off by its condition |M⁻¹||M|."""
    n = len(at.drive)
    m = np.eye(n) - at.z / 2
    inverse = np.abs(np.linalg.inv(m))
    right = np.hstack([np.abs(at.dz) / 2, np.abs(at.ddrive)[:, None]]) + np.abs(at.dz) / 2 @ np.abs(at.truth)
    condition = float(np.linalg.norm(inverse @ np.abs(m), np.inf)) * n
    return gamma((16 * n + 32) * (1 + 2 * condition), p.unit) * float((at.weights * (inverse @ right)).sum())


def euler_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """I + ΔA and ΔB as the generalised bilinear rule has them at α = 0: (I - α ΔA)⁻¹ (I + (1 - α) ΔA).

    Δ is rounded to the dtype of the sums, times the entry, and divided by the pivot 1: 3 roundings; the weight 1 - α and
    the sum with I are 2 more.
    """
    n = len(drive)
    return np.hstack([gamma(5, p.unit) * (np.eye(n) + np.abs(z)), gamma(3, p.unit) * np.abs(drive)[:, None]]) + p.tiny


def bilinear_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """M X = R with M = I - ΔA/2, by elimination or by an explicit inverse (Higham, theorem 9.4 and section 14.3)."""
    n = len(drive)
    m = np.eye(n) - z / 2
    inverse = np.abs(np.linalg.inv(m))
    _, lower, upper = linalg.lu(m)
    order = linalg.lu(m)[0]
    factors = np.abs(order @ lower) @ np.abs(upper)
    right = np.hstack([np.eye(n) + np.abs(z) / 2, np.abs(drive)[:, None]])
    formed = gamma(4, p.unit) * inverse @ ((np.eye(n) + np.abs(z) / 2) @ np.abs(truth) + right)
    solved = gamma(4 * n + 2, p.unit) * inverse @ factors @ (np.abs(truth) + inverse @ right)
    return formed + solved + p.tiny


@dataclass(frozen=True)
class Numerics:
    """What a rule needs beside its declaration: bounds of values and derivatives, of a matrix and of a pole, and SciPy's version."""

    bound: PairBound
    pole: PairBound
    slope: Callable[[Slope, Precision], float]
    pole_slope: Callable[[Slope, Precision], float]
    rule: Callable[[Array, Array, float], tuple[Array, Array]]
    capabilities: tuple[str, ...] = ()
    order: int = 2
    """The terms of the Taylor series of e^z, after 1, that the rule shares."""


def derive(x: Instance, declaration: Any, numerics: Numerics, toward: Mapping[str, Array], weights: Array) -> tuple[float, float]:
    """The derivative of Σ weights · [Ā, B̄] in a direction, and its bound; a diagonal rule pole by pole."""
    moves = replace(x, inputs={**x.inputs, **toward})
    p = precision(x.dtype)
    value = size = 0.0
    for row in range(len(x.inputs["B"])):
        (a, b, delta), (da, db, dd) = parts(x, row), parts(moves, row)
        diagonal = "diagonal" in x.options
        for i in [np.array([i]) for i in range(len(b))] if diagonal else [np.arange(len(b))]:
            here, there = (a[np.ix_(i, i)], b[i], delta), (da[np.ix_(i, i)], db[i], dd)
            w = weights[row][np.ix_(i, [*i, len(b)])]
            value += float((w * oracle.pair_slope(declaration, here, there)).sum())
            truth = oracle.pair(declaration, *here)
            change = dd * here[0] + delta * there[0], dd * here[1] + delta * there[1]
            at = Slope(delta * here[0], delta * here[1], truth, *change, np.abs(w))
            size += (numerics.pole_slope if diagonal else numerics.slope)(at, p)
    return value, size + p.tiny


@dataclass(frozen=True, eq=False)
class Rule(Operator):
    """A discretisation rule: its two results are compared as one block row."""

    order: int = 2

    def run(self, function: Callable[..., Any], x: Instance, layout: str = "contiguous", **more: Any) -> tuple[Array, Any]:
        """[Ā, B̄] as one array (b, n, n + 1), a diagonal Ā as a matrix."""
        a, b = self.call(function, x, layout, **more)
        if not tensors_in(b):
            raise FormRaised(f"returned {type(b).__name__} for B̄, which is no tensor")
        a, b = values(a), values(b)
        if "diagonal" in x.options and a.shape == b.shape:
            a = a[..., None] * np.eye(a.shape[-1])
        if a.shape[:-1] != b.shape:
            raise FormRaised(f"returned Ā of shape {a.shape} and B̄ of shape {b.shape}")
        return np.concatenate([a, b[..., None]], -1), None

    def weighed(self, out: Any, state: Any, weights: Array, final: Array | None) -> list[tuple[Any, Array]]:
        """Ā and B̄ beside their columns of the weights."""
        square = weights[..., :-1]
        return [(out, square if out.ndim == square.ndim else np.einsum("bii->bi", square)), (state, weights[..., -1])]


def independent(x: Instance, rule: Callable[[Array, Array, float], tuple[Array, Array]]) -> Array:
    """SciPy's [Ā, B̄], a diagonal rule pole by pole."""
    rows = []
    for row in range(len(x.inputs["B"])):
        a, b, delta = parts(x, row)
        poles = [np.array([i]) for i in range(len(b))] if "diagonal" in x.options else [np.arange(len(b))]
        out = np.zeros((len(b), len(b) + 1), np.result_type(a, b))
        for i in poles:
            out[np.ix_(i, i)], out[i, -1] = rule(a[np.ix_(i, i)], b[i], delta)
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
            (3, LARGE, "float32", ("zero",)),
            (4, LARGE, "float32", ("skew", "step-two")),
            (2, LARGE, "float32", ("complex",)),
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
        refer=lambda x: refer(x, declaration, numerics.bound, numerics.pole),
        derive=lambda x, toward, push, weights, final: derive(x, declaration, numerics, toward, weights),
        independent=lambda x: independent(x, numerics.rule),
        order=numerics.order,
    )


def halved(x: Instance) -> Instance:
    """The instance with half the step, exactly."""
    return replace(x, inputs={**x.inputs, "delta": x.inputs["delta"] / 2})


def _gbt(alpha: float) -> Callable[[Array, Array, float], tuple[Array, Array]]:
    return lambda a, b, delta: scipy_truth.gbt(a, b, delta, alpha)


RULES = {
    "zoh": Numerics(hold_bound, pole_bound, hold_slope, pole_slope, scipy_truth.hold, ("semigroup",)),
    "bilinear": Numerics(bilinear_bound, bilinear_bound, bilinear_slope, bilinear_slope, _gbt(0.5)),
    "euler": Numerics(euler_bound, euler_bound, euler_slope, euler_slope, _gbt(0.0), order=1),
}
OPERATORS = tuple(operator(d, RULES[d.operator]) for d in DECLARATIONS)
