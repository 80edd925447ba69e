"""Gated linear attention: S_t = diag(e^{gk_t}) S_{t-1} diag(e^{gv_t}) + k_t v_tᵀ, o_t = scale · S_tᵀ q_t.

The state is read after the update. Yang et al. 2024 (arXiv:2312.06635): the recurrence in section 4.1, the chunks in
section 4.2. Here a chunk is halved again and again instead, so that decays are only ever multiplied: the weight of
key j in row i is a product of factors e^g <= 1 taken once each, never e^{b_i - b_j} from sums b (which cancel, and are
∞ - ∞ after a gate of -∞) nor e^{b_i} · e^{-b_j} (which overflows). Every gate is as accurate as in the recurrence, and
as no product is masked, a token that is not finite reaches no row before its own.

``gk`` (b t h k) and ``gv`` (b t hv v) are natural logarithms, None being no decay: at most 0, -∞ legal; above 0 the
recurrence is computed as written. The other arguments are those of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._additive import one_chunk
from ._common import ChunkLayout, scan_chunks
from ._memory import SEQUENCE, TOKEN, Gates, Result, call, documented, one_token, token_by_token


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    gk: Float[Tensor, "b t h k"] | None = None,
    gv: Float[Tensor, "b t hv v"] | None = None,
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """Token by token, as the recurrence is written."""
    where, gates = "gated_linear_attention.recurrent", _gates(gk, gv)
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True)
    return entered.by_sequence(token_by_token(_decayed_by(gates, _update)))


@documented(SEQUENCE)
def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    gk: Float[Tensor, "b t h k"] | None = None,
    gv: Float[Tensor, "b t hv v"] | None = None,
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """All tokens at once, in O(t²): the lower triangle of the masked matrix product, block by block.

    Packed offsets are read by the host, one sequence after the other.
    """
    where, gates = "gated_linear_attention.parallel", _gates(gk, gv)
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True)
    return entered.by_sequence(one_chunk(_decayed_by(gates, _chunks)))


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    gk: Float[Tensor, "b t h k"] | None = None,
    gv: Float[Tensor, "b t hv v"] | None = None,
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 64,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    where, gates = "gated_linear_attention.chunkwise", _gates(gk, gv)
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True, chunk_size=chunk_size)
    return entered.by_chunk(_decayed_by(gates, _chunks), chunk_size)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    gk: Float[Tensor, "b h k"] | None = None,
    gv: Float[Tensor, "b hv v"] | None = None,
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    gates = {"gk": (gk, "b h k"), "gv": (gv, "b hv v")}
    return one_token("gated_linear_attention.step", _decayed_by(gates, _update), q, k, v, state, scale, gates)


FORMS = {"gated-linear-attention": (recurrent, parallel, chunkwise)}
STEPS = {"gated-linear-attention": step}


def _gates(gk: Tensor | None, gv: Tensor | None) -> Gates:
    return {"gk": (gk, "b t h k"), "gv": (gv, "b t hv v")}


def _decayed_by(gates: Gates, function: Callable[..., Any]) -> Callable[..., Any]:
    """Make of a function of (x, y, z, decay of keys or None, decay of values or None, …) one of the log-gates that are there."""
    present = [g is not None for g, _ in gates.values()]

    def given(x: Tensor, y: Tensor, z: Tensor, *rest: Any) -> Any:
        logs = iter(rest)
        decays = [next(logs).exp() if there else None for there in present]
        return function(x, y, z, *decays, *logs)

    return given


def _update(s: Tensor, k: Tensor, v: Tensor, a: Tensor | None, e: Tensor | None) -> Tensor:
    """Return diag(a) S diag(e) + k vᵀ."""
    for decay in (None if a is None else a.mT, e):
        s = s if decay is None else s * decay
    return torch.baddbmm(s, k.mT, v)


class Side(NamedTuple):
    """Rows and columns of the keys' or of the values' channels in n chunks of c = 2^l tokens, with the decays between them.

    The blocks of 1, 2, 4, … tokens come in p pairs of an early and a late one.
    """

    late: list[Float[Tensor, "p w d"]]
    """For each width w, the rows of the late blocks, times the gates from the block's start to the row."""
    early: list[Float[Tensor, "p w d"]]
    """For each width w, the columns of the early blocks, times the gates after the column to the block's end."""
    entering: Float[Tensor, "n c d"]
    """The rows, times the gates from the chunk's start."""
    leaving: Float[Tensor, "n c d"]
    """The columns, times the gates to the chunk's end."""
    whole: Float[Tensor, "n 1 d"] | None
    """All gates of a chunk; None is no decay."""


