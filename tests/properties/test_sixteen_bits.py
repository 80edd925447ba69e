"""Inputs of 16 bits, summed in 32: among cases of all dtypes those without a float32 state are too few to see it."""

import importlib

import pytest

from isoform.properties.columns import columns, operators
from isoform.properties.crosscheck import forms_of
from isoform.properties.laws import laws
from isoform.properties.running import run_law

SHORT = ("bfloat16", "float16")
LAWS = [law for law in laws() if law.name in ("form-equals-oracle", "state-equals-oracle")]


def found():
    for column in columns():
        module = importlib.import_module(f"isoform.impl.{column.replace('-', '_')}")
        for operator in operators(column):
            for form in forms_of(module.FORMS[operator.name], None):
                yield from (pytest.param(law, operator, form, id=f"{operator.name}.{form.name}-{law.name}") for law in LAWS)


@pytest.mark.parametrize(("law", "operator", "form"), list(found()))
def test_short_inputs_are_summed_in_single_precision(law, operator, form):
    if law.missing(operator, form):
        assert "state" in law.name
        return
    result = run_law(law, operator, form, examples=20, dtypes=SHORT)
    assert result.verdict == "holds", result.detail
    assert result.worst_error_over_bound <= 0.2
