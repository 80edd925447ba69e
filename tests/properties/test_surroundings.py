"""A kernel that changes what all code shares breaks a law, and what it changed is set back for those that come after."""

from functools import wraps

import pytest
import torch

from isoform.impl import linear_attention
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.tensors import SURROUNDINGS, changed, kept_surroundings, surroundings

LAW = next(law for law in laws() if law.name == "surroundings-untouched")
OPERATOR = operator("linear-attention")
CHANGES = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "number of threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True),
    "random numbers": lambda: torch.rand(1),
}


def test_every_one_of_them_has_a_change():
    assert set(CHANGES) == set(SURROUNDINGS)


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_is_seen_and_set_back(name):
    before = surroundings()
    with kept_surroundings():
        CHANGES[name]()
        assert changed(before) == [name]
    assert changed(before) == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_kernel_that_changes_it_breaks_the_law(name):
    @wraps(linear_attention.recurrent)
    def kernel(**given):
        CHANGES[name]()
        return linear_attention.recurrent(**given)

    with kept_surroundings():
        result = run_law(LAW, OPERATOR, Form("kernel", kernel), examples=0, corners=1, minimise=False)
    assert result.verdict == "violated" and name in result.witness.what


def test_a_kernel_that_changes_nothing_holds():
    assert run_law(LAW, OPERATOR, Form("recurrent", linear_attention.recurrent), examples=2, corners=2).verdict == "holds"
