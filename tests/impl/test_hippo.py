"""Projections of the past: the matrices against the integrals that they stand for, bases against SciPy, and their low-rank form."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, linalg, special

from isoform.impl import hippo

EPS = np.finfo(float).eps
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
PART = (NODES + 1) / 2
"""Where a polynomial past, or a few waves of it, is integrated exactly."""


def poly(t):
    return 0.3 * t**3 - t**2 + 0.5 * t + 0.2


def waves(t):
    return 1 + np.cos(2 * np.pi * t / 1.5) - 0.5 * np.sin(4 * np.pi * t / 1.5)


def projected(measure, n, past):
    """(1/window) ∫ past · p_n, by Gauss quadrature; ``past`` of the part of the window that has passed."""
    return (WEIGHTS / 2 * past(PART)) @ hippo.basis(measure, n, torch.tensor(PART)).numpy()


def solved(system, u, start, a, b):
    A, B = (x.numpy() for x in system)
    return integrate.solve_ivp(lambda t, y: A @ y + B * u(t), (a, b), start, rtol=1e-12, atol=1e-13).y[:, -1]


def test_legs_is_what_the_paper_says():
    A, B = hippo.legs(3)
    r3, r5, r15 = math.sqrt(3), math.sqrt(5), math.sqrt(15)
    assert torch.allclose(A, -torch.tensor([[1, 0, 0], [r3, 2, 0], [r5, r15, 3]], dtype=torch.float64), rtol=4 * EPS, atol=0)
    assert torch.allclose(B, torch.tensor([1, r3, r5], dtype=torch.float64), rtol=EPS, atol=0)
    assert np.allclose(np.sort(np.linalg.eigvals(hippo.legs(6).A.numpy())), -np.arange(6.0, 0, -1), rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_polynomials_are_scipys(n):
    """The recurrences are stable within [-1, 1], and for Laguerre at small x: errors grow like n² and n³ roundings."""
    x = np.linspace(-1, 1, 41)
    found = hippo.legendre(n, torch.tensor(x)).numpy()
    want = np.stack([special.eval_legendre(k, x) for k in range(n)], -1)
    assert np.abs(found - want).max() <= 4 * n**2 * EPS
    x = np.linspace(0, 4, 41)
    found = hippo.laguerre(n, torch.tensor(x)).numpy()
    want = np.stack([special.eval_laguerre(k, x) for k in range(n)], -1)
    assert np.abs(found - want).max() <= 16 * n**3 * EPS


@pytest.mark.parametrize("measure", hippo.MEASURES)
@pytest.mark.parametrize("n", [1, 2, 6, 7])
def test_bases_are_orthonormal(measure, n):
    p = hippo.basis(measure, n, torch.tensor(PART)).numpy()
    assert np.abs((WEIGHTS[:, None] / 2 * p).T @ p - np.eye(n)).max() <= 1e4 * EPS


def test_legs_follows_the_projection_of_all_of_the_past():
    """c' = (A c + B u)/t from the projection at t = 1 to the one at t = 2, for an input that is no polynomial."""
    system = [x.numpy() for x in hippo.legs(5)]
    at = [projected("legs", 5, lambda x, t=t: np.sin(2 * t * (1 - x))) for t in (1.0, 2.0)]
    found = integrate.solve_ivp(lambda t, c: (system[0] @ c + system[1] * np.sin(2 * t)) / t, (1, 2), at[0], rtol=1e-12, atol=1e-13)
    assert np.abs(found.y[:, -1] - at[1]).max() <= 1e-9, "the solver's tolerance, times a thousand"
    wrong = integrate.solve_ivp(lambda t, c: system[0] @ c + system[1] * np.sin(2 * t), (1, 2), at[0], rtol=1e-12, atol=1e-13)
    assert np.abs(wrong.y[:, -1] - at[1]).max() > 1e-2, "without 1/t it is another system"


