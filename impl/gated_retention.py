"""Gated retention: S_t = e^{g_t} S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t.

The state is read after the update. Sun et al. 2024 ("You Only Cache Once", arXiv:2405.05254), gated retention; Dao and Gu 2024
("Transformers are SSMs", arXiv:2405.21060) with k, q, v for their B, C, x: the scalar-decay state-space model (SSD).

``g`` (b t hv) is the natural log of the decay, <= 0; 0 and -∞ are legal, and a positive one is computed as written. The
other arguments are those of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._additive import chunks, gradient, one_chunk
from ._decay import gated
from ._memory import SEQUENCE, TOKEN, Result, call, documented, one_token, token_by_token


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    g: Float[Tensor, "b t hv"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """Token by token, as the recurrence is written."""
    where, gates = "gated_retention.recurrent", {"g": (g, "b t hv")}
    return call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates).by_sequence(token_by_token(update))


@documented(SEQUENCE)
def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    g: Float[Tensor, "b t hv"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """All tokens at once: o = (q kᵀ ⊙ D) v with D_ij = e^{g_{j+1} + … + g_i}, in O(t²). Packed sequences come one after the other."""
    where, gates = "gated_retention.parallel", {"g": (g, "b t hv")}
    return call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates).by_sequence(one_chunk(chunks(gated)))


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    g: Float[Tensor, "b t hv"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 32,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    where, gates = "gated_retention.chunkwise", {"g": (g, "b t hv")}
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, chunk_size=chunk_size)
    return entered.by_chunk(chunks(gated), chunk_size, gradient(gated))


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    g: Float[Tensor, "b hv"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    return one_token("gated_retention.step", update, q, k, v, state, scale, {"g": (g, "b hv")})


FORMS = {"gated-retention": (recurrent, parallel, chunkwise)}
STEPS = {"gated-retention": step}


def update(s: Float[Tensor, "bh k v"], k: Float[Tensor, "bh 1 k"], v: Float[Tensor, "bh 1 v"], g: Float[Tensor, "bh 1 1"]) -> Tensor:
    """Return e^g S + k vᵀ."""
    return torch.baddbmm(s * g.exp(), k.mT, v)
