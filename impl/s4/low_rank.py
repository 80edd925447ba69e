"""S4: A = Λ - P P*, diagonal plus low rank, by the bilinear rule. The arguments are described in `isoform.impl.s4`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Complex, Float, Inexact
from torch import Tensor

from .._common import COMPLEX, REAL, check, check_positive, made_of
from .._kernels import causal_convolution, final_state, last_stain, orbit, plus_stain, square, stained, times
from .call import Call, enter, fed, leave, read, run

_NODES = 1 << 22
"""Denominators of a Cauchy kernel that are held at once."""


def recurrent(
    u: Float[Tensor, "b d t"],
    Lambda: Inexact[Tensor, "d n"],
    P: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    initial_state: Inexact[Tensor, "b d n"] | None = None,
    output_final_state: bool = False,
) -> Float[Tensor, "b d t"] | tuple[Float[Tensor, "b d t"], Inexact[Tensor, "b d n"]]:
    """S4 step by step, each step in O(n): y, or (y, state) if ``output_final_state``.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = enter("s4.low_rank.recurrent", u, "b d t", Lambda, P, B, C, D, delta, initial_state, "initial_state")
    return run(x, u, _update(x), output_final_state)


def convolution(
    u: Float[Tensor, "b d t"],
    Lambda: Inexact[Tensor, "d n"],
    P: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    initial_state: Inexact[Tensor, "b d n"] | None = None,
    output_final_state: bool = False,
) -> Float[Tensor, "b d t"] | tuple[Float[Tensor, "b d t"], Inexact[Tensor, "b d n"]]:
    """S4 by its kernel, whose values at the t-th roots of unity are Cauchy sums (`kernel`), and a Fourier transform.

    With an initial state C Ā^{k+1} x_{-1} is added, which is a kernel too. The final state takes dense powers of Ā. As rounding
    errors of a Fourier transform, those of the kernel are relative to its largest value.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = enter("s4.low_rank.convolution", u, "b d t", Lambda, P, B, C, D, delta, initial_state, "initial_state")
    length = u.shape[-1]
    if length == 0:
        return leave(made_of(x.u, *x[1:-1]), x.state, u, output_final_state)
    starts = (x.h.unsqueeze(-1) * x.B).unsqueeze(0)
    if initial_state is not None:  # (I + ½ΔA) x_{-1} takes the place of ΔB
        starts = torch.cat([starts, _apply(x, x.state) / 2])
    Abar, Bbar = _dense(x)
    response = _nodes(x, x.C - _row_power(Abar, x.C, length), starts, length)
    clean, stain = stained(x.u)
    y = causal_convolution(clean, response[0])
    y = plus_stain(fed(x, y if initial_state is None else y + response[1:], clean), stain)
    if not output_final_state:
        return leave(y, x.state, u, False)
    driven = torch.cat([Bbar.unsqueeze(-1), times(Abar, x.state.permute(1, 2, 0), True)], -1)
    columns, jump = orbit(Abar, driven, 1 << (length.bit_length() // 2), True)
    last = final_state(clean.transpose(0, 1), columns, jump, True).transpose(0, 1)
    return leave(y, last_stain(last, stain), u, True)


def step(
    u: Float[Tensor, "b d"],
    Lambda: Inexact[Tensor, "d n"],
    P: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    state: Inexact[Tensor, "b d n"] | None = None,
) -> tuple[Float[Tensor, "b d"], Inexact[Tensor, "b d n"]]:
    """One input of each channel, in O(n): (y, new state). The old state is left as it was; None is 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = enter("s4.low_rank.step", u, "b d", Lambda, P, B, C, D, delta, state, "state")
    new = _update(x)(x.state, x.u)
    return read(x, new, x.u).to(u.dtype), new


def kernel(
    Lambda: Inexact[Tensor, "d n"],
    P: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    delta: Float[Tensor, " d"],
    length: int,
) -> Float[Tensor, "d {length}"]:
    """Re(C Ā^l B̄), l < length, for A = Λ - P P* and the bilinear rule, from its transform at the roots of unity z.

    Σ_l z^l C Ā^l B̄ = C̃ (I - z Ā)⁻¹ B̄ with C̃ = C (I - Ā^length): C itself would give the kernel with all its periods added up.
    With z = e^{-iθ} the resolvent is ½ e^{iθ/2} (i sin ½θ - ½Δ cos ½θ A)⁻¹ ΔB, which has no pole at z = -1, where papers with
    2/(1+z) before it take a limit. Woodbury's identity makes four Cauchy sums of it.

    C̃ is a difference: where length·Δ·|λ| is small for all poles, digits are lost to it.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``length`` that is no integer.
    ValueError
        Shapes or devices that do not fit together; a ``length`` below 1.

    """
    where = "s4.low_rank.kernel"
    check_positive(where, "length", length)
    check(where, {"Lambda": (Lambda, "d n"), "delta": (delta, "d")}, (*REAL, *COMPLEX))
    x = enter(where, delta.new_zeros(1, delta.shape[0]), "b d", Lambda, P, B, C, None, delta, None, "state")
    Abar, _ = _dense(x)
    return _nodes(x, x.C - _row_power(Abar, x.C, length), (x.h.unsqueeze(-1) * x.B).unsqueeze(0), length)[0]


