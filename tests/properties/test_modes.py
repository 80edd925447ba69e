"""Derivatives of diagonal systems: what bounds them is the derivative itself where all terms are positive, and closed forms."""

import numpy as np
import pytest

from isoform.derivations.state_space import DECLARATION
from isoform.impl._kernels import causal_convolution
from isoform.properties import oracle
from isoform.properties.modes import Modes, majorant, pulls, transform_error
from isoform.properties.tensors import gradients, precision, rounded, tensor

RNG = np.random.default_rng(0)


def drawn(steps=6, n=3, positive=False):
    draw = RNG.random if positive else lambda *s: RNG.standard_normal(*s) + 1j * RNG.standard_normal(*s)
    return Modes(RNG.random(steps) - (not positive) / 2, draw(n) / 2, draw(n), draw(n), 0.5, draw(n))


def slope(at, along):
    return oracle.system_slope(DECLARATION, at.declared(), at.start, along.declared(), along.start)


def test_of_positive_terms_it_is_the_derivative():
    at, along = drawn(positive=True), drawn(positive=True)
    outputs, ends = majorant(at, along, np.zeros(3), np.zeros(3))
    out, last = slope(at, along)
    np.testing.assert_allclose(outputs[0], out, rtol=1e-12)
    np.testing.assert_allclose(ends[0], last, rtol=1e-12)
    assert not outputs[1].any() and not ends[1].any()


def test_it_is_no_less_than_the_derivative():
    at, along = drawn(), drawn()
    outputs, ends = majorant(at, along, np.zeros(3), np.zeros(3))
    out, last = slope(at, along)
    assert (np.abs(out) < outputs[0]).all() and (np.abs(last) < ends[0]).all()


def test_errors_cost_it_what_a_second_derivative_is():
    """One pole from its start: c a^t s by a twice, and c a^{t-1} b of one impulse by a and b."""
    zero, one = np.zeros(1), np.ones(1)
    a, t = 0.7 * one, np.arange(1, 7)
    free = Modes(np.zeros(6), a, 3 * one, 2 * one, 0.0, 5 * one)
    outputs, _ = majorant(free, Modes(np.zeros(6), one, zero, zero, 0.0, zero), 0.25 * one, zero)
    np.testing.assert_allclose(outputs[1], 2.5 * t * (t - 1) * 0.7 ** np.maximum(t - 2, 0), rtol=1e-12)
    driven = Modes(np.eye(1, 6)[0], a, 3 * one, 2 * one, 0.0, zero)
    outputs, _ = majorant(driven, Modes(np.zeros(6), one, zero, zero, 0.0, zero), zero, 0.25 * one)
    np.testing.assert_allclose(outputs[1], 0.5 * (t - 1) * 0.7 ** np.maximum(t - 2, 0), rtol=1e-12)


def test_the_derivatives_by_the_parameters_are_those_in_directions():
    at, along = drawn(), drawn()
    only = Modes(np.zeros(6), along.a, along.b, np.zeros(3), 0.0, np.zeros(3))
    weights, final = RNG.standard_normal(6), along.start
    out, last = slope(at, only)
    found = (pulls(at, weights, final) * np.stack([along.a, along.b])).sum().real
    np.testing.assert_allclose(found, weights @ out.real + np.vdot(final, last).real, rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 33, 200])
def test_a_transform_is_within_its_error(steps):
    """The gradients of a convolution in float32 against sums in float64, for a kernel of one pole."""
    at = Modes(rounded(RNG.standard_normal(steps), "float32"), np.array([0.75]), np.ones(1), np.ones(1), 0.0, np.zeros(1))
    along = Modes(RNG.standard_normal(steps), np.array([0.5]), np.zeros(1), np.zeros(1), 0.0, np.zeros(1))
    weights, times = rounded(RNG.standard_normal(steps), "float32"), np.arange(steps)
    kernel = rounded(0.75**times, "float32")
    change = times * 0.75 ** np.maximum(times - 1, 0) * 0.5
    given = {"u": tensor(at.u[None], "float32"), "kernel": tensor(kernel[None], "float32")}
    found, _ = gradients(lambda x: ((causal_convolution(x["u"], x["kernel"]), weights[None]),), given)
    truth = weights @ (np.convolve(along.u, kernel)[:steps] + np.convolve(at.u, change)[:steps])
    error = abs((found["u"] * along.u).sum() + (found["kernel"] * change).sum() - truth)
    assert error < 0.2 * transform_error(at, along, weights, precision("float32").unit)
