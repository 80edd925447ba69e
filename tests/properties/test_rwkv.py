"""RWKV's truth, derivative and bounds: beside sums written out, differences, and the bounds of the operators that are special cases."""

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from isoform.impl import rwkv
from isoform.properties import columns, wkv
from isoform.properties.laws import laws
from isoform.properties.laws.table import instance, reference
from isoform.properties.operator import Form, Instance
from isoform.properties.running import run_law
from isoform.properties.strategies import Case
from isoform.properties.tensors import precision
from isoform.properties.wkv import Channel

AVERAGE = columns.operator("wkv")
FLAGS = [
    (),
    ("start",),
    ("start", "gates-mixed"),
    ("start", "gates-reset"),
    ("start", "gates-strong", "large-bonus"),
    ("rising",),
    ("first-key",),
]


def case(*flags, t=9, dtype="float64", scale="small", seed=3):
    return Case("wkv", (("b", 2), ("t", t), ("c", 4)), seed, dtype, scale, flags)


def written_out(channel):
    """Outputs by one softmax a row, and the last sums under the last maximum; in float64."""
    out = []
    heads = np.concatenate([[channel.below], np.ones_like(channel.v)])
    values = np.concatenate([[channel.above], channel.v])
    sources = np.concatenate([[channel.p], channel.k])
    steps = len(channel.k)

    def aged(n):
        return sources[:n] + np.array([0.0 if a == 0 else a * channel.w for a in range(n - 1, -1, -1)])

    for t in range(steps):
        logs = np.append(aged(t + 1), channel.u + channel.k[t])
        weights = np.exp(logs - logs.max())
        out.append(weights @ values[: t + 2] / (weights @ heads[: t + 2]))
    last = aged(steps + 1)
    return np.array(out), np.exp(last - last.max()) @ values, np.exp(last - last.max()) @ heads, last.max()


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("flags", FLAGS, ids="+".join)
def test_the_truth_is_what_the_sums_are_written_out(flags, scale):
    x, found = instance(AVERAGE, case(*flags, scale=scale)), reference(AVERAGE, case(*flags, scale=scale))
    for (n, i), channel in wkv.channels(x):
        out, above, below, p = written_out(channel)
        assert (np.abs(found.output[n, :, i] - out) <= found.bound[n, :, i]).all()
        assert (np.abs(found.states[n, -1, :, i] - np.array([above, below, p])) <= found.states_bound[n, -1, :, i]).all()


def test_a_mean_of_logs_is_what_scipy_adds_up():
    """Values e^x > 0: the logarithm of an output is a difference of two log-sum-exps."""
    rng = np.random.default_rng(0)
    k, x = rng.standard_normal((2, 7)) * 30
    channel = Channel(k, np.exp(x / 30), -0.25, 1.5, 0.0, 0.0, -np.inf)
    out, _ = wkv.truth(channel)
    for t in range(7):
        logs = np.append(k[:t] - 0.25 * np.arange(t - 1, -1, -1), 1.5 + k[t])
        assert np.log(out[t]) == pytest.approx(logsumexp(logs + x[: t + 1] / 30) - logsumexp(logs), abs=1e-12)


@pytest.mark.parametrize("moved", ["k", "v", "w", "u", "start"])
def test_the_derivative_is_the_limit_of_differences(moved):
    x = instance(AVERAGE, case("start"))
    rng = np.random.default_rng(1)
    size = {n: np.zeros_like(a) for n, a in x.inputs.items()} | {"start": np.zeros_like(x.state)}
    size[moved] = rng.standard_normal(size[moved].shape)
    weights, final = rng.standard_normal(x.inputs["v"].shape), rng.standard_normal(x.state.shape)
    p = reference(AVERAGE, case("start")).states[:, -1, 2]

    def loss(step):
        start = x.state + np.where(np.isfinite(x.state), step * size["start"], 0.0)
        at = Instance({n: a + step * size[n] for n, a in x.inputs.items()}, start, {}, x.dtype)
        found = AVERAGE.refer(at)
        sums = found.states[:, -1, :2] * np.exp(found.states[:, -1, 2:] - p[:, None])
        return (weights * found.output).sum() + (final[:, :2] * sums).sum()

    value, bound = AVERAGE.derive(x, {n: size[n] for n in x.inputs}, size["start"], weights, final)
    step = 2.0**-13
    assert value == pytest.approx((loss(step) - loss(-step)) / (2 * step), rel=1e-6, abs=1e-9)
    assert 0 < bound < 1e-9


