"""From x' = A x + B u, with u held or interpolated over a step Δ, to x_k = Ā x_{k-1} + B̄ u_k.

============== =========================== =========================== =============================================
form           Ā                           B̄                           source
============== =========================== =========================== =============================================
zoh            e^{ΔA}                      φ₁(ΔA) ΔB                   Gu & Dao 2023 (2312.00752), eq. 4
foh            e^{ΔA}                      [(φ₁ - φ₂) ΔB, φ₂ ΔB]       Franklin et al., Digital Control, section 6.3.2
impulse        e^{ΔA}                      ΔB                          code of Mamba; impulse invariance
bilinear       (I - ½ΔA)⁻¹ (I + ½ΔA)       (I - ½ΔA)⁻¹ ΔB              Gu et al. 2022 (2111.00396), eq. 3
euler          I + ΔA                      ΔB                          Gu et al. 2021 (2110.13985), eq. 3 at α = 0
backward_euler (I - ΔA)⁻¹                  (I - ΔA)⁻¹ ΔB               the same at α = 1
gbt            (I - αΔA)⁻¹ (I + (1-α)ΔA)   (I - αΔA)⁻¹ ΔB              the same
============== =========================== =========================== =============================================

Here φ₁(z) = ∫₀¹ e^{sz} ds = (e^z - 1)/z and φ₂(z) = ∫₀¹ (1-s) e^{sz} ds = (φ₁(z) - 1)/z; A may be singular or 0. A first-order
hold has a line between inputs and so two of them: x_k = Ā x_{k-1} + B̄[0] u_{k-1} + B̄[1] u_k, with B̄ of shape (..., n, 2).

``A`` is (..., n, n), or (..., n) with ``diagonal=True``; ``B`` is (..., n); ``delta`` is a real number or a real tensor;
the leading axes of A and B and the whole shape of delta broadcast together. A and B may be complex. Everything is
computed and returned in the promoted dtype of the tensors, float32 for 16-bit ones.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from ._common import COMPLEX, REAL, accumulator, check

_SERIES = 20
"""Terms of Σ zⁿ/(n+1)! at |z| <= ½ and of Σ zⁿ/(n+2)! at |z| <= 1: those left out are below 2⁻⁶³ of the sum and of its derivative."""


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
    block, unit = _held(zA, zB, 1)
    return block[..., :-1], block[..., -1] * unit


def foh(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n 2"]]:
    """First-order hold, exact for inputs that are lines between the steps, for every A.

    B̄ has two columns, for the input at the start of the step and for the one at its end. As `zoh`, by the matrix exponential
    of Δ [[A, B, 0], [0, 0, 1/Δ], [0, 0, 0]], or by φ₁ - φ₂ and φ₂. SciPy's first-order hold has the state x_k - B̄[1] u_k.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``.
    ValueError
        Shapes or devices that do not fit together.

    """
    zA, zB = _enter("discretization.foh", A, B, delta, diagonal)
    if diagonal:
        return zA.exp(), torch.stack([zB * _falling(zA), zB * phi2(zA)], -1)
    block, unit = _held(zA, zB, 2)
    held, rising = block[..., -2], block[..., -1]
    return block[..., :-2], torch.stack([held - rising, rising], -1) * unit.unsqueeze(-1)


def impulse(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n"]]:
    """Impulse invariance, e^{ΔA} and ΔB: the kernel is Δ times the continuous one at the steps. It does not keep equilibria.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``.
    ValueError
        Shapes or devices that do not fit together.

    """
    zA, zB = _enter("discretization.impulse", A, B, delta, diagonal)
    return (zA.exp() if diagonal else _held(zA, torch.zeros_like(zB), 1)[0][..., :-1]), zB.clone()


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


def backward_euler(
    A: Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"],
    B: Inexact[Tensor, "*b n"],
    delta: float | Float[Tensor, "*b"],
    diagonal: bool = False,
) -> tuple[Inexact[Tensor, "*b n n"] | Inexact[Tensor, "*b n"], Inexact[Tensor, "*b n"]]:
    """Backward Euler rule: `gbt` with α = 1, undefined where 1/Δ is an eigenvalue of A.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a complex ``delta``.
    ValueError
        Shapes or devices that do not fit together.

    """
    return _gbt("discretization.backward_euler", A, B, delta, 1.0, diagonal)


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
    return _near_zero(z, 0.5, lambda n: 1 / (n + 1), lambda w: torch.expm1(w) / w)


def phi2(z: Inexact[Tensor, "*s"]) -> Inexact[Tensor, "*s"]:
    """(e^z - 1 - z)/z² entry by entry, ½ at z = 0, as `phi1`."""
    return 0.5 * _near_zero(z, 1.0, lambda n: 1 / (n + 2), lambda w: 2 * (torch.expm1(w) - w) / w / w)


def _falling(z: Inexact[Tensor, "*s"]) -> Inexact[Tensor, "*s"]:
    """φ₁ - φ₂ = (1 - (1-z) e^z)/z² entry by entry, ½ at z = 0, as `phi1`: the terms are (n+1) zⁿ/(n+2)!."""
    return 0.5 * _near_zero(z, 1.0, lambda n: (n + 1) / (n * (n + 2)), lambda w: 2 * (1 - (1 - w) * w.exp()) / w / w)


def _near_zero(
    z: Inexact[Tensor, "*s"], radius: float, quotient: Callable[[int], float], formula: Callable[[Tensor], Tensor]
) -> Inexact[Tensor, "*s"]:
    """A power series 1 + … whose term n is ``quotient(n)`` z times the one before, where |z| <= radius; a formula elsewhere."""
    near = z.detach().abs() <= radius
    small = torch.where(near, z, 0)
    series = torch.ones_like(z)
    for n in range(_SERIES, 0, -1):
        series = 1 + series * small * quotient(n)
    return torch.where(near, series, formula(torch.where(near, 1, z)))


FORMS = {
    "zoh": (zoh,),
    "foh": (foh,),
    "impulse": (impulse,),
    "bilinear": (bilinear,),
    "euler": (euler,),
    "backward-euler": (backward_euler,),
}


def _held(zA: Tensor, zB: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """[e^{ΔA}, φ₁ ΔB / unit, …, φ_order ΔB / unit], and the unit (..., 1).

    The chain of integrals is one longer than is used, so that the norm is at least 1: below, torch may take a polynomial of
    degree 8 that has a wrong coefficient (github.com/pytorch/pytorch/issues/196592).
    """
    n = zB.shape[-1]
    unit = _power_of_two(zB)
    block = torch.cat([zA, (zB / unit).unsqueeze(-1)], -1)
    block = torch.nn.functional.pad(block, (0, order, 0, order + 1))
    chain = torch.nn.functional.pad(torch.eye(order, dtype=block.dtype, device=block.device), (n + 1, 0, n, 1))
    return torch.linalg.matrix_exp(block + chain)[..., :n, : n + order], unit


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
