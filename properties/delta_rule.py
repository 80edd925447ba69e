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


def bound(head: Mapping[str, Array], states: Array, precision: Precision) -> Bounds:
    """The bounds of one head, local errors carried by the exact transitions I - β k kᵀ.

    A step rounds a dot product over K, a difference, two products and a sum: γ_{K+4} of the step on absolute values of
    the true state. A chunk form adds up the same writes k u, u = β (v - Sᵀk), in another grouping: each meets at most
    T further sums.
    """
    q, k, v, beta = (head[n] for n in ("q", "k", "v", "beta"))
    steps, width = q.shape
    size = np.abs(states)
    before, key = size[:-1], np.abs(k)
    read = np.abs(v) + np.einsum("tk,tkv->tv", key, before)
    step = before + np.einsum("t,tk,tv->tkv", np.abs(beta), key, read)
    writes = beta[:, None] * (v - np.einsum("tk,tkv->tv", k, states[:-1]))
    regrouped = np.einsum("tk,tv->tkv", key, np.abs(writes))
    local = np.concatenate(
        [precision.unit * size[:1], gamma(width + 4, precision.unit) * step + gamma(steps, precision.unit) * regrouped]
    )

    def backward(rows: Array, t: int) -> Array:
        return rows - beta[t - 1] * (rows @ k[t - 1])[..., None] * k[t - 1]

    return carried(q, states, local, gamma(width + 3, precision.unit), backward, precision)


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
