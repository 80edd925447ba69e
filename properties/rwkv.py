"""RWKV under test: the mean of RWKV-4 (wkv.py), and the memories of RWKV-6 and RWKV-7.

wkv6    o_t = scale · (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ q_t,  S_t = diag(e^{w_t}) S_{t-1} + k_t v_tᵀ
wkv7    S_t = diag(e^{w_t}) S_{t-1} + b_t (a_tᵀ S_{t-1}) + k_t v_tᵀ,  o_t = scale · S_tᵀ q_t
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isoform.derivations.rwkv import WKV6, WKV7

from . import gates, wkv
from .bounds import EXPONENTIAL, OPERANDS, PRODUCTS, SPLIT, Bounds, carried, fading, gamma, rounded_products, strength
from .gates import Field
from .memory import memory_operator, plain
from .operator import Input, Instance, Reduction
from .strategies import Case
from .tensors import Precision, rounded

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
LOGS = Input("w", "b t h k", "<= 0, -inf among them")
CHANNELS = (0, 3)
"""The axes of batch and channel, along which a constant gate does not change."""

# RWKV-6 ---------------------------------------------------------------------------------------------

ONE = "bonus-one"
"""Structure in which the bonus is 1: a token reads itself as it will read every other."""


def draw_bonus(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """The log of a decay for every token and channel, and a bonus for every channel."""
    shape = inputs["k"].shape
    rng = case.rng(21)
    u = rng.integers(-2, 3, shape[2:]).astype(float) if case.has("dyadic") else rounded(rng.standard_normal(shape[2:]), case.dtype)
    return {**inputs, "w": gates.logs(case, 20, shape, CHANNELS), "u": np.ones(shape[2:]) if case.has(ONE) else u}


def decays(head: Head, field: Field) -> Head:
    """a_t = e^{w_t}."""
    return {**head, "a": field.exp(head["w"])}


def before_the_write(head: Head, states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head of RWKV-6, in any order of summation.

    An output reads the state of the token before: that of the same tokens behind one that changes nothing. Beside it
    stands q_t (u ⊙ k_t) v_t, with two products more in it than a term of the state has, and one sum.
    """
    q, k, v, a = (head[n] for n in "qkva")
    writes = np.abs(k)[:, :, None] * np.abs(v)[:, None, :]
    found = fading(q, writes, states, (a[:, :, None],), precision)
    late = np.concatenate([0 * np.abs(states[:1]), writes])[:-1]
    early = fading(q, late, _behind(states[:1], states), (_behind(np.ones((1, a.shape[1])), a)[:, :, None],), precision)
    own = np.einsum("tk,k,tk->t", np.abs(q), np.abs(head["u"]), np.abs(k))[:, None] * np.abs(v)
    sums = (gamma(q.shape[1] + 6 + 2 * SPLIT, precision.unit) + rounded_products(PRODUCTS, precision)) * own
    sums += precision.unit * (own + early.terms)
    written = np.zeros_like(own) if early.written is None else np.einsum("tk,tkv->tv", np.abs(q), early.written[1:])
    terms = early.terms + own + written / OPERANDS
    return Bounds(early.output + sums + precision.tiny * q.shape[1], found.states, terms, found.written)


def _behind(first: Array, rest: Array) -> Array:
    """The rest one step later, without its last."""
    return np.concatenate([first, rest])[:-1]


RWKV6 = memory_operator(
    WKV6,
    before_the_write,
    gates=(LOGS, Input("u", "h k")),
    draw_gates=draw_bonus,
    flags=(gates.IN_TIME, (ONE,)),
    enter=decays,
    decays=("a",),
    capabilities=("outside",),
    reductions=(Reduction("w = 0 and u = 1", ("start", "gates-zero", ONE), "linear-attention", plain),),
    neutral=(("k", "w"), ("v", "w")),
)

# RWKV-7 ---------------------------------------------------------------------------------------------

RATES = ("no-correction", "whole-correction", "one-rate", "delta")
"""Structure of b = -η ⊙ a: η 0, 1, or one number for all channels; or the delta rule with β = 1, b = k = -a."""
WEAK = 0.125
"""The largest η where a long case is to correct little."""


