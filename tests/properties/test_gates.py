"""Gates: exponentials and norms to many digits, what is drawn, and the bounds of what fades."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import integrate

from isoform.derivations.gated_delta_rule import DECLARATION as GATED_DELTA
from isoform.derivations.gated_linear_attention import DECLARATION as CHANNELS
from isoform.properties import bounds, gates, oracle
from isoform.properties.columns import operator
from isoform.properties.operator import Instance
from isoform.properties.strategies import Case
from isoform.properties.tensors import precision

SINGLE, DOUBLE = precision("float32"), precision("float64")
GATED = ("retention", "gated-retention", "gated-linear-attention", "gated-delta-rule")
LOGS = {"retention": "g_gamma", "gated-linear-attention": "gk"}


def case_of(name, *flags, t=12, dtype="float32", seed=0, chunk=4):
    sizes = (("b", 2), ("t", t), ("h", 2), ("groups", 2), ("k", 3), ("v", 2), ("chunk", chunk))
    return Case(name, sizes, seed, dtype, "small", flags)


@pytest.mark.parametrize("g", [-1e-8, -0.1, -1.0, -1.4, -3.0, -30.0, -300.0, 0.25])
def test_a_power_has_more_than_200_bits(g):
    (found,) = gates.RATIONALS.exp(np.array([g]))
    with mpmath.workprec(400):
        exact = mpmath.exp(mpmath.mpf(g))
        assert abs(mpmath.mpf(found.numerator) / found.denominator / exact - 1) < mpmath.mpf(2) ** -260


def test_the_ends_of_the_domain_are_exact():
    assert list(gates.RATIONALS.exp(np.array([0.0, -np.inf, -2000.0]))) == [1, 0, 0]
    assert list(gates.FLOATS.exp(np.array([0.0, -np.inf]))) == [1, 0]


def test_a_root_has_more_than_200_bits():
    (found,) = gates.RATIONALS.root(np.array([Fraction(2)], dtype=object))
    assert abs(found * found - 2) < Fraction(1, 2**260)


@pytest.mark.parametrize("length", [1e-4, 1e-3, 1.0, 1e3])
def test_the_norm_has_its_eps_inside_the_root(length):
    x = np.array([[0.6, -0.8]]) * length
    for field in (gates.FLOATS, gates.RATIONALS):
        found = gates.unit(field.of(x), field).astype(float)
        # a square, a sum over two, ε, a root and a quotient: 5 roundings on each side, and those of x itself
        np.testing.assert_allclose(found, x / np.sqrt(length**2 + 1e-6), rtol=bounds.gamma(12, DOUBLE.unit))


def test_the_terms_of_the_derivative_of_the_norm_are_bounded():
    rng = np.random.default_rng(0)
    x, dx = rng.standard_normal((2, 5, 3))
    derivative = gates.unit(x + 1e-30j * dx, gates.FLOATS).imag / 1e-30
    assert (np.abs(derivative) <= gates.unit_change(x, dx) * (1 + 1e-12)).all()
    x, dx = x[:, :1], dx[:, :1]
    np.testing.assert_allclose(gates.unit_change(x, dx), np.abs(dx) * (2 * x**2 + 1e-6) / (x**2 + 1e-6) ** 1.5)


@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("flag", [*gates.IN_TIME, "edge", "dyadic"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_logs_are_in_the_domain(name, flag, dtype):
    x = operator(name).draw(case_of(name, flag, dtype=dtype))
    g = x.inputs.get(LOGS.get(name, "g"))
    assert g is None or ((g <= 0).all() and not np.isnan(g).any())


def test_mixed_gates_have_every_strength_in_one_chunk():
    g = operator("gated-linear-attention").draw(case_of("gated-linear-attention", "gates-mixed", t=16, chunk=16)).inputs["gk"]
    assert np.isneginf(g).any() and (g == 0).any() and (g < -25).any() and ((g < 0) & (g > -1e-7)).any()


@pytest.mark.parametrize("name", ["gated-retention", "gated-linear-attention", "gated-delta-rule"])
def test_strong_gates_are_followed_by_weak_ones(name):
    g = operator(name).draw(case_of(name, gates.SETTLING, t=64)).inputs[LOGS.get(name, "g")]
    assert (g[:, -gates.SETTLED :] > -0.5).all() and (g[:, : -gates.SETTLED].sum(1) < -4000).all()


@pytest.mark.parametrize("name", ["selective-scan", "selective-scan-zoh"])
def test_strong_steps_are_followed_by_weak_ones(name):
    o = operator(name)
    cases = [c for c in o.corners() if gates.SETTLING in c.flags]
    assert {c.scale for c in cases} == {"small", "large"}
    for case in cases:
        x, truth = o.draw(case).inputs, o.refer(o.draw(case))
        g = x["delta"][..., None] * x["A"][:, None]
        assert (g[:, :, -gates.SETTLED :] > -0.6).all() and (g[:, :, : -gates.SETTLED].sum(2) < -2000).all()
        assert truth.sharp.max() < 2**-14 * np.abs(truth.output).max()


@pytest.mark.parametrize("name", GATED)
def test_outside_of_the_domain_is_drawn(name):
    x = operator(name).draw(case_of(name, "outside"))
    assert (x.inputs[LOGS.get(name, "g")] > 0).any()
    if "beta" in x.inputs:
        strength = x.inputs["beta"] * np.repeat((x.inputs["k"] ** 2).sum(-1), 2, 2)
        assert (strength < 0).any() and (strength > 2.2).any()


def test_the_default_decays_are_those_of_the_paper():
    o = operator("retention")
    x = o.draw(case_of("retention", "start", t=1))
    assert "g_gamma" not in x.inputs
    kept = o.refer(Instance({**x.inputs, "v": 0 * x.inputs["v"]}, x.state, x.options, x.dtype)).states[:, 1]
    assert (kept == x.state * (1 - 2.0 ** -np.array([5, 5, 6, 6]))[:, None, None]).all()


def exact(x):
    return np.vectorize(Fraction, otypes=[object])(x)


def test_gated_linear_attention_fades_both_sides():
    rng = np.random.default_rng(1)
    x = {n: rng.standard_normal((5, 3)) for n in "qk"} | {"v": rng.standard_normal((5, 2))}
    a, e, s = rng.random((5, 3)), rng.random((5, 2)), rng.standard_normal((3, 2))
    out, states = oracle.memory(CHANNELS, {**x, "a": a, "e": e}, s)
    s = exact(s)
    for t in range(5):
        s = exact(a[t])[:, None] * s * exact(e[t]) + np.outer(exact(x["k"][t]), exact(x["v"][t]))
        assert (states[t + 1] == s.astype(float)).all()
        assert (out[t] == (s.T @ exact(x["q"][t])).astype(float)).all()


def test_the_gated_correction_reads_the_decayed_state():
    rng = np.random.default_rng(2)
    x = {n: rng.standard_normal((5, 3)) for n in "qk"} | {"v": rng.standard_normal((5, 2)), "beta": rng.random(5), "gamma": rng.random(5)}
    s = rng.standard_normal((3, 2))
    _, states = oracle.memory(GATED_DELTA, x, s)
    x, s = {n: exact(a) for n, a in x.items()}, exact(s)
    for t in range(5):
        s = x["gamma"][t] * s
        s = s + x["beta"][t] * np.outer(x["k"][t], x["v"][t] - s.T @ x["k"][t])
        assert (states[t + 1] == s.astype(float)).all()


def g(count):
    return bounds.gamma(count, SINGLE.unit)


def test_the_bound_of_what_fades_by_hand():
    """One token, K = V = 1, γ = ½: sums as without a decay; 3 roundings of the state and 3 · 3 of all terms; 4 of the log."""
    q, s, write, gamma = 2.0, 3.0, 10.0, 0.5
    total = gamma * s + write
    found = bounds.fading(np.array([[q]]), np.array([[[write]]]), np.array([[[s]], [[total]]]), (np.full((1, 1, 1), gamma),), SINGLE)
    more = SINGLE.unit * (3 * (gamma * s + 3 * total) + 4 * gamma * np.log(2) * s)
    assert found.states[1, 0, 0] == pytest.approx(bounds.SECOND_ORDER * (g(10) * total + more))
    assert found.output[0, 0] == pytest.approx(bounds.SECOND_ORDER * q * (g(22) * total + more))
    assert found.terms[0, 0] == q * total


def test_a_log_costs_its_own_range_and_no_other():
    """Strong gates at the beginning of a chunk do not widen the bound of what comes after them."""
    o = operator("gated-retention")

    def wide(first):
        x = o.draw(case_of("gated-retention", t=8))
        g = np.full_like(x.inputs["g"], -0.1)
        g[:, :4] = first
        return o.refer(Instance({**x.inputs, "g": g}, None, x.options, "float32")).states_bound[:, 8]

    assert (wide(-1e4) <= wide(-0.1)).all()
    assert (wide(-1e4) <= wide(-np.inf) * (1 + 1e-9)).all()


def test_the_bound_of_the_gated_delta_rule_with_gates_of_0_is_little_more_than_the_delta_rules():
    x = operator("gated-delta-rule").draw(case_of("gated-delta-rule", "gates-zero", "start", "unit-scale"))
    plain = Instance({n: a for n, a in x.inputs.items() if n != "g"}, x.state, x.options, x.dtype)
    gated, bare = operator("gated-delta-rule").refer(x), operator("delta-rule").refer(plain)
    assert (gated.output == bare.output).all()
    few = 2 * (bounds.EXPONENTIAL + 1) + 1
    assert (bare.sharp < gated.sharp).all() and (gated.sharp < few * bare.sharp).all()


def test_the_derivative_by_a_gate_by_hand():
    """o = q (e^g S + k v): W q e^g S dg, and 4 roundings of the log three times, beside 2 (K + V + 6) three times."""
    q, k, v, log, s, d, w, f = 2.0, 3.0, 5.0, -1.0, 7.0, 0.5, 1.5, 4.0
    inputs = {n: np.full((1, 1, 1, 1), x) for n, x in {"q": q, "k": k, "v": v}.items()} | {"g": np.full((1, 1, 1), log)}
    x = Instance(inputs, np.full((1, 1, 1, 1), s), {"scale": 1.0, "chunk_size": 1}, "float64")
    toward = {n: np.full_like(a, d if n == "g" else 0.0) for n, a in inputs.items()}
    value, bound = operator("gated-retention").derive(x, toward, np.zeros((1, 1, 1, 1)), np.full((1, 1, 1, 1), w), np.full((1, 1, 1, 1), f))
    size = (w * q + f) * np.exp(log) * s * d
    assert value == pytest.approx(size)
    assert bound == pytest.approx((bounds.gamma(48, DOUBLE.unit) + 12 * DOUBLE.unit) * size)


@pytest.mark.parametrize(
    ("name", "flags"),
    [(n, flags) for n in GATED for flags in [("start",), ("start", "gates-mixed")]]
    + [("gated-linear-attention", ("start", "gates-mixed", "value-gates")), ("gated-delta-rule", ("start", "normed"))],
)
def test_a_derivative_by_the_arguments_is_that_of_the_answers(name, flags):
    """Integrated along a line from one input to another it is the difference of the answers."""
    o = operator(name)
    x = o.draw(case_of(name, *flags, t=4, dtype="float64"))
    rng = np.random.default_rng(3)
    size = 1e-5 if "normed" in flags else 0.1
    toward = {n: np.where(np.isneginf(a), 0.0, size * rng.standard_normal(a.shape)) for n, a in x.inputs.items()}
    push = size * rng.standard_normal(x.state.shape)

    def at(r):
        inputs = {n: a + r * toward[n] for n, a in x.inputs.items()}
        return Instance(inputs, x.state + r * push, x.options, x.dtype)

    truth = o.refer(at(0))
    w, f = rng.standard_normal(truth.output.shape), rng.standard_normal(truth.states[:, -1].shape)
    ends = [(w * t.output).sum() + (f * t.states[:, -1]).sum() for t in (truth, o.refer(at(1)))]
    slope = integrate.fixed_quad(np.vectorize(lambda r: o.derive(at(r), toward, push, w, f)[0]), 0, 1, n=12)[0]
    assert slope == pytest.approx(ends[1] - ends[0], rel=1e-7)


def test_a_derivative_by_a_gate_of_minus_infinity_is_0():
    o = operator("gated-linear-attention")
    x = o.draw(case_of("gated-linear-attention", "start", "gates-reset", "value-gates"))
    toward = {n: np.ones_like(a) * (n in ("gk", "gv")) for n, a in x.inputs.items()}
    truth = o.refer(x)
    assert o.derive(x, toward, np.zeros_like(x.state), np.ones_like(truth.output), np.ones_like(truth.states[:, -1])) == (0, 0)
