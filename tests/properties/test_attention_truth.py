"""The truth of attention: balls, SciPy's softmax and SciPy's logsumexp say the same of every corner case."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from isoform.properties import oracle
from isoform.properties.attention import rows, visible
from isoform.properties.bounds import EXACT, gamma
from isoform.properties.columns import operators
from isoform.properties.laws.table import instance, reference

OPERATORS = operators("attention")
CASES = [pytest.param(o, case, id=f"{o.name}-{n}") for o in OPERATORS for n, case in enumerate(o.corners())]


def by_logsumexp(x, causal, shift=0.0):
    """Weights exp(score - logsumexp), over the keys that a row sees."""
    found = np.zeros((*x.inputs["q"].shape[:3], x.inputs["v"].shape[3]))
    for r in rows(x, causal):
        scores = r.keys @ r.query
        found[r.place] = np.exp(scores - logsumexp(scores + shift)) @ r.values
    return found


@pytest.mark.parametrize(("operator", "case"), CASES)
def test_balls_and_scipy_agree(operator, case):
    x, truth = instance(operator, case), reference(operator, case)
    causal = "causal" in operator.capabilities
    size = max((np.abs(r.keys) @ np.abs(r.query)).max() for r in rows(x, causal))
    terms = max(np.abs(r.values).max() for r in rows(x, causal))
    steps = x.inputs["k"].shape[1] + x.inputs["k"].shape[3]
    bound = (2 * gamma(steps + 4, EXACT.unit) * size + gamma(4 * steps, EXACT.unit)) * terms
    for found in (operator.independent(x), by_logsumexp(x, causal)):
        assert np.abs(found - truth.output).max() <= bound
    assert np.abs(by_logsumexp(x, causal, 1e-9) - truth.output).max() > bound


@pytest.mark.parametrize(("operator", "case"), CASES)
def test_a_row_that_sees_nothing_is_0(operator, case):
    x, truth = instance(operator, case), reference(operator, case)
    empty = ~visible(x, "causal" in operator.capabilities).any(-1)
    assert not truth.output[empty].any() and not truth.bound[empty].any()


def test_corner_cases_have_what_faults_are_seen_by():
    attention = OPERATORS[0]
    cases = [(case, instance(attention, case)) for case in attention.corners()]
    seen = [visible(x, True) for _, x in cases]
    assert any((~s.any(-1)).any() for s in seen)
    assert any("window_size" in x.options and x.options["window_size"] < x.inputs["k"].shape[1] for _, x in cases)
    assert any(not np.isfinite(x.inputs["v"]).all() for _, x in cases)
    assert any(3 * x.options["chunk_size"] < x.inputs["k"].shape[1] for _, x in cases)
    assert any(x.options["chunk_size"] > x.inputs["k"].shape[1] for _, x in cases)
    assert any(1 < x.inputs["k"].shape[2] < x.inputs["q"].shape[2] for _, x in cases)
    assert {case.dtype for case, _ in cases} == {"float64", "float32", "bfloat16", "float16"}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: o.name)
@pytest.mark.parametrize("flags", [("hidden",), ("longer", "hidden"), ("longer", "hidden", "padding")])
def test_no_rows_have_no_truth_whatever_the_keys(operator, flags):
    case = replace(operator.corners()[0].resized(t=0), flags=flags)
    assert reference(operator, case).output.size == 0


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_scores_of_any_size(size):
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((5, 3)) * size, rng.standard_normal((5, 3)), rng.standard_normal((5, 2))
    found = oracle.attention(OPERATORS[0].declaration, q, k, v)
    for t in range(5):
        scores = k[: t + 1] @ q[t]
        weights = np.exp(scores - logsumexp(scores))
        bound = 2 * gamma(8, EXACT.unit) * (np.abs(k) @ np.abs(q[t])).max() + gamma(20, EXACT.unit)
        assert np.abs(found[t] - weights @ v[: t + 1]).max() <= bound * np.abs(v).max()
