"""From x' = A x + B u, with u held or interpolated over a step Δ, to x_k = Ā x_{k-1} + B̄ u_k.

============ ============================= =========================== ==================================
form         Ā                             B̄                           source
============ ============================= =========================== ==================================
zoh          e^{ΔA}                        ∫₀^Δ e^{sA} ds B            Gu & Dao 2023 (2312.00752), eq. 4
bilinear     (I - ½ΔA)⁻¹ (I + ½ΔA)         (I - ½ΔA)⁻¹ ΔB              Gu et al. 2022 (2111.00396), eq. 3
euler        I + ΔA                        ΔB                          Gu et al. 2021 (2110.13985), eq. 3
gbt          (I - αΔA)⁻¹ (I + (1-α)ΔA)     (I - αΔA)⁻¹ ΔB              the same, with α; α = 1: backward
============ ============================= =========================== ==================================

Eq. 4 writes the integral as (ΔA)⁻¹ (e^{ΔA} - I) ΔB, which needs an invertible A; here A may be singular or 0.

``A`` is (..., n, n), or (..., n) with ``diagonal=True``; ``B`` is (..., n); ``delta`` is a real number or a real tensor;
the leading axes of A and B and the whole shape of delta broadcast together. A and B may be complex. Everything is
computed and returned in the promoted dtype of the tensors, float32 for 16-bit ones.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from ._common import COMPLEX, REAL, accumulator, check

_SERIES = 18
"""Terms of Σ zⁿ/(n+1)!: at |z| <= 1/2 the first one left out is below 2⁻⁷⁰ of the sum, and of the sum's derivative."""


def zoh(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n"]]:
    """Zero-order hold, exact for every A: singular, defective, 0.

    A dense pair comes out of one matrix exponential, of Δ [[A, B], [0, 0]] (Van Loan 1978, "Computing integrals
    involving the matrix exponential", theorem 1); B is scaled by a power of two first, so that a large B does not
    cost digits of A. A diagonal pair is e^z and φ₁(z) ΔB with φ₁(z) = (e^z - 1)/z, whose values and derivatives are
    accurate at z = 0 and beside it.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``.
    ValueError
        Shapes or devices that do not fit together.

    """
    zA, zB = _enter("discretization.zoh", A, B, delta, diagonal)
    if diagonal:
        return zA.exp(), zB * phi1(zA)
    n = zB.shape[-1]
    unit = _power_of_two(zB)
    block = torch.cat([zA, (zB / unit).unsqueeze(-1)], -1)
    block = torch.linalg.matrix_exp(torch.nn.functional.pad(block, (0, 0, 0, 1)))
    return block[..., :n, :n], block[..., :n, n] * unit


def bilinear(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n"]]:
    """Bilinear (Tustin, trapezoidal) rule: `gbt` with α = ½, undefined where 2/Δ is an eigenvalue of A.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``.
    ValueError
        Shapes or devices that do not fit together.

    """
    return _gbt("discretization.bilinear", A, B, delta, 0.5, diagonal)


def euler(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n"]]:
    """Forward Euler rule: `gbt` with α = 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``.
    ValueError
        Shapes or devices that do not fit together.

    """
    return _gbt("discretization.euler", A, B, delta, 0.0, diagonal)


def gbt(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    alpha: float,
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n"]]:
    """Generalised bilinear transform, ``alpha`` a number in [0, 1].

    Where 1/(αΔ) is an eigenvalue of A the rule is undefined, and nothing finite comes back: NaN in all of that pair
    for a dense A, an infinity or NaN in that entry for a diagonal one. No error is raised, since asking would make a
    GPU wait; the other members of the batch are not touched.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``; an ``alpha`` that is no number.
    ValueError
        Shapes or devices that do not fit together; ``alpha`` outside [0, 1].

    """
    where = "discretization.gbt"
    if not isinstance(alpha, int | float):
        raise TypeError(f"{where}: alpha must be a number, not {type(alpha).__name__}.")
    if not 0 <= alpha <= 1:
        raise ValueError(f"{where}: alpha must lie in [0, 1], not {alpha}.")
    return _gbt(where, A, B, delta, alpha, diagonal)


def phi1(z: Inexact[Tensor, "*s"]) -> Inexact[Tensor, "*s"]:
    """(e^z - 1)/z entry by entry, 1 at z = 0, real or complex, with accurate derivatives everywhere."""
    near = z.detach().abs() <= 0.5
    small = torch.where(near, z, 0)
    series = torch.ones_like(z)
    for n in range(_SERIES, 0, -1):
        series = 1 + series * small / (n + 1)
    large = torch.where(near, 1, z)
    return torch.where(near, series, torch.expm1(large) / large)


FORMS = {"zoh": (zoh,), "bilinear": (bilinear,), "euler": (euler,)}


def _enter(where: str, A: Tensor, B: Tensor, delta: float | Tensor, diagonal: bool) -> tuple[Tensor, Tensor]:
    """Check, broadcast, and return ΔA and ΔB in the accumulation dtype."""
    numbers = (*REAL, *COMPLEX)
    check(where, {"A": (A, "... n" if diagonal else "... n n"), "B": (B, "... n")}, numbers)
    if isinstance(delta, Tensor):
        check(where, {"delta": (delta, "...")})
        check(where, {"A": (A, "..."), "delta": (delta, "...")}, numbers)
    elif not isinstance(delta, int | float):
        raise TypeError(f"{where}: delta must be a real number or tensor, not {type(delta).__name__}.")
    lead = [A.shape[: -1 if diagonal else -2], B.shape[:-1], delta.shape if isinstance(delta, Tensor) else ()]
    try:
        batch = torch.broadcast_shapes(*lead)
    except RuntimeError:
        found = ", ".join(f"{name} {tuple(s)}" for name, s in zip(("A", "B", "delta"), lead, strict=True))
        raise ValueError(f"{where}: the leading axes must broadcast together; they are {found}.") from None
    dtype = accumulator(A, B, delta if isinstance(delta, Tensor) else None)
    A, B = A.to(dtype), B.to(dtype)
    if isinstance(delta, Tensor):
        delta = delta.to(dtype).unsqueeze(-1)
    zB = delta * B
    zA = delta * A if diagonal or not isinstance(delta, Tensor) else delta.unsqueeze(-1) * A
    n = B.shape[-1]
    return zA.expand(*batch, *((n,) if diagonal else (n, n))), zB.expand(*batch, n)


def _gbt(where: str, A: Tensor, B: Tensor, delta: float | Tensor, alpha: float, diagonal: bool) -> tuple[Tensor, Tensor]:
    zA, zB = _enter(where, A, B, delta, diagonal)
    one = torch.ones_like(zA) if diagonal else torch.eye(zA.shape[-1], dtype=zA.dtype, device=zA.device)
    top = one + (1 - alpha) * zA
    if alpha == 0:
        return top, zB.clone()
    if diagonal:
        return top / (one - alpha * zA), zB / (one - alpha * zA)
    solved, info = torch.linalg.solve_ex(one - alpha * zA, torch.cat([top, zB.unsqueeze(-1)], -1))
    solved = torch.where((info == 0)[..., None, None], solved, torch.nan)
    return solved[..., :-1], solved[..., -1]


def _power_of_two(x: Inexact[Tensor, "*b n"]) -> Float[Tensor, "*b 1"]:
    """The largest power of two that is at most max |x|; 1 where there is none."""
    size = x.detach().abs().amax(-1, keepdim=True)
    return torch.where((size > 0) & size.isfinite(), size / (2 * torch.frexp(size).mantissa), 1)
