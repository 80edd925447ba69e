"""Delta rule: S_t = S_{t-1} + β_t k_t (v_t - S_{t-1}ᵀ k_t)ᵀ, o_t = scale · S_tᵀ q_t.

The state is read after the update. Schlag et al. 2021 ("Linear Transformers Are Secretly Fast Weight Programmers",
arXiv:2102.11174), eq. 23-24; Yang et al. 2024 (arXiv:2406.06484), section 2.2, here with the transposed state.

``beta`` (b t hv) is taken after its sigmoid (0 <= β‖k‖² <= 2 keeps every step a contraction; outside, the recurrence is
computed as written); ``use_qk_l2norm_in_kernel``, whether to divide each query and key by sqrt(Σx² + 1e-6) first. The
other arguments are those of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._additive import undecayed
from ._correcting import chunks, gradient
from ._memory import SEQUENCE, TOKEN, Result, call, documented, one_token, token_by_token


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    beta: Float[Tensor, "b t hv"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    use_qk_l2norm_in_kernel: bool = False,
) -> Result:
    """Token by token, as the recurrence is written."""
    where, gates = "delta_rule.recurrent", {"beta": (beta, "b t hv")}
    l2norm = use_qk_l2norm_in_kernel
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, l2norm=l2norm)
    return entered.by_sequence(token_by_token(update))


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    beta: Float[Tensor, "b t hv"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    use_qk_l2norm_in_kernel: bool = False,
    chunk_size: int = 32,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk.

    In a chunk the update is S + Kᵀ (U - W S), where (I + tril(diag(β) K Kᵀ, -1)) [U, W] = diag(β) [V, K] is one
    triangular solve (the UT transform; Yang et al. 2024, arXiv:2406.06484, eq. 8-11), done for all chunks at once."""
    where, gates = "delta_rule.chunkwise", {"beta": (beta, "b t hv")}
    l2norm = use_qk_l2norm_in_kernel
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, l2norm=l2norm, chunk_size=chunk_size)
    return entered.by_chunk(chunks(undecayed), chunk_size, gradient(undecayed), by_time=True)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    beta: Float[Tensor, "b hv"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
    use_qk_l2norm_in_kernel: bool = False,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    gates = {"beta": (beta, "b hv")}
    return one_token("delta_rule.step", update, q, k, v, state, scale, gates, l2norm=use_qk_l2norm_in_kernel)


FORMS = {"delta-rule": (recurrent, chunkwise)}
STEPS = {"delta-rule": step}


def update(s: Float[Tensor, "bh k v"], k: Float[Tensor, "bh 1 k"], v: Float[Tensor, "bh 1 v"], beta: Float[Tensor, "bh 1 1"]) -> Tensor:
    """Return S + β k (v - Sᵀk)ᵀ."""
    return torch.baddbmm(s, k.mT, beta * torch.baddbmm(v, k, s, alpha=-1))
