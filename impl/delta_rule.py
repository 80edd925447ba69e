"""Delta rule: S_t = S_{t-1} + β_t k_t (v_t - S_{t-1}ᵀ k_t)ᵀ, o_t = scale · S_tᵀ q_t.

The state is read after the update. Schlag et al. 2021 ("Linear Transformers Are Secretly Fast Weight Programmers",
arXiv:2102.11174), eq. 23-24; Yang et al. 2024 (arXiv:2406.06484), section 2.2, here with the transposed state.

Symbols: b batch, t time, h query and key heads, hv value heads (a multiple of h; value head i reads query and key
head i // (hv / h)), k and v the head sizes, n states: sequences when packed, otherwise n = b.

Arguments common to all forms: ``q``, ``k``, ``v``, ``beta`` in float64, float32, bfloat16 or float16; ``beta`` after
its sigmoid (0 <= β‖k‖² <= 2 keeps every step a contraction; outside, the recurrence is computed as written);
``scale``, None being k^-0.5; ``initial_state``, None being 0; ``output_final_state``, whether to return the state;
``cu_seqlens``, offsets of packed sequences in a batch of 1; ``use_qk_l2norm_in_kernel``, whether to divide each query
and key by sqrt(Σx² + 1e-6) first. Sums and states are kept in the promoted dtype of the inputs, float32 for 16-bit
ones; ``o`` has the dtype of ``v``. A row outside every packed sequence is 0; an empty sequence hands its initial state
back. A non-finite token changes its own and later rows only.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._common import (
    accumulator,
    check,
    check_groups,
    check_packing,
    check_positive,
    check_state,
    chunk_layout,
    each_segment,
    from_chunks,
    own,
    quarantine,
    scan_chunks,
    spread,
    to_chunks,
)

NORM_EPS = 1e-6
"""The ε inside the root of the optional norm, as public kernels have it."""


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
) -> tuple[Float[Tensor, "b t hv v"], Float[Tensor, "n hv k v"] | None]:
    """Token by token, as the recurrence is written.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; a batch that is not 1 beside ``cu_seqlens``.

    """
    inputs, state = _enter("delta_rule.recurrent", q, k, v, beta, scale, initial_state, cu_seqlens, use_qk_l2norm_in_kernel)
    if cu_seqlens is None:
        o, last = _recurrent(*inputs, state)
    else:
        o, last = each_segment(_recurrent, inputs, state, cu_seqlens)
    return o.to(v.dtype), own(last, v.shape[1]) if output_final_state else None


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
    chunk_size: int = 64,
) -> tuple[Float[Tensor, "b t hv v"], Float[Tensor, "n hv k v"] | None]:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk.

    In a chunk the update is S + Kᵀ (U - W S), where (I + tril(diag(β) K Kᵀ, -1)) [U, W] = diag(β) [V, K] is one
    triangular solve (the UT transform; Yang et al. 2024, arXiv:2406.06484, eq. 8-11), done for all chunks at once.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``chunk_size`` that is no integer.
    ValueError
        Shapes or devices that do not fit together; a batch that is not 1 beside ``cu_seqlens``; ``chunk_size`` < 1.

    """
    where = "delta_rule.chunkwise"
    check_positive(where, "chunk_size", chunk_size)
    (q, k, x, beta), state = _enter(where, q, k, v, beta, scale, initial_state, cu_seqlens, use_qk_l2norm_in_kernel)
    layout = None if cu_seqlens is None else chunk_layout(cu_seqlens, q.shape[1], chunk_size)
    cq, ck, cv, cb = (to_chunks(a, chunk_size, layout) for a in (q, k, x, beta.unsqueeze(-1)))
    (ck, cb, cv), stain = quarantine(ck, cb, cv)

    scaled = cb * ck
    right = torch.cat([cb * cv, scaled], -1)
    solved = torch.linalg.solve_triangular((scaled @ ck.mT).tril(-1), right, upper=False, unitriangular=True)
    change, turn = (ck.mT @ solved).split([cv.shape[-1], ck.shape[-1]], -1)
    before, last = scan_chunks(change + stain[..., -1:, :], state, layout, -turn)
    inner, read = ((cq @ ck.mT).tril() @ solved).split([cv.shape[-1], ck.shape[-1]], -1)
    o = (cq - read) @ before + inner + stain
    return from_chunks(o, q.shape[1], layout).to(v.dtype), own(last, v.shape[1]) if output_final_state else None


