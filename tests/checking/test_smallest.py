"""What is shown of a failure is the smallest case, and of those the plainest that fails."""

from dataclasses import replace

import pytest
import torch

from isoform.checking import plan, trial
from isoform.checking.smallest import simplicity
from isoform.properties.columns import columns, operators
from isoform.properties.strategies import LARGE, ORDINARY, SMALL, Case

from .kernels.kernels import right

CASE = Case("delta-rule", (("b", 1), ("t", 2), ("h", 1), ("k", 1), ("v", 3), ("chunk", 64)), 5, "float32", ORDINARY, ("start",))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (replace(CASE, dtype="float64", scale=LARGE).resized(t=1), CASE),
        (CASE, replace(CASE, scale=SMALL, flags=(), seed=0)),
        (CASE, replace(CASE, dtype="float64", flags=(), seed=0)),
        (replace(CASE, flags=()), replace(CASE, seed=0)),
        (replace(CASE, seed=4), CASE),
    ],
)
def test_size_comes_before_scale_dtype_structure_and_seed(first, second):
    assert simplicity(first) < simplicity(second) and simplicity(first) < simplicity(second.resized(chunk=1))


def smallest(kernel, law="form-equals-oracle", **options):
    made = plan.make(None, "kernel", "delta-rule", level="quick", laws=law, fail_fast=True, **options)
    return trial.try_law(made, {}, law, None, kernel).smallest


def wrong_if(fails):
    """A kernel that is wrong where a condition on its values holds."""

    def kernel(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        out, state = right(q, k, v, beta, scale, initial_state, output_final_state)
        return out * (1.5 if fails(v) else 1), state

    return kernel


@pytest.mark.parametrize(
    ("fails", "dtype", "scale"),
    [
        (lambda v: True, "float32", ORDINARY),
        (lambda v: v.dtype != torch.float32, "float64", ORDINARY),
        (lambda v: v.abs().amax() < 1e-2, "float64", SMALL),
        (lambda v: v.dtype == torch.bfloat16, "bfloat16", ORDINARY),
    ],
)
def test_the_plainest_case_that_fails_is_shown(fails, dtype, scale):
    found = smallest(wrong_if(lambda v: v.numel() and fails(v)))
    assert (found.case["dtype"], found.case["scale"], found.case["flags"]) == (dtype, scale, [])
    assert f"{dtype}, {scale} inputs" in found.where and abs(found.found - found.right) > found.bound


def test_a_law_s_own_structure_stays():
    found = smallest(wrong_if(lambda v: v.numel()), "exact-bits")
    assert (found.case["dtype"], found.case["flags"]) == ("float32", ["dyadic"])


@pytest.mark.parametrize("operator", [o for column in columns() for o in operators(column)], ids=lambda o: o.name)
def test_every_operator_has_ordinary_cases(operator):
    first = operator.corners()[0]
    numbers = [abs(x).max() for x in operator.draw(replace(first, scale=ORDINARY)).inputs.values() if x.size and x.dtype == float]
    assert numbers and max(numbers) < 16
