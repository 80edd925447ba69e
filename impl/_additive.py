"""Memories whose writes only add up and fade: S_t = γ_t S_{t-1} + k_t v_tᵀ, a chunk at a time.

From the state S before a chunk, and with D the decay between its tokens, row i of the output is
o_i = γ_{1..i} Sᵀ q_i + Σ_{j<=i} D_ji (k_j·q_i) v_j, and the state after it is γ_{1..c} S + Σ_j γ_{j+1..c} k_j v_jᵀ.
"""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from ._common import ChunkLayout, quarantine, scan_chunks
from ._decay import Decay


def chunks(
    q: Float[Tensor, "b h m c k"],
    k: Float[Tensor, "b h m c k"],
    v: Float[Tensor, "b h m c v"],
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
    decay: Decay | None = None,
) -> tuple[Float[Tensor, "b h m c v"], Float[Tensor, "n h k v"]]:
    """All chunks at once but for the state, which passes through them one by one; no decay is a decay of 1."""
    kept = v if decay is None else v * decay.ended
    before, last = scan_chunks(k.mT @ kept, state, layout, decay=None if decay is None else decay.whole)
    (k, v), stain = quarantine(k, v)
    scores = (k @ q.mT).triu_()
    if decay is not None:
        scores *= decay.within
    o = (scores.mT @ v).addcmul_(q @ before, v.new_ones(()) if decay is None else decay.begun)
    return o if stain is None else o.add_(stain), last


def one_chunk(form: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return the form on (b t h d) that takes the whole sequence for one chunk."""

    def whole(*arguments: Tensor) -> tuple[Tensor, Tensor]:
        *inputs, state = arguments
        o, last = form(*(x.transpose(1, 2).unsqueeze(2) for x in inputs), state, None)
        return o.squeeze(2).transpose(1, 2), last

    return whole
