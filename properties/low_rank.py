"""One channel of a structured state space, and how wrong steps and kernels of a diagonal plus a low rank may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .bounds import SECOND_ORDER, gamma
from .tensors import Precision

Array = np.ndarray[Any, Any]
COMPLEX = 4
"""What a complex operation rounds, in units of a real one."""


@dataclass(frozen=True)
class Channel:
    """One channel: Λ, P, B, C (n), D and Δ, the rule's true Ā (n, n) and B̄ (n)."""

    Lambda: Array
    P: Array
    B: Array
    C: Array
    D: float
    delta: float
    Abar: Array
    Bbar: Array

    @property
    def ops(self) -> int:
        """The units of one rounding."""
        return COMPLEX if np.iscomplexobj(self.Lambda) else 1


def step_error(of: Channel, p: Precision) -> tuple[Array, Array]:
    """How wrong a step in O(n) may be: a matrix times |x| and a vector times |u|.

    What is inverted is r = (I + hA) x + 2h B u, h = Δ/2: a sum of n products and 8 roundings more of the sum R of its terms. With
    e = 1/(1 - hΛ) the inverse is e r - e P g (P* e · r), where g = h / (1 + h P* e P). In the left half plane |1 - hλ| >= 1, |hλ|, so
    that e is right to γ_4 and e P and P* e to γ_5; the real part of P* e P is positive, so that |1 + …| >= 1, and it is off by γ_{n+9} of
    1 + h Σ |P|²|e|. The product with r is a sum of n products, and 4 roundings are left.
    """
    n, h = len(of.B), of.delta / 2
    inverse = np.linalg.inv(np.eye(n) - h * (np.diag(of.Lambda) - np.outer(of.P, of.P.conj())))
    e, low = 1 / np.abs(1 - h * of.Lambda), np.abs(of.P)
    inner = 1 + h * (of.P.conj() * of.P / (1 - h * of.Lambda)).sum()
    weight = h / np.abs(inner) * (1 + (1 + h * (low**2 * e).sum()) / np.abs(inner))
    spread = np.diag(e) + weight * np.outer(e * low, e * low)
    through = gamma(n + 8, p.unit) * np.abs(inverse) + gamma(n + 16, p.unit) * spread
    reach = np.eye(n) + h * np.diag(np.abs(of.Lambda)) + h * np.outer(low, low)
    return through @ reach + p.tiny, through @ (2 * h * np.abs(of.B)) + p.tiny


def kernel_errors(of: Channel, matrix: Array, states: Array, size: Array, p: Precision) -> Array:
    """How wrong outputs (T,) may be for the values of kernels by Cauchy sums, in a call of any length that is a part of the sequence.

    A call of L tokens uses the values of one kernel on its own inputs, of ``size``, and of one for the state before it.
    """
    n, h, steps = len(of.B), of.delta / 2, len(size)
    a = np.diag(of.Lambda) - np.outer(of.P, of.P.conj())
    before = states[:-1].T
    columns = np.column_stack([h * of.B, (before + h * a @ before) / 2])
    reach = np.eye(n) + h * np.diag(np.abs(of.Lambda)) + h * np.outer(np.abs(of.P), np.abs(of.P))
    sizes = np.column_stack([h * np.abs(of.B), reach @ np.abs(before) / 2])
    rows, powers = row_errors(of, matrix, steps, p)
    sums, time, worst = np.concatenate([[0.0], np.cumsum(size)]), np.arange(steps), np.zeros(steps)
    for length in range(1, steps + 1):
        found = _sums_error(of, columns, sizes, powers[length], rows[length], length, p)
        ends = np.minimum(time[:, None] + length, time + 1)  # of a call that begins at s, at t
        driven = np.where(time[:, None] <= time, sums[ends] - sums[:-1, None], 0.0).max(0)
        worst = np.maximum(worst, found[0] * driven + found[1:].max())
    found_worst: Array = worst * SECOND_ORDER
    return found_worst


