"""First-order scans against the loop over tokens, bit for bit on small integers, and their gradients."""

from functools import partial

import pytest
import torch

from isoform.impl import _scan
from isoform.impl._scan import associative_scan, matrix_scan, run, scan

LENGTHS = (0, 1, 2, 3, 4, 7, 13, 50)
KINDS = {"scan": (scan, (3, 2), (1, 2)), "matrices": (matrix_scan, (2,), (2, 2))}
every_kind = pytest.mark.parametrize("kind", KINDS)
both_ways = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
numbers = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=["real", "complex"])


def drawn(kind, t, draw, dtype=torch.float64):
    """Gates among which 0 is frequent, so that sums stay small integers; changes and a start."""
    _, state, gate = KINDS[kind]
    parts = [[draw(2, t, *gate, low=-1, high=1), draw(2, t, *state), draw(2, *state)] for _ in range(1 + dtype.is_complex)]
    if dtype.is_complex:
        return [torch.complex(*pair) for pair in zip(*parts, strict=True)]
    return parts[0]


def loop(kind, a, b, h, reverse=False):
    rows = []
    for t in sorted(range(b.shape[1]), reverse=reverse):
        h = (a[:, t] @ h[..., None])[..., 0] + b[:, t] if kind == "matrices" else a[:, t] * h + b[:, t]
        rows.append(h)
    return torch.stack(rows[:: -1 if reverse else 1], 1) if rows else b, h


def same(found, expected):
    return all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


@every_kind
@both_ways
@numbers
@pytest.mark.parametrize("t", LENGTHS)
def test_a_scan_is_the_loop(kind, reverse, dtype, t, whole, monkeypatch):
    form, arguments = KINDS[kind][0], drawn(kind, t, whole, dtype)
    expected = loop(kind, *arguments, reverse)
    assert same(form(*arguments, reverse=reverse), expected)
    monkeypatch.setitem(_scan.DIRECT, "cpu", 1)
    assert same(form(*arguments, reverse=reverse), expected)


@every_kind
@both_ways
def test_the_gradient_is_the_loops(kind, reverse, whole):
    arguments = [x.requires_grad_() for x in drawn(kind, 7, whole)]
    results = loop(kind, *arguments, reverse), KINDS[kind][0](*arguments, reverse=reverse)
    weights = whole(*results[0][0].shape), whole(*results[0][1].shape)
    assert same(*(torch.autograd.grad(found, arguments, weights) for found in results))


@every_kind
@both_ways
@numbers
def test_gradients_of_gradients(kind, reverse, dtype, smooth):
    _, state, gate = KINDS[kind]
    arguments = [smooth(1, 5, *gate, dtype=dtype), smooth(1, 5, *state, dtype=dtype), smooth(1, *state, dtype=dtype)]
    form = partial(KINDS[kind][0], reverse=reverse)
    assert torch.autograd.gradcheck(form, arguments)
    assert torch.autograd.gradgradcheck(form, arguments, fast_mode=True)


@every_kind
@both_ways
def test_transforms_and_many_gradients_at_once(kind, reverse, whole):
    form, arguments = partial(KINDS[kind][0], reverse=reverse), drawn(kind, 7, whole)
    mapped = torch.func.vmap(form)(*(torch.stack([x, 2 * x]) for x in arguments))
    assert all(torch.equal(x, torch.stack(pair)) for x, pair in zip(mapped, zip(form(*arguments), form(*(2 * x for x in arguments)))))
    leaves = [x.requires_grad_() for x in arguments]
    found, _ = form(*leaves)
    directions = whole(3, *found.shape)
    at_once = torch.autograd.grad(found, leaves, directions, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(found, leaves, d, retain_graph=True) for d in directions]
    assert same(at_once, [torch.stack(x) for x in zip(*each, strict=True)])


@every_kind
def test_it_compiles_into_one_graph(kind, whole):
    torch.compiler.reset()
    form, arguments = KINDS[kind][0], drawn(kind, 13, whole)
    assert same(torch.compile(form, fullgraph=True, backend="aot_eager")(*arguments), form(*arguments))


@pytest.mark.parametrize("gate", [0.0, 2.0**-140, float(torch.tensor(-1e4).exp()), 1.0, 1 - 2.0**-12])
def test_gates_at_the_edges_are_as_in_the_loop(gate, whole):
    """Within the rounding of as many products as there are gates: 0, subnormal, 1 and next to 1."""
    t = 200
    b, start = whole(1, t, 2, dtype=torch.float32), whole(1, 2, dtype=torch.float32)
    a = torch.full((1, t, 2), gate)
    a[:, ::7] = 1.0
    found, _ = scan(a, b, start)
    exact, _ = loop("scan", a.double(), b.double(), start.double())
    size, _ = loop("scan", a.double(), b.double().abs(), start.double().abs())
    assert ((found - exact).abs() <= 2 * t * 2.0**-24 * size + t * 2.0**-149).all()


def test_a_state_of_0_stays_where_gates_overflow():
    a, b = torch.full((1, 400, 1), 10.0), torch.zeros(1, 400, 1)
    b[:, -1] = 3.0
    found, last = scan(a, b, torch.zeros(1, 1))
    assert torch.equal(found, b) and last == 3.0


@both_ways
def test_what_is_not_finite_changes_what_comes_after_it_alone(reverse, whole):
    a, b, start = drawn("scan", 50, whole)
    for place, value in ((a, torch.nan), (b, torch.nan), (b, torch.inf), (a, torch.inf)):
        bad = place.clone()
        bad[:, 20] = value
        found, _ = scan(*(bad if x is place else x for x in (a, b)), start, reverse=reverse)
        expected, _ = loop("scan", *(bad if x is place else x for x in (a, b)), start, reverse)
        assert torch.equal(found.isfinite(), expected.isfinite())
        assert torch.equal(found[expected.isfinite()], expected[expected.isfinite()])


def test_written_over_the_changes(whole):
    for t in LENGTHS:
        a, b, start = drawn("scan", t, whole)
        expected, _ = scan(a, b, start)
        run(a, b, start, b)
        assert torch.equal(b, expected)


def test_any_product_that_is_associative():
    """Texts: prefixes by joining them, the first to the left."""
    letters = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    digits = torch.ones_like(letters)

    def joined(first, second):
        return first[0] * 10 ** second[1] + second[0], first[1] + second[1]

    assert associative_scan(joined, (letters, digits))[0].tolist() == [[3, 31, 314, 3141, 31415, 314159, 3141592]]
    assert associative_scan(joined, (letters, digits), reverse=True)[0].tolist() == [[2951413, 295141, 29514, 2951, 295, 29, 2]]
