"""Linear attention: S_t = S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t.

The state is read after the update. Katharopoulos et al. 2020 ("Transformers are RNNs", arXiv:2006.16236) give the
recurrent form (eq. 16-20) and the parallel one (eq. 8-9) with a feature map and a normaliser; both are left to the
caller here. The chunkwise form is that of Yang et al. 2024 (arXiv:2312.06635, section 2).

The arguments are those of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._additive import chunks, gradient, one_chunk, undecayed
from ._memory import SEQUENCE, TOKEN, Result, call, documented, one_token, token_by_token


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """Token by token, as the recurrence is written."""
    where = "linear_attention.recurrent"
    return call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, fold=True).by_sequence(token_by_token(_update))


@documented(SEQUENCE)
def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """All tokens at once: o = tril(q kᵀ) v, in O(t²). Packed sequences come one after the other."""
    where = "linear_attention.parallel"
    return call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, fold=True).by_sequence(one_chunk(chunks(undecayed)))


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 64,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    where = "linear_attention.chunkwise"
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, fold=True, chunk_size=chunk_size)
    return entered.by_chunk(chunks(undecayed), chunk_size, gradient(undecayed))


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    return one_token("linear_attention.step", _update, q, k, v, state, scale)


FORMS = {"linear-attention": (recurrent, parallel, chunkwise)}
STEPS = {"linear-attention": step}


def _update(s: Float[Tensor, "bh k v"], k: Float[Tensor, "bh 1 k"], v: Float[Tensor, "bh 1 v"]) -> Tensor:
    return torch.baddbmm(s, k.mT, v)
