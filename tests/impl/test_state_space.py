"""Linear time-invariant systems: the recurrence exactly, and the convolution within the rounding of a Fourier transform."""

import math

import pytest
import torch

from isoform.impl import state_space

FORMS = [state_space.recurrent, state_space.convolution, state_space.associative_scan]
LENGTHS = [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 33]
KINDS = [(dense, dtype) for dense in (True, False) for dtype in (torch.float64, torch.complex128)]
every_kind = pytest.mark.parametrize(("dense", "dtype"), KINDS, ids=str)


def system(dense, dtype, length, n=5, b=3):
    """Parameters of spectral norm at most 1, an input and a state."""
    generator = torch.Generator().manual_seed(length)

    def draw(*shape, dtype=dtype):
        return torch.randn(shape, generator=generator, dtype=dtype)

    if dense:
        matrix = draw(n, n)
        matrix = matrix / torch.linalg.matrix_norm(matrix, 2)
    else:
        matrix = draw(n)
        matrix = matrix / matrix.abs().max()
    return {"u": draw(b, length, dtype=torch.float64), "Abar": matrix, "Bbar": draw(n), "C": draw(n)}, draw(b, n)


def by_hand(u, Abar, Bbar, C, state, D=0.0):
    matrix = Abar if Abar.ndim == 2 else torch.diag(Abar)
    rows = []
    for k in range(u.shape[1]):
        state = torch.stack([matrix @ x for x in state]) + u[:, k, None] * Bbar
        rows.append(state @ C + D * u[:, k])
    return torch.stack(rows, 1) if rows else u.to(state.dtype), state


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("length", LENGTHS)
def test_recurrence_and_state_are_exact_on_integers(dense, length, whole):
    """Powers of a nilpotent matrix or of signs stay small integers; then only the Fourier transform can round."""
    u, state = whole(2, length), whole(2, 4)
    matrix = torch.diag(torch.ones(3), 1).double() if dense else torch.tensor([1.0, -1.0, 0.0, 1.0]).double()
    arguments = {"u": u, "Abar": matrix, "Bbar": whole(4), "C": whole(4), "D": 0.5}
    y, last = by_hand(state=state, **arguments)
    got, end = state_space.recurrent(**arguments, initial_state=state, output_final_state=True)
    assert torch.equal(got, y)
    assert torch.equal(end, last)
    assert torch.equal(state_space.convolution(**arguments, initial_state=state, output_final_state=True)[1], last)
    scanned, end = state_space.associative_scan(**arguments, initial_state=state, output_final_state=True)
    assert torch.equal(scanned, y)
    assert torch.equal(end, last)


@every_kind
@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("length", LENGTHS)
def test_every_form_is_the_recurrence(form, dense, dtype, length):
    """Three transforms of n points, each within 4 log2(n) eps in the 2-norm (Higham, theorem 24.2), and powers.

    A power of order l is a product of l matrices of norm at most 1 in n = 5 dimensions: l n² eps each way.
    """
    arguments, state = system(dense, dtype, length)
    y, last = state_space.recurrent(**arguments, D=0.5, initial_state=state, output_final_state=True)
    got, end = form(**arguments, D=0.5, initial_state=state, output_final_state=True)
    assert (got.shape, got.dtype, end.dtype) == (y.shape, dtype, dtype)
    size = arguments["C"].norm() * (arguments["Bbar"].norm() * arguments["u"].norm() * math.sqrt(length) + state.norm())
    eps = torch.finfo(torch.float64).eps
    bound = (12 * math.log2(4 * length + 4) + 25 * (length + 2)) * eps * size
    assert bound <= 1e-9
    assert length == 0 or (got - y).abs().max() <= bound
    assert (end - last).abs().max() <= bound
    assert length == 0 or not torch.equal(got, form(**arguments, D=0.5)), "the state made no difference"


@every_kind
def test_steps_are_the_recurrence_and_leave_the_old_state(dense, dtype):
    arguments, state = system(dense, dtype, 9)
    u = arguments.pop("u")
    y, last = state_space.recurrent(u, **arguments, D=0.5, initial_state=state, output_final_state=True)
    first = state.clone()
    rows = []
    x = state
    for k in range(9):
        o, x = state_space.step(u[:, k], **arguments, D=0.5, state=x)
        rows.append(o)
    assert torch.equal(torch.stack(rows, 1), y)
    assert torch.equal(x, last)
    assert torch.equal(state, first)


