"""Online projection onto polynomials and waves: the systems x' = A x + B u whose state is the coefficients of the past.

Gu et al. 2020 (HiPPO, arXiv:2008.07669); Gu et al. 2023 (How to Train Your HiPPO, arXiv:2206.12037). All matrices are
float64 and stand as in x' = A x + B u; s is how long ago an input was, P_n Legendre's and L_n Laguerre's polynomial.

======== ============================== ========================================= ============================================
measure  equation                       basis in the past                         kernel e^{tA} B
======== ============================== ========================================= ============================================
legs     c' = (A c + B u) / t           √(2n+1) P_n(1 - 2s/t), 0 <= s <= t        √(2n+1) P_n(2e^{-t} - 1) e^{-t}, without 1/t
legt     c' = (A c + B u), window θ     √(2n+1) P_n(1 - 2s/θ), 0 <= s <= θ        near the basis / θ on the window
lagt     x' = A x + B u                 L_n(s) with weight e^{-s}                 L_n(t) e^{-t}
fourier  c' = (A c + B u), window θ     1, √2 cos 2πms/θ, √2 sin 2πms/θ           near the basis / θ on the window
======== ============================== ========================================= ============================================

A coefficient is the mean of the past times its basis function, in the measure; the past is Σ c_n p_n.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Complex128, Float, Float64, Inexact
from torch import Tensor

from ._common import check, check_positive

MEASURES = ("legs", "legt", "fourier")
"""Those whose basis lies in a window, as a function of the part of it that has passed."""


class System(NamedTuple):
    """x' = A x + B u."""

    A: Float64[Tensor, "n n"]
    B: Float64[Tensor, " n"]


class DiagonalPlusLowRank(NamedTuple):
    """A = V (Λ - P P*) V*, with V unitary and B in the same basis, V* B."""

    Lambda: Complex128[Tensor, " n"]
    P: Complex128[Tensor, " n"]
    B: Complex128[Tensor, " n"]
    V: Complex128[Tensor, "n n"]


def legs(n: int) -> System:
    """Scaled Legendre: A_nk = -√(2n+1)√(2k+1) below the diagonal, -(n+1) on it, and B_n = √(2n+1) (HiPPO, theorem 2).

    With 1/t it projects the whole past, uniformly; without, a past of weight e^{-s}.

    Raises
    ------
    TypeError
        An ``n`` that is no integer.
    ValueError
        An ``n`` below 1.

    """
    check_positive("hippo.legs", "n", n)
    b = _norms(n)
    return System(-torch.outer(b, b).tril(-1) - torch.diag(torch.arange(1.0, n + 1, dtype=torch.float64)), b)


def legt(n: int, window: float = 1.0, orthonormal: bool = True) -> System:
    """Translated Legendre, of a sliding window: A_nk = -√(2n+1)√(2k+1) (1, above the diagonal (-1)^{n-k}) / θ (HiPPO, theorem 1).

    What is called LegT has a window of 1 in one reference code and of 2 in another. ``orthonormal=False`` gives the Legendre
    memory unit: its coefficients belong to the polynomials P_n(2s/θ - 1) themselves (Voelker et al. 2019, equations 3-4). The
    input that leaves the window is taken from the coefficients, so a polynomial past of degree below n is exact.

    Raises
    ------
    TypeError
        An ``n`` that is no integer.
    ValueError
        An ``n`` below 1; a window that is not positive.

    """
    where = "hippo.legt"
    check_positive(where, "n", n)
    _check_window(where, window)
    b, signs = _norms(n), _signs(n)
    above = torch.outer(signs, signs).triu(1) + torch.ones(n, n, dtype=torch.float64).tril()
    A = -torch.outer(b, b) * above / window
    if orthonormal:
        return System(A, b / window)
    change = signs * b
    return System(change[:, None] * A / change, change * b / window)


def lagt(n: int, decay: float = 1.0) -> System:
    """Translated Laguerre: A_nk = -1 below the diagonal and -``decay`` on it, B_n = 1, with the kernel L_n(t) e^{-decay·t}.

    A decay of 1 is HiPPO's (appendix D.2, α = 0 and β = 1); of ½ its functions are orthonormal on the line, without a weight.

    Raises
    ------
    TypeError
        An ``n`` that is no integer.
    ValueError
        An ``n`` below 1.

    """
    check_positive("hippo.lagt", "n", n)
    ones = torch.ones(n, n, dtype=torch.float64)
    return System(-ones.tril(-1) - decay * torch.eye(n, dtype=torch.float64), ones[0].clone())


