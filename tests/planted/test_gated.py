"""Faulty memories with decays: each law must see those of its kind, at both scales; right siblings hold."""

import pytest

from isoform.properties.columns import operator
from isoform.properties.crosscheck import LEVELS
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.strategies import Case
from isoform.properties.tensors import SHORT

from .faults.gates import ALL, CHANNELS, DELTA, GATED, PLANTED, RETENTION, STEPS, ReadsTheOldState
from .gated import Chunks, Loop, form, step
from .planting import LAWS

FAULTS = [
    pytest.param(law, fault, name, id=f"{law}-{fault.__name__}-{name}")
    for law, found in PLANTED.items()
    for fault, names in found
    for name in names
]


def checked(law, name, tested, **more):
    given = {"examples": LEVELS["default"].examples, "seed": 0, "minimise": False} | more
    return run_law(LAWS[law], operator(name), tested, **given)


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "fault", "name"), FAULTS)
def test_a_faulty_form_is_caught(law, fault, name, scale):
    result = checked(law, name, Form(fault.__name__, form(fault, name)), scales=(scale,))
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("right", [pytest.param(Loop, marks=pytest.mark.deep), Chunks])
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("law", PLANTED)
def test_a_right_form_holds(right, law, name):
    result = checked(law, name, Form(right.__name__, form(right, name), step(Loop, name)), examples=2, corners=3)
    if result.verdict == "not-applicable":
        assert (law, name) == ("padding", RETENTION)
        return
    assert result.verdict == "holds" and result.worst_error_over_bound <= 0.2, result


class ShortOperands(Chunks):
    """As on a tensor core: what is multiplied into the state, the state that is read and queries are rounded to the inputs' 16 bits."""

    def operand(self, x):
        return x.to(self.call["v"].dtype).to(self.dtype)

    def find(self, k, s):
        return super().find(self.operand(k), self.operand(s))


class ShortCarry(Chunks):
    """The state itself in 16 bits, for 16-bit inputs alone."""

    def carry(self, s):
        return s.to(self.call["v"].dtype).to(s.dtype)


class ShortEvery64(Loop):
    """The state in 16 bits every 64 tokens, for 16-bit inputs alone."""

    def fade(self, s, x, t):
        return super().fade(s.to(self.call["v"].dtype).to(s.dtype) if t % 64 == 0 and t else s, x, t)


class ShortStart(ShortOperands):
    def start(self, n, x):
        return self.operand(super().start(n, x))


SUMMED = ("form-equals-oracle", "state-equals-oracle", "packed-equals-alone", "split-and-resume")


@pytest.mark.parametrize("name", [RETENTION, GATED, CHANNELS])
@pytest.mark.parametrize("law", SUMMED)
def test_a_form_on_short_operands_is_right_if_its_sums_are_not_short(law, name):
    result = checked(law, name, Form("ShortOperands", form(ShortOperands, name)), dtypes=SHORT, examples=10)
    assert result.verdict == "holds", result


@pytest.mark.parametrize("name", [RETENTION, GATED, CHANNELS])
@pytest.mark.parametrize("fault", [ShortCarry, ShortEvery64, ShortStart])
def test_a_form_whose_state_is_short_is_caught_beside_a_start_that_is_not(fault, name):
    result = checked("state-equals-oracle", name, Form(fault.__name__, form(fault, name)), dtypes=SHORT, scales=("small",))
    assert result.verdict == "violated", result


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("fault", "name"), [(f, n) for f, names in STEPS for n in names])
def test_a_faulty_step_is_caught(fault, name, scale):
    result = checked("step-equals-whole", name, Form("Loop", form(Loop, name), step(fault, name)), scales=(scale,))
    assert result.verdict == "violated", result


@pytest.mark.parametrize(
    ("name", "argument", "law"), [(RETENTION, "g_gamma", "exact-bits"), (RETENTION, "g_gamma", "outside-the-domain")]
)
def test_a_law_that_needs_an_argument_which_a_form_has_not_is_not_applicable(name, argument, law):
    result = checked(law, name, Form("Loop", form(Loop, name, without=(argument,))), examples=3)
    assert (result.verdict, result.detail) == ("not-applicable", f"the form has no argument {argument}")


@pytest.mark.parametrize(
    ("name", "argument"), [(RETENTION, "g_gamma"), (CHANNELS, "gv"), (DELTA, "use_qk_l2norm_in_kernel")]
)
def test_a_form_without_an_optional_argument_is_held_to_the_rest(name, argument):
    result = checked("form-equals-oracle", name, Form("Loop", form(Loop, name, without=(argument,))))
    assert result.verdict == "holds", result
    wrong = checked("form-equals-oracle", name, Form("ReadsTheOldState", form(ReadsTheOldState, name, without=(argument,))))
    assert wrong.verdict == "violated", wrong


@pytest.mark.parametrize("name", [GATED, CHANNELS, DELTA])
def test_padding_beside_gates_that_are_strong_for_float16_holds(name):
    sizes = (("b", 2), ("t", 5), ("h", 1), ("groups", 1), ("k", 2), ("v", 2), ("chunk", 4))
    case = Case(name, sizes, 0, "float16", "large", ("gates-strong",))
    found = list(LAWS["padding"].check(operator(name), Form("Loop", form(Loop, name)), case))
    assert found and max(c.worst for c in found) <= 1


@pytest.mark.parametrize("name", ALL)
def test_outside_the_domain_an_error_holds(name):
    class Refuses(Loop):
        def logs(self, g):
            if (g > 0).any():
                raise ValueError("decays must be at most 1")
            return g

        def strength(self, beta, k):
            if (beta < 0).any() or (beta * k.square().sum(-1, keepdim=True) > 2.1).any():
                raise ValueError("beta |k|^2 must be in [0, 2]")
            return beta

    assert checked("outside-the-domain", name, Form("Refuses", form(Refuses, name))).verdict == "holds"
