"""S4D: a diagonal A, by zero-order hold or the bilinear rule. The arguments are described in `isoform.impl.s4`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Complex, Float, Inexact
from torch import Tensor

from .. import _scan, discretization
from .._common import COMPLEX, REAL, accumulator, check, check_positive, made_of
from .._kernels import causal_convolution, factors, final_state, last_stain, plus_stain, real_product, stained
from ..hippo import legs_dplr
from .call import Call, enter, fed, leave, read, run

RULES = {"zoh": discretization.zoh, "bilinear": discretization.bilinear}


def recurrent(
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
    x = enter("s4.diagonal.recurrent", u, "b d t", Lambda, None, B, C, D, delta, initial_state, "initial_state")
    return run(x, u, _update(*_rule(x, rule)), output_final_state)


def convolution(
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
    """S4D by its kernel (`kernel`) and a Fourier transform of at least 2t - 1 points.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together; an unknown ``rule``.

    """
    x = enter("s4.diagonal.convolution", u, "b d t", Lambda, None, B, C, D, delta, initial_state, "initial_state")
    length = u.shape[-1]
    Abar, Bbar = _rule(x, rule)
    if length == 0:
        return leave(made_of(x.u, *x[1:-1]), x.state, u, output_final_state)
    if initial_state is None and not output_final_state:
        starts = Bbar.unsqueeze(-1)
    else:
        starts = torch.cat([Bbar.unsqueeze(-1), (Abar * x.state).permute(1, 2, 0)], -1)
    rows, columns, jump = factors(Abar, x.C, starts, length, False)
    response = _vandermonde(rows, columns, length)
    clean, stain = stained(x.u)
    y = causal_convolution(clean, response[0])
    y = plus_stain(fed(x, y if initial_state is None else y + response[1:], clean), stain)
    if not output_final_state:
        return leave(y, x.state, u, False)
    last = final_state(clean.transpose(0, 1), columns, jump, False).transpose(0, 1)
    return leave(y, last_stain(last, stain), u, True)


def associative_scan(
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
    x = enter("s4.diagonal.associative_scan", u, "b d t", Lambda, None, B, C, D, delta, initial_state, "initial_state")
    Abar, Bbar = _rule(x, rule)
    drive = x.u.permute(0, 2, 1).unsqueeze(-1) * Bbar
    states, last = _scan.scan(Abar.expand_as(drive), drive, x.state)
    return leave(read(x, states, x.u.permute(0, 2, 1)).permute(0, 2, 1), last, u, output_final_state)


def step(
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
    x = enter("s4.diagonal.step", u, "b d", Lambda, None, B, C, D, delta, state, "state")
    new = _update(*_rule(x, rule))(x.state, x.u)
    return read(x, new, x.u).to(u.dtype), new


def kernel(
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
    where = "s4.diagonal.kernel"
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
    check_positive("s4.diagonal.lin_init", "n", n)
    k = torch.arange(n, dtype=torch.float64)
    return -0.5 + 1j * torch.pi * k, torch.ones(n, dtype=torch.complex128)


def inv_init(n: int) -> tuple[Complex[Tensor, " n"], Complex[Tensor, " n"]]:
    """S4D-Inv, (Λ, B): -½ + i(N/π)(N/(2k+1) - 1) for k < n = N/2, one of each conjugate pair, and B = 1 (S4D, equation 8)."""
    check_positive("s4.diagonal.inv_init", "n", n)
    k = torch.arange(n, dtype=torch.float64)
    return -0.5 + 1j * (2 * n / torch.pi) * (2 * n / (2 * k + 1) - 1), torch.ones(n, dtype=torch.complex128)


def _rule(x: Call, rule: str) -> tuple[Tensor, Tensor]:
    """Ā and B̄ of a diagonal A."""
    if rule not in RULES:
        raise ValueError(f"s4: rule must be one of {', '.join(RULES)}, not {rule!r}.")
    return RULES[rule](x.Lambda, x.B, 2 * x.h, diagonal=True)


def _update(Abar: Tensor, Bbar: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda state, u: torch.addcmul(u.unsqueeze(-1) * Bbar, state, Abar)


def _vandermonde(rows: Inexact[Tensor, "d n i"], columns: Inexact[Tensor, "d n j c"], length: int) -> Float[Tensor, "c d {length}"]:
    """Re Σ_n rows_i columns_j at l = j + r i, for every column."""
    c = columns.shape[-1]
    if c == 1:
        found = real_product(rows, columns.squeeze(-1)).unsqueeze(0)
    else:
        found = real_product(rows, columns.flatten(-2)).unflatten(-1, (-1, c)).permute(3, 0, 1, 2)
    return found.flatten(-2)[..., :length]
