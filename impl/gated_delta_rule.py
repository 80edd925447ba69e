"""Gated delta rule: S' = e^{g_t} S_{t-1}, S_t = S' + β_t k_t (v_t - S'ᵀ k_t)ᵀ, o_t = scale · S_tᵀ q_t.

The correction reads the decayed state, the output the updated one. Yang, Kautz and Hatamizadeh 2024 ("Gated Delta Networks",
arXiv:2412.06464), here with the transposed state.

``g`` (b t hv) is the natural log of the decay, <= 0; 0 and -∞ are legal, and a positive one is computed as written.
``beta`` (b t hv) and ``use_qk_l2norm_in_kernel`` are those of `isoform.impl.delta_rule`, the other arguments those of every
memory (`isoform.impl._memory`).
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from ._correcting import chunks, gradient
from ._decay import gated
from ._memory import SEQUENCE, TOKEN, Result, call, documented, one_token, token_by_token
from .delta_rule import update


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    g: Float[Tensor, "b t hv"],
    beta: Float[Tensor, "b t hv"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    use_qk_l2norm_in_kernel: bool = False,
) -> Result:
    """Token by token, as the recurrence is written."""
    where, gates = "gated_delta_rule.recurrent", {"g": (g, "b t hv"), "beta": (beta, "b t hv")}
    l2norm = use_qk_l2norm_in_kernel
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, l2norm=l2norm)
    return entered.by_sequence(token_by_token(_update))


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    g: Float[Tensor, "b t hv"],
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
    where, gates = "gated_delta_rule.chunkwise", {"g": (g, "b t hv"), "beta": (beta, "b t hv")}
    l2norm = use_qk_l2norm_in_kernel
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, l2norm=l2norm, chunk_size=chunk_size)
    return entered.by_chunk(chunks(gated), chunk_size, gradient(gated), by_time=True)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    g: Float[Tensor, "b hv"],
    beta: Float[Tensor, "b hv"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
    use_qk_l2norm_in_kernel: bool = False,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    gates = {"g": (g, "b hv"), "beta": (beta, "b hv")}
    return one_token("gated_delta_rule.step", _update, q, k, v, state, scale, gates, l2norm=use_qk_l2norm_in_kernel)


FORMS = {"gated-delta-rule": (recurrent, chunkwise)}
STEPS = {"gated-delta-rule": step}


def _update(s: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    return update(s * g.exp(), k, v, beta)
