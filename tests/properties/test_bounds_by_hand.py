"""The bounds of rules, gradients and stored outputs where they can be written down: one token, one pole, one key."""

import numpy as np
import pytest

from isoform.properties import bounds, convolving, h3, holding, low_rank, s4, selecting
from isoform.properties.bounds import SECOND_ORDER, gamma, stored
from isoform.properties.columns import operator
from isoform.properties.operator import Instance
from isoform.properties.tensors import precision

SINGLE, DOUBLE = precision("float32"), precision("float64")


def g(count, p=SINGLE):
    return gamma(count, p.unit)


def one(x):
    return np.array([[float(x)]])


@pytest.mark.parametrize(("dtype", "eps", "tiny"), [("bfloat16", 2.0**-7, 2.0**-126), ("float16", 2.0**-10, 2.0**-14)])
def test_an_output_is_rounded_once_where_it_is_stored_and_its_operands_twice(dtype, eps, tiny):
    assert stored(0.5, -8.0, 24.0, precision(dtype)) == 0.5 * (1 + eps) + (8 + 2 * 24) * eps + tiny
    assert stored(0.5, -8.0, 24.0, SINGLE) == 0.5


Z, B = -1.5, 3.0


def test_eulers_rule():
    found = holding.gbt_bound(0.0, one(Z), np.array([B]), np.zeros((1, 2)), SINGLE)
    assert found[0] == pytest.approx([g(5) * (1 + 1.5), g(3) * B])


def test_the_bilinear_rule():
    """M = 1 - z/2 = 1.75; forming costs 4 roundings, solving 4 n + 2 = 6."""
    m = 1.75
    truth, right = np.array([0.25, B]) / m, np.array([1.75, B])
    found = holding.gbt_bound(0.5, one(Z), np.array([B]), truth[None], SINGLE)
    formed = g(4) / m * (1.75 * truth + right)
    solved = g(6) / m * m * (truth + right / m)
    assert found[0] == pytest.approx(formed + solved)


def test_the_backward_rule():
    """M = 1 - z = 2.5, and nothing is left of z on the right."""
    m = 2.5
    truth, right = np.array([1, B]) / m, np.array([1.0, B])
    found = holding.gbt_bound(1.0, one(Z), np.array([B]), truth[None], SINGLE)
    assert found[0] == pytest.approx(g(4) / m * (2.5 * truth + right) + g(6) / m * m * (truth + right / m))


def test_the_first_order_hold_of_a_pole():
    """At |z| = 1.5 the terms of both formulas sum to 2.5 (1 + e^z) / 2.25, and so do those of their slopes."""
    growth = np.exp(Z)
    truth = np.array([[growth, 1.0, 2.0]])
    found = holding.ramp_pole_bound(one(Z), np.array([B]), truth, SINGLE)
    terms = 2.5 * (1 + growth) / 2.25
    assert found[0] == pytest.approx([g(6) * 2.5 * growth, *(g(9) * B * 2.5 * terms + g(3) * np.array([1.0, 2.0]))])
    found = holding.ramp_pole_bound(one(0.5), np.array([B]), truth, SINGLE)
    assert found[0, 1:] == pytest.approx(g(9) * B * 1.5 + g(3) * np.array([1.0, 2.0]))


def test_the_impulse_invariant_pole():
    growth = np.exp(Z)
    found = holding.impulse_pole_bound(one(Z), np.array([B]), np.array([[growth, B]]), SINGLE)
    assert found[0] == pytest.approx([g(6) * 2.5 * growth, g(3) * B])


def test_the_hold_of_a_pole():
    """An error of the exponent costs e^z: 6 roundings of e^z, 9 of the quotient."""
    growth = np.exp(Z)
    truth = np.array([[growth, B * (growth - 1) / Z]])
    found = holding.pole_bound(one(Z), np.array([B]), truth, SINGLE)
    assert found[0] == pytest.approx([g(6) * 2.5 * growth, g(9) * (truth[0, 1] + B * growth)])


HUMP = (1 + 3 / 8) ** 2 * (1 + 2 / 8)
"""The largest (1 + a)(1 + b)(1 + c) with a + b + c <= 1 in eighths: the norms of e^{aW} for W = [[0, 1], [0, 0]]."""


def test_the_hold_of_a_matrix():
    """A = 0, so W = [[0, 1], [0, 0]] has norm 1, and the column of B̄ is scaled by |B|."""
    found = holding.hold_bound(one(0), np.array([B]), np.array([[1.0, B]]), SINGLE)
    assert found[0] == pytest.approx(g(9 * 8) * HUMP * np.array([1, B]))