@every_kind
@pytest.mark.parametrize("form", FORMS)
def test_gradients(form, dense, dtype):
    arguments, state = system(dense, dtype, 5, n=2, b=1)
    leaves = [x.requires_grad_() for x in (*arguments.values(), torch.tensor(0.5).double(), state)]
    assert torch.autograd.gradcheck(lambda *x: form(*x, output_final_state=True), leaves)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_at_a_zero_and_a_unit_pole(form):
    arguments, state = system(False, torch.float64, 5, n=2, b=1)
    arguments["Abar"] = torch.tensor([0.0, 1.0]).double()
    leaves = [x.requires_grad_() for x in (*arguments.values(), torch.tensor(0.5).double(), state)]
    assert torch.autograd.gradcheck(lambda *x: form(*x, output_final_state=True), leaves)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("u", "parameters", "y", "state"),
    [
        (torch.float32, torch.float32, torch.float32, torch.float32),
        (torch.bfloat16, torch.bfloat16, torch.bfloat16, torch.float32),
        (torch.float16, torch.float32, torch.float16, torch.float32),
        (torch.float32, torch.float64, torch.float32, torch.float64),
        (torch.float32, torch.complex64, torch.complex64, torch.complex64),
        (torch.bfloat16, torch.complex64, torch.complex64, torch.complex64),
        (torch.float32, torch.complex128, torch.complex64, torch.complex128),
        (torch.complex64, torch.float32, torch.complex64, torch.complex64),
    ],
)
def test_dtypes(form, u, parameters, y, state):
    one = torch.ones(1, dtype=parameters)
    got, last = form(torch.ones(1, 300, dtype=u), one, one, one, output_final_state=True)
    assert (got.dtype, last.dtype) == (y, state)
    assert last == 300


def test_nothing_imaginary_is_dropped():
    i = torch.tensor([1j])
    for form in FORMS:
        assert torch.equal(form(torch.ones(1, 1), i, i, torch.ones(1).cfloat()), torch.tensor([[1j]]))
        assert torch.equal(form(torch.ones(1, 1), *torch.zeros(3, 1), D=1j), torch.tensor([[1j]]))


@pytest.mark.parametrize("form", FORMS)
def test_only_later_outputs_see_a_bad_input(form):
    arguments, _ = system(False, torch.float64, 9)
    clean = form(**arguments)
    bad = arguments["u"].clone()
    bad[1, 4] = torch.inf
    y, state = form(**arguments | {"u": bad}, output_final_state=True)
    assert torch.equal(y[::2], clean[::2])
    eps = torch.finfo(torch.float64).eps
    size = arguments["C"].norm() * arguments["Bbar"].norm() * arguments["u"].norm() * 3
    assert (y[1, :4] - clean[1, :4]).abs().max() <= 300 * eps * size, "as in the test above; the transform of the rest differs"
    assert not y[1, 4:].isfinite().any()
    assert state.isfinite().all(1).tolist() == [True, False, True]


@pytest.mark.parametrize("form", FORMS)
def test_views_are_read_and_left_as_they_are(form):
    arguments, state = system(True, torch.float64, 9)
    views = {n: torch.stack([x, x], -1)[..., 0] for n, x in arguments.items()} | {"Abar": arguments["Abar"].mT.contiguous().mT}
    copies = {n: x.clone() for n, x in views.items()}
    assert torch.equal(form(**views, initial_state=state), form(**arguments, initial_state=state))
    assert all(torch.equal(views[n], copies[n]) for n in views)
    one = arguments["u"][:, :1]
    assert torch.equal(form(**arguments | {"u": one.expand(3, 9)}), form(**arguments | {"u": one.repeat(1, 9)}))


@every_kind
@pytest.mark.parametrize("form", FORMS[1:])
def test_compiles_into_one_graph(form, dense, dtype):
    """The scan takes another order there; its error is that of products of norm at most 1 in 5 dimensions."""
    torch.compiler.reset()
    arguments, state = system(dense, dtype, 9)
    arguments |= {"D": 0.5, "initial_state": state, "output_final_state": True}
    y, last = form(**arguments)
    got, end = torch.compile(form, fullgraph=True, backend="aot_eager")(**arguments)
    eps = torch.finfo(torch.float64).eps
    size = arguments["C"].norm() * (arguments["Bbar"].norm() * arguments["u"].norm() * 3 + state.norm())
    off = 0 if form is state_space.convolution else 25 * 11 * eps * size
    assert (got - y).abs().max() <= off
    assert (end - last).abs().max() <= off


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"Abar": torch.ones(3, 2)}, ValueError, r"Abar has shape \(3, 2\)"),
        ({"Abar": torch.ones(1, 3, 3)}, ValueError, r"it needs \(n, n\), or \(n,\) for a diagonal matrix"),
        ({"C": torch.ones(2)}, ValueError, r"C has shape \(2,\); the other arguments need \(n=3,\)"),
        ({"u": torch.ones(2, 5, 1)}, ValueError, r"u has shape \(2, 5, 1\); it needs the axes \(b, l\)"),
        ({"u": torch.ones(2, 5).long()}, TypeError, "u has dtype torch.int64; allowed are .*complex64"),
        ({"D": torch.ones(3)}, ValueError, r"D has shape \(3,\)"),
        ({"D": "1"}, TypeError, "D must be a number, a tensor without axes, or None, not str"),
        ({"initial_state": torch.ones(1, 3)}, ValueError, r"initial_state has shape \(1, 3\); the other arguments need \(b=2, n=3\)"),
    ],
)
def test_a_wrong_argument_is_named(form, changes, error, sentence):
    arguments = {"u": torch.ones(2, 5), "Abar": torch.ones(3), "Bbar": torch.ones(3), "C": torch.ones(3)} | changes
    with pytest.raises(error, match=sentence):
        form(**arguments)
