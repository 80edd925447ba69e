"""WKV of RWKV-7: S_t = diag(e^{w_t}) S_{t-1} + b_t (a_tᵀ S_{t-1}) + k_t v_tᵀ, o_t = scale · S_tᵀ q_t.

The correction reads the undecayed state, the output the updated one. Peng et al. 2025 (arXiv:2503.14456), where q is the
receptance r, a = -κ̂ and b = κ̂ ⊙ a; here a and b are any. The delta rule is w = 0, a = -β k, b = k and β v for v.

A chunk: with S the state before it, u_i = S_{i-1}ᵀ a_i solves u_i = Σ_{j<i} (a_i·b_j) u_j + Σ_{j<i} (a_i·k_j) v_j + a_iᵀ S, each
product with the decays strictly between j and i in every channel. One triangular solve with two right sides, [U, W], gives
u = U + W S, and the rest is a memory to which b_i u_iᵀ + k_i v_iᵀ is added. Decays are only ever multiplied, by halving a chunk
again and again as in `isoform.impl.gated_linear_attention`, so that no factor exceeds 1.

``w`` (b t h k) are natural logarithms of decays, at most 0, -∞ legal; ``a`` and ``b`` are (b t h k). The other arguments are those
of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._common import ChunkLayout, each_chunk, made_of, quarantine
from .._memory import SEQUENCE, TOKEN, Gates, Result, call, documented, one_token, token_by_token


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    w: Float[Tensor, "b t h k"],
    a: Float[Tensor, "b t h k"],
    b: Float[Tensor, "b t h k"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """Token by token, as the recurrence is written."""
    entered = call("rwkv.wkv7.recurrent", q, k, v, scale, initial_state, output_final_state, cu_seqlens, _gates(w, a, b), fold=True)
    return entered.by_sequence(token_by_token(_update))


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    w: Float[Tensor, "b t h k"],
    a: Float[Tensor, "b t h k"],
    b: Float[Tensor, "b t h k"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 32,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    where, gates = "rwkv.wkv7.chunkwise", _gates(w, a, b)
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True, chunk_size=chunk_size)
    return entered.by_chunk(_chunks, chunk_size)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    w: Float[Tensor, "b h k"],
    a: Float[Tensor, "b h k"],
    b: Float[Tensor, "b h k"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    gates = {"w": (w, "b h k"), "a": (a, "b h k"), "b": (b, "b h k")}
    return one_token("rwkv.wkv7.step", _update, q, k, v, state, scale, gates)


def _gates(w: Tensor, a: Tensor, b: Tensor) -> Gates:
    return {"w": (w, "b t h k"), "a": (a, "b t h k"), "b": (b, "b t h k")}


def _update(s: Tensor, k: Tensor, v: Tensor, w: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return diag(e^w) S + b (aᵀ S) + k vᵀ."""
    return torch.baddbmm(torch.baddbmm(w.exp().mT * s, k.mT, v), b.mT, a @ s)


def _chunks(
    q: Float[Tensor, "n h m c k"],
    k: Float[Tensor, "n h m c k"],
    v: Float[Tensor, "n h m c v"],
    w: Float[Tensor, "n h m c k"],
    a: Float[Tensor, "n h m c k"],
    b: Float[Tensor, "n h m c k"],
    state: Float[Tensor, "s h k v"],
    layout: ChunkLayout | None,
) -> tuple[Float[Tensor, "n h m c v"], Float[Tensor, "s h k v"]]:
    """All chunks at once but for the state, which passes through them one by one."""
    (k, a, b, _, v), stain = quarantine(k, a, b, w.clamp(min=0.0), v)
    gate = torch.where(w < torch.inf, w, 0.0).exp()
    c = v.shape[3]
    if c == 0 or v.shape[2] == 0:
        return made_of(v, q, k, w, a, b), state
    asked = torch.nn.functional.pad(a[..., 1:, :], (0, 0, 0, 1))
    scores, (rows, asked), (keys, backs), whole = _halved(torch.stack([q, asked], 3), torch.stack([k, b], 3), gate)
    own, corrected, found, overlaps = scores.flatten(3, 4).unbind(3)
    asked, found, overlaps = (_later(x) for x in (asked, found, overlaps))
    asked = torch.cat([a[..., :1, :], asked[..., 1:, :]], -2)
    right = torch.cat([found @ v, asked], -1)
    solved = torch.linalg.solve_triangular(-overlaps, right, upper=False, unitriangular=True)
    change = keys.mT @ v
    if stain is not None:
        change = change + stain[..., -1:, :]
    corrections = []

    def update(s: Tensor, own: Tensor, asked: Tensor, backs: Tensor, whole: Tensor, change: Tensor) -> Tensor:
        corrections.append(torch.baddbmm(own, asked, s))
        return torch.baddbmm(torch.addcmul(change, whole, s), backs.mT, corrections[-1])

    parts = (*solved.split([v.shape[-1], a.shape[-1]], -1), backs, whole.mT, change)
    before, last = each_chunk(update, parts, state, layout)
    o = own @ v + corrected @ torch.stack(corrections, 1).view(v.shape) + rows @ before
    return o if stain is None else o + stain, last


def _later(x: Tensor) -> Tensor:
    """Every row one lower, the last one dropped: row i of what is read at i - 1."""
    return torch.nn.functional.pad(x[..., :-1, :], (0, 0, 1, 0))


def _halved(
    rows: Float[Tensor, "n h m r c k"], columns: Float[Tensor, "n h m s c k"], gate: Float[Tensor, "n h m c k"]
) -> tuple[Tensor, list[Tensor], list[Tensor], Float[Tensor, "n h m 1 k"]]:
    """The products of rows i and columns j <= i, r · s kinds of them, each channel times the gates j < s <= i; 0 above the diagonal.

    Beside them the rows times the gates from the chunk's start, the columns times those to its end, and all gates. A
    block of 1, 2, 4, … tokens has what its halves have, and the late rows times the early columns.
    """
    c = gate.shape[-2]
    missing = (1 << (c - 1).bit_length()) - c
    if missing:
        rows, columns = (torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in (rows, columns))
        gate = torch.nn.functional.pad(gate, (0, 0, 0, missing), value=1.0)
    blocks = (rows.unsqueeze(-3) * columns.unsqueeze(-4)).sum(-1)[..., None, None]
    rows, columns, gate = (rows * gate.unsqueeze(-3)).unsqueeze(-2), columns.unsqueeze(-2), gate.unsqueeze(-2)
    while gate.shape[-3] > 1:
        early, late = gate[..., ::2, :, :], gate[..., 1::2, :, :]
        upper, lower = rows[..., ::2, :, :], rows[..., 1::2, :, :]
        left, right = columns[..., ::2, :, :], columns[..., 1::2, :, :]
        across = lower.unsqueeze(-4) @ left.unsqueeze(-5).mT
        first, second = blocks[..., ::2, :, :], blocks[..., 1::2, :, :]
        above = torch.cat([first, torch.zeros_like(first)], -1)
        blocks = torch.cat([above, torch.cat([across, second], -1)], -2)
        rows = torch.cat([upper, lower * early.unsqueeze(-4)], -2)
        columns = torch.cat([left * late.unsqueeze(-4), right], -2)
        gate = early * late
    kept = slice(0, c)
    scores = blocks.squeeze(-3)[..., kept, kept]
    row_kinds, column_kinds = (list(x.squeeze(-3)[..., kept, :].unbind(-3)) for x in (rows, columns))
    return scores, row_kinds, column_kinds, gate.squeeze(-3)
