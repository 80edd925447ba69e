"""Right kernels in an accelerator's order of evaluation: the laws that compare numbers accuse none of them."""

import pytest

from isoform.properties.columns import operator
from isoform.properties.operator import Form
from isoform.properties.running import run_law

from .orders import ORDERS, delta_on_short_operands, gated_delta_on_short_operands, gated_retention_in_logs
from .planting import LAWS

KERNELS = [pytest.param(name, f, id=f.__name__) for name, found in ORDERS.items() for f in found]
SHORT = [("delta-rule", delta_on_short_operands), ("gated-delta-rule", gated_delta_on_short_operands)]


def held(law, name, form, examples=5, **more):
    return run_law(LAWS[law], operator(name), form, examples=examples, seed=0, minimise=False, **more)


@pytest.mark.parametrize(("name", "kernel"), KERNELS)
def test_an_order_of_evaluation_is_no_fault(name, kernel):
    result = held("form-equals-oracle", name, Form(kernel.__name__, kernel), corners=12)
    assert result.verdict == "holds", result


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("law", ["form-equals-oracle", "state-equals-oracle", "long-sequence", "finite-at-the-edges", "gradient-of-inputs"])
@pytest.mark.parametrize(("name", "kernel"), KERNELS)
def test_nor_is_it_one_to_any_law_about_numbers(name, kernel, law, seed):
    result = run_law(LAWS[law], operator(name), Form(kernel.__name__, kernel), examples=40, seed=seed, minimise=False)
    assert result.verdict in ("holds", "not-applicable"), result


@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        ("form-equals-oracle", "holds"),
        ("state-equals-oracle", "holds"),
        ("finite-at-the-edges", "holds"),
        ("exact-bits", "violated"),
        ("gradient-of-inputs", "violated"),
    ],
)
def test_a_scan_of_logarithms_is_within_the_bounds_and_has_neither_exact_bits_nor_gradients_at_0(law, verdict):
    assert held(law, "gated-retention", Form("logs", gated_retention_in_logs), corners=12).verdict == verdict


@pytest.mark.parametrize("kernel", ORDERS["attention"])
def test_a_kernel_without_a_mask_is_not_asked_to_mask(kernel):
    result = held("padding-mask", "attention", Form(kernel.__name__, kernel), corners=2)
    assert (result.verdict, result.detail) == ("not-applicable", "the form has no argument mask")


@pytest.mark.parametrize(("name", "kernel"), SHORT)
def test_operands_of_16_bits_in_a_solve_are_to_be_declared(name, kernel):
    declared = Form(kernel.__name__, kernel, precision="bf16-operands")
    result = held("state-equals-oracle", name, declared, dtypes=("bfloat16",))
    assert result.verdict == "holds", result
    assert held("state-equals-oracle", name, Form(kernel.__name__, kernel), dtypes=("bfloat16",)).verdict == "violated"