def fourier(n: int, window: float = 1.0) -> System:
    """Truncated Fourier, of a sliding window: a rotation less 2 p p^T, and B = 2 p, for the basis p at 0 (How to Train …, theorem 5).

    The order is 1, cos, sin, cos, …; an even n ends with a cosine. The series at the seam is the mean of the input that enters
    and the one that leaves, from which the latter is taken.

    Raises
    ------
    TypeError
        An ``n`` that is no integer.
    ValueError
        An ``n`` below 1; a window that is not positive.

    """
    where = "hippo.fourier"
    check_positive(where, "n", n)
    _check_window(where, window)
    ends = basis("fourier", n, torch.zeros((), dtype=torch.float64))
    turn = torch.zeros(n, n, dtype=torch.float64)
    for m in range(2, n, 2):
        turn[m - 1, m], turn[m, m - 1] = -torch.pi * m, torch.pi * m
    return System((turn - 2 * torch.outer(ends, ends)) / window, 2 * ends / window)


def basis(measure: str, n: int, x: Float[Tensor, "*s"]) -> Float[Tensor, "*s n"]:
    """The n functions of ``measure``, one of `MEASURES`, at the part x of the window that has passed: 0 is now, 1 its far end.

    Raises
    ------
    TypeError
        An ``n`` that is no integer; an ``x`` that is no real tensor.
    ValueError
        An unknown measure; an ``n`` below 1.

    """
    where = "hippo.basis"
    check_positive(where, "n", n)
    check(where, {"x": (x, "...")})
    if measure in ("legs", "legt"):
        return _norms(n).to(x) * legendre(n, 1 - 2 * x)
    if measure != "fourier":
        raise ValueError(f"{where}: measure must be one of {', '.join(MEASURES)}, not {measure!r}.")
    waves = torch.arange(1, n, device=x.device)
    angle = (waves + waves % 2) * (torch.pi * x.unsqueeze(-1))
    rest = torch.where(waves % 2 == 1, angle.cos(), angle.sin()) * 2**0.5
    return torch.cat([torch.ones_like(x).unsqueeze(-1), rest], -1)


def legendre(n: int, x: Inexact[Tensor, "*s"]) -> Inexact[Tensor, "*s n"]:
    """P_0(x) … P_{n-1}(x) by (k+1) P_{k+1} = (2k+1) x P_k - k P_{k-1}."""
    found = [torch.ones_like(x), x]
    for k in range(1, n - 1):
        found.append(((2 * k + 1) * x * found[k] - k * found[k - 1]) / (k + 1))
    return torch.stack(found[:n], -1)


def laguerre(n: int, x: Inexact[Tensor, "*s"]) -> Inexact[Tensor, "*s n"]:
    """L_0(x) … L_{n-1}(x) by (k+1) L_{k+1} = (2k+1-x) L_k - k L_{k-1}."""
    found = [torch.ones_like(x), 1 - x]
    for k in range(1, n - 1):
        found.append(((2 * k + 1 - x) * found[k] - k * found[k - 1]) / (k + 1))
    return torch.stack(found[:n], -1)


def project(measure: str, n: int, u: Float[Tensor, "*b l"]) -> Float[Tensor, "*b n"]:
    """The coefficients of a past of l inputs, the last of which is now, by the midpoint rule: (1/l) Σ u_j p_n, exact as l grows.

    Raises
    ------
    TypeError
        An ``n`` that is no integer; a ``u`` that is no real tensor.
    ValueError
        An unknown measure; an ``n`` below 1; no input.

    """
    where = "hippo.project"
    sizes = check(where, {"u": (u, "... l")})
    length = sizes["l"]
    check_positive(where, "the number of inputs", length)
    passed = (torch.arange(length, 0, -1, dtype=u.dtype, device=u.device) - 0.5) / length
    return u @ basis(measure, n, passed) / length


