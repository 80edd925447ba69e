"""How far a correct form may be from the truth: derived by running error analysis, never chosen.

Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3: N roundings in a row cost a relative
error of at most γ_N(u) = N u / (1 - N u). A step that is rounded where the true state is S costs γ_N(u) times the step
on absolute values of S, and reaches a later output through the exact transitions in between. Errors of errors are
below the bound times itself; a comparison whose bound exceeds 2⁻⁸ of the output's scale is blind, so `SECOND_ORDER`
covers them wherever a comparison counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from .tensors import Precision

Array = np.ndarray[Any, Any]
BLIND = 2.0**-8
SECOND_ORDER = 1 + 2.0**-7
EXACT = Precision(2.0**-52, 2.0**-1000)
"""The truth itself, as it is held in float64."""
SPLIT = 8
"""Roundings of a float32 product on multipliers of 11 bits, hi hi + hi lo + lo hi (3xTF32; Ootomo & Yokota 2022).

Each lo is at most 2⁻¹¹ of its operand and kept to 11 bits, which costs 2 units an operand; lo lo, 2 units, is left
out; and the three products make two sums.
"""
PRODUCTS = 3
"""Products on the way of a term of a memory to an output: a score or a write, a read-out, and states that are passed on by products."""
EXPONENTIAL = 2
"""Units in the last place of an exponential, its argument being right."""
OPERANDS = 2
"""Operands of a 16-bit form that are rounded to 16 bits again on the way to an output.

