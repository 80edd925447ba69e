"""WKV of RWKV-6: o_t = scale · (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ q_t, S_t = diag(e^{w_t}) S_{t-1} + k_t v_tᵀ.

The state is read before the update, and the current token has a bonus u instead. Peng et al. 2024 ("Eagle and Finch",
arXiv:2404.05892), where q is the receptance r. The state is that of gated linear attention, so each form is one of
`isoform.impl.gated_linear_attention` whose query t is read at t - 1, plus what a token reads of itself.

``w`` (b t h k) are natural logarithms of decays, at most 0, -∞ legal; ``u`` (h k) is any bonus. The other arguments are those of
every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .. import gated_linear_attention
from .._common import accumulator, check, check_groups, check_packing, spread
from .._memory import SEQUENCE, TOKEN, Result, default_scale, documented


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    w: Float[Tensor, "b t h k"],
    u: Float[Tensor, "h k"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """Token by token."""
    entered = _enter("rwkv.wkv6.recurrent", q, k, v, w, u, scale, initial_state, cu_seqlens)
    return entered.by(gated_linear_attention.recurrent, output_final_state)


@documented(SEQUENCE)
def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    w: Float[Tensor, "b t h k"],
    u: Float[Tensor, "h k"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """All tokens at once, in O(t²): the masked matrix product, the bonus on its diagonal. The host reads packed offsets."""
    entered = _enter("rwkv.wkv6.parallel", q, k, v, w, u, scale, initial_state, cu_seqlens)
    return entered.by(gated_linear_attention.parallel, output_final_state)


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    w: Float[Tensor, "b t h k"],
    u: Float[Tensor, "h k"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 64,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    entered = _enter("rwkv.wkv6.chunkwise", q, k, v, w, u, scale, initial_state, cu_seqlens)
    return entered.by(gated_linear_attention.chunkwise, output_final_state, chunk_size=chunk_size)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    w: Float[Tensor, "b h k"],
    u: Float[Tensor, "h k"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    where = "rwkv.wkv6.step"
    tensors = {"q": (q, "b h k"), "k": (k, "b h k"), "v": (v, "b hv v"), "w": (w, "b h k"), "u": (u, "h k")}
    sizes = check(where, {**tensors, "state": (state, "b hv k v")})
    groups = check_groups(where, "h", "hv", sizes)
    dtype = accumulator(q, k, v, w, u, state)
    query = q.to(dtype) * (default_scale(sizes["k"]) if scale is None else scale)
    wide, k, w = v.to(dtype), k.to(dtype), w.to(dtype)
    o = spread((query * u.to(dtype) * k).sum(-1, keepdim=True), groups, 1) * wide
    if state is not None:
        o = o + (spread(query, groups, 1).unsqueeze(-2) @ state.to(dtype)).squeeze(-2)
    _, new = gated_linear_attention.step(query, k, wide, w, None, state, 1.0)
    return o.to(v.dtype), new


class _Call(NamedTuple):
    """A checked call: tensors in the accumulation dtype, queries scaled."""

    q: Float[Tensor, "b t h k"]
    k: Float[Tensor, "b t h k"]
    v: Float[Tensor, "b t hv v"]
    w: Float[Tensor, "b t h k"]
    u: Float[Tensor, "h k"]
    groups: int
    state: Float[Tensor, "n hv k v"] | None
    cu_seqlens: Int[Tensor, " n+1"] | None
    dtype: torch.dtype

    def by(self, form: Callable[..., Result], output_final_state: bool, **more: int) -> Result:
        """A form of gated linear attention, whose row t - 1 is asked with query t, and what a token reads of itself."""
        own = spread((self.q * self.u * self.k).sum(-1, keepdim=True), self.groups, 2) * self.v
        asked = torch.cat([self.q[:, 1:], torch.zeros_like(self.q[:, :1])], 1)
        read, last = form(asked, self.k, self.v, self.w, None, 1.0, self.state, output_final_state, self.cu_seqlens, **more)
        return self._started(read, own).to(self.dtype), last

    def _started(self, read: Float[Tensor, "b t hv v"], own: Float[Tensor, "b t hv v"]) -> Float[Tensor, "b t hv v"]:
        """Every row one token later, beside its own; the first of a sequence reads the state that it starts with."""
        if read.shape[1] == 0:
            return read + own
        if self.cu_seqlens is None:
            first = own[:, :1] if self.state is None else self._read(self.q[:, :1], self.state.unsqueeze(1)) + own[:, :1]
            return torch.cat([first, read[:, :-1] + own[:, 1:]], 1)
        begins, owner, inside = (x[:, None, None] if x.dtype == torch.bool else x for x in _beginnings(self.cu_seqlens, read.shape[1]))
        later = torch.cat([torch.zeros_like(read[:, :1]), read[:, :-1]], 1)
        first = torch.zeros_like(read) if self.state is None else self._first_rows(self.cu_seqlens, self.state)[:, owner]
        return torch.where(inside, torch.where(begins, first, later) + own, 0.0)

    def _first_rows(self, cu_seqlens: Int[Tensor, " n+1"], state: Float[Tensor, "n hv k v"]) -> Float[Tensor, "1 n hv v"]:
        """What the first query of every packed sequence reads; of an empty one, what nobody asks for."""
        begins = cu_seqlens[:-1].to(torch.int64).clamp(max=self.q.shape[1] - 1)
        return self._read(self.q[:, begins], state.unsqueeze(0))

    def _read(self, q: Float[Tensor, "b t h k"], state: Float[Tensor, "b t hv k v"]) -> Float[Tensor, "b t hv v"]:
        return (spread(q, self.groups, 2).unsqueeze(-2) @ state).squeeze(-2)


def _beginnings(cu_seqlens: Int[Tensor, " n+1"], length: int) -> tuple[Bool[Tensor, " t"], Int[Tensor, " t"], Bool[Tensor, " t"]]:
    """Which tokens begin a packed sequence, to which each belongs, and which belong to one; the host reads no offset."""
    cu = cu_seqlens.to(torch.int64).contiguous()
    time = torch.arange(length, device=cu.device)
    owner = torch.searchsorted(cu[1:].contiguous(), time, right=True)
    inside = (owner < cu.shape[0] - 1) & (time >= cu[0])
    owner = owner.clamp(max=cu.shape[0] - 2)
    return inside & (time == cu[owner]), owner, inside


def _enter(
    where: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w: Tensor,
    u: Tensor,
    scale: float | None,
    state: Tensor | None,
    cu_seqlens: Tensor | None,
) -> _Call:
    """Check what is this operator's own; the rest is checked by gated linear attention."""
    tensors = {"q": (q, "b t h k"), "k": (k, "b t h k"), "v": (v, "b t hv v"), "w": (w, "b t h k"), "u": (u, "h k")}
    sizes = check(where, {**tensors, "initial_state": (state, "n hv k v")})
    groups = check_groups(where, "h", "hv", sizes)
    check_packing(where, cu_seqlens, q)
    dtype = accumulator(q, k, v, w, u, state)
    query, key, wide, log, bonus = (x.to(dtype) for x in (q, k, v, w, u))
    query = query * (default_scale(sizes["k"]) if scale is None else scale)
    return _Call(query, key, wide, log, bonus, groups, None if state is None else state.to(dtype), cu_seqlens, v.dtype)