def slope(z=Z):
    """One pole with changes dz = 0.5 and db = 0.25, weights 2 and 4."""
    truth = np.array([[0.75, 1.25]])
    return holding.Slope(one(z), np.array([B]), truth, one(0.5), np.array([0.25]), np.array([[2.0, 4.0]]))


def test_the_gradient_of_eulers_rule():
    assert holding.gbt_slope(0.0, slope(), SINGLE) == pytest.approx(g(12) * (2 * 0.5 + 4 * 0.25))


def test_the_gradient_of_the_bilinear_rule():
    right = 2 * (0.25 + 0.25 * 0.75) + 4 * (0.25 + 0.25 * 1.25)
    assert holding.gbt_slope(0.5, slope(), SINGLE) == pytest.approx(g(48 * 3) * right / 1.75)


def test_the_gradient_of_the_hold_of_a_pole():
    assert holding.pole_slope(slope(), SINGLE) == pytest.approx(g(24) * 2.5 * (2 * 0.5 + 4 * (0.25 + B * 0.5)))


def test_the_gradient_of_the_hold_of_a_matrix():
    pull, change = 2 + 4 * B, 0.5 + 0.25 / B
    expected = g(18 * (4 * (1 + pull) + 4)) * HUMP**2 * (1 + HUMP * pull) * pull * change
    assert holding.hold_slope(slope(0.0), SINGLE) == pytest.approx(expected)


Q, K, V, S, DV, W, F = 2.0, 3.0, 5.0, 7.0, 0.5, 1.5, 4.0


@pytest.mark.parametrize(("name", "gates", "rate"), [("linear-attention", {}, 1.0), ("delta-rule", {"beta": 0.125}, 0.125)])
def test_the_gradient_of_a_memory(name, gates, rate):
    """o = q (… + β k v), so v's part is W q β k + F β k; three times 2 (K + V + 6) roundings."""
    given = {"q": Q, "k": K, "v": V}
    inputs = {n: np.full((1, 1, 1, 1), x) for n, x in given.items()} | {n: np.full((1, 1, 1), x) for n, x in gates.items()}
    x = Instance(inputs, np.full((1, 1, 1, 1), S), {"scale": 1.0, "chunk_size": 1}, "float64")
    toward = {n: np.full_like(a, DV if n == "v" else 0.0) for n, a in inputs.items()}
    weights, final = np.full((1, 1, 1, 1), W), np.full((1, 1, 1, 1), F)
    value, bound = operator(name).derive(x, toward, np.zeros((1, 1, 1, 1)), weights, final)
    expected = (W * Q + F) * rate * K * DV
    assert value == pytest.approx(expected)
    assert bound == pytest.approx(g(3 * 2 * 8, DOUBLE) * expected)


def test_the_gradient_of_a_system():
    """y = C (Ā x + B̄ u) + D u and x' = Ā x + B̄ u, all terms positive."""
    a, b, c, d, u = 0.5, 2.0, 3.0, 1.0, 4.0
    inputs = {"u": one(u), "Abar": one(a), "Bbar": np.array([b]), "C": np.array([c]), "D": np.array(d)}
    x = Instance(inputs, one(S), {}, "float64")
    toward = {n: np.full_like(v, DV if n == "u" else 0.0) for n, v in inputs.items()}
    value, bound = operator("lti").derive(x, toward, one(0), one(W), one(F))
    expected = (W * (c * b + d) + F * b) * DV
    assert value == pytest.approx(expected)
    assert bound == pytest.approx(g(3 * 2 * 9 * 8, DOUBLE) * expected)


def test_a_step_of_s4():
    """λ = -1 and Δ = 1: 1 - hλ = 1.5. With p = 1, A = -2, so that I - hA = 2 and 1 + h p* e p = 4/3, off by γ of itself."""
    diagonal = s4.Channel(np.array([-1.0]), np.zeros(1), np.array([B]), np.ones(1), 0.0, 1.0, one(1 / 3), np.array([B / 1.5]))
    matrix, drive = s4.step_error(diagonal, SINGLE)
    through = (g(9) + g(17)) / 1.5
    assert [matrix[0, 0], drive[0]] == pytest.approx([through * 1.5, through * B])
    low = s4.Channel(np.array([-1.0]), np.ones(1), np.array([B]), np.ones(1), 0.0, 1.0, one(0), np.array([B / 2]))
    matrix, drive = s4.step_error(low, SINGLE)
    through = g(9) / 2 + g(17) * (1 / 1.5 + 0.375 * 2 / 1.5**2)
    assert [matrix[0, 0], drive[0]] == pytest.approx([through * 2, through * B])


