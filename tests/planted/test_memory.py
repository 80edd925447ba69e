"""Faulty forms of linear attention and the delta rule: each law must see those of its kind, at both scales."""

import pytest

from isoform.properties.operator import Form

from .faults.memories import BASES, PLANTED, STEPS, wide_heads_cut_off, wide_values_cut_off
from .planting import checked


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize(("law", "plant"), [pytest.param(law, f, id=f"{law}-{f.__name__}") for law, fs in PLANTED.items() for f in fs])
def test_a_faulty_form_is_caught(law, plant, name, scale):
    base = BASES[name]
    result = checked(law, name, Form(plant.__name__, plant(base.chunkwise), siblings=(base.recurrent,)), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("plant", [wide_heads_cut_off, wide_values_cut_off], ids=lambda f: f.__name__)
def test_a_form_that_fails_for_wide_heads_is_caught(plant, name):
    result = checked("form-equals-oracle", name, Form("wide", plant(BASES[name].chunkwise)), "large")
    assert result.verdict == "violated", result


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("plant", STEPS, ids=lambda f: f.__name__)
def test_a_faulty_step_is_caught(plant, name, scale):
    base = BASES[name]
    result = checked("step-equals-whole", name, Form("recurrent", base.recurrent, plant(base.step)), scale)
    assert result.verdict == "violated", result
