"""What systems with constant coefficients share: powers along an orbit, kernels, causal convolutions, final states.

A transition is dense, (..., n, n), or diagonal, (..., n), one for each of the leading axes; ``dense`` tells which.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from ._common import _seen_finite


def times(a: Tensor, x: Inexact[Tensor, "*d n ..."], dense: bool) -> Inexact[Tensor, "*d n ..."]:
    """The transition times the axis of states of x, which comes after the leading ones."""
    lead = a.ndim - 2 if dense else a.ndim - 1
    if dense:
        return (a @ x.flatten(lead + 1)).view(x.shape)
    return a.view(*a.shape, *(1,) * (x.ndim - lead - 1)) * x


def square(a: Tensor, dense: bool) -> Tensor:
    """The transition of two steps."""
    return a @ a if dense else a * a


def orbit(a: Tensor, x: Inexact[Tensor, "*d n c"], count: int, dense: bool) -> tuple[Inexact[Tensor, "*d n {count} c"], Tensor]:
    """Return a^j x for j < count, by doubling, and a to the next power of two from count on."""
    x = x.unsqueeze(-2)
    while x.shape[-2] < count:
        x, a = torch.cat([x, times(a, x, dense)], -2), square(a, dense)
    return x[..., :count, :], a


def factors(
    a: Tensor, rows: Inexact[Tensor, "*d n"], columns: Inexact[Tensor, "*d n c"], length: int, dense: bool
) -> tuple[Inexact[Tensor, "*d n i"], Inexact[Tensor, "*d n j c"], Tensor]:
    """Two small factors of the kernels c aˡ b, l < length, and a to the power of a block: l = j + r i with r about √length.

    The first holds (aᵀ)^{ri} c, the second a^j b for every column b.
    """
    block = 1 << (length.bit_length() // 2)
    columns, jump = orbit(a, columns, block, dense)
    back, _ = orbit(jump.mT if dense else jump, rows.unsqueeze(-1), -(-length // block), dense)
    return back.squeeze(-1), columns, jump


def final_state(
    u: Inexact[Tensor, "*d b l"], columns: Inexact[Tensor, "*d n j 1+b"], jump: Tensor, dense: bool
) -> Inexact[Tensor, "*d b n"]:
    """Σ_i a^{l-1-i} b u_i + a^l x_{-1}: blocks of `columns` at once, then pairs of neighbouring blocks.

    `columns` holds a^j b and a^j (a x_{-1}); the latter enters like an input, l - 1 steps before the end.
    """
    length, block = u.shape[-1], columns.shape[-2]
    blocks = 1 << (-(-length // block) - 1).bit_length()
    back = torch.nn.functional.pad(u.flip(-1), (0, blocks * block - length)).unflatten(-1, (blocks, block))
    parts = torch.einsum("...bij,...nj->...nib", back.to(columns.dtype), columns[..., 0])
    i, j = divmod(length - 1, block)
    parts = torch.cat([parts[..., :i, :], parts[..., i : i + 1, :] + columns[..., j : j + 1, 1:], parts[..., i + 1 :, :]], -2)
    while parts.shape[-2] > 1:
        parts, jump = parts[..., 0::2, :] + times(jump, parts[..., 1::2, :].contiguous(), dense), square(jump, dense)
    return parts[..., 0, :].mT


def causal_convolution(u: Inexact[Tensor, "*b l"], kernel: Inexact[Tensor, "*#b l"]) -> Inexact[Tensor, "*b l"]:
    """Σ_j kernel_j u_{t-j} by a Fourier transform of at least 2l - 1 points, so that nothing wraps around."""
    if u.numel() == 0:  # some libraries refuse to transform no rows
        return u * kernel
    length = u.shape[-1]
    points = 1 << (2 * length - 2).bit_length()
    if u.is_complex():
        return torch.fft.ifft(torch.fft.fft(u, points) * torch.fft.fft(kernel, points))[..., :length]
    return torch.fft.irfft(torch.fft.rfft(u, points) * torch.fft.rfft(kernel, points), points)[..., :length]


def stained(u: Inexact[Tensor, "*b l"]) -> tuple[Inexact[Tensor, "*b l"], Inexact[Tensor, "*b l"] | None]:
    """The inputs with 0 for what is not finite, and a stain: 0, and NaN from the first that is not finite on.

    A Fourier transform mixes all times; its result plus the stain is not finite exactly where the recurrence's is. None is no stain.
    """
    if _seen_finite(u):
        return u, None
    bad = ~u.isfinite()
    return u.masked_fill(bad, 0), torch.zeros_like(u).masked_fill(bad, torch.nan).cumsum(-1)


def plus_stain(x: Inexact[Tensor, "*b l"], stain: Inexact[Tensor, "*#b l"] | None) -> Inexact[Tensor, "*b l"]:
    """The result of a product of all times, with the stain of its inputs."""
    return x if stain is None else x + stain


def last_stain(x: Inexact[Tensor, "*b n"], stain: Inexact[Tensor, "*b l"] | None) -> Inexact[Tensor, "*b n"]:
    """A state after all inputs, with their stain."""
    return x if stain is None else x + stain[..., -1:]


def real_product(x: Inexact[Tensor, "*d n i"], y: Inexact[Tensor, "*d n j"]) -> Float[Tensor, "*d i j"]:
    """The real part of xᵀ y, by one real product."""
    if not x.is_complex():
        return x.mT @ y
    return torch.cat([x.real, -x.imag], -2).mT @ torch.cat([y.real, y.imag], -2)
