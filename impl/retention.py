"""Retention: S_t = γ S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t, with a γ per head.

The state is read after the update. Sun et al. 2023 ("Retentive Network", arXiv:2307.08621), section 2.1: the parallel,
the recurrent and the chunkwise form, here without the group norm and the swish gate around them. Their rotation of queries and keys, xPos
without its scale, is `rotate`; it is the caller's to apply.

``g_gamma`` (h) is log γ <= 0 of each query and key head, and so of the value heads that share it; 0 and -∞ are legal, and
None is log(1 - 2^{-5-i}) for head i. The other arguments are those of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._additive import chunks, gradient, one_chunk
from ._common import accumulator, check
from ._decay import Decay, constant, powers, shortened
from ._memory import SEQUENCE, TOKEN, Result, call, documented, one_token, token_by_token
from ._rotation import Positions, angles, turn
from .gated_retention import update


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    g_gamma: Float[Tensor, " h"] | None = None,
) -> Result:
    """Token by token, as the recurrence is written."""
    where, gates = "retention.recurrent", {"g_gamma": (g_gamma, "h")}
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True)

    def form(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        g = _log_gamma(g_gamma, q.shape[2], q.device, q.dtype)[:, None].expand(*q.shape[:3], 1)
        return token_by_token(update)(q, k, v, g, state)

    return entered.by_sequence(form)


@documented(SEQUENCE)
def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    g_gamma: Float[Tensor, " h"] | None = None,
) -> Result:
    """All tokens at once: o = (q kᵀ ⊙ D) v with D_ij = γ^{i-j}, in O(t²). Packed sequences come one after the other."""
    where, gates = "retention.parallel", {"g_gamma": (g_gamma, "h")}
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True)

    def form(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return one_chunk(chunks(_decay(g_gamma, q, q.shape[1])))(q, k, v, state)

    return entered.by_sequence(form)


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    scale: float | None = None,
    initial_state: Float[Tensor, "n hv k v"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    g_gamma: Float[Tensor, " h"] | None = None,
    chunk_size: int = 32,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    where, gates = "retention.chunkwise", {"g_gamma": (g_gamma, "h")}
    entered = call(where, q, k, v, scale, initial_state, output_final_state, cu_seqlens, gates, fold=True, chunk_size=chunk_size)
    whole = cu_seqlens is None and q.shape[1] % chunk_size == 0
    decay = _decay(g_gamma, entered.inputs[0], chunk_size)
    fixed = g_gamma is None or not g_gamma.requires_grad
    entered = entered if whole else entered.counting()
    return entered.by_chunk(chunks(decay), chunk_size, gradient(decay) if fixed else None)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    state: Float[Tensor, "b hv k v"] | None = None,
    scale: float | None = None,
    g_gamma: Float[Tensor, " h"] | None = None,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """One token."""
    where = "retention.step"
    check(where, {"q": (q, "b h k"), "k": (k, "b h k"), "v": (v, "b hv v"), "g_gamma": (g_gamma, "h"), "state": (state, "b hv k v")})
    g = _log_gamma(g_gamma, q.shape[1], q.device, accumulator(q, k, v, state, g_gamma))
    return one_token(where, update, q, k, v, state, scale, {"g_gamma": (g.expand(q.shape[:2]), "b h")})


def rotate(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    theta: Float[Tensor, " k/2"],
    offset: Positions = 0,
) -> tuple[Float[Tensor, "b t h k"], Float[Tensor, "b t h k"]]:
    """Turn queries and keys by their positions: features 2i and 2i + 1 by the angle position · theta[i].

    A score then depends on the distance of query and key alone (Sun et al. 2023, arXiv:2307.08621, section 2.1), so where the
    count begins is free, but it must go on: the first token of a continuation has the position ``offset``, the number of
    tokens that the state has seen (of each batch entry, if a tensor (b); a tensor (b, t) gives every position). Sequences
    packed side by side may share one count. Angles are computed in float64; the results have the dtypes of ``q`` and ``k``.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; an ``offset`` that is neither an int nor a tensor of integers.
    ValueError
        Shapes or devices that do not fit together; an odd k.
    """
    where = "retention.rotate"
    sizes = check(where, {"q": (q, "b t h k"), "k": (k, "b t h k"), "theta": (theta, "k/2")})
    if 2 * sizes["k/2"] != sizes["k"]:
        raise ValueError(f"{where}: theta has {sizes['k/2']} angles for k={sizes['k']} features; it needs one for every two.")
    angle = angles(where, q, theta, offset)
    return turn(q, angle), turn(k, angle)


FORMS = {"retention": (recurrent, parallel, chunkwise)}
STEPS = {"retention": step}


def _log_gamma(g_gamma: Tensor | None, heads: int, device: torch.device, dtype: torch.dtype) -> Float[Tensor, " h"]:
    if g_gamma is not None:
        return g_gamma.to(dtype)
    return torch.log1p(-torch.exp2(-5.0 - torch.arange(heads, device=device, dtype=torch.float64))).to(dtype)


def _decay(g_gamma: Tensor | None, q: Float[Tensor, "b t h k"], c: int) -> Callable[..., Decay]:
    """The decay of a chunk of c tokens; by which of them are there, where not all are."""
    power = powers(_log_gamma(g_gamma, q.shape[2], q.device, q.dtype), c)
    decay = constant(power)
    return lambda *present: shortened(decay, power, *present) if present else decay
