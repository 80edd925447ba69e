"""Linear attention: S_t = S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t.

The state is read after the update. Katharopoulos et al. 2020 ("Transformers are RNNs", arXiv:2006.16236) give the
recurrent form (eq. 16-20) and the parallel one (eq. 8-9) with a feature map and a normaliser; both are left to the
caller here. The chunkwise form is that of Yang et al. 2024 (arXiv:2312.06635, section 2).

Symbols: b batch, t time, h query and key heads, hv value heads (a multiple of h; value head i reads query and key
head i // (hv / h)), k and v the head sizes, n states: sequences when packed, otherwise n = b.

Arguments common to all forms: ``q``, ``k``, ``v`` in float64, float32, bfloat16 or float16; ``scale``, None being
k^-0.5; ``initial_state``, None being 0; ``output_final_state``, whether to return the state; ``cu_seqlens``, offsets of
packed sequences in a batch of 1. Sums and states are kept in the promoted dtype of the inputs, float32 for 16-bit
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


def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> tuple[Float[Tensor, "b t hv v"], Float[Tensor, "n hv k v"] | None]:
    """Token by token, as the recurrence is written.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; a batch that is not 1 beside ``cu_seqlens``.

    """
    q, k, u, state = _enter("linear_attention.recurrent", q, k, v, scale, initial_state, cu_seqlens)
    if cu_seqlens is None:
        o, last = _recurrent(q, k, u, state)
    else:
        o, last = each_segment(_recurrent, (q, k, u), state, cu_seqlens)
    return _leave(o, last, v, output_final_state)


def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> tuple[Float[Tensor, "b t hv v"], Float[Tensor, "n hv k v"] | None]:
    """All tokens at once: o = tril(q kᵀ) v, in O(t²).

    Packed offsets are read by the host, one sequence after the other.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; a batch that is not 1 beside ``cu_seqlens``.

    """
    q, k, u, state = _enter("linear_attention.parallel", q, k, v, scale, initial_state, cu_seqlens)
    if cu_seqlens is None:
        o, last = _parallel(q, k, u, state)
    else:
        o, last = each_segment(_parallel, (q, k, u), state, cu_seqlens)
    return _leave(o, last, v, output_final_state)


def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 64,
) -> tuple[Float[Tensor, "b t hv v"], Float[Tensor, "n hv k v"] | None]:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size).

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``chunk_size`` that is no integer.
    ValueError
        Shapes or devices that do not fit together; a batch that is not 1 beside ``cu_seqlens``; ``chunk_size`` < 1.

    """
    where = "linear_attention.chunkwise"
    check_positive(where, "chunk_size", chunk_size)
    q, k, u, state = _enter(where, q, k, v, scale, initial_state, cu_seqlens)
    layout = None if cu_seqlens is None else chunk_layout(cu_seqlens, q.shape[1], chunk_size)
    cq, ck, cv = (to_chunks(x, chunk_size, layout) for x in (q, k, u))
    before, last = scan_chunks(ck.mT @ cv, state, layout)
    (ck, cv), stain = quarantine(ck, cv)
    o = (cq @ ck.mT).tril() @ cv + cq @ before + stain
    return _leave(from_chunks(o, q.shape[1], layout), last, v, output_final_state)


def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token: (o, new state). The old state is left as it was; None is 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    where = "linear_attention.step"
    sizes = check(where, {"q": (q, "b h k"), "k": (k, "b h k"), "v": (v, "b hv v"), "state": (state, "b hv k v")})
    groups = check_groups(where, "h", "hv", sizes)
    dtype = accumulator(q, k, v, state)
    b, hv, dk, dv = sizes["b"], sizes["hv"], sizes["k"], sizes["v"]
    q, k = (spread(x.to(dtype), groups, 1) for x in (q, k))
    old = q.new_zeros(b * hv, dk, dv) if state is None else state.to(dtype).reshape(b * hv, dk, dv)
    new = torch.baddbmm(old, k.reshape(b * hv, dk, 1), v.to(dtype).reshape(b * hv, 1, dv))
    factor = dk**-0.5 if scale is None else scale
    o = torch.bmm(q.reshape(b * hv, 1, dk) * factor, new)
    return o.view(b, hv, dv).to(v.dtype), new.view(b, hv, dk, dv)


FORMS = {"linear-attention": (recurrent, parallel, chunkwise)}
STEPS = {"linear-attention": step}


def _enter(
    where: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None,
    state: Tensor | None,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Check, scale the queries, and fold the heads of a group into one wide value: (b t h gv), state (n h k gv)."""
    sizes = check(where, {"q": (q, "b t h k"), "k": (k, "b t h k"), "v": (v, "b t hv v")})
    groups = check_groups(where, "h", "hv", sizes)
    n = check_packing(where, cu_seqlens, q)
    b, t, h, dk = q.shape
    if state is not None:
        check_state(where, q, state, {"n": n, "hv": sizes["hv"], "k": dk, "v": sizes["v"]})
    dtype = accumulator(q, k, v, state)
    q = q.to(dtype) * (dk**-0.5 if scale is None else scale)
    v = v.to(dtype).reshape(b, t, h, groups * sizes["v"])
    if state is None:
        state = q.new_zeros(n, h, dk, groups * sizes["v"])
    else:
        state = state.to(dtype).reshape(n, h, groups, dk, sizes["v"]).transpose(2, 3).flatten(3)
    return q, k.to(dtype), v, state


def _leave(o: Tensor, state: Tensor, v: Tensor, output_final_state: bool) -> tuple[Tensor, Tensor | None]:
    o = o.reshape(v.shape).to(v.dtype)
    if not output_final_state:
        return o, None
    n, h, dk, _ = state.shape
    groups = v.shape[2] // h if h else 1
    state = own(state, v.shape[1]).reshape(n, h, dk, groups, v.shape[3]).transpose(2, 3)
    return o, state.reshape(n, v.shape[2], dk, v.shape[3])


def _recurrent(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    b, t, h, dk = q.shape
    dv = v.shape[-1]
    if t == 0:
        return (q * k).sum(-1, keepdim=True) * v, state
    s = state.reshape(b * h, dk, dv)
    rows = []
    for q_t, k_t, v_t in zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True):
        s = torch.baddbmm(s, k_t.reshape(b * h, dk, 1), v_t.reshape(b * h, 1, dv))
        rows.append(torch.bmm(q_t.reshape(b * h, 1, dk), s))
    o = torch.stack(rows, 1).view(b, h, t, dv).transpose(1, 2)
    return o, s.view(state.shape)


def _parallel(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    last = state + k.mT @ v
    (k, v), stain = quarantine(k, v)
    o = (q @ k.mT).tril() @ v + q @ state + stain
    return o.transpose(1, 2), last
