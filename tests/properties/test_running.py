"""A law that cannot see is not one that holds, and a witness runs again."""

import json
from dataclasses import replace
from functools import wraps

import numpy as np
import pytest

from isoform.impl import linear_attention
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.replay import replay
from isoform.properties.running import run_law
from isoform.properties.strategies import Case

LAWS = {law.name: law for law in laws()}
OPERATOR = operator("linear-attention")
TRUE = Form("recurrent", linear_attention.recurrent, linear_attention.step)


@wraps(linear_attention.recurrent)
def too_large(*args, **kwargs):
    """A form that is wrong from the second token on."""
    o, s = linear_attention.recurrent(*args, **kwargs)
    return o.index_fill(1, o.new_tensor(range(1, o.shape[1])).long(), 9.0), s


def run(law="form-equals-oracle", form=TRUE, on=OPERATOR, **more):
    return run_law(LAWS[law], on, form, **{"examples": 5, "seed": 0} | more)


def test_a_true_form_holds_with_examples_and_a_ratio():
    result = run()
    assert (result.verdict, result.witness) == ("holds", None)
    assert result.examples >= 5 and 0 < result.worst_error_over_bound < 1


def test_blind_comparisons_leave_a_law_unverified():
    def widened(x):
        truth = OPERATOR.refer(x)
        return replace(truth, bound=np.full_like(truth.bound, 1e30), sharp=np.full_like(truth.sharp, 1e30))

    result = run(on=replace(OPERATOR, refer=widened))
    assert result.verdict == "unverified" and "blind" in result.detail


def test_nothing_to_compare_leaves_a_law_unverified():
    law = replace(LAWS["form-equals-oracle"], check=lambda operator, form, case: ())
    result = run_law(law, OPERATOR, TRUE, examples=3)
    assert (result.verdict, result.examples) == ("unverified", 0)


def test_a_law_that_does_not_apply_says_why():
    result = run("chunk-size")
    assert result.verdict == "not-applicable" and "chunk_size" in result.detail


@pytest.mark.parametrize("returned", [None, 3.0, "o", (None, None)])
def test_a_form_that_returns_no_tensor_is_violated(returned):
    @wraps(linear_attention.recurrent)
    def form(*args, **kwargs):
        return returned

    assert run(form=Form("form", form)).verdict == "violated"


def test_a_form_that_crashes_is_violated_and_says_how():
    @wraps(linear_attention.recurrent)
    def form(*args, **kwargs):
        raise RuntimeError("no kernel image")

    result = run(form=Form("form", form))
    assert result.verdict == "violated" and "RuntimeError: no kernel image" in result.detail


def test_a_form_that_fails_and_then_does_not_is_violated():
    calls = []

    @wraps(linear_attention.recurrent)
    def forgetful(*args, **kwargs):
        calls.append(None)
        o, s = linear_attention.recurrent(*args, **kwargs)
        return o * (2 if len(calls) == 40 else 1), s

    result = run(form=Form("forgetful", forgetful), corners=0, examples=60)
    assert result.verdict == "violated" and result.witness is not None


def test_a_law_that_crashes_is_no_violation():
    def check(operator, form, case):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_law(replace(LAWS["form-equals-oracle"], check=check), OPERATOR, TRUE, examples=3)


def test_the_witness_is_small_and_names_the_first_bad_entry():
    result = run(form=Form("too_large", too_large), examples=40)
    sizes = dict(result.witness.case.sizes)
    assert (sizes["t"], sizes["b"], sizes["h"]) == (2, 1, 1)
    assert result.witness.index[:2] == (0, 1)
    assert result.witness.error_over_bound > 1 and "9.0" in result.witness.detail


def test_the_witness_runs_again():
    witness = run(form=Form("too_large", too_large)).witness
    again = replay(too_large, "form-equals-oracle", witness.case.to_json())
    assert max(c.worst for c in again) == pytest.approx(witness.error_over_bound)
    assert max(c.worst for c in replay(linear_attention.recurrent, "form-equals-oracle", witness.case.to_json())) < 1
    assert Case.from_json(json.dumps(json.loads(witness.case.to_json()))) == witness.case


def test_the_snippet_is_a_program(capsys):
    law, form = LAWS["form-equals-oracle"], Form("recurrent", linear_attention.recurrent)
    from isoform.properties.running import snippet

    exec(compile(snippet(law.name, form, OPERATOR.corners()[0]), "snippet", "exec"), {})
    assert "Comparison" in capsys.readouterr().out


def test_one_seed_gives_one_result():
    assert run(seed=3) == run(seed=3)


def test_the_chunk_size_of_a_kernel_decides_its_bounds():
    seen = []
    law = replace(LAWS["form-equals-oracle"], check=lambda o, f, case: seen.append(case.size("chunk")) or ())
    run_law(law, OPERATOR, replace(TRUE, chunk=16), examples=5)
    assert set(seen) == {16}


def test_parts_that_do_not_fit_together_are_wrong_ones():
    """A shape that depends on the number of tokens is a violation, not an error of the law."""

    @wraps(linear_attention.recurrent)
    def squeezed(*args, **kwargs):
        o, s = linear_attention.recurrent(*args, **kwargs)
        return o.squeeze(1), s

    @wraps(linear_attention.step)
    def drops_heads_at_times(*args, **kwargs):
        o, s = linear_attention.step(*args, **kwargs)
        return o if (o > 0).any() else o[:, :1], s

    cut = run("split-and-resume", Form("squeezed", squeezed))
    assert cut.verdict == "violated" and "shape" in cut.witness.detail
    stepped = run("step-equals-whole", Form("recurrent", linear_attention.recurrent, drops_heads_at_times))
    assert stepped.verdict == "violated"