def draw_correction(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """The log of a decay for every token and channel; a of length 1 and b = -η ⊙ a with η in [0, 1]."""
    shape = inputs["k"].shape
    rng = case.rng(22)
    logs = gates.logs(case, 20, shape, CHANNELS)
    if case.has("dyadic"):
        a = -np.eye(shape[3])[rng.integers(0, shape[3], shape[:3])]
        return {**inputs, "w": logs, "a": a, "b": -a * rng.integers(0, 3, (*shape[:3], 1))}
    drawn = rng.standard_normal(shape)
    a = rounded(-drawn / np.linalg.norm(drawn, axis=-1, keepdims=True), case.dtype)
    if case.has("delta"):
        return {**inputs, "k": -a, "w": logs, "a": a, "b": -a}
    one = case.has("one-rate") or case.has("long-memory")
    eta = rng.random((*shape[:3], 1 if one else shape[3])) * (WEAK if case.has("weak") else 1)
    eta = eta * 0 if case.has("no-correction") else eta * 0 + 1 if case.has("whole-correction") else eta
    return {**inputs, "w": logs, "a": a, "b": rounded(-eta * a, case.dtype)}


def logs_as_decays(head: Head, field: Field) -> Head:
    """d_t = e^{w_t}."""
    return {**head, "d": field.exp(head["w"])}


def corrected(head: Head, states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head of RWKV-7, local errors carried by the exact transitions.

    As for the delta rule (`isoform.properties.delta_rule.bound`): a step rounds a dot product over K, three products and
    two sums, γ_{K+5} of the step on absolute values of the true state, and decays by an exponential more. A chunk form adds up
    S_t = D S_c + Σ D (b_j u_jᵀ + k_j v_jᵀ) with u_j = u⁰_j + W_j S_c, in absolute value M_t (`regrouped`); its triangular
    solve rounds the row of u_t as |a_t|ᵀ M_{t-1}, with ``span``, the chunk size, for the number of its sums. The product of
    decays is one of products in a tree, or the exponential of a sum of logs that is rounded ``span`` times and for the base.
    """
    q, k, v, a, b, d = (head[n] for n in "qkvabd")
    steps, width = q.shape
    unit, span = precision.unit, min(steps, span)
    fade, tree = EXPONENTIAL + 1, (EXPONENTIAL + 1) * (2 + np.log2(span + 1))
    sums, turned, whole = regrouped(k, v, a, b, d, states, span)
    lost = (span + 3) * unit * turned + precision.tiny * whole
    solve = gamma(span + width + 4 + tree, unit) + rounded_products(PRODUCTS + 1 + np.log2(span + 1), precision)
    read = np.einsum("tk,tkv->tv", np.abs(a), solve * sums[:-1] + lost[:-1])
    local = gamma(width + 5 + fade, unit) * d[:, :, None] * np.abs(states[:-1]) + gamma(5 + tree, unit) * sums[1:] + lost[1:]
    local += np.abs(b)[:, :, None] * read[:, None, :]

    def backward(rows: Array, t: int) -> Array:
        return rows * d[t - 1] + (rows @ b[t - 1])[..., None] * a[t - 1]

    found = carried(q, states, np.concatenate([unit * np.abs(states[:1]), local]), gamma(width + 3, unit), backward, precision)
    terms = np.einsum("tk,tkv->tv", np.abs(q), sums[1:])
    at_end, at_read = (rounded_products(count, precision) for count in (PRODUCTS - 1, PRODUCTS))
    output = (gamma(span + width + 5 + tree, unit) + at_read) * terms + np.einsum("tk,tkv->tv", np.abs(q), lost[1:])
    return Bounds(found.output + output, found.states + (gamma(span + 3 + tree, unit) + at_end) * sums + lost, terms)


def regrouped(k: Array, v: Array, a: Array, b: Array, d: Array, states: Array, span: int) -> Array:
    """(3, T + 1, K, V): M_t, the largest absolute sum that a chunk of at most ``span`` tokens, starting anywhere, has at t.

    With W_j = a_jᵀ A_{j-1} ⋯ A_{c+1} for a chunk that starts after c, it adds up e^s |S_c| and
    e^s (|b_j| (|u⁰_j| + |W_j||S_c|) + |k_j||v_j|), each with the sum s of the logs of decays after it, channel by channel.
    Beside it the same sum with e^s |s| in place of e^s, and without decays.
    """
    found = np.einsum("tk,tkv->tv", a, states[:-1])
    rows, added = np.zeros_like(k), np.zeros_like(v)
    for c in range(len(k) - 1, -1, -1):
        rows = rows * d[c] + (rows @ b[c])[:, None] * a[c]
        rows[c] = a[c]
        part = slice(c, c + span)
        back = rows[part]
        added[part] = np.maximum(added[part], np.abs(found[part] - back @ states[c]) + np.abs(back) @ np.abs(states[c]))
    terms = np.abs(b)[:, :, None] * added[:, None, :] + np.abs(k)[:, :, None] * np.abs(v)[:, None, :]
    starts, turns = np.abs(states), strength(d)
    sums = np.zeros((3, *states.shape))
    end = np.ones((1, k.shape[1]))
    for t in range(len(states)):
        first = max(0, t - span)
        size = np.concatenate([np.cumprod(d[first:t][::-1], axis=0)[::-1], end])
        logs = np.concatenate([np.cumsum(turns[first:t][::-1], axis=0)[::-1], 0 * end])
        weights = np.stack([size, size * logs, np.ones_like(size)])
        sums[:, t] = (weights[..., None] * starts[first : t + 1]).max(1) + np.einsum("wnk,nkv->wkv", weights[:, 1:], terms[first:t])
    return sums


def uncorrected(x: Instance) -> Instance:
    """Gated linear attention with the same decays."""
    return replace(x, inputs={**plain(x).inputs, "gk": x.inputs["w"]})


def as_delta(x: Instance) -> Instance:
    """The delta rule with β = 1."""
    b, t, hv, _ = x.inputs["v"].shape
    return replace(x, inputs={**plain(x).inputs, "beta": np.ones((b, t, hv))})


RWKV7 = memory_operator(
    WKV7,
    corrected,
    gates=(LOGS, Input("a", "b t h k"), Input("b", "b t h k")),
    draw_gates=draw_correction,
    flags=(gates.IN_TIME, RATES),
    enter=logs_as_decays,
    corrects=True,
    decays=("d",),
    capabilities=("outside",),
    reductions=(
        Reduction("a, b without a correction", ("start", "no-correction", "gates-mixed"), "gated-linear-attention", uncorrected),
        Reduction("w = 0, a = -k, b = k", ("start", "gates-zero", "delta"), "delta-rule", as_delta),
    ),
    neutral=(("k", "b", "w"), ("v", "a", "w")),
)

OPERATORS = (wkv.OPERATOR, RWKV6, RWKV7)
