"""Discretisations at the edges: singular A, no step, stiff and defective systems, an eigenvalue at 2/Δ."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import signal

from isoform.impl import discretization
from isoform.impl.discretization import bilinear, euler, gbt, phi1, zoh

EPS = torch.finfo(torch.float64).eps
FORMS = [zoh, bilinear, euler]


def exact_phi1(z, derivative=False):
    """Σ zⁿ/(n+1)!, or Σ n zⁿ⁻¹/(n+1)!, of the very float z, in rational numbers; 200 terms leave less than 2⁻²⁰⁰ at |z| <= 45."""
    z, total, power, factorial = Fraction(z), Fraction(0), Fraction(1), 1
    for n in range(200):
        factorial *= n + 1
        if not derivative:
            total += power / factorial
        elif n + 2 <= 200:
            total += (n + 1) * power / (factorial * (n + 2))
        power *= z
    return total


@pytest.mark.parametrize("z", [0.0, 1e-30, -1e-16, 1e-8, -1e-3, 0.25, -0.4999999, 0.5, 0.5000001, -0.5000001, 1.0, -3.0, 10.0, -40.0])
def test_phi1_and_its_derivative(z):
    """Away from 0 the derivative is (e^z - φ₁)/z, which cancels by 1/(|z| φ₁'/φ₁) <= 8 at worst: 8 · 5 roundings."""
    x = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    y = phi1(x)
    (slope,) = torch.autograd.grad(y, x)
    want, want_slope = exact_phi1(z), exact_phi1(z, derivative=True)
    assert abs(Fraction(y.item()) - want) <= 4 * Fraction(EPS) * want
    assert abs(Fraction(slope.item()) - want_slope) <= 40 * Fraction(EPS) * want_slope


def test_phi1_far_out():
    far = torch.tensor([-1e4, -1e300, -math.inf], dtype=torch.float64, requires_grad=True)
    y = phi1(far)
    assert torch.equal(y, torch.tensor([1e-4, 1e-300, 0.0], dtype=torch.float64))
    (slope,) = torch.autograd.grad(y.sum(), far)
    assert slope.isfinite().all()


@pytest.mark.parametrize("point", [0.0, 1e-9, 0.49, 0.51, -2.0])
def test_phi1_has_two_derivatives_real_and_complex(point):
    real = torch.tensor([point], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(phi1, real)
    complex_ = torch.tensor([point * (1 + 1j), point * 1j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(phi1, complex_)


def test_zoh_of_a_nilpotent_and_of_a_zero_matrix_is_its_finite_series():
    """Of A = shift: Ā = I + ΔA + Δ²A²/2, B̄ = ΔB + Δ²AB/2 + Δ³A²B/6; with Δ = 1/2 and B = 48 e₃ this is dyadic."""
    shift = torch.diag(torch.ones(2), 1).double()
    a, b = zoh(shift, torch.tensor([0.0, 0.0, 48.0]).double(), 0.5)
    want_a = torch.tensor([[1, 0.5, 0.125], [0, 1, 0.5], [0, 0, 1]]).double()
    want_b = torch.tensor([1.0, 6.0, 24.0]).double()
    assert (a - want_a).abs().max() <= 4 * EPS
    assert (b - want_b).abs().max() <= 4 * EPS * 24
    a, b = zoh(torch.zeros(2, 2).double(), torch.tensor([1.0, -3.0]).double(), 0.25)
    assert torch.equal(a, torch.eye(2).double())
    assert torch.equal(b, torch.tensor([0.25, -0.75]).double())
    a, b = zoh(torch.zeros(2).double(), torch.tensor([1.0, -3.0]).double(), 0.25, diagonal=True)
    assert torch.equal(a, torch.ones(2).double())
    assert torch.equal(b, torch.tensor([0.25, -0.75]).double())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("diagonal", [False, True])
def test_no_step_is_the_identity(form, diagonal):
    matrix = torch.randn(3, generator=torch.Generator().manual_seed(0)).double()
    a, b = form(matrix if diagonal else torch.outer(matrix, matrix), matrix, torch.zeros(2), diagonal)
    assert torch.equal(a, torch.ones(2, 3).double() if diagonal else torch.eye(3).double().expand(2, 3, 3))
    assert torch.equal(b, torch.zeros(2, 3).double())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_dense_is_diagonal_in_the_eigenbasis(form, dtype):
    """A = diag; the matrix exponential squares ⌈log2 ‖ΔA‖⌉ <= 5 times, doubling an error of a few eps each."""
    z = torch.tensor([-20.0, -1.0, 0.0, 0.5]).to(dtype)
    if dtype.is_complex:
        z = z + torch.tensor([3j, 0.0, 2j, -1j])
    B = torch.tensor([1.0, -2.0, 3.0, 1e6]).to(dtype)
    for delta in (1e-8, 1e-3, 0.7):
        a, b = form(torch.diag(z), B, delta)
        c, d = form(z, B, delta, diagonal=True)
        assert (a - torch.diag(c)).abs().max() <= 500 * EPS
        assert ((b - d).abs() <= 500 * EPS * delta * B.abs()).all() or form is zoh
        assert (b - d).abs().max() <= 500 * EPS * delta * 1e6


def test_zoh_of_a_stiff_system():
    """e^{-1e4} is 0 in float64, and the input's part is 1/1e4; the slow and the integrating mode are not disturbed.

    Fourteen squarings double the error of e^{small} fourteen times: 2¹⁴ eps.
    """
    a, b = zoh(torch.diag(torch.tensor([-1e4, -1.0, 0.0], dtype=torch.float64)), torch.ones(3, dtype=torch.float64), 1.0)
    want = torch.tensor([0.0, math.exp(-1), 1.0], dtype=torch.float64)
    assert (a - torch.diag(want)).abs().max() <= 2**14 * EPS
    assert (b - torch.tensor([1e-4, -math.expm1(-1), 1.0], dtype=torch.float64)).abs().max() <= 2**14 * EPS
    c, d = zoh(torch.tensor([-1e4, -1.0, 0.0], dtype=torch.float64), torch.ones(3, dtype=torch.float64), 1.0, diagonal=True)
    assert (c - want).abs().max() <= EPS
    assert (d - torch.tensor([1e-4, -math.expm1(-1), 1.0], dtype=torch.float64)).abs().max() <= EPS


def test_a_large_input_matrix_costs_no_digits_of_the_state_matrix():
    matrix = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double()
    a, b = zoh(matrix, torch.tensor([1.0, 0.0]).double(), 0.5)
    for factor in (2.0**60, 2.0**-60):
        c, d = zoh(matrix, torch.tensor([factor, 0.0]).double(), 0.5)
        assert torch.equal(c, a)
        assert torch.equal(d, factor * b)


def test_gbt_has_euler_bilinear_and_backward_euler_in_it(whole):
    A, B = whole(3, 4, 4), whole(3, 4)
    delta = torch.tensor([0.25, 0.5, 0.125]).double()
    assert all(torch.equal(x, y) for x, y in zip(gbt(A, B, delta, 0), euler(A, B, delta), strict=True))
    assert all(torch.equal(x, y) for x, y in zip(gbt(A, B, delta, 0.5), bilinear(A, B, delta), strict=True))
    a, b = euler(A, B, delta)
    assert torch.equal(a, torch.eye(4).double() + delta[:, None, None] * A)
    assert torch.equal(b, delta[:, None] * B)
    for minus, diagonal in ((torch.tensor([-3.0]), True), (torch.tensor([[-3.0]]), False)):
        for alpha, pair in ((1.0, (0.25, 0.25)), (0.0, (-2.0, 1.0)), (1 / 3, (-0.5, 0.5))):
            a, b = gbt(minus.double(), torch.ones(1).double(), 1.0, alpha, diagonal)
            assert (a.item(), b.item()) == pair
    a, b = bilinear(torch.tensor([[-2.0]]).double(), torch.ones(1).double(), 1.0)
    assert (a.item(), b.item()) == (0.0, 0.5)


def test_an_eigenvalue_at_two_over_delta_is_never_finite_and_stays_in_its_batch():
    A = torch.stack([torch.diag(torch.tensor([2.0, 1.0])), torch.eye(2)])
    a, b = bilinear(A, torch.ones(2), 1.0)
    assert a[0].isnan().all()
    assert b[0].isnan().all()
    assert torch.equal(a[1], 3 * torch.eye(2))
    assert torch.equal(b[1], torch.full((2,), 2.0))
    a, b = bilinear(torch.tensor([2.0, 1.0]), torch.ones(2), 1.0, diagonal=True)
    assert a.isfinite().tolist() == b.isfinite().tolist() == [False, True]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("matrix", [0.0, 1.0])
def test_gradients(form, diagonal, dtype, matrix, whole):
    A = (matrix * whole(*(2,) if diagonal else (2, 2), low=1).to(dtype)).requires_grad_()
    B = whole(2, low=1).to(dtype).requires_grad_()
    for delta in (0.0, 0.3):
        step = torch.tensor(delta, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda *x: form(*x, diagonal=diagonal), (A, B, step))


@pytest.mark.parametrize("form", FORMS)
def test_leading_axes_broadcast(form, whole):
    A, B, delta = whole(2, 1, 3, 3), whole(4, 3), torch.rand(2, 4, generator=torch.Generator().manual_seed(0)).double() / 8
    a, b = form(A, B, delta)
    assert (a.shape, b.shape) == ((2, 4, 3, 3), (2, 4, 3))
    for i in range(2):
        for j in range(4):
            c, d = form(A[i, 0], B[j], delta[i, j])
            assert (a[i, j] - c).abs().max() <= 100 * EPS * c.abs().max(), "another batch shape may round otherwise"
            assert (b[i, j] - d).abs().max() <= 100 * EPS * (d.abs().max() + c.abs().max())
    a, b = form(whole(2, 1, 3), B, delta, diagonal=True)
    assert a.shape == b.shape == (2, 4, 3)
    assert form(torch.ones(0, 2, 2), torch.ones(2), 1.0)[1].shape == (0, 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("diagonal", [False, True])
def test_dtypes_and_inputs(form, diagonal):
    for given, want in [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.complex64, torch.complex64)]:
        A, B = (torch.ones(2) if diagonal else torch.eye(2)).to(given), torch.ones(2, dtype=given)
        results = form(A, B, torch.tensor(0.5), diagonal)
        assert [x.dtype for x in results] == [want, want]
        for x in results:
            x.zero_()
        assert A.sum() == B.sum() == 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("diagonal", [False, True])
def test_compiles_into_one_graph(form, diagonal, whole):
    torch.compiler.reset()
    A, B, delta = whole(*(2, 3) if diagonal else (2, 3, 3)), whole(3), torch.tensor([0.125, 0.5]).double()
    compiled = torch.compile(form, fullgraph=True, backend="aot_eager")
    assert all(torch.equal(x, y) for x, y in zip(compiled(A, B, delta, diagonal), form(A, B, delta, diagonal), strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((torch.ones(3), torch.ones(3), 1.0), ValueError, r"A has shape \(3,\); it needs the axes \(..., n, n\)"),
        ((torch.ones(3, 2), torch.ones(3), 1.0), ValueError, r"A has shape \(3, 2\); the other arguments need \(n=3, n=3\)"),
        ((torch.ones(3, 3), torch.ones(2), 1.0), ValueError, r"B has shape \(2,\); the other arguments need \(n=3,\)"),
        ((torch.ones(3, 3), torch.ones(3), "1"), TypeError, "delta must be a real number or tensor, not str"),
        ((torch.ones(3, 3), torch.ones(3), torch.ones(()).cfloat()), TypeError, "delta has dtype torch.complex64"),
        ((torch.ones(3, 3).int(), torch.ones(3), 1.0), TypeError, "A has dtype torch.int32"),
        ((torch.ones(2, 3, 3), torch.ones(3), torch.ones(4)), ValueError, r"broadcast together; they are A \(2,\), B \(\), delta \(4,\)"),
    ],
)
def test_a_wrong_argument_is_named(form, arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        form(*arguments)


@pytest.mark.parametrize("alpha", [0.25, 0.75, 1.0])
def test_gbt_is_scipys(alpha):
    """Dyadic entries; a solve of 3 unknowns costs at most 3³ roundings of a size that the condition number multiplies."""
    a = torch.tensor([[-1.0, 0.5, 0.0], [0.25, -0.5, 1.0], [0.0, -1.0, -0.25]]).double()
    b, delta = torch.tensor([1.0, -2.0, 0.5]).double(), 0.25
    system = (a.numpy(), b[:, None].numpy(), np.zeros((1, 3)), np.zeros((1, 1)))
    want_a, want_b, *_ = signal.cont2discrete(system, delta, method="gbt", alpha=alpha)
    found_a, found_b = gbt(a, b, delta, alpha)
    bound = 27 * EPS * float(torch.linalg.cond(torch.eye(3).double() - alpha * delta * a))
    assert np.abs(found_a.numpy() - want_a).max() <= bound * np.abs(want_a).max()
    assert np.abs(found_b.numpy() - want_b[:, 0]).max() <= bound * np.abs(want_b).max()


def test_alpha_is_a_number_between_0_and_1():
    for alpha in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\]"):
            gbt(torch.ones(1, 1), torch.ones(1), 1.0, alpha)
    with pytest.raises(TypeError, match="alpha must be a number, not Tensor"):
        gbt(torch.ones(1, 1), torch.ones(1), 1.0, torch.tensor(0.5))
    assert set(discretization.FORMS) == {"zoh", "bilinear", "euler"}
