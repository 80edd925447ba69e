"""How far the derivative of a diagonal system may be from the truth, in any order of evaluation or by Fourier transforms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .bounds import gamma

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Modes:
    """A diagonal system with one input u (T), Ā, B̄, C and the state before (N), and D; or its change in a direction."""

    u: Array
    a: Array
    b: Array
    c: Array
    d: float
    start: Array

    def declared(self) -> dict[str, Array]:
        """The inputs of the declaration of a time-invariant system."""
        matrices = {"Abar": np.diag(self.a), "Bbar": self.b[:, None], "C": self.c[None], "D": np.full((1, 1), self.d)}
        return {"u": self.u[:, None], **matrices}

    def absolute(self) -> Modes:
        """The absolute values."""
        return Modes(np.abs(self.u), np.abs(self.a), np.abs(self.b), np.abs(self.c), abs(self.d), np.abs(self.start))


def majorant(at: Modes, along: Modes, off_a: Array, off_b: Array) -> tuple[Array, Array]:
    """The derivative with all terms positive, and what errors of Ā and B̄ cost it: of the outputs (2, T) and of the last state (2, N)."""
    at, along = at.absolute(), along.absolute()
    total, change = at.start, along.start
    off, change_off, rows = np.zeros_like(total), np.zeros_like(total), np.zeros((2, len(at.u)))
    for t, (u, du) in enumerate(zip(at.u, along.u, strict=True)):
        change_off = at.a * change_off + along.a * off + off_a * change + off_b * du
        off = at.a * off + off_a * total + off_b * u
        change = at.a * change + along.a * total + along.b * u + at.b * du
        total = at.a * total + at.b * u
        rows[:, t] = at.c @ change + along.c @ total + at.d * du + along.d * u, at.c @ change_off + along.c @ off
    return rows, np.stack([change, change_off])


def transform_error(at: Modes, along: Modes, weights: Array, unit: float) -> float:
    """What Fourier transforms cost the derivative of Σ weights · y: backward, weights meet the kernel, and they meet the inputs.

    A transform of 2^L points is off by η = γ_{7L} in the 2-norm (Higham, section 24.1), a product of two by 2η and its own
    roundings in the 1-norm, and the transform of that by η more: every value of a product of x and y by γ_{21L+4} of
    |x|₁ |y|₂, or of |x|₂ |y|₁.
    """
    steps, zero = len(at.u), np.zeros(len(at.a))
    impulse = np.eye(1, steps)[0]
    once = replace(at, u=impulse, d=0.0, start=zero)
    kernel = majorant(once, Modes(impulse, zero, zero, zero, 0.0, zero), zero, zero)[0][0]
    change = majorant(once, replace(along, u=0 * impulse, d=0.0, start=zero), zero, zero)[0][0]
    met = np.abs(along.u).sum() * _product(weights, kernel) + change.sum() * _product(weights, at.u)
    return float(gamma(21 * np.log2(4 * steps + 4) + 4, unit) * met)


def _product(x: Array, y: Array) -> float:
    one, two = np.abs(x), np.abs(y)
    return float(min(one.sum() * np.linalg.norm(two), np.linalg.norm(one) * two.sum()))


def pulls(at: Modes, weights: Array, final: Array) -> Array:
    """The derivatives of Re Σ weights · y + Re Σ final* · x_T by Ā and B̄, (2, N): d is Re of their product with a change."""
    states = [at.start]
    for u in at.u:
        states.append(at.a * states[-1] + at.b * u)
    found, back = np.zeros((2, len(at.a)), complex), np.conj(final).astype(complex)
    for u, before, weight in reversed(list(zip(at.u, states[:-1], weights, strict=True))):
        back = back + at.c * weight
        found += np.stack([back * before, back * u])
        back = at.a * back
    return found


def roundings(steps: int, n: int, rows: int) -> int:
    """The roundings of one term of a gradient.

    A term of an output or state is read, driven and stepped by products, at most T + 4, and is in sums over states and times.
    A backward pass evaluates it with at most three times these, and sums what is shared over times and rows of the batch.
    """
    return 3 * (2 * (steps + 1) + n + 8) + rows * (steps + 1) + n
