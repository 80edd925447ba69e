"""Structured state spaces: kernels against powers, the node at -1, aliases, gradients, initialisations."""

import math

import numpy as np
import pytest
import torch
from scipy import signal

from isoform.impl import discretization, hippo, s4, state_space
from isoform.impl.s4 import call, diagonal, low_rank

EPS = torch.finfo(torch.float64).eps
LENGTHS = [1, 2, 3, 4, 7, 8, 33, 64]


def parameters(n=4, d=2, dtype=torch.complex128, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    pole = -0.25 - torch.rand(d, n, generator=generator, dtype=torch.float64)
    if dtype.is_complex:
        pole = pole + 4j * torch.rand(d, n, generator=generator, dtype=torch.float64)
    delta = 0.1 + 0.4 * torch.rand(d, generator=generator, dtype=torch.float64)
    return {"Lambda": pole, "P": draw(d, n) / 2, "B": draw(d, n), "C": draw(d, n), "delta": delta}


def dense(Lambda, P, B, C, delta):
    """Ā and B̄ of every channel by the bilinear rule for matrices."""
    A = torch.diag_embed(Lambda) - P.unsqueeze(-1) * P.conj().unsqueeze(-2)
    return discretization.bilinear(A, B, delta)


def powers(Abar, Bbar, C, length):
    """Re(C Ā^l B̄), one power after the other."""
    found, x = [], Bbar
    for _ in range(length):
        found.append((C * x).sum(-1).real)
        x = (Abar @ x.unsqueeze(-1)).squeeze(-1)
    return torch.stack(found, -1)


def test_the_steps_in_o_of_n_are_those_of_the_dense_matrix():
    given = parameters()
    u, state = torch.randn(3, 2).double(), torch.randn(3, 2, 4).to(torch.complex128)
    Abar, Bbar = dense(**given)
    y, new = low_rank.step(u, **given, state=state)
    want = torch.einsum("dij,bdj->bdi", Abar, state) + u.unsqueeze(-1) * Bbar
    size = state.abs().max() + u.abs().max()
    assert (new - want).abs().max() <= 64 * EPS * size, "4 states, each term of a Woodbury product bounded by the state"
    assert (y - (given["C"] * want).sum(-1).real).abs().max() <= 256 * EPS * size * given["C"].abs().max()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_the_kernel_at_roots_of_unity_is_that_of_the_powers(length, dtype):
    """C̃ loses a factor of 1/(length Δ|λ|) <= 1/(0.1 · 0.25 · length) to its difference; n = 4 terms a sum."""
    given = parameters(dtype=dtype)
    want = powers(*dense(**given), given["C"], length)
    found = low_rank.kernel(**given, length=length)
    size = given["C"].abs().amax() * given["B"].abs().amax()
    assert found.shape == (2, length)
    assert (found - want).abs().max() <= 40 * 64 * EPS * size


def test_the_node_at_minus_one_is_half_of_delta_c_b():
    """Even lengths have it. There Λ and P do not matter: the transform of the kernel is C̃ ΔB/2."""
    given = parameters(d=1)
    length = 8
    Abar, Bbar = dense(**given)
    x = call.enter(
        "", torch.zeros(1, 1).double(), "b d", *(given[n] for n in ("Lambda", "P", "B", "C")), None, given["delta"], None, "state"
    )
    kernel = torch.stack([given["C"][0] @ torch.matrix_power(Abar[0], l) @ Bbar[0] for l in range(length)])
    at = torch.fft.fft(kernel)[length // 2]
    row = given["C"] - low_rank._row_power(Abar, given["C"], length)
    assert (at - (row * given["B"]).sum() * given["delta"][0] / 2).abs() <= 256 * EPS * kernel.abs().sum()
    assert low_rank._nodes(x, row, (x.h.unsqueeze(-1) * x.B).unsqueeze(0), length).isfinite().all()


def test_without_the_truncation_all_periods_add_up(monkeypatch):
    given = parameters()
    true = low_rank.kernel(**given, length=8)
    monkeypatch.setattr(low_rank, "_row_power", lambda a, row, count: torch.zeros_like(row))
    aliased = low_rank.kernel(**given, length=8)
    Abar, Bbar = dense(**given)
    added = torch.linalg.solve(torch.eye(4) - torch.matrix_power(Abar, 8), Bbar)
    assert (aliased - powers(Abar, added, given["C"], 8)).abs().max() <= 1e4 * EPS * true.abs().max()
    assert (aliased - true).abs().max() > 0.01


@pytest.mark.parametrize("form", [*s4.FORMS["s4"], *s4.FORMS["s4d"]], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("length", [1, 5])
def test_gradients(form, dtype, length):
    given = parameters(n=2, d=2, dtype=dtype)
    if form in s4.FORMS["s4d"]:
        del given["P"]
    delta = given.pop("delta")
    u, D, state = torch.randn(2, 2, length).double(), torch.randn(2).double(), torch.randn(2, 2, 2).to(dtype)
    leaves = [x.clone().requires_grad_() for x in (u, *given.values(), D, delta, state)]
    assert torch.autograd.gradcheck(lambda *x: form(*x, output_final_state=True), leaves)


@pytest.mark.parametrize("rule", diagonal.RULES)
@pytest.mark.parametrize("form", s4.FORMS["s4d"], ids=lambda f: f.__name__)
def test_a_diagonal_system_is_the_time_invariant_one(form, rule):
    given = parameters()
    del given["P"]
    u, state = torch.randn(3, 2, 21).double(), torch.randn(3, 2, 4).to(torch.complex128)
    y, last = form(u, **given, D=torch.tensor([0.5, -2.0]).double(), initial_state=state, output_final_state=True, rule=rule)
    Abar, Bbar = diagonal.RULES[rule](given["Lambda"], given["B"], given["delta"], diagonal=True)
    for d, feed in enumerate((0.5, -2.0)):
        want, end = state_space.recurrent(u[:, d], Abar[d], Bbar[d], given["C"][d], feed, state[:, d], True)
        size = given["C"].abs().sum() * (state.abs().max() + 21 * u.abs().max())
        assert (y[:, d] - want.real).abs().max() <= 64 * 21 * EPS * size
        assert (last[:, d] - end).abs().max() <= 64 * 21 * EPS * size


@pytest.mark.parametrize("length", LENGTHS)
def test_the_split_vandermonde_product_is_the_sum_of_powers(length):
    given = parameters(n=5)
    a = torch.exp(given["Lambda"] * given["delta"].unsqueeze(-1))
    want = (given["C"] * given["B"]).unsqueeze(-1) * a.unsqueeze(-1) ** torch.arange(length)
    found = diagonal.kernel(a, given["B"], given["C"], length)
    assert (found - want.sum(1).real).abs().max() <= 8 * (length + 5) * EPS * (given["C"] * given["B"]).abs().sum()


def test_one_of_each_pair_with_twice_its_c():
    given = parameters(n=3, d=1)
    whole = {n: torch.cat([x, x.conj().resolve_conj()], -1) if n != "delta" else x for n, x in given.items() if n != "P"}
    u = torch.randn(1, 1, 12).double()
    both = diagonal.convolution(u, **whole)
    half = diagonal.convolution(u, **{n: 2 * x if n == "C" else x for n, x in given.items() if n != "P"})
    assert (both - half).abs().max() <= 1e3 * EPS * both.abs().max()
    assert both.dtype == torch.float64


def test_initialisations_are_the_papers():
    Lambda, B = diagonal.lin_init(3)
    assert torch.equal(Lambda, torch.tensor([-0.5, -0.5 + 1j * math.pi, -0.5 + 2j * math.pi], dtype=torch.complex128))
    assert torch.equal(B, torch.ones(3, dtype=torch.complex128))
    Lambda, _ = diagonal.inv_init(2)
    want = [-0.5 + 1j * 4 / math.pi * (4 / (2 * k + 1) - 1) for k in range(2)]
    assert torch.allclose(Lambda, torch.tensor(want, dtype=torch.complex128), rtol=4 * EPS, atol=0)
    found, B = diagonal.legs_init(8)
    assert torch.equal(found, hippo.legs_dplr(8).Lambda)
    assert (B - hippo.legs_dplr(8).B).abs().max() == 0


def test_s4_with_the_matrices_of_hippo_is_the_bilinear_system_by_scipy():
    """The real system of LegS through SciPy's rule and filter: the same outputs, in another basis, of 8 states and 40 steps."""
    A, B = (x.numpy() for x in hippo.legs(8))
    f = hippo.legs_dplr(8)
    read = np.cos(np.arange(8.0))
    C = torch.tensor(read).to(f.V) @ f.V
    u = torch.sin(torch.arange(40).double() / 3)[None, None]
    own = [low_rank.convolution, low_rank.recurrent]
    ad, bd, *_ = signal.cont2discrete((A, B[:, None], np.zeros((1, 8)), np.zeros((1, 1))), 0.1, method="gbt", alpha=0.5)
    x, want = np.zeros(8), []
    for value in u[0, 0].numpy():
        x = ad @ x + bd[:, 0] * value
        want.append(read @ x)
    for form in own:
        y = form(u, f.Lambda[None], f.P[None], f.B[None], C[None], delta=torch.tensor([0.1], dtype=torch.float64))
        assert np.abs(y[0, 0].numpy() - want).max() <= 64 * 40 * EPS * np.abs(A).max() * np.abs(want).max()


@pytest.mark.parametrize("form", [*s4.FORMS["s4"], *s4.FORMS["s4d"]], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("u", "given", "state"),
    [
        (torch.float32, torch.complex64, torch.complex64),
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.float64, torch.complex64, torch.complex128),
    ],
)
def test_dtypes(form, u, given, state):
    call = {n: x.to(given) for n, x in parameters(dtype=given if given.is_complex else torch.float64).items() if n != "delta"}
    if form in s4.FORMS["s4d"]:
        del call["P"]
    y, last = form(torch.ones(1, 2, 6, dtype=u), **call, delta=torch.ones(2), output_final_state=True)
    assert (y.dtype, last.dtype) == (u, state)


@pytest.mark.parametrize("form", [low_rank.convolution, diagonal.convolution, diagonal.associative_scan], ids=lambda f: f.__name__)
def test_compiles_into_one_graph(form):
    torch.compiler.reset()
    given = parameters()
    if form is not low_rank.convolution:
        del given["P"]
    u, state = torch.randn(2, 2, 9).double(), torch.randn(2, 2, 4).to(torch.complex128)
    y, last = form(u, **given, initial_state=state, output_final_state=True)
    got, end = torch.compile(form, fullgraph=True, backend="aot_eager")(u, **given, initial_state=state, output_final_state=True)
    assert (got - y).abs().max() <= 1e3 * EPS * y.abs().max()
    assert (end - last).abs().max() <= 1e3 * EPS * last.abs().max()


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"u": torch.ones(1, 2, 3).cfloat()}, TypeError, "u has dtype torch.complex64"),
        ({"delta": torch.ones(3)}, ValueError, r"delta has shape \(3,\); the other arguments need \(d=2,\)"),
        ({"P": torch.ones(2, 3)}, ValueError, r"P has shape \(2, 3\)|C has shape \(2, 4\)|B has shape \(2, 4\)"),
        ({"initial_state": torch.ones(1, 2, 3)}, ValueError, r"initial_state has shape \(1, 2, 3\)"),
    ],
)
def test_a_wrong_argument_is_named(changes, error, sentence):
    given = parameters() | {"u": torch.ones(1, 2, 3).double()} | changes
    for form in s4.FORMS["s4"]:
        with pytest.raises(error, match=sentence):
            form(**given)


def test_an_unknown_rule_and_no_length_are_named():
    given = parameters()
    with pytest.raises(ValueError, match="rule must be one of zoh, bilinear, not 'euler'"):
        diagonal.step(torch.ones(1, 2), given["Lambda"], given["B"], given["C"], rule="euler")
    with pytest.raises(ValueError, match="length must be at least 1"):
        low_rank.kernel(**given, length=0)