def reconstruct(measure: str, coefficients: Float[Tensor, "*b n"], x: Float[Tensor, " s"]) -> Float[Tensor, "*b s"]:
    """Σ c_n p_n(x): the past that coefficients stand for, at the parts x of the window that have passed.

    Raises
    ------
    TypeError
        Arguments that are no real tensors.
    ValueError
        An unknown measure.

    """
    where = "hippo.reconstruct"
    sizes = check(where, {"coefficients": (coefficients, "... n"), "x": (x, "s")})
    return coefficients @ basis(measure, sizes["n"], x).mT


def legs_memory(u: Float[Tensor, "b t"], n: int) -> Float[Tensor, "b t n"]:
    """The coefficients of all of the past after every input, by the bilinear rule for c' = (A c + B u)/t with steps of 1.

    c_k = (I - A/2k)⁻¹ ((I + A/2k) c_{k-1} + B u_k / k), k = 1, 2, … (HiPPO, appendix C.2); float64. The start is the solution's
    own at t = 0, a constant past of the first input, so that a constant is kept exactly; the paper's code starts from 0.

    Raises
    ------
    TypeError
        An ``n`` that is no integer; a ``u`` that is no real tensor.
    ValueError
        A wrong number of axes; an ``n`` below 1.

    """
    check("hippo.legs_memory", {"u": (u, "b t")})
    A, B = (x.to(u.device) for x in legs(n))
    one = torch.eye(n, dtype=A.dtype, device=A.device)
    u = u.to(A.dtype)
    c = torch.nn.functional.pad(u[:, :1], (0, n - 1)) if u.shape[1] else u
    found = []
    for k, u_k in enumerate(u.unbind(1), 1):
        right = c + c @ A.mT / (2 * k) + u_k.unsqueeze(-1) * B / k
        c = torch.linalg.solve_triangular(one - A / (2 * k), right.mT, upper=False).mT
        found.append(c)
    return torch.stack(found, 1) if found else u.new_zeros(u.shape[0], 0, n)


def diagonal_plus_low_rank(A: Float[Tensor, "n n"], B: Float[Tensor, " n"], P: Float[Tensor, " n"]) -> DiagonalPlusLowRank:
    """A + P Pᵀ = a I + S with S skew: A in the basis of the eigenvectors of S (S4, arXiv:2111.00396, theorem 1 and appendix C.1).

    So it is for `legs` and `lagt` with P = B/√2, and for `fourier` with P = B √(θ/2). The eigenvalues Λ are a + iω in the order
    of ω. They are found from the Hermitian -iS, so V is unitary to rounding whatever A's own eigenvectors are.

    Raises
    ------
    TypeError
        An argument that is no float64 tensor.
    ValueError
        Shapes that do not fit; an A + P Pᵀ that is not so, by more than rounding.

    """
    where = "hippo.diagonal_plus_low_rank"
    n = check(where, {"A": (A, "n n"), "B": (B, "n"), "P": (P, "n")}, (torch.float64,))["n"]
    normal = A + torch.outer(P, P)
    shift = normal.diagonal().mean()
    skew = normal - shift * torch.eye(n, dtype=A.dtype, device=A.device)
    if not bool((skew + skew.mT).abs().max() <= 8 * n * torch.finfo(A.dtype).eps * normal.abs().max()):
        raise ValueError(f"{where}: A + P Pᵀ is no multiple of the identity plus a skew-symmetric matrix.")
    frequencies, V = torch.linalg.eigh(-1j * (skew - skew.mT) / 2)
    back = V.mH
    return DiagonalPlusLowRank(shift + 1j * frequencies, back @ P.to(V), back @ B.to(V), V)


def legs_dplr(n: int) -> DiagonalPlusLowRank:
    """`legs` as diagonal plus low rank: Λ has the real part -½, and P = V* B/√2.

    Raises
    ------
    TypeError
        An ``n`` that is no integer.
    ValueError
        An ``n`` below 1.

    """
    A, B = legs(n)
    return diagonal_plus_low_rank(A, B, B / 2**0.5)


def _norms(n: int) -> Float64[Tensor, " n"]:
    return torch.arange(1, 2 * n, 2, dtype=torch.float64).sqrt()


def _signs(n: int) -> Float64[Tensor, " n"]:
    return 1.0 - 2.0 * (torch.arange(n) % 2).to(torch.float64)


def _check_window(where: str, window: float) -> None:
    if not window > 0:
        raise ValueError(f"{where}: window must be positive, not {window}.")