@pytest.mark.parametrize(("measure", "system", "past"), [("legt", hippo.legt(4, 1.5), poly), ("fourier", hippo.fourier(6, 1.5), waves)])
def test_a_window_is_followed_where_the_basis_reproduces_it(measure, system, past):
    n = len(system.B)
    at = [projected(measure, n, lambda x, t=t: past(t - 1.5 * x)) for t in (2.0, 3.0)]
    assert np.abs(solved(system, past, at[0], 2.0, 3.0) - at[1]).max() <= 1e-9
    other = [projected(measure, n, lambda x, t=t: np.exp(t - 1.5 * x)) for t in (2.0, 3.0)]
    assert np.abs(solved(system, np.exp, other[0], 2.0, 3.0) - other[1]).max() > 1e-4, "what leaves is not reproduced"


def test_two_conventions_of_legt_and_the_legendre_memory_unit():
    """A window of 2 halves A and B. The memory unit's coefficients are those of P_n(2s/θ - 1): a change of signs and sizes."""
    (A, B), (half_A, half_B) = hippo.legt(5), hippo.legt(5, 2.0)
    assert torch.equal(half_A, A / 2)
    assert torch.equal(half_B, B / 2)
    n = np.arange(5)
    unit_A, unit_B = (x.numpy() for x in hippo.legt(5, orthonormal=False))
    want = (2 * n[:, None] + 1) * np.where(n[:, None] < n, -1.0, (-1.0) ** (n[:, None] - n + 1))
    assert np.abs(unit_A - want).max() <= 64 * EPS
    assert np.abs(unit_B - (-1.0) ** n * (2 * n + 1)).max() <= 64 * EPS


@pytest.mark.parametrize("t", [0.0, 0.1, 0.7, 3.0])
def test_kernels_of_legs_and_lagt(t):
    """e^{tA} B by SciPy is the basis in e^{-t}, or Laguerre's polynomials, with their weight; 6² roundings of ‖A‖ t ≈ 60."""
    A, B = (x.numpy() for x in hippo.legs(6))
    want = hippo.basis("legs", 6, torch.tensor(-math.expm1(-t), dtype=torch.float64)).numpy() * math.exp(-t)
    assert np.abs(linalg.expm(t * A) @ B - want).max() <= 36 * 60 * EPS
    for decay in (1.0, 0.5):
        A, B = (x.numpy() for x in hippo.lagt(6, decay))
        want = hippo.laguerre(6, torch.tensor(t, dtype=torch.float64)).numpy() * math.exp(-decay * t)
        assert np.abs(linalg.expm(t * A) @ B - want).max() <= 36 * 60 * EPS


def test_legt_reads_a_delay():
    """C(s - A)⁻¹B with C = p(1) is a Padé approximant [n-1/n] of e^{-θs}: the Taylor series agree in 2n terms."""
    A, B = (x.numpy() for x in hippo.legt(4, 0.5))
    ends = hippo.basis("legt", 4, torch.ones((), dtype=torch.float64)).numpy()
    # of -C A⁻¹ (I - s A⁻¹)⁻¹ B the coefficient of s^k is -C A^{-k-1} B
    inverse = np.linalg.inv(A)
    found = [-ends @ np.linalg.matrix_power(inverse, k + 1) @ B for k in range(9)]
    want = [(-0.5) ** k / math.factorial(k) for k in range(9)]
    size = np.linalg.norm(ends) * np.linalg.norm(B) * np.linalg.norm(inverse) ** np.arange(1, 10)
    off = np.abs(np.array(found) - want)
    assert (off[:8] <= 64 * EPS * size[:8]).all()
    assert off[8] > 1e3 * EPS * size[8]