A tensor core multiplies 16-bit operands and sums in float32. So a term q_t k_j v_j is rounded as a scaled query and as
a score; one that comes through the state as a scaled query and as the state that is read. Attention rounds the
probabilities, normalised or in numerator and denominator. A filter rounds its taps or the state that is read, and the
parts of its output before they are added.
"""


def gamma(count: float, unit: float) -> float:
    """γ_N(u); infinite where N u >= 1 and the analysis says nothing."""
    return count * unit / (1 - count * unit) if count * unit < 1 else np.inf


def rounded_products(count: float, precision: Precision) -> float:
    """What the operands of so many products in a row cost, relative to a term, where they are rounded before."""
    return gamma(2 * count, precision.operand)


def strength(decay: Array) -> Array:
    """|log γ|, and 0 at γ = 0: what an error of one unit of the log of γ costs γ, which is at most γ |log γ| <= 1/e below 1."""
    size = np.abs(decay)
    found: Array = np.abs(np.log(np.where(size > 0, size, 1)))
    return found


@dataclass(frozen=True)
class Bounds:
    """Bounds of the outputs and of every state, in the shapes of what they bound; ``terms`` is Σ |term| of the outputs.

    ``written`` is Σ |term| of what a form may round to 16 bits before it adds it to a state.
    """

    output: Array
    states: Array
    terms: Array
    written: Array | None = None


def beside_truth(bound: Callable[[Precision], Bounds], precision: Precision) -> Bounds:
    """The bounds of a form's distance from a truth that is rounded itself (`EXACT`).

    In every term of a bound is a γ_N(u), a u or a smallest normal number. So for c <= 1 the bounds at c times u and that
    number are at most c times as large.
    """
    share = EXACT.unit / precision.unit
    found = bound(replace(precision, tiny=max(precision.tiny, EXACT.tiny / share)))
    return replace(found, output=found.output * (1 + share), states=found.states * (1 + share))


def stored(bound: Array, truth: Array, terms: Array, precision: Precision) -> Array:
    """The bound of an output whose operands are rounded to its own dtype (`OPERANDS`), and itself at the end."""
    rounding = precision.out * (np.abs(truth) + OPERANDS * terms)
    return bound * (1 + precision.out) + rounding + precision.out_tiny


def additive(q: Array, writes: Array, start: Array, precision: Precision) -> Bounds:
    """Bounds for S_t = S_{t-1} + W_t, o_t = S_tᵀ q_t, in any order of summation.

    ``q`` (T, K) is scaled; ``writes`` |k_t||v_t|ᵀ (T, K, V), ``start`` (K, V). The transitions are the identity, so
    each term k_j v_j meets one product (`SPLIT`) and at most T + 1 sums over time, in one go or chunk by chunk, plus the
    state. A read-out adds the scale and its product with the query or the output (2), a product (`SPLIT`), K - 1 sums
    and the sum of what comes from the chunk and from the state (1), and one rounding where the output is stored.
    """
    total = np.concatenate([np.abs(start)[None], writes]).cumsum(0)
    return _summed(q, total, np.zeros_like(total), precision)


def fading(q: Array, writes: Array, states: Array, decays: tuple[Array, ...], precision: Precision) -> Bounds:
    """Bounds for S_t = D_t ⊙ S_{t-1} + W_t, o_t = S_tᵀ q_t with D = e^g >= 0, in any order of summation.

    D is the product of ``decays``, each of which broadcasts to (T, K, V). No term changes its sign, so absolute values
    cost nothing: M_t = D_t ⊙ M_{t-1} + |W_t|.
    ``states`` (T + 1, K, V) are the true ones.

    Beside the sums of `additive`, a term is multiplied by e^s, s being the sum of its own range of logs and of nothing
    else. One token or chunk after the other, that is an exponential (`EXPONENTIAL`) and a product a factor and token,
    on the true state; otherwise two of them, where the range meets the ends of a chunk, and one a level of a tree, on
    M. And s itself is rounded t times at most, and for the base of the exponential (3), which costs t + 3 units of
    Σ|g| over the range. Where e^s is too small to be held, what it multiplies may be lost.

    In 16 bits, k_j v_j is a product of operands as they are given, but k_j e^s or v_j e^s is one that a tensor core gets
    rounded: once for each write and factor that is not 1, and not for the start.
    """
    size = np.broadcast_to(reduce(np.multiply, decays), writes.shape)
    loss = size * sum(strength(d) for d in decays)
    total, aged, turned, written = np.zeros((4, *states.shape))
    total[0] = np.abs(states[0])
    for t in range(1, len(total)):
        kept = size[t - 1]
        aged[t] = kept * (aged[t - 1] + np.abs(states[t - 1]))
        turned[t] = kept * turned[t - 1] + loss[t - 1] * total[t - 1]
        total[t] = kept * total[t - 1] + writes[t - 1]
        written[t] = kept * written[t - 1] + writes[t - 1]
    grow = np.arange(len(total))[:, None, None]
    whole = np.concatenate([total[:1], writes]).cumsum(0)
    fades = len(decays) * (EXPONENTIAL + 1) * (aged + (2 + np.log2(grow + 1)) * total)
    more = precision.unit * (fades + (grow + 3) * turned) + precision.tiny * (grow + 1) * whole
    return replace(_summed(q, total, more, precision), written=written * sum(bool((d != 1).any()) for d in decays))


def _summed(q: Array, total: Array, more: Array, precision: Precision) -> Bounds:
    """The bounds of `additive` where the absolute values of all terms sum to ``total``, and each state may be ``more`` off."""
    steps, width = q.shape
    grow = np.arange(steps + 1)[:, None, None]
    states = (_gammas(grow + 1 + SPLIT, precision.unit) + rounded_products(PRODUCTS - 1, precision)) * total + more
    read = np.einsum("tk,tkv->tv", np.abs(q), total[1:])
    relative = _gammas(grow[1:, :, 0] + width + 4 + 2 * SPLIT, precision.unit) + rounded_products(PRODUCTS, precision)
    output = relative * read + np.einsum("tk,tkv->tv", np.abs(q), more[1:])
    states = states * SECOND_ORDER + precision.tiny * (grow + 1)
    return Bounds(output * SECOND_ORDER + width * precision.tiny, states, read)


def _gammas(count: Array, unit: float) -> Array:
    product = count * unit
    return np.where(product < 1, product / (1 - np.minimum(product, 0.5)), np.inf)


def carried(
    q: Array,
    states: Array,
    local: Array,
    read: float,
    backward: Callable[[Array, int], Array],
    precision: Precision,
) -> Bounds:
    """Bounds for S_t = A_t S_{t-1} + W_t, o_t = S_tᵀ q_t from the local error of every step.

    ``local`` (T + 1, K, V) bounds what step t adds to the error (its first row: the start); ``backward(w, t)`` is
    w A_t for rows w (..., K). A row of the exact product q_tᵀ A_t ⋯ A_{s+1} is taken before its absolute value.
    ``read`` is γ of the read-out's own roundings.
    """
    steps, width = q.shape
    terms = np.einsum("tk,tkv->tv", np.abs(q), np.abs(states[1:]))
    output = read * terms
    spread = np.zeros_like(local)
    kind = complex if np.iscomplexobj(q) or np.iscomplexobj(states) else float
    rows = np.zeros((steps, width), kind)
    unit_rows = np.zeros((steps + 1, width, width), kind)
    for s in range(steps, -1, -1):
        if s < steps:
            rows = backward(rows, s + 1)
            unit_rows = backward(unit_rows, s + 1)
        if s > 0:
            rows[s - 1] = q[s - 1]
            output[s - 1 :] += np.abs(rows[s - 1 :]) @ local[s]
        else:
            output += np.abs(rows) @ local[0]
        unit_rows[s] = np.eye(width)
        spread[s:] += np.abs(unit_rows[s:]) @ local[s]
    tiny = precision.tiny * width * (np.arange(steps + 1)[:, None, None] + 1)
    return Bounds(output * SECOND_ORDER + width * precision.tiny, spread * SECOND_ORDER + tiny, terms)
