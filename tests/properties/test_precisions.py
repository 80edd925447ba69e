"""What a form is declared to compute in decides its bounds, and not what is blind."""

from functools import wraps

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from isoform.impl import attention, delta_rule, gated_delta_rule, gated_linear_attention, gated_retention, linear_attention, rwkv
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.strategies import Case
from isoform.properties.tensors import PRECISIONS, precision, sum_dtype

LAWS = {law.name: law for law in laws()}
ORDER = ("float64", "float32", "tf32", "bf16-operands")
RIGHT = {
    "linear-attention": linear_attention.chunkwise,
    "gated-retention": gated_retention.chunkwise,
    "gated-linear-attention": gated_linear_attention.chunkwise,
    "delta-rule": delta_rule.chunkwise,
    "gated-delta-rule": gated_delta_rule.chunkwise,
    "wkv7": next(f for f in rwkv.FORMS["wkv7"] if f.__name__ == "chunkwise"),
    "attention": attention.FORMS["attention"][0],
}


class Operands(TorchDispatchMode):
    """Rounds the operands of every matrix product, as a tensor core does; sums are as they were."""

    def __init__(self, rounding):
        super().__init__()
        self.rounding = rounding

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ in ("mm", "bmm", "mv", "dot", "addmm", "baddbmm"):
            operands = [self.rounding(x) for x in args[-2:]]
            args = (*args[:-2], *operands)
        return func(*args, **(kwargs or {}))


def to_bfloat16(x):
    return x.to(torch.bfloat16).to(x.dtype)


def to_tf32(x):
    """10 bits behind the point, to the nearest."""
    if x.dtype != torch.float32:
        return x
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


ROUNDINGS = {"tf32": to_tf32, "bf16-operands": to_bfloat16}


def with_operands(name, declared):
    """A right form, by matrix products, whose operands are rounded."""
    right = RIGHT[name]

    @wraps(right)
    def form(*args, **given):
        with Operands(ROUNDINGS[declared]):
            return right(*args, **given)

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


@pytest.mark.parametrize("declared", ROUNDINGS)
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("law", ["form-equals-oracle", "state-equals-oracle", "gradient-of-inputs"])
def test_rounded_operands_are_seen_and_allowed_where_they_are_declared(law, name, declared):
    if name == "attention" and law == "state-equals-oracle":
        pytest.skip("attention has no state")
    rounded = with_operands(name, declared)
    assert run(law, name, rounded).verdict == "violated"
    result = run(law, name, rounded, precision=declared)
    assert result.verdict == "holds" and result.worst_error_over_bound < 1


def test_bf16_operands_are_not_tf32():
    """Where an exponential makes much of them; a few products may be as far off in the one as in the other."""
    rounded = with_operands("attention", "bf16-operands")
    assert run("form-equals-oracle", "attention", rounded, precision="tf32").verdict == "violated"


@pytest.mark.parametrize("declared", ROUNDINGS)
@pytest.mark.parametrize("name", RIGHT)
def test_a_loud_output_is_wrong_in_every_precision(name, declared):
    """One and a half times as loud, beside operands of bfloat16; a sixteenth louder beside those of TF32."""
    rounded, factor = with_operands(name, declared), {"tf32": 1.0625, "bf16-operands": 1.5}[declared]

    @wraps(rounded)
    def form(*args, **given):
        o, *rest = found if isinstance(found := rounded(*args, **given), tuple) else (found,)
        return (o * factor, *rest)

    assert run("form-equals-oracle", name, form, precision=declared).verdict == "violated"


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