def _apply(x: Call, state: Inexact[Tensor, "*b d n"]) -> Inexact[Tensor, "*b d n"]:
    """(I + ½ΔA) x."""
    inner = (x.P.conj() * state).sum(-1, keepdim=True)
    h = x.h.unsqueeze(-1)
    return state + h * (x.Lambda * state - x.P * inner)


def _update(x: Call) -> Callable[[Tensor, Tensor], Tensor]:
    """x -> (I - ½ΔA)⁻¹ ((I + ½ΔA) x + ΔB u), the inverse by Woodbury's identity (S4, appendix C.2)."""
    h = x.h.unsqueeze(-1)
    inverse = 1 / (1 - h * x.Lambda)
    left, right = inverse * x.P, x.P.conj() * inverse
    weight = h / (1 + h * (x.P.conj() * left).sum(-1, keepdim=True))
    drive = 2 * h * x.B

    def update(state: Tensor, u: Tensor) -> Tensor:
        known = _apply(x, state) + u.unsqueeze(-1) * drive
        return inverse * known - left * (weight * (right * known).sum(-1, keepdim=True))

    return update


def _dense(x: Call) -> tuple[Inexact[Tensor, "d n n"], Inexact[Tensor, "d n"]]:
    """Ā and B̄ of a bilinear rule: the step of every basis vector, and of the input 1."""
    update, n = _update(x), x.Lambda.shape[-1]
    eye = torch.eye(n, dtype=x.Lambda.dtype, device=x.Lambda.device).unsqueeze(1).expand(n, *x.Lambda.shape)
    zero, one = x.h.new_zeros(x.h.shape), x.h.new_ones(x.h.shape)
    return update(eye, zero).permute(1, 2, 0), update(torch.zeros_like(x.Lambda), one)


def _row_power(a: Inexact[Tensor, "d n n"], row: Inexact[Tensor, "d n"], count: int) -> Inexact[Tensor, "d n"]:
    """The row times the power of a matrix, by the binary digits of the exponent."""
    row = row.unsqueeze(-2)
    while count:
        row = row @ a if count & 1 else row
        count >>= 1
        a = square(a, True) if count else a
    return row.squeeze(-2)


def _nodes(x: Call, row: Tensor, starts: Inexact[Tensor, "c d n"], length: int) -> Float[Tensor, "c d {length}"]:
    """The real part of row Ā^l (I - ½ΔA)⁻¹ 2 starts summed up to its transform at the roots of unity, and transformed back."""
    half = torch.pi * torch.fft.fftfreq(length, dtype=x.h.dtype, device=x.h.device)  # in [-π/2, π/2], where its sine is right
    sine, cosine = half.sin(), half.cos()
    w = x.h.unsqueeze(-1) * x.Lambda
    pull = torch.cat([row.unsqueeze(0), x.P.conj().unsqueeze(0)]).unsqueeze(1)
    push = torch.cat([starts, x.P.unsqueeze(0)]).unsqueeze(0)
    weights = (pull * push).permute(2, 0, 1, 3)
    size = max(1, _NODES // max(1, w.numel()))
    found = torch.cat([_cauchy(weights, w, s, c) for s, c in zip(sine.split(size), cosine.split(size), strict=True)], -1)
    turn = torch.polar(torch.ones_like(half), half)
    low = cosine * x.h.unsqueeze(-1)
    direct, cross, inner = found[:, 0, :-1], found[:, 0, -1:], found[:, 1]
    transform = turn * (direct - cross * (low / (1 + low * inner[:, -1])).unsqueeze(1) * inner[:, :-1])
    return torch.fft.ifft(transform).real.transpose(0, 1)


def _cauchy(weights: Inexact[Tensor, "d m c n"], w: Inexact[Tensor, "d n"], sine: Tensor, cosine: Tensor) -> Complex[Tensor, "d m c k"]:
    """Σ_n weights_n / (i sin - cos w_n)."""
    inverse = 1 / (1j * sine - cosine * w.unsqueeze(-1))
    return (weights.to(inverse.dtype).flatten(1, 2) @ inverse).unflatten(1, weights.shape[1:3])
