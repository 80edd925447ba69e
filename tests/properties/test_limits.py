"""What a form cannot take is left out, with its reason, and is never counted as held; what it can take is still checked."""

from dataclasses import replace
from functools import wraps

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isoform.impl import gated_retention, state_space
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.limits import Limits, Sizes
from isoform.properties.operator import Form
from isoform.properties.running import prepared, run_law
from isoform.properties.strategies import Case
from isoform.properties.tensors import DTYPES

LAWS = {law.name: law for law in laws()}
OPERATOR = operator("gated-retention")
SIZES = (("b", 1), ("t", 7), ("h", 2), ("groups", 3), ("k", 3), ("v", 2), ("chunk", 4))
CASE = Case("gated-retention", SIZES, dtype="float64")


def picky(**more):
    """A form that takes whole tiles of 4, one group, K = V, and no float64, and says so by an error."""

    @wraps(gated_retention.recurrent)
    def form(q, k, v, g, **given):
        assert q.shape[1] % 4 == 0 and q.shape[2] == v.shape[2] and k.shape[3] == v.shape[3] and "float64" not in str(q.dtype)
        return gated_retention.recurrent(q, k, v, g, **given)

    why = {"groups": "one group only", "unequal": "K must be V", "float64": "no float64"}
    return Form("picky", form, limits=Limits((Sizes("t", multiple=4, reason="T must be a multiple of 4"),), why), **more)


def test_a_case_is_made_one_that_is_taken():
    sizes = (Sizes("t", multiple=4), Sizes("k", most=2), Sizes("chunk", multiple=16, least=16))
    limits = Limits(sizes, {"groups": "", "unequal": "", "float64": ""})
    case = limits.fit(CASE)
    assert dict(case.sizes) == {"b": 1, "t": 8, "h": 2, "groups": 1, "k": 2, "v": 2, "chunk": 16} and case.dtype == "float32"
    assert limits.fit(case) == case


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_wide_case_becomes_no_short_one(dtype):
    only = Limits(refuses={d: "" for d in DTYPES if d != "bfloat16"})
    assert only.fit(replace(CASE, dtype=dtype)) is None
    assert only.fit(replace(CASE, dtype="float16")).dtype == "bfloat16" and only.dtypes == ("bfloat16",)


@given(st.integers(0, 40), st.lists(st.integers(0, 40), max_size=5), st.sampled_from([1, 2, 4, 16]), st.sampled_from([0, 1, 5]))
def test_every_part_of_a_cut_is_taken(steps, places, multiple, least):
    limits = Limits((Sizes("t", multiple=multiple, least=least),))
    steps = limits.fit_size("t", steps)
    ends = limits.cut(sorted(places), steps)
    assert ends[0] == 0 and ends[-1] == steps
    assert all(limits.takes("t", b - a) for a, b in zip(ends, ends[1:]))


def test_without_limits_a_cut_is_as_it_was_asked_for():
    assert Limits().cut((0, 1, 3, 9), 7) == [0, 0, 1, 3, 7]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Limits(refuses={"speed": ""}), "a limit is one of packing"),
        (lambda: Limits((Sizes("t"), Sizes("t"))), "two limits are of one axis"),
        (lambda: Limits(refuses=dict.fromkeys(DTYPES, "")), "no dtype is left"),
        (lambda: Sizes("t", multiple=16, least=3, most=8), "no multiple of 16"),
        (lambda: Sizes("t", multiple=0), "no multiple of 0"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    "law", ["form-equals-oracle", "split-and-resume", "packed-equals-alone", "padding", "gradient-of-inputs", "one-step-map"]
)
def test_what_is_left_is_checked(law):
    result = run_law(LAWS[law], OPERATOR, picky(), examples=8, corners=4)
    assert result.verdict == "holds" and result.examples >= (1 if law == "one-step-map" else 6)


@pytest.mark.parametrize(
    ("law", "refuses", "reason"),
    [
        ("group-map", {"groups": "one group only"}, "one group only"),
        ("gradient-of-inputs", {"gradient": "its output does not require grad"}, "its output does not require grad"),
        ("packed-equals-alone", {"packing": ""}, "the form takes no packing"),
        ("gradient-of-packed", {"packing": "no cu_seqlens"}, "no cu_seqlens"),
        ("exact-bits", {"float32": "16 bits only", "float64": "16 bits only"}, "16 bits only"),
    ],
)
def test_a_law_of_what_is_refused_does_not_apply(law, refuses, reason):
    result = run_law(LAWS[law], OPERATOR, Form("recurrent", gated_retention.recurrent, limits=Limits(refuses=refuses)), examples=3)
    assert (result.verdict, result.examples) == ("not-applicable", 0) and reason in result.detail


