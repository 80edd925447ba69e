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
from ._common import ChunkLayout, scan_chunks, writable
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
    """Rows and columns of the keys' or of the values' channels in n chunks of c = 2^l tokens, cut into blocks of 1, 2, 4, … tokens."""

    rows: Float[Tensor, "n c d"]
    """Times the gates from the block's start to the row."""
    columns: Float[Tensor, "n c d"]
    """Times the gates after the column to the block's end."""
    gate: Float[Tensor, "n p d"] | None
    """All gates of each of the p blocks of a chunk; None is no decay."""

    def grown(self, width: int, over: bool) -> Side:
        """Join the blocks of this width in pairs: a late one now starts, and an early one ends, where its pair does."""
        if self.gate is None:
            return self
        early, late = _pairs(self.gate, 1)
        rows = _each(torch.mul, self.rows, width, over, late=early)
        return Side(rows, _each(torch.mul, self.columns, width, over, early=late), (early * late).squeeze(2))


def _side(rows: Float[Tensor, "n c d"], columns: Float[Tensor, "n c d"], gate: Float[Tensor, "n c d"] | None) -> Side:
    return Side(rows, columns, None) if gate is None else Side(rows * gate, columns.clone(), gate)


def _pairs(x: Float[Tensor, "n c d"], width: int) -> tuple[Float[Tensor, "n p w d"], Float[Tensor, "n p w d"]]:
    """The early and the late ones of the blocks."""
    early, late = x.unflatten(1, (-1, 2, width)).unbind(2)
    return early, late


def _each(
    change: Callable[..., Tensor], x: Float[Tensor, "n c d"], width: int, over: bool, **other: Float[Tensor, "n p _ d"]
) -> Float[Tensor, "n c d"]:
    """Change those blocks that are named, early or late: written over the old ones, or in a copy."""
    blocks = dict(zip(("early", "late"), _pairs(x, width), strict=True))
    if not over:
        return torch.stack([change(block, other[name]) if name in other else block for name, block in blocks.items()], 2).flatten(1, 3)
    for name, y in other.items():
        change(blocks[name], y, out=blocks[name])
    return x


def _product(x: Float[Tensor, "*b i j"], y: Float[Tensor, "*b j d"]) -> Float[Tensor, "*b i d"]:
    """The matrix product; of one or two columns as outer products, which is faster on a CPU by several times."""
    if x.shape[-1] not in (1, 2):
        return x @ y
    return reduce(torch.add, (column * row for column, row in zip(x.split(1, -1), y.split(1, -2), strict=True)))


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

    The late rows times the early columns, of all widths, are the lower triangle. Blocks are not written over where a
    gradient of any argument needs them as they were, or a transform has one block here for many others.
    """
    over = writable(*(x for x in (q, k, v, a, e) if x is not None))
    b, h, m, c, _ = v.shape
    q, k, v = (_flat(x, 0.0) for x in (q, k, v))
    a, e = (None if x is None else _flat(x, 1.0) for x in (a, e))
    keys, values = _side(q, k, a), _side(v.new_ones(()).expand(v.shape), v, e)

    def read(rows: Tensor, memory: Tensor, weights: Tensor) -> Tensor:
        return _product(rows, memory) if e is None else weights * _product(rows, memory)

    o, width = (q * k).sum(-1, keepdim=True) * v, 1
    while width < v.shape[1]:
        (_, late), (early, _) = _pairs(keys.rows, width), _pairs(keys.columns, width)
        (_, weights), (written, _) = _pairs(values.rows, width), _pairs(values.columns, width)
        o = _each(torch.add, o, width, over, late=read(late @ early.mT, written, weights))
        keys, values = keys.grown(width, over), values.grown(width, over)
        width *= 2
    wholes = [x for x in (None if keys.gate is None else keys.gate.mT, values.gate) if x is not None]
    decay = reduce(torch.mul, wholes).unflatten(0, (b, h, m)) if wholes else None
    before, last = scan_chunks((keys.columns.mT @ values.columns).unflatten(0, (b, h, m)), state, layout, decay=decay)
    o = o + read(keys.rows, before.flatten(0, 2), values.rows)
    return o.unflatten(0, (b, h, m))[..., :c, :], last


def _flat(x: Float[Tensor, "b h m c d"], fill: float) -> Float[Tensor, "bhm 2^l d"]:
    """All chunks along one axis, filled up to a power of two."""
    c = x.shape[3]
    missing = (1 << max(c - 1, 0).bit_length()) - c
    x = torch.nn.functional.pad(x, (0, 0, 0, missing), value=fill) if missing else x
    return x.flatten(0, 2).contiguous()
