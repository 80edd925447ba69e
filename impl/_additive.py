"""Memories whose writes only add up and fade: S_t = γ_t S_{t-1} + k_t v_tᵀ, a chunk at a time.

From the state S before a chunk, and with D the decay between its tokens, row i of the output is
o_i = γ_{1..i} Sᵀ q_i + Σ_{j<=i} D_ji (k_j·q_i) v_j, and the state after it is γ_{1..c} S + Σ_j γ_{j+1..c} k_j v_jᵀ.

Every form is made of a function from the log-gates of a chunk, none or one, to its decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ._common import (
    ChunkLayout,
    _seen_finite,
    differentiated,
    in_place,
    multiplied,
    plus_product,
    quarantine,
    scan_chunks,
    scan_in_place,
)
from ._decay import Decay

DecayOf = Callable[..., Decay | None]


def undecayed() -> None:
    """A decay of 1."""


def chunks(decay_of: DecayOf) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Return the form ``(q, k, v, *gates, state, layout) -> (o, last state, states before)`` on all chunks (b h m c d) at once."""

    def form(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
        *gates, state, layout = rest
        return _chunks(q, k, v, state, layout, decay_of(*gates))

    return form


def one_chunk(form: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return the form on (b t h d) that takes the whole sequence for one chunk."""

    def whole(*arguments: Tensor) -> tuple[Tensor, Tensor]:
        *inputs, state = arguments
        o, last, *_ = form(*(x.transpose(1, 2).unsqueeze(2) for x in inputs), state, None)
        return o.squeeze(2).transpose(1, 2), last

    return whole


def gradient(decay_of: DecayOf) -> Callable[..., list[Any] | None]:
    """Return the gradient of the form, ``(q, k, v, *gates, states before, by_o, by_last)``, as `isoform.impl._spans` takes it."""

    def by_inputs(q: Tensor, k: Tensor, v: Tensor, *rest: Tensor) -> list[Any] | None:
        *gates, before, by_o, by_last = rest
        with torch.enable_grad():
            decay = decay_of(*gates)
        *found, by_decay, by_state = _gradient(q, k, v, before, by_o, by_last, decay)
        if not _seen_finite(found[0], found[2]):
            return None
        by_gates = [None] * len(gates) if decay is None or by_decay is None else differentiated(decay, gates, by_decay)
        return [*found, *by_gates, by_state]

    return by_inputs


def _chunks(
    q: Float[Tensor, "b h m c k"],
    k: Float[Tensor, "b h m c k"],
    v: Float[Tensor, "b h m c v"],
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
    decay: Decay | None,
) -> tuple[Float[Tensor, "b h m c v"], Float[Tensor, "n h k v"], Float[Tensor, "b h m k v"]]:
    """All chunks at once but for the state, which passes through them one by one.

    A weight that is masked by the product with 0 alone is cheaper, and right if nothing comes out that is not finite.
    """
    kept, begun = (v, v.new_ones(())) if decay is None else (v * decay.ended, decay.begun)
    before, last = scan_chunks(k.mT @ kept, state, layout, decay=None if decay is None else decay.whole)
    if in_place(q, k, v, before, begun):
        o = (_decayed(k @ q.mT, decay).mT @ v).addcmul_(q @ before, begun)
        if _seen_finite(o):
            return o, last, before
    (k, v), stain = quarantine(k, v)
    scores = (k @ q.mT).triu_()
    scores = scores if decay is None else multiplied(scores, decay.within)
    o = plus_product(scores.mT @ v, q @ before, begun)
    return o if stain is None else o + stain, last, before


def _decayed(scores: Float[Tensor, "b h m c c"], decay: Decay | None) -> Float[Tensor, "b h m c c"]:
    """The scores of keys and later queries as they have faded, in place; those of earlier ones are 0 if they are finite."""
    return scores.triu_() if decay is None else scores.mul_(decay.within)


def _gradient(
    q: Float[Tensor, "b h m c k"],
    k: Float[Tensor, "b h m c k"],
    v: Float[Tensor, "b h m c v"],
    before: Float[Tensor, "b h m k v"],
    by_o: Float[Tensor, "b h m c v"],
    by_last: Float[Tensor, "b h k v"],
    decay: Decay | None,
) -> tuple[Tensor, Tensor, Tensor, Decay | None, Tensor]:
    """The gradients by q, k, v, a decay that requires one, and the state; where one is not finite, that by q or by v is not.

    With W the gradient by the decayed scores P, and R that by the state after a chunk:
    by_q = Wᵀ k + γ_{1..i} by_o Sᵀ, by_k = W q + γ_{j+1..c} v Rᵀ, by_v = P by_o + γ_{j+1..c} k R.
    """
    kept, read = (v, by_o) if decay is None else (v * decay.ended, by_o * decay.begun)
    after, by_state = scan_in_place(q.mT @ read, by_last, None if decay is None else decay.whole, backward=True)
    scores, weights = k @ q.mT, v @ by_o.mT
    by_q, by_k, by_v = by_o @ before.mT, kept @ after.mT, k @ after
    by_decay = None
    if decay is not None:
        if decay.within.requires_grad:
            sums = (q * by_q).sum(-1, keepdim=True), (v * by_v).sum(-1, keepdim=True)
            by_decay = Decay(scores * weights, *sums, (before * after).sum((-2, -1), keepdim=True))
        by_q.mul_(decay.begun), by_v.mul_(decay.ended)
    scores, weights = _decayed(scores, decay), _decayed(weights, decay)
    for total, x, y in ((by_q, weights.mT, k), (by_k, weights, q), (by_v, scores, by_o)):
        total.flatten(0, 2).baddbmm_(x.flatten(0, 2), y.flatten(0, 2))
    return by_q, by_k, by_v, by_decay, by_state