def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    beta: Float[Tensor, "b hv"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
    use_qk_l2norm_in_kernel: bool = False,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token: (o, new state). The old state is left as it was; None is 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    where = "delta_rule.step"
    tensors = {"q": (q, "b h k"), "k": (k, "b h k"), "v": (v, "b hv v"), "beta": (beta, "b hv"), "state": (state, "b hv k v")}
    sizes = check(where, tensors)
    groups = check_groups(where, "h", "hv", sizes)
    dtype = accumulator(q, k, v, beta, state)
    b, hv, dk, dv = sizes["b"], sizes["hv"], sizes["k"], sizes["v"]
    q, k = _queries_and_keys(q.to(dtype), k.to(dtype), scale, use_qk_l2norm_in_kernel)
    q, k = (spread(x, groups, 1).reshape(b * hv, 1, dk) for x in (q, k))
    old = q.new_zeros(b * hv, dk, dv) if state is None else state.to(dtype).reshape(b * hv, dk, dv)
    new = _update(old, k, v.to(dtype).reshape(b * hv, 1, dv), beta.to(dtype).reshape(b * hv, 1, 1))
    return torch.bmm(q, new).view(b, hv, dv).to(v.dtype), new.view(b, hv, dk, dv)


FORMS = {"delta-rule": (recurrent, chunkwise)}
STEPS = {"delta-rule": step}


def _enter(
    where: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    scale: float | None,
    state: Tensor | None,
    cu_seqlens: Tensor | None,
    l2norm: bool,
) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Check, normalise, scale the queries, and give every value head its own query and key."""
    sizes = check(where, {"q": (q, "b t h k"), "k": (k, "b t h k"), "v": (v, "b t hv v"), "beta": (beta, "b t hv")})
    groups = check_groups(where, "h", "hv", sizes)
    shape = {"n": check_packing(where, cu_seqlens, q), "hv": sizes["hv"], "k": sizes["k"], "v": sizes["v"]}
    if state is not None:
        check_state(where, q, state, shape)
    dtype = accumulator(q, k, v, beta, state)
    q, k = _queries_and_keys(q.to(dtype), k.to(dtype), scale, l2norm)
    state = q.new_zeros(*shape.values()) if state is None else state.to(dtype)
    return (spread(q, groups, 2), spread(k, groups, 2), v.to(dtype), beta.to(dtype)), state


def _queries_and_keys(q: Tensor, k: Tensor, scale: float | None, l2norm: bool) -> tuple[Tensor, Tensor]:
    if l2norm:
        q, k = (x * (x.square().sum(-1, keepdim=True) + NORM_EPS).rsqrt() for x in (q, k))
    return q * (q.shape[-1] ** -0.5 if scale is None else scale), k


def _update(s: Float[Tensor, "n k v"], k: Float[Tensor, "n 1 k"], v: Float[Tensor, "n 1 v"], beta: Float[Tensor, "n 1 1"]) -> Tensor:
    return torch.baddbmm(s, k.mT, beta * torch.baddbmm(v, k, s, alpha=-1))


def _recurrent(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    b, t, h, dk = q.shape
    dv = v.shape[-1]
    if t == 0:
        return (q * k).sum(-1, keepdim=True) * beta.unsqueeze(-1) * v, state
    s = state.reshape(b * h, dk, dv)
    rows = []
    for q_t, k_t, v_t, beta_t in zip(q.unbind(1), k.unbind(1), v.unbind(1), beta.unbind(1), strict=True):
        s = _update(s, k_t.reshape(b * h, 1, dk), v_t.reshape(b * h, 1, dv), beta_t.reshape(b * h, 1, 1))
        rows.append(torch.bmm(q_t.reshape(b * h, 1, dk), s))
    return torch.stack(rows, 1).view(b, h, t, dv).transpose(1, 2), s.view(state.shape)
