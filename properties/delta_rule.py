"""The delta rule under test: S_t = S_{t-1} + β_t k_t (v_t - S_{t-1}ᵀ k_t)ᵀ, o_t = scale · S_tᵀ q_t."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isoform.derivations.delta_rule import DECLARATION

from .bounds import EXPONENTIAL, PRODUCTS, Bounds, carried, gamma, rounded_products, strength
from .memory import NORM, memory_operator, plain
from .operator import Input, Instance, Reduction
from .strategies import Case
from .tensors import Precision, rounded

Array = np.ndarray[Any, Any]
STRENGTHS = {"beta-zero": (0.0,), "beta-one": (1.0,), "beta-two": (2.0,), "beta-mixed": (0.0, 1.0, 2.0)}
"""β‖k‖² where a structure flag sets it; else uniform in [0, 2]."""
WEAK = 0.125
"""The largest β‖k‖² where a long case is to correct little."""
OUTSIDE = (-0.5, 0.5, 2.0, 2.25)
"""β‖k‖² some of which are outside the domain."""


BETA = Input("beta", "b t hv", "0 <= beta |k|^2 <= 2")


def strengths(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """Keys of length about 1 (8 with long keys) and β with 0 <= β‖k‖² <= 2, or outside of that where it is asked for.

    The scale of the inputs is that of queries, values and states: the rule is linear in those. A dyadic case has unit
    vectors for keys and β in {0, 1, 2}. Keys that the form is to norm may have any length, also that of the norm's ε.
    """
    b, t, hv, _ = inputs["v"].shape
    _, _, h, width = inputs["k"].shape
    rng = case.rng(10)
    if case.has("dyadic"):
        keys = np.eye(width)[rng.integers(0, width, (b, t, h))]
        return {**inputs, "k": keys, "beta": rng.integers(0, 3, (b, t, hv)).astype(float)}
    length = np.linalg.norm(inputs["k"], axis=-1, keepdims=True)
    wanted = 2.0 ** rng.uniform(-12, 2, length.shape) if case.has("normed") else 8.0 if case.has("long-keys") else 1.0
    keys = rounded(inputs["k"] / np.where(length > 0, length, 1) * wanted, case.dtype)
    squared = np.repeat(np.sum(keys**2, -1), hv // h, axis=2)
    chosen = next((s for flag, s in STRENGTHS.items() if case.has(flag) or (case.has("edge") and flag == "beta-two")), None)
    chosen = OUTSIDE if case.has("outside") else chosen
    strength = rng.uniform(0, WEAK if case.has("weak") else 2, (b, t, hv)) if chosen is None else rng.choice(chosen, (b, t, hv))
    divisor = np.ones_like(squared) if case.has("normed") else np.where(squared > 0, squared, 1)
    return {**inputs, "k": keys, "beta": rounded(case.plain(strength) / divisor, case.dtype)}


def bound(head: Mapping[str, Array], states: Array, precision: Precision, span: int, normed: int = 0) -> Bounds:
    """The bounds of one head, local errors carried by the exact transitions γ (I - β k kᵀ); γ is 1 where there is none.

    A step rounds a dot product over K, a difference, two products and a sum: γ_{K+4} of the step on absolute values of
    the true state. A chunk form instead adds up the writes of a chunk, S_t = S_c + Σ k_j u_jᵀ with u_j = u⁰_j - W_j S_c:
    what it adds up there, in absolute value, is M_t (`regrouped`). Its triangular solve rounds the row of u_t as
    β_t (v_t - M_{t-1}ᵀ k_t), with ``span``, the chunk size, for the number of its sums; its other sums round M_t once
    where it is read and once a chunk, which is γ_4 M a token.

    Where operands are rounded before their products, a row of the solve has those of its dot products, of the write and of a solve by
    blocks, one a level.

    Decays multiply all that by two exponentials and two products more, and each by the rounding of the sum of logs over
    its own range, ``span`` times at most and for the base (3). Keys and queries that were ``normed`` have that many
    roundings of their own: two keys meet in every row of the solve, one where it is read, and a query.
    """
    q, k, v, beta = (head[n] for n in ("q", "k", "v", "beta"))
    decay = head.get("gamma", np.ones(len(q)))
    steps, width = q.shape
    unit, span = precision.unit, min(steps, span)
    fades = 2 * (EXPONENTIAL + 1) if "gamma" in head else 0
    key, fade = np.abs(k), decay[:, None, None]
    sums, turned, whole = regrouped(k, v, beta, decay, states, span)
    turn = (span + 3) * unit
    kept = fade * (turned[:-1] + strength(fade) * sums[:-1])
    read = np.abs(v) + np.einsum("tk,tkv->tv", key, fade * sums[:-1])
    solve = rounded_products(PRODUCTS + 1 + np.log2(span + 1), precision)
    rows = (gamma(span + width + 4 + fades + 2 * normed, unit) + solve) * read
    rows += np.einsum("tk,tkv->tv", key, turn * kept + precision.tiny * whole[:-1])
    local = gamma(width + 4 + fades, unit) * fade * np.abs(states[:-1]) + gamma(4 + fades + normed, unit) * sums[1:]
    local += turn * turned[1:] + precision.tiny * whole[1:] + np.einsum("t,tk,tv->tkv", np.abs(beta), key, rows)

    def backward(rows: Array, t: int) -> Array:
        return decay[t - 1] * (rows - beta[t - 1] * (rows @ k[t - 1])[..., None] * k[t - 1])

    start = unit * np.abs(states[:1])
    found = carried(q, states, np.concatenate([start, local]), gamma(width + 3 + normed, unit), backward, precision)
    terms = np.einsum("tk,tkv->tv", np.abs(q), sums[1:])
    lost = turn * turned + precision.tiny * whole
    at_end, at_read = (rounded_products(count, precision) for count in (PRODUCTS - 1, PRODUCTS))
    output = (gamma(span + width + 5 + fades + 2 * normed, unit) + at_read) * terms + np.einsum("tk,tkv->tv", np.abs(q), lost[1:])
    return Bounds(found.output + output, found.states + (gamma(span + 3 + fades + normed, unit) + at_end) * sums + lost, terms)


def regrouped(k: Array, v: Array, beta: Array, decay: Array, states: Array, span: int) -> Array:
    """(3, T + 1, K, V): M_t, the largest absolute sum that a chunk of at most ``span`` tokens, starting anywhere, has at t.

    With W_j = β_j k_jᵀ γ_j A_{j-1} ⋯ A_{c+1} for a chunk that starts after c, it adds up e^s |S_c| and
    e^s |k_j| (|u⁰_j| + |W_j||S_c|), each with the sum s of the logs of decays after it. Beside it the same sum with
    e^s |s| in place of e^s, and without decays.
    """
    writes = beta[:, None] * (v - decay[:, None] * np.einsum("tk,tkv->tv", k, states[:-1]))
    rows = np.zeros_like(k)
    added = np.zeros_like(v)
    for c in range(len(k) - 1, -1, -1):
        if c + 1 < len(k):
            rows = decay[c] * (rows - beta[c] * (rows @ k[c])[:, None] * k[c])
        rows[c] = beta[c] * decay[c] * k[c]
        part = slice(c, c + span)
        back = rows[part]
        added[part] = np.maximum(added[part], np.abs(writes[part] + back @ states[c]) + np.abs(back) @ np.abs(states[c]))
    terms = np.abs(k)[:, :, None] * added[:, None, :]
    starts, turns = np.abs(states), strength(decay)
    found = np.zeros((3, *states.shape))
    for t in range(len(states)):
        first = max(0, t - span)
        size = np.append(np.cumprod(decay[first:t][::-1])[::-1], 1.0)
        logs = np.append(np.cumsum(turns[first:t][::-1])[::-1], 0.0)
        weights = np.stack([size, size * logs, np.ones_like(size)])
        found[:, t] = (weights[:, :, None, None] * starts[first : t + 1]).max(1) + np.tensordot(weights[:, 1:], terms[first:t], 1)
    return found


def majorant(head: Mapping[str, Array]) -> Mapping[str, Array]:
    """With -β and -v the step is γ S + β k (v + γ Sᵀk): every term with a plus."""
    return {**head, "v": -head["v"], "beta": -head["beta"]}


def idle(x: Instance) -> Instance:
    """Linear attention without a value: nothing is written."""
    return replace(x, inputs={**plain(x).inputs, "v": 0 * x.inputs["v"]})


NOTHING_WRITTEN = Reduction("β = 0", ("start", "beta-zero"), "linear-attention", idle)
NOTHING_FOUND = Reduction("β = 1 and orthonormal keys, from no state", ("beta-one", "few-keys"), "linear-attention", plain)

OPERATORS = (
    memory_operator(
        DECLARATION,
        bound,
        majorant=majorant,
        corrects=True,
        gates=(BETA,),
        draw_gates=strengths,
        flags=(tuple(STRENGTHS), ("long-keys",), ("normed",)),
        capabilities=("outside",),
        needed={"normed": NORM},
        reductions=(NOTHING_WRITTEN, NOTHING_FOUND),
        neutral=(("k",), ("beta",)),
    ),
)