def test_a_law_of_which_nothing_is_left_says_so():
    tiles = Limits((Sizes("t", multiple=4, least=4, reason="T must be a multiple of 4"),))
    result = run_law(LAWS["empty-and-single"], OPERATOR, Form("recurrent", gated_retention.recurrent, limits=tiles), examples=3)
    assert (result.verdict, result.examples) == ("not-applicable", 0) and "T must be a multiple of 4" in result.detail


def test_a_wrong_form_within_its_limits_is_violated():
    right = picky()

    @wraps(gated_retention.recurrent)
    def form(q, k, v, g, **given):
        o, s = right.function(q, k, v, g, **given)
        return o.index_fill(1, o.new_tensor(range(4, o.shape[1])).long(), 0.0), s

    result = run_law(LAWS["form-equals-oracle"], OPERATOR, replace(right, function=form), examples=5)
    assert result.verdict == "violated" and result.witness.case.size("t") % 4 == 0 and result.witness.case.size("groups") == 1


def test_the_grid_of_a_form_with_tiles_has_several_of_them():
    tiles = Limits((Sizes("t", multiple=16),))
    form = Form("recurrent", gated_retention.recurrent, limits=tiles)
    assert prepared(LAWS["form-equals-oracle"], OPERATOR, form, CASE.resized(t=20)).size("t") == 64
    assert prepared(LAWS["form-equals-oracle"], OPERATOR, form, CASE.resized(t=1)).size("t") == 16


@pytest.mark.parametrize(
    ("word", "gone"),
    [
        ("groups", {"grouped", "grouped-writes", "other-groups"}),
        ("constant", {"constant-weights"}),
        ("mixed", {"wide-gates"}),
        ("lengths", {"longer", "shorter"}),
    ],
)
def test_structure_that_goes_with_what_is_refused_is_left_out(word, gone):
    flags = ("start", "grouped", "grouped-writes", "other-groups", "constant-weights", "wide-gates", "longer", "shorter")
    case = Limits((), {word: ""}).fit(Case("delta-rule", SIZES, 0, "float32", "small", flags))
    assert set(flags) - set(case.flags) == gone


def masked_late(q, k, v, scale=None, mask=None):
    """Attention whose weights are 0 where they are masked, and times NaN there."""
    queries, keys, values = (x.double().repeat_interleave(q.shape[2] // x.shape[2], 2).transpose(1, 2) for x in (q, k, v))
    shown = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])[None, None]
    shown = shown if mask is None else shown & (mask[:, None] if mask.ndim == 3 else mask[:, None, None])
    weights = queries @ keys.mT * (q.shape[3] ** -0.5 if scale is None else scale)
    weights = weights.masked_fill(~shown, -torch.inf).softmax(-1).masked_fill(~shown, 0)
    return (weights @ values).transpose(1, 2).to(v.dtype)


@pytest.mark.parametrize("law", ["prefix-invariance", "padding-mask"])
def test_nan_behind_a_mask_may_be_left_out_and_numbers_not(law):
    attends = operator("attention")
    only = Limits(refuses={"nonfinite": "no nonfinite is declared"})
    assert run_law(LAWS[law], attends, Form("late", masked_late), examples=4, minimise=False).verdict == "violated"
    assert run_law(LAWS[law], attends, Form("late", masked_late, limits=only), examples=4).verdict == "holds"

    def peeks(q, k, v, scale=None, mask=None):
        return masked_late(q, k, v, scale, mask) + 1e-3 * v[:, -1:].repeat_interleave(q.shape[2] // v.shape[2], 2)

    assert run_law(LAWS[law], attends, Form("peeks", peeks, limits=only), examples=4, minimise=False).verdict == "violated"


def test_a_law_of_nan_alone_does_not_apply_where_it_is_left_out():
    form = Form("late", masked_late, limits=Limits(refuses={"nonfinite": "no nonfinite is declared"}))
    result = run_law(LAWS["sight"], operator("attention"), form, examples=2)
    assert (result.verdict, result.detail) == ("not-applicable", "no nonfinite is declared")


def test_complex_numbers_may_be_left_out():
    systems = operator("lti")

    def real(u, Abar, Bbar, C, D=None):
        return state_space.recurrent(u, *(x.real if x.is_complex() else x for x in (Abar, Bbar, C)), D)

    law, only = LAWS["form-equals-oracle"], Limits(refuses={"complex": ""})
    assert run_law(law, systems, Form("real", real), examples=8, minimise=False).verdict == "violated"
    assert run_law(law, systems, Form("real", real, limits=only), examples=8).verdict == "holds"
