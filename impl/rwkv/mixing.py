"""What RWKV mixes of a token and the one before it: the token shift, and the channel mix that is made of two.

Peng et al. 2023 (arXiv:2305.13048), section 3. The state is the last token, so a sequence may be cut anywhere; before the
first token stands 0. Symbols: b batch, t time, d channels, m hidden channels.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from .._common import accumulator, check, check_state


def token_shift(
    x: Float[Tensor, "b t d"],
    mix: Float[Tensor, " d"],
    initial_state: Float[Tensor, "b d"] | None = None,
    output_final_state: bool = False,
) -> Float[Tensor, "b t d"] | tuple[Float[Tensor, "b t d"], Float[Tensor, "b d"]]:
    """mix ⊙ x_t + (1 - mix) ⊙ x_{t-1}, a causal convolution of width 2: y, or (y, last token) if ``output_final_state``.

    Computed in the promoted dtype of all, float32 for 16-bit ones; y has the dtype of ``x``.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.
    """
    wide, before, last = _shifted("rwkv.token_shift", x, initial_state, {"mix": (mix, "d")})
    y = (mix.to(wide.dtype) * wide + (1 - mix.to(wide.dtype)) * before).to(x.dtype)
    return (y, last) if output_final_state else y


def channel_mix(
    x: Float[Tensor, "b t d"],
    mix_k: Float[Tensor, " d"],
    mix_r: Float[Tensor, " d"],
    W_k: Float[Tensor, "m d"],
    W_v: Float[Tensor, "d m"],
    W_r: Float[Tensor, "d d"],
    initial_state: Float[Tensor, "b d"] | None = None,
    output_final_state: bool = False,
) -> Float[Tensor, "b t d"] | tuple[Float[Tensor, "b t d"], Float[Tensor, "b d"]]:
    """σ(W_r r_t) ⊙ W_v max(W_k k_t, 0)², with r_t and k_t the token shifts of x: y, or (y, last token) if ``output_final_state``.

    Raises as `token_shift` does.
    """
    own = {"mix_k": (mix_k, "d"), "mix_r": (mix_r, "d"), "W_k": (W_k, "m d"), "W_v": (W_v, "d m"), "W_r": (W_r, "d d")}
    wide, before, last = _shifted("rwkv.channel_mix", x, initial_state, own)
    mix_k, mix_r, W_k, W_v, W_r = (a.to(wide.dtype) for a, _ in own.values())
    key = (mix_k * wide + (1 - mix_k) * before) @ W_k.mT
    gate = ((mix_r * wide + (1 - mix_r) * before) @ W_r.mT).sigmoid()
    y = (gate * (key.relu().square() @ W_v.mT)).to(x.dtype)
    return (y, last) if output_final_state else y


def _shifted(
    where: str, x: Tensor, state: Tensor | None, own: dict[str, tuple[Tensor, str]]
) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b t d"], Float[Tensor, "b d"]]:
    """Check; the tokens, those before them, and the last one, in the accumulation dtype."""
    sizes = check(where, {"x": (x, "b t d"), **own})
    if state is not None:
        check_state(where, x, state, {"b": sizes["b"], "d": sizes["d"]})
    dtype = accumulator(x, state, *(a for a, _ in own.values()))
    wide = x.to(dtype)
    start = wide.new_zeros(sizes["b"], 1, sizes["d"]) if state is None else state.to(dtype).unsqueeze(1)
    all_tokens = torch.cat([start, wide], 1)
    return wide, all_tokens[:, :-1], all_tokens[:, -1].clone()
