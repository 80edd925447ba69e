"""Faulty LTI systems: each law must see faults of its kind, at both scales."""

import pytest

from isoform.impl import state_space
from isoform.properties.operator import Form

from .faults.systems import PLANTED, step_a_little_large, step_forgets, step_reads_first
from .planting import checked

PAIRS = [("lti", law, f) for law, fs in PLANTED.items() for f in fs]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "plant"), [pytest.param(law, f, id=f"{law}-{f.__name__}") for _, law, f in PAIRS])
def test_a_faulty_form_is_caught(law, plant, scale):
    form = Form(plant.__name__, plant(state_space.convolution), siblings=(state_space.recurrent,))
    result = checked(law, "lti", form, scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("step", [step_forgets, step_reads_first, step_a_little_large])
def test_a_faulty_step_is_caught(step, scale):
    assert checked("step-equals-whole", "lti", Form("recurrent", state_space.recurrent, step), scale).verdict == "violated"
