"""Attention that sees what it should not, or not all that it should, and blocks that are not put together: each law sees its own."""

import pytest

from isoform.impl import attention
from isoform.properties.operator import Form

from .attending import BASES
from .faults.sight import PAIRS, online, sums_in_the_dtype
from .planting import checked


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("name", "law", "plant"), [pytest.param(*p, id=f"{p[0]}-{p[1]}-{p[2].__name__}") for p in PAIRS])
def test_a_faulty_form_is_caught(name, law, plant, scale):
    result = checked(law, name, Form(plant.__name__, plant(BASES[name])), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(
    "fault", ["ragged tail skipped", "tail padded with zeros", "sum not rescaled", "output not rescaled", "blocks averaged"]
)
def test_faulty_blocks_are_caught(fault, scale):
    result = checked("chunk-size", "attention", Form("online", online(fault)), scale)
    assert result.verdict == "violated" and "raised" not in result.detail, result


@pytest.mark.parametrize("law", ["chunk-size", "form-equals-oracle", "window"])
def test_right_blocks_hold(law):
    result = checked(law, "attention", Form("online", online("")), "large")
    assert result.verdict == "holds", result


def test_sums_in_sixteen_bits_are_caught():
    result = checked("form-equals-oracle", "attention", Form("sums_in_the_dtype", sums_in_the_dtype(attention.masked)), "small")
    assert result.verdict == "violated" and "bfloat16" in result.detail, result
