"""Faulty forms of RWKV: each law must see those of its kind, at both scales; right siblings hold."""

import pytest
import torch

from isoform.properties.columns import operator
from isoform.properties.operator import Form
from isoform.properties.running import run_law

from .faults.rwkv import ANY, KINDS, PLANTED, RIGHT, STEPS
from .planting import LAWS
from .recurring import Mean, form, step

PAIRS = [pytest.param(law, kind, name, id=f"{law}-{kind.__name__}-{name}") for law, kind, name in KINDS]


def checked(law, name, form, examples=12, **more):
    return run_law(LAWS[law], operator(name), form, examples=examples, seed=0, minimise=False, **more)


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "fault", "name"), PAIRS)
def test_a_faulty_form_is_caught(law, fault, name, scale):
    result = checked(law, name, Form(fault.__name__, form(fault, name)), scales=(scale,))
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("law", PLANTED)
def test_a_right_form_holds(law, name):
    kind = RIGHT[name]
    result = checked(law, name, Form(kind.__name__, form(kind, name), step(kind, name)), examples=2, corners=6)
    assert result.verdict == ("not-applicable" if LAWS[law].missing(operator(name), Form("", form(kind, name))) else "holds"), result


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("fault", "name"), STEPS)
def test_a_faulty_step_is_caught(fault, name, scale):
    right = form(RIGHT[name], name)
    result = checked("step-equals-whole", name, Form("right", right, step(fault, name)), scales=(scale,))
    assert result.verdict == "violated", result


@pytest.mark.parametrize("scale", ["small", "large"])
def test_a_form_that_never_holds_the_maximum_back_gives_another_gradient_through_p_and_is_right(scale):
    """What p adds to the gradient of a loss of the true sums cancels."""

    class Attached(Mean):
        def update(self, state, k, v):
            a, b, p = state
            w = self.wide(self.call["w"])
            new = torch.maximum(p + w, k)
            kept, entering = (p + w - new).exp(), (k - new).exp()
            return kept * a + entering * v, kept * b + entering, new

    result = checked("gradient-through-final-state", "wkv", Form("Attached", form(Attached, "wkv")), scales=(scale,), dtypes=("float64",))
    assert result.verdict == "holds", result
