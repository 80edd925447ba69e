"""The truth: the declarations against plain loops and SciPy; derivatives against closed forms."""

import numpy as np
import pytest
from scipy import linalg, signal, special

from isoform.derivations.attention import DECLARATIONS as ATTENTION
from isoform.derivations.delta_rule import DECLARATION as DELTA
from isoform.derivations.discretization import DECLARATIONS as RULES
from isoform.derivations.linear_attention import DECLARATION as LINEAR
from isoform.derivations.state_space import DECLARATION as LTI
from isoform.properties import oracle, scipy_truth
from isoform.properties.operator import Instance

RNG = np.random.default_rng(0)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def head(steps=6, width=3, columns=2):
    k = RNG.standard_normal((steps, width))
    k /= np.linalg.norm(k, axis=1, keepdims=True)
    return {"q": RNG.standard_normal((steps, width)), "k": k, "v": RNG.standard_normal((steps, columns))}


def delta_loop(x, s):
    out = []
    for q, k, v, beta in zip(x["q"], x["k"], x["v"], x["beta"]):
        s = s + beta * np.outer(k, v - s.T @ k)
        out.append(s.T @ q)
    return np.array(out), s


@pytest.mark.parametrize("steps", [6, 200])
def test_the_states_are_keys_by_values(steps):
    x, s = head(steps), RNG.standard_normal((3, 2))
    out, states = oracle.memory(LINEAR, x, s)
    sums = s + np.einsum("tk,tv->tkv", x["k"], x["v"]).cumsum(0)
    assert states.shape == (steps + 1, 3, 2)
    close(states[0], s)
    close(states[1:], sums)
    close(out, np.einsum("tk,tkv->tv", x["q"], sums))


@pytest.mark.parametrize("steps", [6, 200])
def test_the_delta_rule(steps):
    x, s = head(steps) | {"beta": RNG.uniform(0, 2, steps)}, RNG.standard_normal((3, 2))
    out, states = oracle.memory(DELTA, x, s)
    expected, last = delta_loop(x, s)
    close(out, expected)
    close(states[-1], last)


def test_a_slope_is_the_derivative():
    x, s = head() | {"beta": RNG.uniform(0, 2, 6)}, RNG.standard_normal((3, 2))
    toward, push = {n: RNG.standard_normal(a.shape) for n, a in x.items()}, RNG.standard_normal(s.shape)
    d, e = oracle.slope(DELTA, x, s, toward, push)
    h = 1e-6
    (up, up_s), (down, down_s) = (delta_loop({n: a + g * toward[n] for n, a in x.items()}, s + g * push) for g in (h, -h))
    np.testing.assert_allclose(d, (up - down) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(e, (up_s - down_s) / (2 * h), rtol=1e-6, atol=1e-8)


def test_attention_is_the_softmax_of_scipy():
    x = head()
    out = oracle.attention(ATTENTION[0], x["q"], x["k"], x["v"])
    for t in range(6):
        close(out[t], special.softmax(x["k"][: t + 1] @ x["q"][t]) @ x["v"][: t + 1])
    close(oracle.last_row(ATTENTION[1], x["q"][5], x["k"], x["v"]), out[5])


def test_attention_has_no_overflow():
    x = head()
    out = oracle.attention(ATTENTION[0], 1e6 * x["q"], x["k"], x["v"])
    assert np.isfinite(out).all()
    close(out[5], x["v"][np.argmax(x["k"] @ x["q"][5])])


def test_the_slope_of_attention():
    x, d = head(), head()
    w = special.softmax(x["k"] @ x["q"][5])
    scores = d["k"] @ x["q"][5] + x["k"] @ d["q"][5]
    expected = (w * (scores - w @ scores)) @ x["v"] + w @ d["v"]
    close(oracle.last_row_slope(ATTENTION[0], (x["q"][5], x["k"], x["v"]), (d["q"][5], d["k"], d["v"])), expected)


def system(n=3, steps=9, kind=float):
    draw = (lambda *s: RNG.standard_normal(s)) if kind is float else (lambda *s: RNG.standard_normal(s) + 1j * RNG.standard_normal(s))
    return {"u": RNG.standard_normal((1, steps)), "Abar": 0.4 * draw(n, n), "Bbar": draw(n), "C": draw(n), "D": draw()[()]}, draw(1, n)


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("steps", [0, 1, 9, 300])
def test_the_adapter_makes_scipy_simulate_our_convention(kind, steps):
    x, start = system(steps=steps, kind=kind)
    x = {n: np.asarray(a) for n, a in x.items()}
    n = len(x["C"])
    shaped = {"Bbar": x["Bbar"].reshape(n, 1), "C": x["C"].reshape(1, n), "D": x["D"].reshape(1, 1)}
    given = {"u": x["u"][0][:, None], "Abar": x["Abar"], **shaped}
    out, states = oracle.system(LTI, given, start[0])
    close(scipy_truth.simulate(Instance(x, start, {}, "float64"))[0], out)
    assert states.shape == (steps + 1, n)


def test_a_pole_is_a_recursive_filter_and_a_convolution():
    u, a, b, c = RNG.standard_normal(20), 0.9, 2.0, -0.5
    x = {"u": u[None], "Abar": np.array([a]), "Bbar": np.array([b]), "C": np.array([c]), "D": np.array(0.25)}
    found = scipy_truth.simulate(Instance(x, None, {}, "float64"))[0]
    close(found, signal.lfilter([c * b], [1, -a], u) + 0.25 * u)
    close(found, signal.fftconvolve(c * b * a ** np.arange(20), u)[:20] + 0.25 * u)


def test_dlsim_does_not_drop_imaginary_parts_silently():
    a = np.array([[1j]])
    with pytest.raises((Warning, ValueError, TypeError)):
        scipy_truth.dlsim(a, np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 1)), np.ones(3), np.zeros(1))


