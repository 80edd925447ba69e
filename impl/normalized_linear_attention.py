"""Normalised linear attention: S_t = S_{t-1} + φ(k_t) v_tᵀ, z_t = z_{t-1} + φ(k_t), o_t = S_tᵀφ(q_t) / z_tᵀφ(q_t).

Katharopoulos et al. 2020 ("Transformers are RNNs", arXiv:2006.16236), eq. 8-9 and 16-20. The normaliser is one more
column of the state, written with the value 1: each form is that of linear attention on the values [v_t, 1], and a
division. A scale on the queries would cancel, so there is none.

``feature_map`` is any function from (..., k) to (..., f), elu(x) + 1 by default; None is for queries and keys that are
features already. A state is (n, hv, f, v + 1): S, and z as its last column. Where the denominator is exactly 0, the row is 0
and its gradients are 0. The other arguments are those of every memory (`isoform.impl._memory`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from . import linear_attention
from ._common import accumulator, check
from ._memory import SEQUENCE, TOKEN, Result, documented

FeatureMap = Callable[[Float[Tensor, "... k"]], Float[Tensor, "... f"]]


def elu_plus_one(x: Float[Tensor, "... k"]) -> Float[Tensor, "... k"]:
    """Return elu(x) + 1: 1 + x above 0 and eˣ below, to full relative accuracy. eˣ - 1 + 1 would be 0 from x = -17 on."""
    return torch.where(x > 0, 1 + x, x.clamp(max=0).exp())


@documented(SEQUENCE)
def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    feature_map: FeatureMap | None = elu_plus_one,
    initial_state: Float[Tensor, "n hv f v+1"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """Token by token, as the recurrence is written."""
    entered = _enter("normalized_linear_attention.recurrent", "b t", q, k, v, feature_map, initial_state)
    return _divide(linear_attention.recurrent(*entered, 1.0, initial_state, output_final_state, cu_seqlens), v)


@documented(SEQUENCE)
def parallel(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    feature_map: FeatureMap | None = elu_plus_one,
    initial_state: Float[Tensor, "n hv f v+1"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
) -> Result:
    """All tokens at once, in O(t²): kernel attention, row by row a mean of the values. Packed sequences come one after the other."""
    entered = _enter("normalized_linear_attention.parallel", "b t", q, k, v, feature_map, initial_state)
    return _divide(linear_attention.parallel(*entered, 1.0, initial_state, output_final_state, cu_seqlens), v)


@documented(SEQUENCE)
def chunkwise(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t hv v"],
    feature_map: FeatureMap | None = elu_plus_one,
    initial_state: Float[Tensor, "n hv f v+1"] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Int[Tensor, " n+1"] | None = None,
    chunk_size: int = 64,
) -> Result:
    """Parallel inside chunks of ``chunk_size`` (any integer >= 1), recurrent from chunk to chunk, in O(t · chunk_size)."""
    entered = _enter("normalized_linear_attention.chunkwise", "b t", q, k, v, feature_map, initial_state)
    return _divide(linear_attention.chunkwise(*entered, 1.0, initial_state, output_final_state, cu_seqlens, chunk_size), v)


@documented(TOKEN)
def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b hv v"],
    state: Float[Tensor, "b hv f v+1"] | None = None,
    feature_map: FeatureMap | None = elu_plus_one,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv f v+1"]]:
    """One token."""
    entered = _enter("normalized_linear_attention.step", "b", q, k, v, feature_map, state)
    o, new = linear_attention.step(*entered, state, 1.0)
    return _ratio(o, v.dtype), new


FORMS = {"normalized-linear-attention": (recurrent, parallel, chunkwise)}
STEPS = {"normalized-linear-attention": step}


def _enter(
    where: str, lead: str, q: Tensor, k: Tensor, v: Tensor, feature_map: FeatureMap | None, state: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Check, map queries and keys in the accumulation dtype, and append a 1 to every value."""
    tensors = {"q": (q, f"{lead} h k"), "k": (k, f"{lead} h k"), "v": (v, f"{lead} hv v")}
    check(where, {**tensors, "state" if lead == "b" else "initial_state": (state, "n hv f v+1")})
    if feature_map is not None and not callable(feature_map):
        raise TypeError(f"{where}: feature_map must be a function or None, not {type(feature_map).__name__}.")
    dtype = accumulator(q, k, v, state)
    q, k, v = (x.to(dtype) for x in (q, k, v))
    if feature_map is not None:
        q, k = feature_map(q), feature_map(k)
    return q, k, torch.cat([v, torch.ones_like(v[..., :1])], -1)


def _divide(result: Result, v: Tensor) -> Result:
    o, state = result
    return _ratio(o, v.dtype), state


def _ratio(o: Float[Tensor, "... v+1"], dtype: torch.dtype) -> Float[Tensor, "... v"]:
    """Divide by the last column, and give 0 where it is 0: a divisor of 1 there keeps the gradient finite."""
    above, below = o[..., :-1], o[..., -1:]
    empty = below == 0
    return torch.where(empty, 0.0, above / torch.where(empty, 1.0, below)).to(dtype)
