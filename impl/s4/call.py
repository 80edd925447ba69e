"""What both kinds of structured state spaces share: their arguments, and a run step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .._common import COMPLEX, REAL, accumulator, check, made_of, own


class Call(NamedTuple):
    """Arguments in the accumulation dtype; u and D are real, and h is Δ/2."""

    u: Tensor
    Lambda: Tensor
    P: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None
    h: Tensor
    state: Tensor


def enter(
    where: str,
    u: Tensor,
    axes: str,
    Lambda: Tensor,
    P: Tensor | None,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    delta: Tensor | None,
    state: Tensor | None,
    state_name: str,
) -> Call:
    """Check, and bring everything to the accumulation dtype."""
    check(where, {"u": (u, axes), "D": (D, "d"), "delta": (delta, "d")})
    parameters = {"Lambda": (Lambda, "d n"), "P": (P, "d n"), "B": (B, "d n"), "C": (C, "d n")}
    check(where, {"u": (u, axes), "D": (D, "d"), "delta": (delta, "d"), **parameters, state_name: (state, "b d n")}, (*REAL, *COMPLEX))
    dtype = accumulator(u, Lambda, P, B, C, D, delta, state)
    real = torch.float64 if dtype in (torch.float64, torch.complex128) else torch.float32
    Lambda, B, C = (x.to(dtype).contiguous() for x in (Lambda, B, C))
    h = Lambda.new_full((Lambda.shape[0],), 0.5, dtype=real) if delta is None else delta.to(real) / 2
    state = Lambda.new_zeros(u.shape[0], *Lambda.shape) if state is None else state.to(dtype)
    P = torch.zeros_like(Lambda) if P is None else P.to(dtype)
    return Call(u.to(real).contiguous(), Lambda, P, B, C, None if D is None else D.to(real), h, state)


def leave(y: Tensor, state: Tensor, u: Tensor, output_final_state: bool) -> Tensor | tuple[Tensor, Tensor]:
    y = y.to(u.dtype)
    return (y, own(state, u.shape[-1])) if output_final_state else y


def read(x: Call, state: Tensor, u: Tensor) -> Tensor:
    """Re(C x) + D u."""
    y = (state * x.C).sum(-1).real if state.is_complex() else (state * x.C).sum(-1)
    return y if x.D is None else y + x.D * u


def fed(x: Call, y: Float[Tensor, "b d t"], u: Float[Tensor, "b d t"]) -> Float[Tensor, "b d t"]:
    """y + D u."""
    return y if x.D is None else torch.addcmul(y, x.D.unsqueeze(-1), u)


def run(x: Call, u: Tensor, update: Callable[[Tensor, Tensor], Tensor], output_final_state: bool) -> Tensor | tuple[Tensor, Tensor]:
    """An update of the state for every input."""
    state, outputs = x.state, []
    for u_k in x.u.unbind(-1):
        state = update(state, u_k)
        outputs.append(read(x, state, u_k))
    y = torch.stack(outputs, -1) if outputs else made_of(x.u, *x[1:-1])
    return leave(y, state, u, output_final_state)