@pytest.mark.parametrize("n", [1, 2, 5, 64])
def test_legs_is_diagonal_plus_low_rank(n):
    """An eigendecomposition of a Hermitian matrix is backward stable: n roundings of its norm, with n² entries to sum."""
    A, B = hippo.legs(n)
    found = hippo.legs_dplr(n)
    norm = float(torch.linalg.matrix_norm(A, 2))
    back = found.V @ (torch.diag(found.Lambda) - torch.outer(found.P, found.P.conj())) @ found.V.mH
    assert (back - A).abs().max() <= 8 * n * EPS * norm
    assert (found.V @ found.B - B).abs().max() <= 8 * n * EPS * float(B.norm())
    assert (found.Lambda.real + 0.5).abs().max() <= 8 * n * EPS
    assert (found.V.mH @ found.V - torch.eye(n)).abs().max() <= 8 * n * EPS
    assert (found.Lambda.imag + found.Lambda.imag.flip(0)).abs().max() <= 8 * n * EPS * norm, "conjugate pairs"


def test_others_are_too_and_legt_is_not():
    for A, B, P in ((*hippo.lagt(5), 0.5), (*hippo.lagt(4, 0.5), 0.5), (*hippo.fourier(7, 2.0), 1.0)):
        found = hippo.diagonal_plus_low_rank(A, B, B * P**0.5)
        back = found.V @ (torch.diag(found.Lambda) - torch.outer(found.P, found.P.conj())) @ found.V.mH
        assert (back - A).abs().max() <= 8 * len(B) * EPS * float(torch.linalg.matrix_norm(A, 2))
    A, B = hippo.legt(4)
    with pytest.raises(ValueError, match="no multiple of the identity plus a skew-symmetric matrix"):
        hippo.diagonal_plus_low_rank(A, B, B / 2**0.5)


@pytest.mark.parametrize("measure", hippo.MEASURES)
def test_what_the_basis_holds_comes_back(measure):
    """By the midpoint rule: (1/l)²/24 of the second derivative of a product with the basis, and its own error in the coefficients."""
    x = (torch.arange(4000, 0, -1).double() - 0.5) / 4000
    past = torch.cos(2 * torch.pi * x) if measure == "fourier" else x**3 - x
    c = hippo.project(measure, 5, past[None])
    back = hippo.reconstruct(measure, c, x)[0]
    assert (back - past).abs().max() <= 2e3 / 4000**2
    assert hippo.reconstruct(measure, hippo.project(measure, 1, past[None]), x)[0].std() <= 1e-12, "one function is a constant"


def test_online_projection_of_a_constant_is_exact_and_of_a_wave_converges():
    constant = hippo.legs_memory(torch.full((2, 30), 3.0), 4)
    assert (constant - torch.tensor([3.0, 0, 0, 0])).abs().max() <= 30 * 16 * EPS * 3
    off = []
    for length in (400, 800, 1600):
        u = torch.sin(6 * torch.arange(1, length + 1).double() / length)[None]
        exact = projected("legs", 6, lambda x: np.sin(6 * (1 - x)))
        off.append(float((hippo.legs_memory(u, 6)[0, -1] - torch.tensor(exact)).abs().max()))
    slopes = [math.log2(a / b) for a, b in zip(off, off[1:])]
    assert min(slopes) >= 0.9, "of the first order at least, as inputs are read at one end of a step"
    assert hippo.legs_memory(torch.ones(2, 0), 3).shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: hippo.legs(0), ValueError, "hippo.legs: n must be at least 1, not 0"),
        (lambda: hippo.legt(2.0), TypeError, "hippo.legt: n must be an int, not float"),
        (lambda: hippo.legt(2, -1.0), ValueError, "hippo.legt: window must be positive, not -1.0"),
        (lambda: hippo.fourier(2, math.nan), ValueError, "hippo.fourier: window must be positive, not nan"),
        (lambda: hippo.basis("lagt", 2, torch.zeros(1)), ValueError, "measure must be one of legs, legt, fourier, not 'lagt'"),
        (lambda: hippo.project("legs", 2, torch.ones(3, 0)), ValueError, "the number of inputs must be at least 1"),
        (lambda: hippo.diagonal_plus_low_rank(torch.ones(2, 2), torch.ones(2), torch.ones(2)), TypeError, "A has dtype torch.float32"),
    ],
)
def test_a_wrong_argument_is_named(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
