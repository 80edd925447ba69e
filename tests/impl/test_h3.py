"""H3: two systems in a row by hand, associative recall, dtypes, gradients."""

import pytest
import torch

from isoform.impl import h3, state_space

EPS = torch.finfo(torch.float64).eps
LENGTHS = [0, 1, 2, 3, 4, 5, 8, 17]
forms = pytest.mark.parametrize("form", h3.FORMS["h3"], ids=lambda f: f.__name__)


def layer(length, dtype=torch.float64, b=2, h=2, k=3, v=2, w=3, n=2):
    generator = torch.Generator().manual_seed(length)

    def draw(*shape, dtype=torch.float64):
        return torch.randn(shape, generator=generator, dtype=dtype)

    poles = draw(h, n, dtype=dtype)
    given = {"q": draw(b, length, h, k), "k": draw(b, length, h, k), "v": draw(b, length, h, v), "shift": draw(h, k, w)}
    state = torch.cat([draw(b, h, k, w - 1).to(dtype), draw(b, h, k, n * v, dtype=dtype)], -1)
    return given | {"Abar": poles / poles.abs().max(), "Bbar": draw(h, n, dtype=dtype), "C": draw(h, n, dtype=dtype)}, state


@forms
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("length", LENGTHS)
def test_it_is_two_time_invariant_systems_in_a_row(form, dtype, length):
    """Each product of a key and a value feature by `state_space.recurrent`: a nilpotent shift, then a diagonal system."""
    given, _ = layer(length, dtype)
    q, k, v, shift = (given[m] for m in ("q", "k", "v", "shift"))
    want = torch.zeros_like(v)
    width = shift.shape[2]
    for h in range(2):
        for i in range(3):
            delayed = state_space.recurrent(
                k[:, :, h, i], torch.eye(width).double().roll(1, 0).tril(-1), torch.eye(width).double()[0], shift[h, i]
            )
            for j in range(2):
                y = state_space.recurrent(delayed * v[:, :, h, j], given["Abar"][h], given["Bbar"][h], given["C"][h])
                want[:, :, h, j] += q[:, :, h, i] * (y.real if y.is_complex() else y)
    found = form(**given)
    size = max(1.0, *(float(x.abs().sum()) for x in (q, k, v))) ** 3 / max(1, length) ** 2
    assert found.shape == want.shape
    assert length == 0 or (found - want).abs().max() <= 100 * EPS * size
    assert length == 0 or want.abs().max() > 1e-3


@forms
@pytest.mark.parametrize("length", LENGTHS)
def test_whole_numbers_are_exact(form, length, whole):
    given = {"q": whole(2, length, 1, 2), "k": whole(2, length, 1, 2), "v": whole(2, length, 1, 3), "shift": whole(1, 2, 3)}
    given |= {"Abar": torch.tensor([[1.0, -1.0]]).double(), "Bbar": whole(1, 2), "C": whole(1, 2)}
    state = whole(2, 1, 2, 2 + 6)
    y, last = form(**given, initial_state=state, output_final_state=True)
    x = state
    for t in range(length):
        o, x = h3.step(*(given[n][:, t] for n in "qkv"), *(given[n] for n in ("shift", "Abar", "Bbar", "C")), state=x)
        assert torch.equal(o, y[:, t]) or (o - y[:, t]).abs().max() <= 1e-11, "only a Fourier transform can round"
    assert torch.equal(x, last)


@forms
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("length", [1, 4])
def test_gradients(form, dtype, length):
    given, state = layer(length, dtype, b=1, h=1, k=2, v=1, w=2, n=2)
    state[..., :1] = state[..., :1].real
    leaves = [x.clone().requires_grad_() for x in given.values()]
    assert torch.autograd.gradcheck(lambda *x: form(*x, initial_state=state, output_final_state=True), leaves)


def tokens(words, width):
    return torch.nn.functional.one_hot(torch.tensor(words), width).double()[None, :, None]


@forms
def test_recall_reads_what_followed(form):
    """Keys 0 1 2, values 3 4 5, disjoint, each key once: a key at the end reads its value, exactly, at every length."""
    words = [0, 4, 2, 3, 1, 5]
    for query, value in ((0, 4), (2, 3), (1, 5)):
        x = tokens([*words, query], 6)
        y = form(x, x, x, **h3.recall(6))
        assert (y[0, -1, 0] - torch.eye(6)[value]).abs().max() <= 1e-14


@forms
def test_recall_of_a_key_that_came_twice_is_a_sum(form):
    x = tokens([0, 3, 1, 5, 0, 4, 0], 6)
    y = form(x, x, x, **h3.recall(6))
    assert (y[0, -1, 0] - torch.tensor([0.0, 0, 0, 1, 1, 0])).abs().max() <= 1e-14


@forms
def test_recall_needs_its_assumptions(form):
    """A decay weakens what came first; keys that are not one-hot answer for one another."""
    x = tokens([0, 4, 2, 3, 0], 6)
    weights = h3.recall(6)
    faded = form(x, x, x, **weights | {"Abar": 0.5 * weights["Abar"]})
    assert abs(faded[0, -1, 0, 4] - 0.125) <= 1e-14
    mixed = x.clone()
    mixed[0, [0, 4], 0] = torch.tensor([0.6, 0, 0.8, 0, 0, 0]).double()
    assert (form(mixed, mixed, mixed, **weights)[0, -1, 0] - torch.eye(6)[4]).abs().max() > 0.5


@forms
@pytest.mark.parametrize(
    ("tokens", "modes", "state"),
    [
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.float32, torch.complex64, torch.complex64),
        (torch.float16, torch.float64, torch.float64),
    ],
)
def test_dtypes(form, tokens, modes, state):
    one = torch.ones(1, 1, dtype=modes)
    x = torch.ones(1, 5, 1, 1, dtype=tokens)
    y, last = form(x, x, x, torch.ones(1, 1, 2, dtype=tokens), one, one, one, output_final_state=True)
    assert (y.dtype, last.dtype) == (tokens, state)
    assert y[0, :, 0, 0].tolist() == [1, 3, 5, 7, 9]


@forms
def test_compiles_into_one_graph(form):
    torch.compiler.reset()
    given, state = layer(4)
    y, last = form(**given, initial_state=state, output_final_state=True)
    got, end = torch.compile(form, fullgraph=True, backend="aot_eager")(**given, initial_state=state, output_final_state=True)
    assert (got - y).abs().max() <= 1e3 * EPS * y.abs().max()
    assert (end - last).abs().max() <= 1e3 * EPS * last.abs().max()


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"k": torch.ones(2, 4, 2, 3).cfloat()}, TypeError, "k has dtype torch.complex64"),
        ({"shift": torch.ones(2, 2, 3).double()}, ValueError, r"shift has shape \(2, 2, 3\)"),
        ({"shift": torch.ones(2, 3, 0).double()}, ValueError, "the width of the shift must be at least 1, not 0"),
        ({"C": torch.ones(2, 3).double()}, ValueError, r"C has shape \(2, 3\)"),
        ({"initial_state": torch.ones(2, 2, 3, 5).double()}, ValueError, r"the last axis needs w - 1 \+ n·v = 6"),
    ],
)
def test_a_wrong_argument_is_named(changes, error, sentence):
    given = layer(4)[0] | changes
    for form in h3.FORMS["h3"]:
        with pytest.raises(error, match=sentence):
            form(**given)