def row_errors(of: Channel, matrix: Array, count: int, p: Precision) -> tuple[Array, list[Array]]:
    """How wrong C - C Ā^l may be in the 2-norm, l <= count, and its true value.

    A power is a product of powers, any, of which each rounds γ_{n+2} of the product of Frobenius norms; Ā itself is off by ``matrix``.
    """
    n = len(of.B)
    powers = [np.eye(n, dtype=of.Abar.dtype)]
    for _ in range(count):
        powers.append(powers[-1] @ of.Abar)
    norm = np.array([np.linalg.norm(a, 2) for a in powers])
    size = np.array([np.linalg.norm(a) for a in powers])
    off = np.zeros(count + 1)
    off[1:2] = np.linalg.norm(matrix)
    for l in range(2, count + 1):
        i = np.arange(1, l)
        off[l] = (norm[i] * off[l - i] + off[i] * norm[l - i] + gamma(n + 2, p.unit) * size[i] * size[l - i]).max()
    length = np.linalg.norm(of.C)
    rows = [of.C - of.C @ a for a in powers]
    return length * off + gamma(n + 3, p.unit) * length * (1 + norm), rows


def _sums_error(of: Channel, columns: Array, sizes: Array, row: Array, row_error: float, length: int, p: Precision) -> Array:
    """How wrong any value of a kernel of one length may be, for every column of starts.

    At a node θ a denominator is i s - c hλ with s = sin ½θ, c = cos ½θ: s is right to γ, c to γ|s| beside that. Woodbury's identity has
    four sums of n products by such inverses, and 1 + c h P* (…) P, whose real part is at least 1. Then the mean over the nodes counts.
    """
    n, h = len(of.B), of.delta / 2
    half = np.pi * np.fft.fftfreq(length)
    s, c = np.sin(half)[:, None], np.cos(half)[:, None]
    q = 1j * s - c * h * of.Lambda
    terms = np.abs(s) + (np.abs(c) + np.abs(s)) * h * np.abs(of.Lambda)
    wrong = (gamma(8, p.unit) * terms / np.abs(q) + gamma(n + 10, p.unit)) / np.abs(q)
    pull, push, low = np.stack([row, of.P.conj()]), np.column_stack([columns, of.P]), c[:, 0] * h
    value = np.einsum("rn,kn,nc->krc", pull, 1 / q, push)
    wide = np.column_stack([sizes, np.abs(of.P)])
    off = np.einsum("rn,kn,nc->krc", np.abs(pull), wrong, wide)
    inner = 1 + low * value[:, 1, -1]
    ratio = np.abs(low / inner)
    inner_off = (np.abs(low) * off[:, 1, -1] + gamma(6, p.unit) * (1 + np.abs(low * value[:, 1, -1]))) / np.abs(inner)
    low_off = gamma(8, p.unit) * (np.abs(c) + np.abs(s))[:, 0] * h / np.abs(inner) ** 2
    cross, last = np.abs(value[:, 0, -1]), np.abs(value[:, 1, :-1])
    product = cross[:, None] * last
    woodbury = off[:, 0, -1][:, None] * last + cross[:, None] * off[:, 1, :-1] + (inner_off + gamma(10, p.unit))[:, None] * product
    error = off[:, 0, :-1] + ratio[:, None] * woodbury + low_off[:, None] * product
    resolvent = np.linalg.solve(np.eye(n) * q[:, None, :] + low[:, None, None] * np.outer(of.P, of.P.conj()), columns[None])
    error = error + row_error * np.linalg.norm(resolvent, axis=1)
    whole = np.einsum("n,knc->kc", row, resolvent)
    levels = np.log2(4 * length + 4)
    spread = gamma(21 * levels, p.unit) * np.linalg.norm(whole, axis=0) / np.sqrt(length)
    return error.mean(0) + spread
