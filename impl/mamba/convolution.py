"""The causal convolution in front of a selective scan: y_t = Σ_j w_j x_{t-W+1+j} + bias, channel by channel.

The last weight meets the newest input. What comes before the first input is the state, the last w - 1 inputs, the oldest
first; 0 if there is none. Gu and Dao 2023 (arXiv:2312.00752), section 3.4, in the convention of the released code.

Symbols: b batch, d channels, l time, w taps. Tensors are float64, float32, bfloat16 or float16; ``activation`` is None, or
"silu" (also called "swish") for y · σ(y). Sums are kept in the promoted dtype of all arguments, float32 for 16-bit ones; y
has the dtype of ``x``, and states, which are inputs, that of the sums. An input that is not finite changes the w outputs that
read it only.

Each function raises TypeError for an argument that is no tensor of an allowed dtype, and ValueError for shapes or devices
that do not fit together, for a weight without a tap, and for an unknown activation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import silu

from .._common import accumulator, check, check_positive, check_state, made_of

ACTIVATIONS = (None, "silu", "swish")

Result = Float[Tensor, "b d l"] | tuple[Float[Tensor, "b d l"], Float[Tensor, "b d w-1"]]


def recurrent(
    x: Float[Tensor, "b d l"],
    weight: Float[Tensor, "d w"],
    bias: Float[Tensor, " d"] | None = None,
    initial_states: Float[Tensor, "b d w-1"] | None = None,
    return_final_states: bool = False,
    activation: str | None = None,
) -> Result:
    """Input by input, from a window that moves: y, or (y, last w - 1 inputs) if ``return_final_states``."""
    call = _call("mamba.convolution.recurrent", x, weight, bias, "initial_states", initial_states, activation)
    rows, state = [], call.state
    for token in call.x.unbind(-1):
        window = torch.cat([state, token.unsqueeze(-1)], -1)
        rows.append((window * call.weight).sum(-1))
        state = window[..., 1:]
    y = torch.stack(rows, -1) if rows else made_of(call.x, call.weight)
    return _leave(call, y, state, return_final_states)


def convolution(
    x: Float[Tensor, "b d l"],
    weight: Float[Tensor, "d w"],
    bias: Float[Tensor, " d"] | None = None,
    initial_states: Float[Tensor, "b d w-1"] | None = None,
    return_final_states: bool = False,
    activation: str | None = None,
) -> Result:
    """All outputs at once, tap by tap: y, or (y, last w - 1 inputs) if ``return_final_states``."""
    call = _call("mamba.convolution.convolution", x, weight, bias, "initial_states", initial_states, activation)
    inputs = torch.cat([call.state, call.x], -1)
    y = _taps(inputs, call.weight, x.shape[-1])
    return _leave(call, y, inputs[..., x.shape[-1] :], return_final_states)


def step(
    x: Float[Tensor, "b d"],
    weight: Float[Tensor, "d w"],
    bias: Float[Tensor, " d"] | None = None,
    state: Float[Tensor, "b d w-1"] | None = None,
    activation: str | None = None,
) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b d w-1"]]:
    """One input: (y, new state). The old state is left as it was; None is 0."""
    check("mamba.convolution.step", {"x": (x, "b d")})
    call = _call("mamba.convolution.step", x.unsqueeze(-1), weight, bias, "state", state, activation)
    window = torch.cat([call.state, call.x], -1)
    y = (window * call.weight).sum(-1, keepdim=True)
    y, state = _leave(call, y, window[..., 1:], True)
    return y.squeeze(-1), state


class _Call(NamedTuple):
    """A checked call in the dtype of the sums."""

    x: Float[Tensor, "b d l"]
    weight: Float[Tensor, "d w"]
    bias: Float[Tensor, " d"] | None
    state: Float[Tensor, "b d w-1"]
    activation: str | None
    dtype: torch.dtype


def _call(where: str, x: Tensor, weight: Tensor, bias: Tensor | None, name: str, state: Tensor | None, activation: str | None) -> _Call:
    if activation not in ACTIVATIONS:
        raise ValueError(f"{where}: activation must be None, 'silu' or 'swish', not {activation!r}.")
    sizes = check(where, {"x": (x, "b d l"), "weight": (weight, "d w"), "bias": (bias, "d")})
    check_positive(where, "the number of taps", sizes["w"])
    before = {"b": sizes["b"], "d": sizes["d"], "w-1": sizes["w"] - 1}
    if state is not None:
        check_state(where, x, state, before, name=name)
    dtype = accumulator(x, weight, bias, state)
    state = x.new_zeros(tuple(before.values()), dtype=dtype) if state is None else state.to(dtype)
    return _Call(x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype), state, activation, x.dtype)


def _taps(inputs: Float[Tensor, "b d l+w-1"], weight: Float[Tensor, "d w"], length: int) -> Float[Tensor, "b d l"]:
    first, *others = weight.unsqueeze(-1).unbind(1)
    y = inputs[..., :length] * first
    for j, w in enumerate(others, 1):
        y = torch.addcmul(y, inputs[..., j : j + length], w)
    return y


def _leave(call: _Call, y: Tensor, state: Tensor, return_final_states: bool) -> Result:
    y = y if call.bias is None else y + call.bias.unsqueeze(-1)
    y = (y if call.activation is None else silu(y)).to(call.dtype)
    return (y, state.clone()) if return_final_states else y
