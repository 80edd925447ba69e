"""Memories that correct what a key finds: S' = γ_t S_{t-1}, S_t = S' + β_t k_t (v_t - S'ᵀ k_t)ᵀ, a chunk at a time.

With S the state before a chunk and D the decay between its tokens, the writes u_i = β_i (v_i - S'ᵀ k_i) solve
u_i + Σ_{j<i} β_i D_ji (k_j·k_i) u_j = β_i v_i - β_i γ_{1..i} Sᵀ k_i: with T the inverse of that unit triangular matrix,
u = U - W S for U = T β v and W = T β γ_{1..i} k (the UT transform; Yang et al. 2024, arXiv:2406.06484, eq. 8-11, and with
gates arXiv:2412.06464). The rest is a memory to which k_i u_iᵀ is added.

Every form is made of a function from the log-gates of a chunk, none or one, to its decay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ._common import ChunkLayout, _seen_finite, differentiated, each_chunk, in_place, made_of, multiplied, plus_product, quarantine
from ._decay import Decay

DecayOf = Callable[..., Decay | None]


def chunks(decay_of: DecayOf) -> Callable[..., tuple[Tensor, ...]]:
    """Return the form ``(q, k, v, *log-gates, beta, state, layout) -> (o, last state, states before, errors)`` on all chunks at once.

    The errors v_i - S'ᵀ k_i are there where the states are for a gradient. It is fast where chunks of one time lie together in memory.
    """

    def form(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        *gates, beta, state, layout = rest
        if layout is not None or not in_place(q, k, v, *gates, beta, state):
            return _chunks(q, k, v, gates, beta, state, layout, decay_of)
        q, k, v, beta, *gates = (_by_time(x) for x in (q, k, v, beta, *gates))
        o, last, before, errors = _chunks_in_place(q, k, v, beta, state, decay_of(*gates))
        if not _seen_finite(o):
            k, v, beta, gates, stain = _quarantined(k, v, beta, gates)
            o, last, before, errors = _chunks_in_place(q, k, v, beta, state, decay_of(*gates))
            if stain is not None:
                o, last, before, errors = _stained(o, last, before, errors, stain)
        return _by_head(o), last, _by_head(before), _by_head(errors)

    return form


def gradient(decay_of: DecayOf) -> Callable[..., list[Any] | None]:
    """Return its gradient, ``(q, k, v, *log-gates, beta, states before, errors, by_o, by_last)``, as `isoform.impl._spans` takes it."""

    def by_inputs(q: Tensor, k: Tensor, v: Tensor, *rest: Tensor) -> list[Any] | None:
        *gates, beta, before, errors, by_o, by_last = rest
        with torch.enable_grad():
            decay = decay_of(*(_by_time(g) for g in gates))
        q, k, beta, before, errors, by_o = (_by_time(x) for x in (q, k, beta, before, errors, by_o))
        *found, by_decay, by_state = _gradient(q, k, beta, before, errors, by_o, by_last, decay)
        if not _seen_finite(*found):
            return None
        by_gates = [None] * len(gates) if decay is None or by_decay is None else differentiated(decay, gates, by_decay)
        by_q, by_k, by_v, by_beta = (_by_head(x) for x in found)
        return [by_q, by_k, by_v, *by_gates, by_beta, by_state]

    return by_inputs


def _by_time(x: Float[Tensor, "b h m *d"]) -> Float[Tensor, "m b h *d"]:
    return x.movedim(2, 0)


def _by_head(x: Float[Tensor, "m b h *d"]) -> Float[Tensor, "b h m *d"]:
    return x.movedim(0, 2)


def _chunks(
    q: Float[Tensor, "b h m c k"],
    k: Float[Tensor, "b h m c k"],
    v: Float[Tensor, "b h m c v"],
    gates: list[Float[Tensor, "b h m c 1"]],
    beta: Float[Tensor, "b h m c 1"],
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
    decay_of: DecayOf,
) -> tuple[Float[Tensor, "b h m c v"], Float[Tensor, "n h k v"], Float[Tensor, "b h m k v"]]:
    """All chunks at once but for the state, whatever the inputs are and whoever records what is done."""
    k, v, beta, gates, stain = _quarantined(k, v, beta, gates)
    decay = decay_of(*gates)
    found = beta * k
    overlaps, scores = (k @ found.mT).triu_(1), (k @ q.mT).triu_()
    begun, kept = v.new_ones(()), None if stain is None else stain[..., -1:, :] + 1.0
    if decay is not None:
        overlaps, scores = multiplied(overlaps, decay.within), multiplied(scores, decay.within)
        begun, kept = decay.begun, decay.whole if stain is None else stain[..., -1:, :] + decay.whole
        found, k = found * begun, k * decay.ended
    right = torch.cat([beta * v, found], -1)
    solved = torch.linalg.solve_triangular(overlaps, right.mT, upper=True, left=False, unitriangular=True).mT
    fading = () if kept is None else (kept.expand(*v.shape[:3], 1, -1),)
    writes = []

    def update(s: Tensor, own: Tensor, found: Tensor, k: Tensor, *kept: Tensor) -> Tensor:
        writes.append(torch.baddbmm(own, found, s, alpha=-1))
        return torch.baddbmm(reduce(torch.mul, kept, s), k.mT, writes[-1])

    before, last = each_chunk(update, (*solved.split([v.shape[-1], k.shape[-1]], -1), k, *fading), state, layout)
    if not writes:
        return made_of(v, q, k, beta, *gates), last, before
    o = plus_product(scores.mT @ torch.stack(writes, 1).view(v.shape), q @ before, begun)
    return o if stain is None else o + stain, last, before


def _chunks_in_place(
    q: Float[Tensor, "m b h c k"],
    k: Float[Tensor, "m b h c k"],
    v: Float[Tensor, "m b h c v"],
    beta: Float[Tensor, "m b h c 1"],
    state: Float[Tensor, "b h k v"],
    decay: Decay | None,
) -> tuple[Float[Tensor, "m b h c v"], Float[Tensor, "b h k v"], Float[Tensor, "m b h k v"], Float[Tensor, "m b h c v"]]:
    """`_chunks` of inputs that are finite, or if the output is; and the errors e, of which u = βe."""
    overlaps, scores = _masked(k @ k.mT, decay, 1), _masked(k @ q.mT, decay, 0)
    inverse = _inverse(overlaps.mul_(beta))
    errors = inverse.mT @ v
    found = (inverse if decay is None else inverse.mul_(decay.begun)).mT @ k
    before, last = state.new_empty(*k.shape[:3], *state.shape[2:]), torch.empty_like(state, memory_format=torch.contiguous_format)
    places = [*before.flatten(1, 2).unbind(0), last.flatten(0, 1)]
    places[0].copy_(state.flatten(0, 1))
    rates = beta if decay is None else beta * decay.ended
    chunks = zip(*(x.flatten(1, 2).unbind(0) for x in (errors, found, (k * rates).mT)), strict=True)
    wholes = None if decay is None else decay.whole.flatten(1, 2).unbind(0)
    for n, (e, w, keys) in enumerate(chunks):
        e.baddbmm_(w, places[n], alpha=-1)
        if wholes is None:
            torch.baddbmm(places[n], keys, e, out=places[n + 1])
        else:
            torch.mul(places[n], wholes[n], out=places[n + 1]).baddbmm_(keys, e)
    o = q @ before
    _add_product(o if decay is None else o.mul_(decay.begun), scores.mul_(beta).mT, errors)
    return o, last, before, errors


def _quarantined(k: Tensor, v: Tensor, beta: Tensor, gates: list[Tensor]) -> tuple[Tensor, Tensor, Tensor, list[Tensor], Tensor | None]:
    """`quarantine`; a log-gate of -∞ is none of those that it is for."""
    (k, beta, *_, v), stain = quarantine(k, beta, *(g.clamp(min=0.0) for g in gates), v)
    return k, v, beta, [torch.where(g < torch.inf, g, 0.0) for g in gates], stain


def _stained(
    o: Float[Tensor, "m b h c v"],
    last: Float[Tensor, "b h k v"],
    before: Float[Tensor, "m b h k v"],
    errors: Float[Tensor, "m b h c v"],
    stain: Float[Tensor, "m b h c v"],
) -> tuple[Float[Tensor, "m b h c v"], Float[Tensor, "b h k v"], Float[Tensor, "m b h k v"], Float[Tensor, "m b h c v"]]:
    """The results with the stain that each chunk has and hands on."""
    after = stain[..., -1:, :].cumsum(0)
    entered = torch.cat([torch.zeros_like(after[:1]), after[:-1]])
    stain = stain + entered
    return o + stain, last + after[-1], before + entered, errors + stain


def _gradient(
    q: Float[Tensor, "m b h c k"],
    k: Float[Tensor, "m b h c k"],
    beta: Float[Tensor, "m b h c 1"],
    before: Float[Tensor, "m b h k v"],
    errors: Float[Tensor, "m b h c v"],
    by_o: Float[Tensor, "m b h c v"],
    by_last: Float[Tensor, "b h k v"],
    decay: Decay | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Decay | None, Tensor]:
    """The gradients by q, k, v, beta, a decay that requires one, and the state.

    With u = βe the writes, e the errors, P the decayed scores of keys with queries, and R the gradient by the state after a chunk,
    that by βv - … is z = Tᵀ(P by_o + γ_{j+1..c} k R), and the one by the state before it is
    γ R + (γ_{1..i} q)ᵀ by_o - (γ_{1..i} k)ᵀ βz. By v it is βz, by β it is z·e; with G and F the decayed u by_oᵀ and
    -u (βz)ᵀ, by_q = Gᵀk + γ_{1..i} by_o Sᵀ and by_k = G q + (F + Fᵀ) k + γ_{j+1..c} u Rᵀ - γ_{1..i} βz Sᵀ.
    """
    fixed = None if decay is None else Decay(*(x.detach() for x in decay))
    overlaps, scores = k @ k.mT, k @ q.mT
    undecayed = (overlaps.clone(), scores.clone()) if decay is not None and decay.within.requires_grad else ()
    overlaps, scores = _masked(overlaps, fixed, 1), _masked(scores, fixed, 0)
    inverse = _inverse(overlaps * beta.mT)
    u = errors * beta
    kept, read, rates = (k, by_o, beta) if fixed is None else (k * fixed.ended, by_o * fixed.begun, beta * fixed.begun)
    z, states = _scan_back(inverse @ (scores @ by_o), inverse @ kept, k * rates, q.mT, read, by_last, fixed)
    after, by_v, by_beta = states[1:], z.mul(beta), (z * errors).sum(-1, keepdim=True)
    weights, crossed = u @ by_o.mT, u @ by_v.mT
    by_q, by_k, taken = by_o @ before.mT, u @ after.mT, by_v @ before.mT
    by_decay = None
    if decay is not None and fixed is not None:
        if undecayed:
            begun, ended = ((q * by_q).sum(-1, keepdim=True) - (k * taken).sum(-1, keepdim=True), (k * by_k).sum(-1, keepdim=True))
            within = undecayed[1].mul_(weights).sub_(undecayed[0].mul_(crossed))
            by_decay = Decay(within, begun, ended, (before * after).sum((-2, -1), keepdim=True))
        for x, left in ((by_q, fixed.begun), (by_k, fixed.ended), (taken, fixed.begun)):
            x.mul_(left)
    weights, crossed = _masked(weights, fixed, 0), _masked(crossed, fixed, 1)
    by_k.sub_(taken)
    for total, x, y, sign in ((by_q, weights.mT, k, 1), (by_k, weights, q, 1), (by_k, crossed + crossed.mT, k, -1)):
        _add_product(total, x, y, sign)
    return by_q, by_k, by_v, by_beta, by_decay, states[0].clone()


def _scan_back(
    z: Float[Tensor, "m b h c v"],
    kept: Float[Tensor, "m b h c k"],
    found: Float[Tensor, "m b h c k"],
    queries: Float[Tensor, "m b h k c"],
    read: Float[Tensor, "m b h c v"],
    by_last: Float[Tensor, "b h k v"],
    decay: Decay | None,
) -> tuple[Float[Tensor, "m b h c v"], Float[Tensor, "m+1 b h k v"]]:
    """z + kept R, in the place of z, and the gradients by the states: R after a chunk, γ R + queries read - foundᵀ z before it."""
    states = by_last.new_empty(z.shape[0] + 1, *by_last.shape)
    states[-1].copy_(by_last)
    torch.bmm(queries.flatten(0, 2), read.flatten(0, 2), out=states[:-1].flatten(0, 2))
    by_state = states.flatten(1, 2).unbind(0)
    chunks = list(zip(*(x.flatten(1, 2).unbind(0) for x in (z, kept, found.mT)), strict=True))
    wholes = None if decay is None else decay.whole.flatten(1, 2).unbind(0)
    for n in reversed(range(len(chunks))):
        own, keys, back = chunks[n]
        own.baddbmm_(keys, by_state[n + 1])
        if wholes is None:
            by_state[n].add_(by_state[n + 1])
        else:
            by_state[n].addcmul_(by_state[n + 1], wholes[n])
        by_state[n].baddbmm_(back, own, alpha=-1)
    return z, states


def _masked(scores: Float[Tensor, "*b c c"], decay: Decay | None, diagonal: int) -> Float[Tensor, "*b c c"]:
    """The scores from a diagonal on, as they have faded, in place."""
    return scores.triu_(diagonal) if decay is None else scores.triu_(diagonal).mul_(decay.within)


def _inverse(overlaps: Float[Tensor, "*b c c"]) -> Float[Tensor, "*b c c"]:
    """The inverse of 1 + overlaps, which are 0 up to the diagonal."""
    one = torch.eye(overlaps.shape[-1], dtype=overlaps.dtype, device=overlaps.device).expand_as(overlaps)
    return torch.linalg.solve_triangular(overlaps, one, upper=True, left=False, unitriangular=True)


def _add_product(total: Float[Tensor, "*b i j"], x: Float[Tensor, "*b i n"], y: Float[Tensor, "*b n j"], sign: int = 1) -> None:
    """Add a product to a contiguous total."""
    total.flatten(0, -3).baddbmm_(x.flatten(0, -3), y.flatten(0, -3), alpha=sign)
