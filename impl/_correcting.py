"""Memories that correct what a key finds: S' = γ_t S_{t-1}, S_t = S' + β_t k_t (v_t - S'ᵀ k_t)ᵀ, a chunk at a time.

With S the state before a chunk and D the decay between its tokens, the writes u_i = β_i (v_i - S'ᵀ k_i) solve
u_i + Σ_{j<i} β_i D_ji (k_j·k_i) u_j = β_i v_i - β_i γ_{1..i} Sᵀ k_i: one triangular solve with two right sides, [U, W],
gives u = U - W S (the UT transform; Yang et al. 2024, arXiv:2406.06484, eq. 8-11, and with gates arXiv:2412.06464).
The rest is a memory to which k_i u_iᵀ is added.
"""

from __future__ import annotations

from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from ._common import ChunkLayout, each_chunk, multiplied, plus_product, quarantine
from ._decay import gated


def chunks(
    q: Float[Tensor, "b h m c k"],
    k: Float[Tensor, "b h m c k"],
    v: Float[Tensor, "b h m c v"],
    beta: Float[Tensor, "b h m c 1"],
    g: Float[Tensor, "b h m c 1"] | None,
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
) -> tuple[Float[Tensor, "b h m c v"], Float[Tensor, "n h k v"]]:
    """All chunks at once but for the state, which passes through them one by one; no log-gate g is a decay of 1."""
    decay = None
    if g is None:
        (k, beta, v), stain = quarantine(k, beta, v)
    else:
        (k, beta, _, v), stain = quarantine(k, beta, g.clamp(min=0.0), v)
        decay = gated(torch.where(g < torch.inf, g, 0.0))
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
        return (q * k).sum(-1, keepdim=True) * v, last
    o = plus_product(scores.mT @ torch.stack(writes, 1).view(v.shape), q @ before, begun)
    return o if stain is None else o + stain, last