@pytest.mark.parametrize("a", [np.zeros((2, 2)), np.array([[0.0, 1], [0, 0]]), np.array([[-1.0, 1], [0, -1]]), np.diag([-300.0, 0])])
def test_the_hold_is_the_exponential_of_the_block(a):
    b, delta = np.array([1.0, -2.0]), 0.5
    block = np.zeros((3, 3))
    block[:2, :2], block[:2, 2] = a, b
    close(oracle.pair(RULES[0], a, b, delta), linalg.expm(delta * block)[:2])
    close(np.column_stack(scipy_truth.hold(a, b, delta)), linalg.expm(delta * block)[:2])


@pytest.mark.parametrize(("rule", "alpha"), [(1, 0.5), (2, 0.0)])
def test_the_rational_rules_are_scipys(rule, alpha):
    a, b = RNG.standard_normal((3, 3)), RNG.standard_normal(3)
    close(oracle.pair(RULES[rule], a, b, 0.3), np.column_stack(scipy_truth.gbt(a, b, 0.3, alpha)))


@pytest.mark.parametrize(
    "method", [{"method": "gbt", "alpha": alpha} for alpha in (0.0, 0.25, 0.5, 1.0)] + [{"method": "bilinear"}], ids=str
)
def test_the_adapter_of_the_generalised_rule_is_scipys(method):
    """The claim gbt-vs-scipy at SciPy's own matrices: H_scipy - D = (α + (1 - α)/z) (H_ml - D), ml keeping C and D."""
    a, b, c, d = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 2)), RNG.standard_normal((2, 3)), RNG.standard_normal((2, 2))
    alpha = method.get("alpha", 0.5)
    own_a, own_b, own_c, own_d, _ = signal.cont2discrete((a, b, c, d), 0.3, **method)
    assert alpha == 0 or not np.allclose(own_c, c)
    for z in np.exp(1j * np.array([0.3, 1.0, 2.5])) * 2:
        resolvent = np.linalg.inv(z * np.eye(3) - own_a)
        scipys, ours = own_c @ resolvent @ own_b + own_d, z * c @ resolvent @ own_b + d
        close(scipys - d, (alpha + (1 - alpha) / z) * (ours - d))


def test_held_inputs_are_held():
    a, b, delta = np.array([[-1.0]]), np.array([1.0]), 0.5
    found = scipy_truth.response(a, b, np.array([1.0, 0.0]), delta, np.zeros(1))[:, 0]
    rise = 1 - np.exp(-delta)
    close(found, [0, rise, rise * np.exp(-delta)])


@pytest.mark.parametrize("kind", [float, complex])
def test_the_slope_of_a_system_is_that_of_its_powers(kind):
    """One pole: y_t = Σ_l c a^l b u_{t-l} + c a^t s + d u_t."""
    (x, s), (dx, ds) = (system(1, 7, kind) for _ in range(2))
    at, along = ({n: np.reshape(a, (-1, 1)) for n, a in y.items()} for y in (x, dx))
    (a, b, c), (da, db, dc) = ([y[n].item() for n in ("Abar", "Bbar", "C")] for y in (at, along))
    l = np.arange(8)
    power, turn = a**l, l * a ** np.maximum(l - 1, 0) * da
    pulse, free = np.concatenate([[0.0], x["u"][0]]), s.item()
    states, changes = (np.convolve(p, pulse)[:8] for p in (power, turn))
    states, changes = b * states + power * free, db * states + b * changes + turn * free + power * ds.item()
    changes += b * np.convolve(power, np.concatenate([[0.0], dx["u"][0]]))[:8]
    out, last = oracle.system_slope(LTI, at, s[0], along, ds[0])
    close(out, (dc * states + c * changes)[1:] + dx["D"] * x["u"][0] + x["D"] * dx["u"][0])
    close(last, changes[-1:])


@pytest.mark.parametrize("kind", [float, complex])
def test_the_slope_of_a_hold_is_that_of_its_integral(kind):
    """One pole: e^z and (e^z - 1) b / a with z = Δ a."""
    a, b, da, db = (RNG.standard_normal(4) + (1j * RNG.standard_normal(4) if kind is complex else 0)).tolist()
    delta, turn = 0.3, 0.7
    growth, dz = np.exp(delta * a), turn * a + delta * da
    expected = [growth * dz, growth * dz * b / a + (growth - 1) * (db / a - b * da / a**2)]
    at, along = (np.array([[a]]), np.array([b]), delta), (np.array([[da]]), np.array([db]), turn)
    close(oracle.pair_slope(RULES[0], at, along)[0], np.array(expected))
