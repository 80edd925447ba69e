"""Faulty selective scans and convolutions: each law must see faults of its kind, at both scales."""

from functools import wraps

import pytest

from isoform.impl import mamba
from isoform.properties.columns import operator
from isoform.properties.operator import Form
from isoform.properties.running import run_law

from .faults.scans import BASES, FILTERS, SCANS, SHARED, none_planted
from .planting import LAWS, checked

PAIRS = [
    pytest.param(name, law, f, id=f"{name}-{law}-{f.__name__}")
    for name, (_, _, own) in BASES.items()
    for planted in (SHARED, FILTERS if name == "causal-conv1d" else SCANS, own)
    for law, faults in planted.items()
    for f in faults
]
both_scales = pytest.mark.parametrize("scale", ["small", "large"])


@both_scales
@pytest.mark.parametrize(("name", "law", "plant"), PAIRS)
def test_a_faulty_form_is_caught(name, law, plant, scale):
    base, sibling, _ = BASES[name]
    result = checked(law, name, Form(plant.__name__, plant(base), siblings=(sibling,)), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@both_scales
@pytest.mark.parametrize("name", ["selective-scan", "selective-scan-zoh"])
def test_what_the_faults_are_planted_in_is_right(name, scale):
    """The scan that is written out here, with accurate functions."""
    form = Form("none_planted", none_planted(mamba.recurrent))
    result = run_law(LAWS["form-equals-oracle"], operator(name), form, scales=(scale,), dtypes=("float32", "float64"))
    assert result.verdict == "holds" and result.worst_error_over_bound < 1, result


def step_forgets(step):
    return wraps(step)(lambda **call: (step(**call)[0], step(**call)[1] * 0))


def step_starts_again(step):
    return wraps(step)(lambda **call: step(**call | {"state": None}))


def step_a_little_large(step):
    return wraps(step)(lambda **call: (step(**call)[0] * 1.004, step(**call)[1]))


@both_scales
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("plant", [step_forgets, step_starts_again, step_a_little_large])
def test_a_faulty_step_is_caught(name, plant, scale):
    form = Form("recurrent", BASES[name][1], plant(mamba.STEPS[name]))
    assert checked("step-equals-whole", name, form, scale).verdict == "violated"
