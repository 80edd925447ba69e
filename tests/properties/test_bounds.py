"""Bounds: correct forms far below them, faults far above, and no wider than the analysis asks for."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from isoform.properties import bounds
from isoform.properties.columns import columns, operator, operators
from isoform.properties.laws.table import BLIND
from isoform.properties.strategies import Case
from isoform.properties.tensors import precision

SINGLE = precision("float32")


def memory_case(name, t, scale="large", chunk=16, k=8, dtype="float32", flags=("start",)):
    shape = (("b", 1), ("t", t), ("h", 1), ("groups", 1), ("k", k), ("v", k), ("chunk", chunk))
    return Case(name, shape, 0, dtype, scale, flags)


def sharpness(name, case):
    o = operator(name)
    r = o.refer(o.draw(case))
    return r.sharp.max() / np.abs(r.output).max()


def test_gamma_is_a_count_of_roundings():
    assert bounds.gamma(3, 1e-3) == pytest.approx(3e-3 / (1 - 3e-3))
    assert bounds.gamma(0, 0.5) == 0
    assert bounds.gamma(2, 0.5) == np.inf


@pytest.mark.parametrize("name", ["linear-attention", "delta-rule"])
@pytest.mark.parametrize("scale", ["small", "large"])
def test_bounds_are_sharp_at_64_tokens(name, scale):
    assert sharpness(name, memory_case(name, 64, scale)) < BLIND / 2


@pytest.mark.parametrize("name", ["linear-attention", "delta-rule"])
def test_bounds_scale_with_the_inputs(name):
    """Relative bounds of small and large inputs are the same up to the error floor."""
    small, large = (sharpness(name, memory_case(name, 32, scale, flags=())) for scale in ("small", "large"))
    assert small == pytest.approx(large, rel=1e-3)


def test_the_delta_rule_is_not_bounded_by_a_product_of_absolute_values():
    """That product is some 3·10⁸ times the output at 64 tokens; the bound is not."""
    o = operator("delta-rule")
    case = memory_case("delta-rule", 64, k=16, flags=("start", "beta-one"))
    x = o.draw(case)
    k, beta = x.inputs["k"][0, :, 0], x.inputs["beta"][0, :, 0]
    product = np.eye(16)
    for t in range(64):
        product = (np.eye(16) + beta[t] * np.outer(np.abs(k[t]), np.abs(k[t]))) @ product
    assert product.max() > 1e6
    assert sharpness("delta-rule", case) < BLIND


def test_exact_transitions_are_multiplied_before_the_absolute_value():
    """A step that annihilates its error hands none of it on."""
    q = np.ones((2, 1))
    states = np.array([[[0.0]], [[1.0]], [[1.0]]])
    local = np.array([[[0.0]], [[1.0]], [[0.0]]])
    kept = bounds.carried(q, states, local, 0.0, lambda w, t: w, SINGLE)
    lost = bounds.carried(q, states, local, 0.0, lambda w, t: 0 * w, SINGLE)
    assert kept.output[1, 0] == pytest.approx(bounds.SECOND_ORDER) and lost.output[1, 0] < 1e-30
    assert kept.states[2, 0, 0] == pytest.approx(bounds.SECOND_ORDER) and lost.states[2, 0, 0] < 1e-30
    assert kept.output[0, 0] == lost.output[0, 0] == pytest.approx(bounds.SECOND_ORDER)


@pytest.mark.parametrize("o", [o for c in columns() for o in operators(c) if "state" in o.capabilities], ids=lambda o: o.name)
def test_the_bounds_of_the_truth_are_a_share_of_those_of_a_form(o, monkeypatch):
    """What `beside_truth` has is no less than the sum of the two bounds, and twice that of the form at most."""
    seen = []

    def checked(bound, precision):
        found, both, own = bound(precision), bounds.beside_truth(bound, precision), bound(bounds.EXACT)
        for a, b, c in ((found.output, both.output, own.output), (found.states, both.states, own.states)):
            assert (b >= (a + c) * (1 - 1e-12)).all() and (b <= 2 * a * (1 + 1e-12) + 1e-290).all()
            seen.append(a.size)
        return both

    for module in [m for name, m in sys.modules.items() if name.startswith("isoform.properties.") and hasattr(m, "beside_truth")]:
        if module is not bounds:
            monkeypatch.setattr(module, "beside_truth", checked)
    for case in o.corners():
        if case.size("t") < 20:
            o.refer(o.draw(replace(case, seed=10**6)))  # a seed that no other test has a truth of
    assert sum(seen) > 100


def test_carried_errors_of_the_identity_add_up():
    rng = np.random.default_rng(0)
    q, local = rng.standard_normal((5, 3)), rng.random((6, 3, 2))
    found = bounds.carried(q, np.zeros((6, 3, 2)), local, 0.0, lambda w, t: w, SINGLE)
    sums = local.cumsum(0)
    np.testing.assert_allclose(found.output, bounds.SECOND_ORDER * np.einsum("tk,tkv->tv", np.abs(q), sums[1:]), rtol=1e-12)
    np.testing.assert_allclose(found.states, bounds.SECOND_ORDER * sums, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_outputs_cost_three_roundings_to_their_dtype_at_most(dtype):
    """The output once, and two operands of each term."""
    o = operator("linear-attention")
    x = o.draw(memory_case("linear-attention", 8, dtype=dtype))
    r = o.refer(x)
    eps = {"bfloat16": 2.0**-7, "float16": 2.0**-10}[dtype]
    q, k, v = (np.abs(x.inputs[n][0, :, 0]) for n in "qkv")
    terms = np.einsum("tk,tkv->tv", q * 8**-0.5, np.abs(x.state[0, 0]) + (k[:, :, None] * v[:, None, :]).cumsum(0))
    np.testing.assert_allclose(r.bound[0, :, 0], eps * (np.abs(r.output[0, :, 0]) + 2 * terms), rtol=2e-2)
    assert (r.sharp < r.bound).all() and r.sharp.max() < 1e-3 * np.abs(r.output).max()


def test_empty_rows_have_no_margin():
    o = operator("attention")
    sizes = (("b", 1), ("t", 4), ("h", 1), ("groups", 1), ("d", 2), ("v", 2), ("block", 4))
    x = o.draw(Case("attention", sizes, 0, "float32", "large", ("mask",)))
    r = o.refer(x)
    empty = ~x.inputs["mask"][0].any(-1) | (np.arange(4) % 3 == 0)
    assert (r.output[0, empty] == 0).all() and (r.bound[0, empty] == 0).all()


@pytest.mark.parametrize("rule", ["zoh", "bilinear", "euler"])
def test_a_diagonal_rule_has_no_margin_off_its_diagonal(rule):
    (o,) = [x for x in operators("discretization") if x.name == rule]
    r = o.refer(o.draw(Case(rule, (("b", 1), ("n", 3)), 0, "float32", "large", ("diagonal",))))
    off = ~np.eye(3, 4, dtype=bool)
    off[:, 3] = False
    assert (r.bound[0][off] == 0).all() and (r.output[0][off] == 0).all()


def g(count):
    return bounds.gamma(count, SINGLE.unit)


def test_the_count_of_the_sum_of_writes_by_hand():
    """One token, K = 2: two products of 8, the scale 2, sums over time 2, over K 1, of two parts 1, and the output 1."""
    q, writes, start = np.array([[1.0, 2.0]]), np.array([[[3.0], [4.0]]]), np.array([[1.0], [-1.0]])
    found = bounds.additive(q, writes, start, SINGLE)
    assert found.output[0, 0] == pytest.approx(bounds.SECOND_ORDER * g(23) * (1 * 4 + 2 * 5))
    assert found.states[1, :, 0] == pytest.approx(bounds.SECOND_ORDER * g(10) * np.array([4, 5]))
    assert found.terms[0, 0] == 14


def test_the_bound_of_the_delta_rule_by_hand():
    """One token, K = V = 1, chunks of one: every term of the analysis once."""
    from isoform.properties.delta_rule import bound

    s, q, k, v, beta = 3.0, 2.0, 0.5, 7.0, 2.0
    head = {"q": np.array([[q]]), "k": np.array([[k]]), "v": np.array([[v]]), "beta": np.array([beta]), "start": np.array([[s]])}
    write = beta * (v - k * s)
    after = s + k * write
    found = bound(head, np.array([[[s]], [[after]]]), SINGLE, 1)
    largest = max(s, after)
    sums = largest + k * (abs(write + beta * k * s) + beta * k * s)
    local = g(5) * s + g(4) * sums + g(6) * beta * k * (v + k * s)
    carried = abs(1 - beta * k * k) * SINGLE.unit * s
    assert found.states[1, 0, 0] == pytest.approx(bounds.SECOND_ORDER * (local + carried) + g(4) * sums)
    read = g(4) * q * after
    assert found.output[0, 0] == pytest.approx(bounds.SECOND_ORDER * (q * (local + carried) + read) + g(7) * q * sums)


def test_the_bound_of_attention_by_hand():
    """Two keys with scores 4 and 0, d = 1."""
    from isoform.properties.attention import Row, _row_bound

    row = Row((0, 0, 0), np.array([2.0]), np.array([[2.0], [0.0]]), np.array([[1.0], [-1.0]]), np.arange(2))
    p = np.exp([4.0, 0.0]) / np.exp([4.0, 0.0]).sum()
    truth = p @ np.array([1.0, -1.0])
    score = np.expm1([g(5) * 4 + 4 * SINGLE.unit, (4 * 4 + 4) * SINGLE.unit])
    log = np.log(1 + np.exp(-4))
    shift = np.expm1(SINGLE.unit * (3 * (4 + log) + 4 * log + 4 * np.array([log, 4 + log])))
    own = g(14) * (1 + truth)
    expected = p @ (score * np.abs([1 - truth, -1 - truth])) + p @ shift + own
    assert _row_bound(row, np.array([truth]), SINGLE)[0] == pytest.approx(bounds.SECOND_ORDER * expected)


def test_the_bound_of_a_system_by_hand():
    """One pole, one input: the recurrence, the powers, the transform, and the feedthrough as one more term of the read-out."""
    from isoform.properties.state_space import bound

    a, b, c, d, u, s = 0.5, 2.0, 3.0, 1.0, 4.0, -1.0
    given = {"u": np.array([[u]]), "Abar": np.array([[a]]), "Bbar": np.array([[b]]), "C": np.array([[c]]), "D": np.array([[d]])}
    states = np.array([[s], [a * s + b * u]])
    found = bound(given, states, SINGLE)
    local = g(3) * (a + b * u)
    recurrence = bounds.SECOND_ORDER * (c * (local + a * SINGLE.unit) + g(4) * c * states[1, 0])
    powers = g(3) * 2 * c * b * u + g(3) * 3 * c * a
    transform = g(7 * 3) * 3 * c * b * u
    assert found.output[0] == pytest.approx(recurrence + g(4) * d * u + powers + transform)


def test_nearly_equal_scores_need_the_error_of_the_scores():
    """There the roundings of the softmax alone would be too narrow by far."""
    o = operator("attention")
    sizes = (("b", 1), ("t", 6), ("h", 1), ("groups", 1), ("d", 5), ("v", 2), ("block", 4))
    r = o.refer(o.draw(Case("attention", sizes, 0, "float32", "large", ("ties",))))
    alone = g(6 * 6 + 2) * np.abs(r.output).max()
    assert r.bound.max() > 20 * alone and r.sharp.max() < BLIND * np.abs(r.output).max()
