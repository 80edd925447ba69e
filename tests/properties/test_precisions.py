"""What a form is declared to compute in decides its bounds, and not what is blind."""

from functools import wraps

import pytest
import torch

from isoform.impl import delta_rule, gated_retention, linear_attention
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.strategies import Case
from isoform.properties.tensors import PRECISIONS, precision, sum_dtype

LAWS = {law.name: law for law in laws()}
ORDER = ("float64", "float32", "tf32", "bf16-operands")
RIGHT = {"linear-attention": linear_attention.recurrent, "gated-retention": gated_retention.recurrent, "delta-rule": delta_rule.recurrent}


def with_operands(name, dtype):
    """A right form whose operands are rounded first."""
    right = RIGHT[name]

    @wraps(right)
    def form(q, k, v, **given):
        rounded = (x.to(dtype).to(x.dtype) for x in (q, k, v))
        return right(*rounded, **given)

    return form


def run(law, name, function, **more):
    return run_law(LAWS[law], operator(name), Form("form", function, **more), examples=6, dtypes=("float32",), corners=4, minimise=False)


def test_a_coarser_precision_has_a_larger_unit():
    units = [precision("float32", p).unit for p in ORDER]
    assert units == sorted(units) and len(set(units)) == len(units)
    assert precision("float32", "bfloat16").unit == precision("float32", "bf16-operands").unit


def test_the_dtype_says_what_is_not_declared():
    assert precision("bfloat16") == precision("bfloat16", "float32")
    assert precision("float32") == precision("float32", "float32") and precision("float64") == precision("float64", "float64")


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="precision must be one of float64, float32, tf32"):
        precision("float32", "single")


@pytest.mark.parametrize("declared", PRECISIONS)
def test_states_of_16_bits_are_declared(declared):
    short = declared in ("bfloat16", "float16")
    assert sum_dtype("bfloat16", declared) == (declared if short else "float32")


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("law", ["form-equals-oracle", "state-equals-oracle", "gradient-of-inputs"])
def test_rounded_operands_are_seen_and_allowed_where_they_are_declared(name, law):
    rounded = with_operands(name, torch.bfloat16)
    assert run(law, name, rounded).verdict == "violated"
    result = run(law, name, rounded, precision="bf16-operands")
    assert result.verdict == "holds" and result.worst_error_over_bound < 1


@pytest.mark.parametrize("declared", ["tf32", "bf16-operands", "bfloat16"])
@pytest.mark.parametrize("law", ["form-equals-oracle", "state-equals-oracle"])
def test_a_form_that_forgets_is_wrong_in_every_precision(declared, law):
    @wraps(linear_attention.recurrent)
    def forgets(q, k, v, initial_state=None, **given):
        return linear_attention.recurrent(q, k, v, **given)

    assert run(law, "linear-attention", forgets, precision=declared).verdict == "violated"


def test_a_witness_has_the_precision():
    @wraps(linear_attention.recurrent)
    def half(q, k, v, **given):
        o, s = linear_attention.recurrent(q, k, v, **given)
        return o / 2, s

    case = run("form-equals-oracle", "linear-attention", half, precision="tf32").witness.case
    assert case.precision == "tf32" and Case.from_json(case.to_json()) == case


def test_16_bit_states_are_handed_in_and_out_in_16_bits():
    @wraps(linear_attention.recurrent)
    def short(q, k, v, initial_state=None, **given):
        assert initial_state is None or initial_state.dtype == torch.bfloat16
        o, s = linear_attention.recurrent(q, k, v, initial_state=initial_state, **given)
        return o, None if s is None else s.to(torch.bfloat16)

    assert run("result-dtypes", "linear-attention", short, precision="bfloat16").verdict == "holds"
    assert run("result-dtypes", "linear-attention", short).verdict == "violated"