def test_a_kernel_of_s4_with_one_tap():
    """One node, θ = 0, where a denominator is -hλ = 0.5 and Ā = 1/3: C̃ = 2/3, which E of Ā and a sum of 4 roundings make wrong."""
    of = s4.Channel(np.array([-1.0]), np.zeros(1), np.array([B]), np.ones(1), 0.0, 1.0, one(1 / 3), np.array([B / 1.5]))
    rows, values = low_rank.row_errors(of, one(7e-6), 1, SINGLE)
    assert rows[1] == pytest.approx(7e-6 + g(4) * (1 + 1 / 3)) and values[1] == pytest.approx([2 / 3])
    found = low_rank._sums_error(of, one(0.5 * B), one(0.5 * B), values[1], rows[1], 1, SINGLE)
    sums = (2 / 3) * (0.5 * B) * (g(8) + g(11)) / 0.5
    assert found == pytest.approx([sums + rows[1] * B + g(21 * 3) * (2 / 3) * B])


def test_an_output_of_h3():
    """One token, one tap, one mode: what is written is off by γ_3 and comes out through c b, with q times it and γ_4 of y beside."""
    of = h3.Head(one(Q), one(K), one(V), one(0.5), np.array([0.25]), np.array([W]), np.array([F]), np.zeros((1, 0)), np.zeros((1, 1, 1)))
    u = 0.5 * K * V
    system = h3.driven(of, 0, 0)
    assert system["u"] == pytest.approx(u)
    states = np.array([[0.0], [W * u]])
    found = h3.bound(of, 0, 0, system, states, SINGLE)
    alone = h3.recurrence_bound(system, states, SINGLE)
    off = g(3) * u
    assert found.output == pytest.approx(SECOND_ORDER * Q * (alone.output + F * W * off + g(4) * F * W * u))
    assert found.states[1] == pytest.approx(alone.states[1] + SECOND_ORDER * W * off)


@pytest.mark.parametrize(("hold", "phi", "roundings"), [(False, 1.0, 11), (True, (1 - np.exp(-1.5)) / 1.5, 19 + 1.5)])
def test_a_token_of_a_selective_scan(hold, phi, roundings):
    """One pole, z = -3/2, from 0: 22 roundings of C h, 9 of decays; 11 of the write, with the hold 8 for φ and |z| for e^z; 3 of D u."""
    c = selecting.Channel(one(K)[0], one(0.5)[0], one(2 * Z)[0], one(W), one(F), np.float64(Q), None, np.zeros(()), np.zeros(1), False)
    write = 0.5 * K * W * phi
    found = selecting.bound(c, hold, np.array([[0.0], [write]]), SINGLE)
    terms = F * write * (g(22) + (9 + roundings) * SINGLE.unit)
    assert found.output == pytest.approx([SECOND_ORDER * terms + g(3) * Q * K])


def test_an_output_of_a_causal_convolution():
    """Two taps and a bias: 2 + 1 sums and a split product; the activation is 1.1 times steeper at most, and 6 roundings itself."""
    c = convolving.Channel(np.array([K]), np.array([W, -F]), np.float64(V), np.array([Q]))
    rows, y = g(11) * (W * Q + F * K + V), np.array([W * Q - F * K + V])
    assert convolving.bound(c, y, False, SINGLE).output == pytest.approx([rows])
    bent = 1.1 * rows + g(6) * abs(y / (1 + np.exp(-y)))
    assert convolving.bound(c, y, True, SINGLE).output == pytest.approx(bent)


def test_the_gradient_of_attention():
    """One key has weight 1: v's part is W dv, the scores' error is γ_5 |q k|, and 8 roundings are its own."""
    inputs = {"q": np.full((1, 1, 1, 1), Q), "k": np.full((1, 1, 1, 1), K), "v": np.full((1, 1, 1, 1), V)}
    x = Instance(inputs, None, {"scale": 1.0}, "float64")
    toward = {n: np.full_like(a, DV if n == "v" else 0.0) for n, a in inputs.items()}
    value, bound = operator("attention").derive(x, toward, None, np.full((1, 1, 1, 1), W), None)
    error = np.expm1(g(5, DOUBLE) * Q * K) + g(8, DOUBLE)
    assert value == pytest.approx(W * DV)
    assert bound == pytest.approx(SECOND_ORDER * W * DV * (6 * error + g(9, DOUBLE)))


def test_the_truth_itself_costs_two_roundings():
    assert bounds.EXACT.unit == np.finfo(float).eps and bounds.EXACT.out == 0
