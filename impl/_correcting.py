"""Memories that correct what a key finds: S' = γ_t S_{t-1}, S_t = S' + β_t k_t (v_t - S'ᵀ k_t)ᵀ, a chunk at a time.

With S the state before a chunk and D the decay between its tokens, the writes u_i = β_i (v_i - S'ᵀ k_i) solve
u_i + Σ_{j<i} β_i D_ij (k_i·k_j) u_j = β_i v_i - β_i γ_{1..i} Sᵀ k_i: one triangular solve with two right sides, [U, W],
gives u = U - W S (the UT transform; Yang et al. 2024, arXiv:2406.06484, eq. 8-11, and with gates arXiv:2412.06464).
The rest is a memory to which k_i u_iᵀ is added.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from ._common import ChunkLayout, quarantine, scan_chunks
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
    sizes = [v.shape[-1], k.shape[-1]]
    if g is None:
        (k, beta, v), stain = quarantine(k, beta, v)
        decay = None
    else:
        (k, beta, _, v), stain = quarantine(k, beta, g.clamp(min=0.0), v)
        decay = gated(torch.where(g < torch.inf, g, 0.0))
    scaled = beta * k
    within = (scaled @ k.mT).tril(-1)
    scores = (q @ k.mT).tril()
    if decay is None:
        right, late = torch.cat([beta * v, scaled], -1), k
    else:
        within, scores = within * decay.within, scores * decay.within
        right, late, q = torch.cat([beta * v, scaled * decay.begun], -1), k * decay.ended, q * decay.begun
    solved = torch.linalg.solve_triangular(within, right, upper=False, unitriangular=True)
    change, turn = (late.mT @ solved).split(sizes, -1)
    before, last = scan_chunks(change + stain[..., -1:, :], state, layout, -turn, None if decay is None else decay.whole)
    inner, read = (scores @ solved).split(sizes, -1)
    return (q - read) @ before + inner + stain, last
