"""Structured state spaces: x' = A x + B u with a diagonal A, or one that is diagonal plus low rank, discretised and run.

    S4     A = Λ - P P*, bilinear rule                 Gu et al. 2022 (arXiv:2111.00396), equations 3-6 and appendix C.3
    S4D    A = Λ, zero-order hold or bilinear rule     Gu et al. 2022 (arXiv:2206.11893), section 3

x_k = Ā x_{k-1} + B̄ u_k, y_k = Re(C x_k) + D u_k. Symbols: b batch, d channels, t time, n states of a channel. ``u`` is
(b, d, t) and real; ``Lambda``, ``P``, ``B``, ``C`` are (d, n), real or complex; ``D`` is (d) or None; ``delta`` is (d), real
and positive, or None for 1; the state is (b, d, n). The real parts of Λ are negative. All n states are stored: who keeps one
of each conjugate pair of a diagonal A gives twice its C. Sums and states are kept in the promoted dtype of all arguments,
float32 for 16-bit ones; ``y`` has the dtype of ``u``. A non-finite input changes its own and later outputs of its channel only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Complex, Float, Inexact
from torch import Tensor

from . import discretization
from ._common import COMPLEX, REAL, accumulator, check, check_positive, own
from ._kernels import causal_convolution, factors, final_state, last_stain, orbit, plus_stain, real_product, square, stained, times
from ._scan import scan
from .hippo import legs_dplr

RULES = {"zoh": discretization.zoh, "bilinear": discretization.bilinear}
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
    x = _enter("s4.recurrent", u, "b d t", Lambda, P, B, C, D, delta, initial_state, "initial_state")
    step = _low_rank_step(x)
    return _run(x, u, step, output_final_state)


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
    """S4 by its kernel, whose values at the t-th roots of unity are Cauchy sums (`dplr_kernel`), and a Fourier transform.

    With an initial state C Ā^{k+1} x_{-1} is added, which is a kernel too. The final state takes dense powers of Ā. As rounding
    errors of a Fourier transform, those of the kernel are relative to its largest value.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = _enter("s4.convolution", u, "b d t", Lambda, P, B, C, D, delta, initial_state, "initial_state")
    length = u.shape[-1]
    if length == 0:
        return _leave(x.u * (x.C * x.B).sum().real, x.state, u, output_final_state)
    starts = (x.h.unsqueeze(-1) * x.B).unsqueeze(0)
    if initial_state is not None:  # (I + ½ΔA) x_{-1} takes the place of ΔB
        starts = torch.cat([starts, _apply(x, x.state) / 2])
    Abar, Bbar = _dense(x)
    response = _nodes(x, x.C - _row_power(Abar, x.C, length), starts, length)
    clean, stain = stained(x.u)
    y = causal_convolution(clean, response[0])
    y = plus_stain(_fed(x, y if initial_state is None else y + response[1:], clean), stain)
    if not output_final_state:
        return _leave(y, x.state, u, False)
    driven = torch.cat([Bbar.unsqueeze(-1), times(Abar, x.state.permute(1, 2, 0), True)], -1)
    columns, jump = orbit(Abar, driven, 1 << (length.bit_length() // 2), True)
    last = final_state(clean.transpose(0, 1), columns, jump, True).transpose(0, 1)
    return _leave(y, last_stain(last, stain), u, True)


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
    x = _enter("s4.step", u, "b d", Lambda, P, B, C, D, delta, state, "state")
    new = _low_rank_step(x)(x.state, x.u)
    return _read(x, new, x.u).to(u.dtype), new


def diagonal_recurrent(
    u: Float[Tensor, "b d t"],
    Lambda: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    initial_state: Inexact[Tensor, "b d n"] | None = None,
    output_final_state: bool = False,
    rule: str = "zoh",
) -> Float[Tensor, "b d t"] | tuple[Float[Tensor, "b d t"], Inexact[Tensor, "b d n"]]:
    """S4D step by step: y, or (y, state) if ``output_final_state``. ``rule`` is "zoh" or "bilinear".

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; an unknown ``rule``.

    """
    x = _enter("s4.diagonal_recurrent", u, "b d t", Lambda, None, B, C, D, delta, initial_state, "initial_state")
    return _run(x, u, _diagonal_step(*_rule(x, rule)), output_final_state)


def diagonal_scan(
    u: Float[Tensor, "b d t"],
    Lambda: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    initial_state: Inexact[Tensor, "b d n"] | None = None,
    output_final_state: bool = False,
    rule: str = "zoh",
) -> Float[Tensor, "b d t"] | tuple[Float[Tensor, "b d t"], Inexact[Tensor, "b d n"]]:
    """S4D by a scan over time, which holds all states at once (S5, arXiv:2208.04933, section 2.2).

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; an unknown ``rule``.

    """
    x = _enter("s4.diagonal_scan", u, "b d t", Lambda, None, B, C, D, delta, initial_state, "initial_state")
    Abar, Bbar = _rule(x, rule)
    drive = x.u.permute(0, 2, 1).unsqueeze(-1) * Bbar
    states, last = scan(Abar.expand_as(drive), drive, x.state)
    return _leave(_read(x, states, x.u.permute(0, 2, 1)).permute(0, 2, 1), last, u, output_final_state)


def diagonal_convolution(
    u: Float[Tensor, "b d t"],
    Lambda: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    initial_state: Inexact[Tensor, "b d n"] | None = None,
    output_final_state: bool = False,
    rule: str = "zoh",
) -> Float[Tensor, "b d t"] | tuple[Float[Tensor, "b d t"], Inexact[Tensor, "b d n"]]:
    """S4D by its kernel (`diagonal_kernel`) and a Fourier transform of at least 2t - 1 points.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; an unknown ``rule``.

    """
    x = _enter("s4.diagonal_convolution", u, "b d t", Lambda, None, B, C, D, delta, initial_state, "initial_state")
    length = u.shape[-1]
    Abar, Bbar = _rule(x, rule)
    if length == 0:
        return _leave(x.u * (x.C * Bbar).sum().real, x.state, u, output_final_state)
    if initial_state is None and not output_final_state:
        starts = Bbar.unsqueeze(-1)
    else:
        starts = torch.cat([Bbar.unsqueeze(-1), (Abar * x.state).permute(1, 2, 0)], -1)
    rows, columns, jump = factors(Abar, x.C, starts, length, False)
    response = _vandermonde(rows, columns, length)
    clean, stain = stained(x.u)
    y = causal_convolution(clean, response[0])
    y = plus_stain(_fed(x, y if initial_state is None else y + response[1:], clean), stain)
    if not output_final_state:
        return _leave(y, x.state, u, False)
    last = final_state(clean.transpose(0, 1), columns, jump, False).transpose(0, 1)
    return _leave(y, last_stain(last, stain), u, True)


def diagonal_step(
    u: Float[Tensor, "b d"],
    Lambda: Inexact[Tensor, "d n"],
    B: Inexact[Tensor, "d n"],
    C: Inexact[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    delta: Float[Tensor, " d"] | None = None,
    state: Inexact[Tensor, "b d n"] | None = None,
    rule: str = "zoh",
) -> tuple[Float[Tensor, "b d"], Inexact[Tensor, "b d n"]]:
    """One input of each channel: (y, new state). The old state is left as it was; None is 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; an unknown ``rule``.

    """
    x = _enter("s4.diagonal_step", u, "b d", Lambda, None, B, C, D, delta, state, "state")
    new = _diagonal_step(*_rule(x, rule))(x.state, x.u)
    return _read(x, new, x.u).to(u.dtype), new


def dplr_kernel(
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
    where = "s4.dplr_kernel"
    check_positive(where, "length", length)
    check(where, {"Lambda": (Lambda, "d n"), "delta": (delta, "d")}, (*REAL, *COMPLEX))
    x = _enter(where, delta.new_zeros(1, delta.shape[0]), "b d", Lambda, P, B, C, None, delta, None, "state")
    Abar, _ = _dense(x)
    return _nodes(x, x.C - _row_power(Abar, x.C, length), (x.h.unsqueeze(-1) * x.B).unsqueeze(0), length)[0]


def diagonal_kernel(
    Abar: Inexact[Tensor, "d n"], Bbar: Inexact[Tensor, "d n"], C: Inexact[Tensor, "d n"], length: int
) -> Float[Tensor, "d {length}"]:
    """Re Σ_n C_n Ā_n^l B̄_n, l < length: a Vandermonde product, split into powers of blocks and powers inside a block.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``length`` that is no integer.
    ValueError
        Shapes or devices that do not fit together; a ``length`` below 1.

    """
    where = "s4.diagonal_kernel"
    check_positive(where, "length", length)
    check(where, {"Abar": (Abar, "d n"), "Bbar": (Bbar, "d n"), "C": (C, "d n")}, (*REAL, *COMPLEX))
    dtype = accumulator(Abar, Bbar, C)
    rows, columns, _ = factors(Abar.to(dtype), C.to(dtype), Bbar.to(dtype).unsqueeze(-1), length, False)
    return _vandermonde(rows, columns, length)[0]


def legs_init(n: int) -> tuple[Complex[Tensor, " n"], Complex[Tensor, " n"]]:
    """S4D-LegS, (Λ, B): `hippo.legs` without its low rank, all n eigenvalues."""
    found = legs_dplr(n)
    return found.Lambda, found.B


def lin_init(n: int) -> tuple[Complex[Tensor, " n"], Complex[Tensor, " n"]]:
    """S4D-Lin, (Λ, B): -½ + iπk for k < n, one of each conjugate pair, and B = 1 (S4D, equation 9)."""
    check_positive("s4.lin_init", "n", n)
    k = torch.arange(n, dtype=torch.float64)
    return -0.5 + 1j * torch.pi * k, torch.ones(n, dtype=torch.complex128)


def inv_init(n: int) -> tuple[Complex[Tensor, " n"], Complex[Tensor, " n"]]:
    """S4D-Inv, (Λ, B): -½ + i(N/π)(N/(2k+1) - 1) for k < n = N/2, one of each conjugate pair, and B = 1 (S4D, equation 8)."""
    check_positive("s4.inv_init", "n", n)
    k = torch.arange(n, dtype=torch.float64)
    return -0.5 + 1j * (2 * n / torch.pi) * (2 * n / (2 * k + 1) - 1), torch.ones(n, dtype=torch.complex128)


FORMS = {"s4": (recurrent, convolution), "s4d": (diagonal_recurrent, diagonal_convolution, diagonal_scan)}
STEPS = {"s4": step, "s4d": diagonal_step}


class _Call(NamedTuple):
    """Arguments in the accumulation dtype; u and D are real, and h is Δ/2."""

    u: Tensor
    Lambda: Tensor
    P: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None
    h: Tensor
    state: Tensor


def _enter(
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
) -> _Call:
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
    return _Call(u.to(real).contiguous(), Lambda, P, B, C, None if D is None else D.to(real), h, state)


def _leave(y: Tensor, state: Tensor, u: Tensor, output_final_state: bool) -> Tensor | tuple[Tensor, Tensor]:
    y = y.to(u.dtype)
    return (y, own(state, u.shape[-1])) if output_final_state else y


def _read(x: _Call, state: Tensor, u: Tensor) -> Tensor:
    """Re(C x) + D u."""
    y = (state * x.C).sum(-1).real if state.is_complex() else (state * x.C).sum(-1)
    return y if x.D is None else y + x.D * u


def _fed(x: _Call, y: Float[Tensor, "b d t"], u: Float[Tensor, "b d t"]) -> Float[Tensor, "b d t"]:
    """y + D u."""
    return y if x.D is None else torch.addcmul(y, x.D.unsqueeze(-1), u)


def _run(x: _Call, u: Tensor, step: Callable[[Tensor, Tensor], Tensor], output_final_state: bool) -> Tensor | tuple[Tensor, Tensor]:
    """A step for every input."""
    state, outputs = x.state, []
    for u_k in x.u.unbind(-1):
        state = step(state, u_k)
        outputs.append(_read(x, state, u_k))
    y = torch.stack(outputs, -1) if outputs else x.u * (x.C * x.B).sum().real
    return _leave(y, state, u, output_final_state)


def _rule(x: _Call, rule: str) -> tuple[Tensor, Tensor]:
    """Ā and B̄ of a diagonal A."""
    if rule not in RULES:
        raise ValueError(f"s4: rule must be one of {', '.join(RULES)}, not {rule!r}.")
    return RULES[rule](x.Lambda, x.B, 2 * x.h, diagonal=True)


def _diagonal_step(Abar: Tensor, Bbar: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda state, u: torch.addcmul(u.unsqueeze(-1) * Bbar, state, Abar)


def _apply(x: _Call, state: Inexact[Tensor, "*b d n"]) -> Inexact[Tensor, "*b d n"]:
    """(I + ½ΔA) x."""
    inner = (x.P.conj() * state).sum(-1, keepdim=True)
    h = x.h.unsqueeze(-1)
    return state + h * (x.Lambda * state - x.P * inner)


def _low_rank_step(x: _Call) -> Callable[[Tensor, Tensor], Tensor]:
    """x -> (I - ½ΔA)⁻¹ ((I + ½ΔA) x + ΔB u), the inverse by Woodbury's identity (S4, appendix C.2)."""
    h = x.h.unsqueeze(-1)
    inverse = 1 / (1 - h * x.Lambda)
    left, right = inverse * x.P, x.P.conj() * inverse
    weight = h / (1 + h * (x.P.conj() * left).sum(-1, keepdim=True))
    drive = 2 * h * x.B

    def step(state: Tensor, u: Tensor) -> Tensor:
        known = _apply(x, state) + u.unsqueeze(-1) * drive
        return inverse * known - left * (weight * (right * known).sum(-1, keepdim=True))

    return step


def _dense(x: _Call) -> tuple[Inexact[Tensor, "d n n"], Inexact[Tensor, "d n"]]:
    """Ā and B̄ of a bilinear rule: the step of every basis vector, and of the input 1."""
    step, n = _low_rank_step(x), x.Lambda.shape[-1]
    eye = torch.eye(n, dtype=x.Lambda.dtype, device=x.Lambda.device).unsqueeze(1).expand(n, *x.Lambda.shape)
    zero, one = x.h.new_zeros(x.h.shape), x.h.new_ones(x.h.shape)
    return step(eye, zero).permute(1, 2, 0), step(torch.zeros_like(x.Lambda), one)


def _row_power(a: Inexact[Tensor, "d n n"], row: Inexact[Tensor, "d n"], count: int) -> Inexact[Tensor, "d n"]:
    """The row times the power of a matrix, by the binary digits of the exponent."""
    row = row.unsqueeze(-2)
    while count:
        row = row @ a if count & 1 else row
        count >>= 1
        a = square(a, True) if count else a
    return row.squeeze(-2)


def _vandermonde(rows: Inexact[Tensor, "d n i"], columns: Inexact[Tensor, "d n j c"], length: int) -> Float[Tensor, "c d {length}"]:
    """Re Σ_n rows_i columns_j at l = j + r i, for every column."""
    c = columns.shape[-1]
    if c == 1:
        found = real_product(rows, columns.squeeze(-1)).unsqueeze(0)
    else:
        found = real_product(rows, columns.flatten(-2)).unflatten(-1, (-1, c)).permute(3, 0, 1, 2)
    return found.flatten(-2)[..., :length]


def _nodes(x: _Call, row: Tensor, starts: Inexact[Tensor, "c d n"], length: int) -> Float[Tensor, "c d {length}"]:
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
