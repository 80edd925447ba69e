"""The delta rule under test: S_t = S_{t-1} + β_t k_t (v_t - S_{t-1}ᵀ k_t)ᵀ, o_t = scale · S_tᵀ q_t."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isoform.derivations.delta_rule import DECLARATION

from .bounds import Bounds, carried, gamma
from .memory import memory_operator
from .operator import Input
from .strategies import Case
from .tensors import Precision, rounded

Array = np.ndarray[Any, Any]
STRENGTHS = {"beta-zero": (0.0,), "beta-one": (1.0,), "beta-two": (2.0,), "beta-mixed": (0.0, 1.0, 2.0)}
"""β‖k‖² where a structure flag sets it; else uniform in [0, 2]."""


def gates(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """Keys of length about 1 (8 with long keys) and β with 0 <= β‖k‖² <= 2.

    The scale of the inputs is that of queries, values and states: the rule is linear in those. A dyadic case has unit
    vectors for keys and β in {0, 1, 2}.
    """
    b, t, hv, _ = inputs["v"].shape
    _, _, h, width = inputs["k"].shape
    rng = case.rng(10)
    if case.has("dyadic"):
        keys = np.eye(width)[rng.integers(0, width, (b, t, h))]
        return {**inputs, "k": keys, "beta": rng.integers(0, 3, (b, t, hv)).astype(float)}
    length = np.linalg.norm(inputs["k"], axis=-1, keepdims=True)
    keys = rounded(inputs["k"] / np.where(length > 0, length, 1) * (8.0 if case.has("long-keys") else 1.0), case.dtype)
    squared = np.repeat(np.sum(keys**2, -1), hv // h, axis=2)
    chosen = next((s for flag, s in STRENGTHS.items() if case.has(flag) or (case.has("edge") and flag == "beta-two")), None)
    strength = rng.uniform(0, 2, (b, t, hv)) if chosen is None else rng.choice(chosen, (b, t, hv))
    return {**inputs, "k": keys, "beta": rounded(strength / np.where(squared > 0, squared, 1), case.dtype)}


def bound(head: Mapping[str, Array], states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head, local errors carried by the exact transitions I - β k kᵀ.

    A step rounds a dot product over K, a difference, two products and a sum: γ_{K+4} of the step on absolute values of
    the true state. A chunk form instead adds up the writes of a chunk, S_t = S_c + Σ k_j u_jᵀ with u_j = u⁰_j - W_j S_c:
    what it adds up there, in absolute value, is M_t (`regrouped`). Its triangular solve rounds the row of u_t as
    β_t (v_t - M_{t-1}ᵀ k_t), with ``span``, the chunk size, for the number of its sums; its other sums round M_t once
    where it is read and once a chunk, which is γ_4 M a token.
    """
    q, k, v, beta = (head[n] for n in ("q", "k", "v", "beta"))
    steps, width = q.shape
    unit, span = precision.unit, min(steps, span)
    size, key = np.abs(states), np.abs(k)
    sums = regrouped(k, v, beta, states, span)
    read = np.abs(v) + np.einsum("tk,tkv->tv", key, sums[:-1])
    local = gamma(width + 4, unit) * size[:-1] + gamma(4, unit) * sums[1:]
    local += gamma(span + width + 4, unit) * np.einsum("t,tk,tv->tkv", np.abs(beta), key, read)

    def backward(rows: Array, t: int) -> Array:
        return rows - beta[t - 1] * (rows @ k[t - 1])[..., None] * k[t - 1]

    found = carried(q, states, np.concatenate([unit * size[:1], local]), gamma(width + 3, unit), backward, precision)
    terms = np.einsum("tk,tkv->tv", np.abs(q), sums[1:])
    return Bounds(found.output + gamma(span + width + 5, unit) * terms, found.states + gamma(span + 3, unit) * sums, terms)


def regrouped(k: Array, v: Array, beta: Array, states: Array, span: int) -> Array:
    """M_t (T + 1, K, V): the largest absolute sum that a chunk of at most ``span`` tokens, starting anywhere, has at t.

    With W_j = β_j k_jᵀ A_{j-1} ⋯ A_{c+1} for a chunk that starts after c, it adds up |S_c| and |k_j| (|u⁰_j| + |W_j||S_c|).
    """
    writes = beta[:, None] * (v - np.einsum("tk,tkv->tv", k, states[:-1]))
    rows = np.zeros_like(k)
    added = np.zeros_like(v)
    for c in range(len(k) - 1, -1, -1):
        if c + 1 < len(k):
            rows -= beta[c] * (rows @ k[c])[:, None] * k[c]
        rows[c] = beta[c] * k[c]
        part = slice(c, c + span)
        back = rows[part]
        added[part] = np.maximum(added[part], np.abs(writes[part] + back @ states[c]) + np.abs(back) @ np.abs(states[c]))
    total = np.concatenate([np.zeros_like(states[:1]), np.abs(k)[:, :, None] * added[:, None, :]]).cumsum(0)
    starts = np.abs(states)
    largest = np.stack([starts[max(0, t - span) : t + 1].max(0) for t in range(len(starts))])
    return largest + np.stack([total[t] - total[max(0, t - span)] for t in range(len(total))])


def majorant(head: Mapping[str, Array]) -> Mapping[str, Array]:
    """With -β and -v the step is S + β k (v + Sᵀk): every term with a plus."""
    return {**head, "v": -head["v"], "beta": -head["beta"]}


OPERATORS = (
    memory_operator(
        DECLARATION,
        bound,
        majorant,
        gates=(Input("beta", "b t hv", "0 <= beta |k|^2 <= 2"),),
        draw_gates=gates,
        flags=(tuple(STRENGTHS), ("long-keys",)),
    ),
)
