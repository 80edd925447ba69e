"""How far a discretisation rule may be from the truth, in values and in derivatives, and what SciPy has of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from . import scipy_truth
from .bounds import gamma
from .tensors import Precision

Array = np.ndarray[Any, Any]
PairBound = Callable[[Array, Array, Array, Precision], Array]
"""(ΔA, ΔB, true [Ā, B̄], precision) to the bounds of [Ā, B̄]."""
HUMP = 8
"""Points at which norms of e^{θ ΔA}, θ in [0, 1], are looked at."""


@dataclass(frozen=True)
class Slope:
    """Where a derivative is taken: ΔA, ΔB, the true [Ā, B̄], the changes of ΔA and ΔB, and |weights|."""

    z: Array
    drive: Array
    truth: Array
    dz: Array
    ddrive: Array
    weights: Array


def pole_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """Zero-order hold of one pole by e^z and (e^z - 1)/z: an error δ in z costs e^z|δ|, in the quotient at most as much."""
    growth = np.abs(np.exp(z[0, 0]))
    of_b = np.abs(truth[0, 1]) + np.abs(drive[0]) * growth
    return np.array([[gamma(6, p.unit) * (1 + np.abs(z[0, 0])) * growth, gamma(9, p.unit) * of_b]]) + p.tiny


def ramp_pole_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """First-order hold of one pole by formulas away from 0, series beside it.

    At |z| > 1 the terms of (e^z - 1 - z) / z² and (1 - (1-z) e^z) / z² sum to at most (1 + |z|) (1 + |e^z|) / |z|². Within, the
    series has positive terms that sum to less than 1. An error δ in z costs either at most max(1, |e^z|) |δ|.
    """
    size, growth = np.abs(z[0, 0]), np.abs(np.exp(z[0, 0]))
    terms = (1 + size) * (1 + growth) / size**2 if size > 1 else 1.0
    slope = terms if size > 1 else 1.0
    each = gamma(9, p.unit) * np.abs(drive[0]) * (terms + size * slope) + gamma(3, p.unit) * np.abs(truth[0, 1:])
    return np.hstack([pole_bound(z, drive, truth[:, :2], p)[:, :1], each[None]]) + p.tiny


def impulse_pole_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """e^z as `pole_bound` has it, and ΔB."""
    return np.hstack([pole_bound(z, drive, truth, p)[:, :1], gamma(3, p.unit) * np.abs(drive)[:, None] + p.tiny])


def largest_growth(w: Array) -> float:
    """The largest product of the norms of e^{aW}, e^{bW}, e^{cW} with a + b + c <= 1."""
    norms = np.array([np.linalg.norm(linalg.expm(w * m / HUMP), np.inf) for m in range(HUMP + 1)])
    m = np.arange(HUMP + 1)
    total = m[:, None, None] + m[None, :, None] + m[None, None, :]
    return float((norms[:, None, None] * norms[None, :, None] * norms[None, None, :])[total <= HUMP].max())


def held(z: Array, drive: Array, order: int) -> Array:
    """The matrix whose exponential has φ₁(z) drive, …, φ_order(z) drive in its last columns: drive enters a chain of integrals."""
    n = len(z)
    w = np.zeros((n + order, n + order), np.result_type(z, drive))
    w[:n, :n] = z
    if order:
        w[:n, n], w[n:-1, n + 1 :] = drive, np.eye(order - 1)
    return w


def hold_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """Holds by one exponential of the block W = [[ΔA, ΔB / s], [0, …]] (`held`), s the size of ΔB.

    The powers that a squaring starts from are off by γ, each of s levels rounds |e^{hW}|² with γ_{n+1}, in 2^s h
    places, and W itself is rounded: together γ_{n+8} (4‖W‖ + 4) at most, times the norms of the exact exponentials
    around an error. Where B̄ has more columns one is the difference of two.
    """
    n, columns = len(drive), truth.shape[1] - len(drive)
    size = float(np.abs(drive).max()) or 1.0
    w = held(z, drive / size, columns)
    scale = np.ones(n + columns)
    scale[n:] = size * columns
    count = (n + columns + 7) * (4 * float(np.linalg.norm(w, np.inf)) + 4)
    return gamma(count, p.unit) * largest_growth(w) * np.tile(scale, (n, 1)) + p.tiny


def impulse_bound(z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """The exponential as `hold_bound` has it, and ΔB, which is a product and a conversion of Δ."""
    n = len(drive)
    square = hold_bound(z, np.zeros(n), truth[:, :n], p)
    return np.hstack([square, gamma(3, p.unit) * np.abs(drive)[:, None] + p.tiny])


def pole_slope(at: Slope, p: Precision) -> float:
    """Of one pole: e^z dz, φ dB and φ' B dz, where |φ'| <= max(1, |e^z|); an error in z costs |z| more.

    At |z| > ½ φ' is e^z/z - (e^z - 1)/z², terms that sum to at most 4 max(1, |e^z|); within, the terms of a series sum to less than 1.
    The formulas of a first-order hold have three terms of up to 2 max(1, |e^z|) at |z| > 1, and their derivatives are used.
    """
    (z,), (drive,), (dz,), (dd,) = (np.abs(x).ravel() for x in (at.z, at.drive, at.dz, at.ddrive))
    growth = max(1.0, float(np.exp(at.z[0, 0].real)))
    columns = at.weights.shape[1] - 1
    each = growth * (dd + drive * dz) * (1 if columns == 1 else 6)
    return float(gamma(24, p.unit) * (1 + z) * (at.weights[0, 0] * growth * dz + at.weights[0, 1:].sum() * each))


def hold_slope(at: Slope, p: Precision) -> float:
    """By one exponential of [[W, G], [0, W]] with the weights G, as backward passes have it: as `hold_bound`, for it."""
    n, columns = len(at.drive), at.weights.shape[1] - len(at.drive)
    size = float(np.abs(at.drive).max(initial=0.0)) or 1.0
    w, dw = held(at.z, at.drive / size, columns), held(at.dz, at.ddrive / size, columns)
    dw[n:, n:] = 0
    pull = float(at.weights[:, :n].sum() + columns * size * at.weights[:, n:].sum())
    norm = float(np.linalg.norm(w, np.inf))
    hump = largest_growth(w)
    count = (2 * (n + columns) + 14) * (4 * (norm + pull) + 4)
    return gamma(count, p.unit) * hump**2 * (1 + hump * pull) * pull * float(np.linalg.norm(dw, np.inf))


def drive_slope(at: Slope, p: Precision) -> float:
    """Of ΔB itself: 3 products a term, and sums of n of them here and where the gradient meets the direction."""
    n = len(at.drive)
    return gamma(2 * n + 8, p.unit) * float(at.weights[:, n] @ np.abs(at.ddrive))


def impulse_slope(at: Slope, p: Precision) -> float:
    """Of e^{ΔA} as `hold_slope` has it, and of ΔB."""
    n = len(at.drive)
    square = replace(at, drive=np.zeros(n), ddrive=np.zeros(n), weights=at.weights[:, :n])
    return hold_slope(square, p) + drive_slope(at, p)


def impulse_pole_slope(at: Slope, p: Precision) -> float:
    """Of one pole: e^z dz, which an error in z costs |z| of, and of ΔB."""
    z = float(np.abs(at.z[0, 0]))
    value = float(at.weights[0, 0] * np.exp(at.z[0, 0].real) * np.abs(at.dz[0, 0]))
    return gamma(16, p.unit) * (1 + z) * value + drive_slope(at, p)


def gbt_slope(alpha: float, at: Slope, p: Precision) -> float:
    """Of M⁻¹ R: M⁻¹ (dR + α dz X), where each use of M⁻¹ is off by its condition |M⁻¹||M|; at α = 0 the sums of n (n + 1) products."""
    n = len(at.drive)
    m = np.eye(n) - alpha * at.z
    inverse = np.abs(np.linalg.inv(m))
    right = np.hstack([(1 - alpha) * np.abs(at.dz), np.abs(at.ddrive)[:, None]]) + alpha * np.abs(at.dz) @ np.abs(at.truth)
    condition = float(np.linalg.norm(inverse @ np.abs(m), np.inf)) * n if alpha else 0.0
    count = (16 * n + 32) * (1 + 2 * condition) if alpha else 2 * n * (n + 1) + 8
    return gamma(count, p.unit) * float((at.weights * (inverse @ right)).sum())


def gbt_bound(alpha: float, z: Array, drive: Array, truth: Array, p: Precision) -> Array:
    """M X = R with M = I - α ΔA, by elimination or by an explicit inverse (Higham, theorem 9.4 and section 14.3).

    Δ is rounded to the dtype of the sums, times the entry, times α or 1 - α, and added to I: 4 roundings here and there.
    At α = 0 there is nothing to be eliminated: the division by the pivot 1 is one more, and nothing is added to ΔB.
    """
    n = len(drive)
    m = np.eye(n) - alpha * z
    right = np.hstack([np.eye(n) + (1 - alpha) * np.abs(z), np.abs(drive)[:, None]])
    if alpha == 0:
        return np.hstack([gamma(5, p.unit) * right[:, :n], gamma(3, p.unit) * right[:, n:]]) + p.tiny
    inverse = np.abs(np.linalg.inv(m))
    order, lower, upper = linalg.lu(m)
    factors = np.abs(order @ lower) @ np.abs(upper)
    formed = gamma(4, p.unit) * inverse @ ((np.eye(n) + alpha * np.abs(z)) @ np.abs(truth) + right)
    solved = gamma(4 * n + 2, p.unit) * inverse @ factors @ (np.abs(truth) + inverse @ right)
    return formed + solved + p.tiny


@dataclass(frozen=True)
class Numerics:
    """What a rule needs beside its declaration: bounds of values and derivatives, of a matrix and of a pole, and SciPy's version.

    ``series`` are its first Taylor coefficients in z = ΔA, of Ā and of each column of B̄ beside ΔB.
    """

    bound: PairBound
    pole: PairBound
    slope: Callable[[Slope, Precision], float]
    pole_slope: Callable[[Slope, Precision], float]
    rule: Callable[[Array, Array, float], tuple[Array, Array]]
    series: tuple[tuple[float, ...], ...]
    capabilities: tuple[str, ...] = ("equilibria",)
    columns: int = 1


def _gbt(alpha: float, *series: tuple[float, ...]) -> Numerics:
    bound, slope = partial(gbt_bound, alpha), partial(gbt_slope, alpha)
    return Numerics(bound, bound, slope, slope, partial(scipy_truth.gbt, alpha=alpha), series)


EXPONENTIAL = (1.0, 1.0, 0.5)
RULES = {
    "zoh": Numerics(
        hold_bound, pole_bound, hold_slope, pole_slope, scipy_truth.hold, (EXPONENTIAL, (1.0, 0.5)), ("equilibria", "semigroup")
    ),
    "foh": Numerics(
        hold_bound,
        ramp_pole_bound,
        hold_slope,
        pole_slope,
        scipy_truth.ramp,
        (EXPONENTIAL, (1 / 2, 1 / 3), (1 / 2, 1 / 6)),
        ("equilibria", "semigroup"),
        2,
    ),
    "impulse": Numerics(
        impulse_bound, impulse_pole_bound, impulse_slope, impulse_pole_slope, scipy_truth.impulse, (EXPONENTIAL, (1.0, 0.0)), ()
    ),
    "bilinear": _gbt(0.5, EXPONENTIAL, (1.0, 0.5)),
    "euler": _gbt(0.0, (1.0, 1.0, 0.0), (1.0, 0.0)),
    "backward-euler": _gbt(1.0, (1.0, 1.0, 1.0), (1.0, 1.0)),
}
