"""The cross-check of a column: every form under every law, and the evidence that follows."""

import pickle

import pytest

from isoform import levels
from isoform.impl import linear_attention
from isoform.properties.columns import columns
from isoform.properties.crosscheck import LEVELS, crosscheck
from isoform.properties.laws import laws


def quick(**more):
    given = {"forms": {"linear-attention": (linear_attention.recurrent, linear_attention.chunkwise)}, "steps": linear_attention.STEPS}
    return crosscheck("linear-attention", **given | more, level="quick", seed=0)


def test_every_form_is_held_against_every_law():
    result = quick()
    assert len(result.laws) == 2 * len(laws())
    assert {r.form for r in result.laws} == {"recurrent", "chunkwise"}
    assert {r.verdict for r in result.laws} == {"holds", "not-applicable"}
    found = result.evidence["linear-attention"]
    assert {e.kind for e in found} == {"bounded", "exact"}
    assert all(e.engine == "isoform properties" and "examples" in e.detail for e in found)
    assert all("linear-attention.recurrent, linear-attention.chunkwise:" in e.detail for e in found)
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_wrong_form_is_violated_and_is_no_evidence():
    def wrong(q, k, v, scale=None, initial_state=None, output_final_state=False):
        o, s = linear_attention.recurrent(q, k, v, scale, initial_state, output_final_state)
        return o * 1.01, s

    result = quick(forms={"linear-attention": (wrong,)}, steps={})
    broken = {r.law for r in result.laws if r.verdict == "violated"}
    assert {"form-equals-oracle", "exact-bits"} <= broken
    assert "exact" not in {e.kind for e in result.evidence["linear-attention"]}


def test_forms_of_no_operator_are_refused():
    with pytest.raises(ValueError, match="no such operator"):
        quick(forms={"linear-attentoin": (linear_attention.recurrent,)})


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="level must be one of"):
        crosscheck("linear-attention", {}, {}, level="thorough", seed=0)


def test_levels_grow():
    assert tuple(LEVELS) == levels.LEVELS
    quick_, default, deep = LEVELS.values()
    assert quick_.examples < default.examples < deep.examples
    assert quick_.corners is not None and default.corners is None and deep.corners is None


def test_columns_are_found_by_what_they_define():
    assert {"linear-attention", "attention", "delta-rule", "state-space", "discretization"} <= set(columns())
    assert "columns" not in columns() and "memory" not in columns()