def _side(rows: Float[Tensor, "n c d"], columns: Float[Tensor, "n c d"], gate: Float[Tensor, "n c d"] | None) -> Side:
    """Let the blocks grow: a late block then starts where the early one does, and an early one ends where the late one does."""
    n, c, d = columns.shape
    late, early, width = [], [], 1
    rows = rows if gate is None else rows * gate
    while width < c:
        late.append(_pairs(rows, width)[:, 1])
        early.append(_pairs(columns, width)[:, 0])
        if gate is not None:
            first, second = gate.view(n * c // (2 * width), 2, 1, d).unbind(1)
            one = torch.ones_like(first)
            rows = (_pairs(rows, width) * torch.stack([one, first], 1)).view(n, c, d)
            columns = (_pairs(columns, width) * torch.stack([second, one], 1)).view(n, c, d)
            gate = first * second
        width *= 2
    return Side(late, early, rows, columns, gate)


def _pairs(x: Float[Tensor, "n c d"], width: int) -> Float[Tensor, "p 2 w d"]:
    n, c, d = x.shape
    return x.view(n * c // (2 * width), 2, width, d)


def _chunks(
    q: Float[Tensor, "b h m c k"],
    k: Float[Tensor, "b h m c k"],
    v: Float[Tensor, "b h m c v"],
    a: Float[Tensor, "b h m c k"] | None,
    e: Float[Tensor, "b h m c v"] | None,
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
) -> tuple[Float[Tensor, "b h m c v"], Float[Tensor, "n h k v"]]:
    """All chunks at once but for the state, which passes through them one by one.

    The late rows times the early columns, of all widths, are the lower triangle.
    """
    b, h, m, c, _ = v.shape
    q, k, v = (_flat(x, 0.0) for x in (q, k, v))
    a, e = (None if x is None else _flat(x, 1.0) for x in (a, e))
    keys, values = _side(q, k, a), _side(v.new_ones(()).expand(v.shape), v, e)
    wholes = [x for x in (None if keys.whole is None else keys.whole.mT, values.whole) if x is not None]
    decay = reduce(torch.mul, wholes).unflatten(0, (b, h, m)) if wholes else None
    before, last = scan_chunks((keys.leaving.mT @ values.leaving).unflatten(0, (b, h, m)), state, layout, decay=decay)

    def read(o: Tensor, rows: Tensor, memory: Tensor, weights: Tensor) -> Tensor:
        return torch.baddbmm(o, rows, memory) if e is None else torch.addcmul(o, weights, rows @ memory)

    o = (q * k).sum(-1, keepdim=True) * v
    for late, early, weights, written in zip(keys.late, keys.early, values.late, values.early, strict=True):
        first, second = _pairs(o, late.shape[1]).unbind(1)
        o = torch.stack([first, read(second, late @ early.mT, written, weights)], 1).view(v.shape)
    o = read(o, keys.entering, before.flatten(0, 2), values.entering)
    return o.unflatten(0, (b, h, m))[..., :c, :], last


def _flat(x: Float[Tensor, "b h m c d"], fill: float) -> Float[Tensor, "bhm 2^l d"]:
    """All chunks along one axis, filled up to a power of two."""
    c = x.shape[3]
    missing = (1 << max(c - 1, 0).bit_length()) - c
    x = torch.nn.functional.pad(x, (0, 0, 0, missing), value=fill) if missing else x
    return x.flatten(0, 2).contiguous()
