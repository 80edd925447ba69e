"""Discretisations at the edges: singular A, no step, stiff and defective systems, an eigenvalue at 2/Δ."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import signal

from isoform.impl import discretization
from isoform.impl.discretization import backward_euler, bilinear, euler, foh, gbt, impulse, phi1, phi2, zoh

EPS = torch.finfo(torch.float64).eps
FORMS = [zoh, foh, impulse, bilinear, euler, backward_euler]
EXPONENTIALS = [zoh, foh, impulse]
PHIS = {phi1: 1, phi2: 2}


def columns(b, n=3):
    """B̄ with an axis for the inputs that it reads."""
    return b if b.shape[-1] == 2 and b.ndim > 1 and b.shape[-2] == n else b.unsqueeze(-1)


def exact_phi(order, z, derivative=False):
    """Σ zⁿ/(n+order)!, or Σ n zⁿ⁻¹/(n+order)!, of the very float z, in rational numbers; 200 terms leave less than 2⁻²⁰⁰ at |z| <= 45."""
    z, total, power = Fraction(z), Fraction(0), Fraction(1)
    for n in range(200):
        total += (n + 1) * power / math.factorial(n + 1 + order) if derivative else power / math.factorial(n + order)
        power *= z
    return total


@pytest.mark.parametrize(
    "z", [0.0, 1e-30, -1e-16, 1e-8, -1e-3, 0.25, -0.4999999, 0.5, 0.5000001, -0.5000001, 1.0, -1.0001, -3.0, 10.0, -40.0]
)
@pytest.mark.parametrize("phi", PHIS)
def test_phi_and_its_derivative(phi, z):
    """Away from 0 the derivative of φ₁ is (e^z - φ₁)/z, which cancels by 1/(|z| φ₁'/φ₁) <= 8 at worst: 8 · 5 roundings.

    That of φ₂ is (φ₁ - 2 φ₂)/z, and cancels at |z| > 1 by 1/(|z| φ₂'/φ₁) <= 6.
    """
    x = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    y = phi(x)
    (slope,) = torch.autograd.grad(y, x)
    want, want_slope = exact_phi(PHIS[phi], z), exact_phi(PHIS[phi], z, derivative=True)
    assert abs(Fraction(y.item()) - want) <= 4 * Fraction(EPS) * want
    assert abs(Fraction(slope.item()) - want_slope) <= 40 * Fraction(EPS) * want_slope


def test_phi1_far_out():
    far = torch.tensor([-1e4, -1e300, -math.inf], dtype=torch.float64, requires_grad=True)
    y = phi1(far)
    assert torch.equal(y, torch.tensor([1e-4, 1e-300, 0.0], dtype=torch.float64))
    (slope,) = torch.autograd.grad(y.sum(), far)
    assert slope.isfinite().all()


@pytest.mark.parametrize("point", [0.0, 1e-9, 0.49, 0.51, 0.99, 1.01, -2.0])
@pytest.mark.parametrize("phi", PHIS)
def test_phi_has_two_derivatives_real_and_complex(phi, point):
    real = torch.tensor([point], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(phi, real)
    complex_ = torch.tensor([point * (1 + 1j), point * 1j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(phi, complex_)


def test_a_first_order_hold_of_nilpotent_and_zero_matrices_is_its_finite_series():
    """Of A = shift and Δ = ½: φ₂ ΔB = ½ ΔB + ΔA ΔB/6 + (ΔA)² ΔB/24, and the drive at the start is φ₁ ΔB less that."""
    shift = torch.diag(torch.ones(2), 1).double()
    a, b = foh(shift, torch.tensor([0.0, 0.0, 48.0]).double(), 0.5)
    rising, held = torch.tensor([0.25, 2.0, 12.0]).double(), torch.tensor([1.0, 6.0, 24.0]).double()
    assert torch.equal(a, zoh(shift, held, 0.5)[0]) or (a - zoh(shift, held, 0.5)[0]).abs().max() <= 4 * EPS
    assert (b[:, 1] - rising).abs().max() <= 4 * EPS * 24
    assert (b[:, 0] - (held - rising)).abs().max() <= 4 * EPS * 24
    for diagonal in (False, True):
        a, b = foh(torch.zeros(2, *(() if diagonal else (2,))).double(), torch.tensor([1.0, -3.0]).double(), 0.25, diagonal)
        assert torch.equal(b, torch.tensor([[0.125, 0.125], [-0.375, -0.375]]).double())


def test_a_first_order_hold_far_out():
    """φ₂ ≈ -1/z - 1/z² and φ₁ - φ₂ ≈ 1/z², without the digits of the larger one."""
    _, b = foh(torch.tensor([-1e4, -1e9], dtype=torch.float64), torch.ones(2).double(), 1.0, diagonal=True)
    want = torch.tensor([[1e-8, 1e-4 - 1e-8], [1e-18, 1e-9 - 1e-18]], dtype=torch.float64)
    assert ((b - want).abs() <= 4 * EPS * want).all()


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
    assert torch.equal(b, torch.zeros(2, 3, *((2,) if form is foh else ())).double())


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
        b, d = columns(b, 4), columns(d, 4)
        assert ((b - d).abs() <= 500 * EPS * delta * B.abs()[:, None]).all() or form in EXPONENTIALS
        assert (b - d).abs().max() <= 500 * EPS * delta * 1e6


@pytest.mark.parametrize("form", EXPONENTIALS)
@pytest.mark.parametrize("drive", [0.0, 1.0])
def test_one_small_rotation(form, drive):
    """Where torch's own exponential of one matrix of this norm is off by 8e-11; here, a few roundings in 4 dimensions."""
    angle = 0.04
    a, _ = form(torch.tensor([[0.0, -angle], [angle, 0.0]], dtype=torch.float64), torch.full((2,), drive).double(), 1.0)
    want = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64)
    assert (a - want).abs().max() <= 16 * EPS


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
    assert all(torch.equal(x, y) for x, y in zip(gbt(A, B, delta, 1), backward_euler(A, B, delta), strict=True))
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
    more = (2,) if form is foh else ()
    assert (a.shape, b.shape) == ((2, 4, 3, 3), (2, 4, 3, *more))
    for i in range(2):
        for j in range(4):
            c, d = form(A[i, 0], B[j], delta[i, j])
            assert (a[i, j] - c).abs().max() <= 100 * EPS * c.abs().max(), "another batch shape may round otherwise"
            assert (b[i, j] - d).abs().max() <= 100 * EPS * (d.abs().max() + c.abs().max())
    a, b = form(whole(2, 1, 3), B, delta, diagonal=True)
    assert (a.shape, b.shape) == ((2, 4, 3), (2, 4, 3, *more))
    assert form(torch.ones(0, 2, 2), torch.ones(2), 1.0)[1].shape == (0, 2, *more)


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
    for x, y in zip(compiled(A, B, delta, diagonal), form(A, B, delta, diagonal), strict=True):
        assert torch.equal(x, y) or (torch.equal(x.isfinite(), y.isfinite()) and torch.equal(x.nan_to_num(), y.nan_to_num()))


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
    assert set(discretization.FORMS) == {"zoh", "foh", "impulse", "bilinear", "euler", "backward-euler"}


def sampled(form, u, length, steps):
    """The last state of x' = A x + B u(t) at t = length, from x = 0, by the rule with u at the end of each step."""
    a, b = form(A, B, length / steps)
    x = torch.zeros(2).double()
    for k in range(steps):
        ends = u((k + torch.arange(2).double()) * length / steps)
        x = a @ x + (b @ ends if b.ndim == 2 else b * ends[1])
    return x


A = torch.tensor([[-0.5, 2.0], [-2.0, -0.25]]).double()
B = torch.tensor([1.0, -0.5]).double()


def averaged(A, B, delta):
    """The trapezoid rule: the bilinear pair with the mean of the inputs at both ends."""
    a, b = bilinear(A, B, delta)
    return a, torch.stack([b, b], -1) / 2


@pytest.mark.parametrize(
    ("form", "order"),
    [(zoh, 1), (foh, 2), (impulse, 1), (bilinear, 1), (averaged, 2), (euler, 1), (backward_euler, 1)],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_the_order_of_accuracy_on_a_smooth_input(form, order):
    """The error at t = 2 for u(t) = sin t, beside the solution of the system that has the input in it: x'= Ax + B s, s' = c, c' = -s.

    Halving the step divides it by 2^order; the slope between 256 and 512 steps is off by a term of the order of the step itself.
    """
    whole = torch.zeros(4, 4).double()
    whole[:2, :2], whole[:2, 2], whole[2, 3], whole[3, 2] = A, B, 1.0, -1.0
    exact = torch.linalg.matrix_exp(2 * whole)[:2, 3]
    errors = [float((sampled(form, torch.sin, 2.0, n) - exact).norm()) for n in (256, 512)]
    assert abs(math.log2(errors[0] / errors[1]) - order) <= 8 * 2.0 / 256


@pytest.mark.parametrize(("form", "order"), [(bilinear, 2), (euler, 1), (backward_euler, 1)])
def test_the_order_of_accuracy_on_a_constant_input(form, order):
    exact, last = zoh(A, B, 2.0)[1], []
    for n in (256, 512):
        last.append(float((sampled(form, torch.ones_like, 2.0, n) - exact).norm()))
    assert abs(math.log2(last[0] / last[1]) - order) <= 8 * 2.0 / 256


@pytest.mark.parametrize("method", ["gbt", "bilinear", "euler", "backward_diff", "zoh", "foh", "impulse"])
def test_every_method_of_scipy_has_our_transfer_function(method):
    """SciPy keeps the textbook index and changes C and D with some methods: H(ζ) = C (ζ - A)⁻¹ B + D is what compares.

    Ours is ζ C (ζ - Ā)⁻¹ B̄ at z⁻¹ = 1/ζ; a first-order hold reads u_{k-1} too. Bilinear and generalised bilinear systems of SciPy
    differ by α + (1-α)/ζ (`discretization/gbt-vs-scipy`), that is by where the input is sampled.
    """
    b, c, delta = B.numpy()[:, None], np.array([[1.0, -2.0]]), 0.5
    alpha = {"gbt": 0.25, "bilinear": 0.5, "euler": 0.0, "backward_diff": 1.0}.get(method)
    sa, sb, sc, sd, _ = signal.cont2discrete(
        (A.numpy(), b, c, np.zeros((1, 1))), delta, method=method, alpha=alpha if method == "gbt" else None
    )
    form = {"zoh": zoh, "foh": foh, "impulse": impulse}.get(method, lambda A, B, delta: gbt(A, B, delta, alpha))
    own_a, own_b = (x.numpy() for x in form(A, B, delta))
    for zeta in 2 * np.exp(1j * np.array([0.3, 1.0, 2.5])):
        scipys = (sc @ np.linalg.solve(zeta * np.eye(2) - sa, sb) + sd)[0, 0]
        drive = own_b @ [1 / zeta, 1] if method == "foh" else own_b
        ours = (zeta * c @ np.linalg.solve(zeta * np.eye(2) - own_a, drive))[0]
        adapter = 1 / zeta if method == "zoh" else 1.0 if alpha is None else alpha + (1 - alpha) / zeta
        assert abs(scipys - adapter * ours) <= 100 * EPS * abs(ours)