# bounds --------------------------------------------------------------------------------------------


def test_the_bound_of_one_token_by_hand():
    """o = v: the weight is 1; its exponent has two differences of |u| and the key's own size, 16 roundings, and the mean 20 more."""
    v, u, k = 1.5, 0.75, 2.0
    channel = Channel(np.array([k]), np.array([v]), -1.0, u, 0.0, 0.0, -np.inf)
    p = precision("float32")
    found = wkv.bound(channel, *wkv.truth(channel), p)
    assert found.output[0] == pytest.approx(2 * 20 * p.unit * v, rel=0.01)  # no other value to be mixed with
    assert found.states[1, 2] == pytest.approx(p.unit * k, rel=0.01)  # p is the key
    assert found.states[1, 1] == pytest.approx(p.unit * (2 * k + 16 + 20 + 1), rel=0.02)


def test_the_bound_of_two_tokens_by_hand():
    """Weights 1 and 1 of the values 1 and -1 without decay: each may be wrong by its exponent and roundings, apart by 1 each."""
    channel = Channel(np.zeros(2), np.array([1.0, -1.0]), 0.0, 0.0, 0.0, 0.0, -np.inf)
    p = precision("float32")
    found = wkv.bound(channel, *wkv.truth(channel), p)
    assert found.output[1] == pytest.approx(p.unit * (16 + 24), rel=0.02)


def test_what_decays_away_costs_nothing():
    """A key far below the others has no say in the bound, whatever its exponent is rounded by."""
    far = Channel(np.array([-1e4, 0.0, 0.0]), np.array([1e3, 1.0, 1.0]), -1.0, 0.0, 0.0, 0.0, -np.inf)
    near = Channel(np.array([0.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0]), -1.0, 0.0, 0.0, 0.0, -np.inf)
    p = precision("float32")
    bounds = [wkv.bound(c, *wkv.truth(c), p).output[2] for c in (far, near)]
    assert bounds[0] <= bounds[1] * 1.01


SPECIAL = [(o.name, n) for o in (columns.operator("wkv6"), columns.operator("wkv7")) for n in range(len(o.reductions))]


@pytest.mark.parametrize(("name", "number"), SPECIAL)
def test_the_bound_of_a_special_case_is_hardly_wider_than_the_others(name, number):
    operator = columns.operator(name)
    special = operator.reductions[number]
    sizes = (("b", 1), ("t", 12), ("h", 1), ("groups", 1), ("k", 3), ("v", 2), ("chunk", 4))
    drawn = Case(name, sizes, 5, "float32", "small", special.flags)
    own = reference(operator, drawn)
    other = columns.operator(special.operator).refer(special.becomes(instance(operator, drawn)))
    assert np.median(own.bound / other.bound) < 4
    assert np.median(own.bound / other.bound) > 0.25


@pytest.mark.parametrize(("empty", "verdict"), [(-1e38, "holds"), (0.0, "holds"), (None, "violated")])
def test_before_any_token_the_maximum_is_any_number(empty, verdict):
    """With nothing in the sums; a denominator there is no empty state."""

    def fresh(k, v, w, u, initial_state=None, output_final_state=False):
        o, state = rwkv.wkv.recurrent(k, v, w, u, initial_state, output_final_state)
        if state is not None and empty is not None:
            state = torch.where(state == -torch.inf, empty, state)
        elif state is not None:
            state = torch.where((state[:, 2:] == -torch.inf) & (torch.arange(3) == 1)[:, None], 1.0, state)
        return o, state

    law = next(law for law in laws() if law.name == "state-equals-oracle")
    assert run_law(law, AVERAGE, Form("fresh", fresh), examples=4, corners=4).verdict == verdict
