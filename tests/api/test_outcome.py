"""What a run amounts to: failures, counts, JSON."""

import json
import math

import pytest

from isoform.exits import Exit
from isoform.outcome import Law, Report, judge_claim, judge_laws, law_to_dict


def law(verdict, *, name="packing", form="recurrent", ratio=None, detail=""):
    return Law("alpha", name, "alpha", form, verdict, 10, ratio, detail)


def codes(failures):
    return [failure.exit for failure in failures]


def test_a_claim_that_holds(fakes):
    assert judge_claim(fakes.result()) == ()


@pytest.mark.parametrize(
    ("changes", "code", "reason"),
    [
        ({"verdict": "refuted"}, Exit.VIOLATED, "refuted, where proved is expected"),
        ({"verdict": "unknown", "reason": "no method"}, Exit.VIOLATED, "no method"),
        ({"verdict": "unknown", "expected": "unknown"}, Exit.UNVERIFIED, "undecided"),
        ({"evidence": ()}, Exit.UNVERIFIED, "one engine does not suffice"),
    ],
)
def test_a_claim_that_does_not(fakes, changes, code, reason):
    (failure,) = judge_claim(fakes.result(**changes))
    assert (failure.where, failure.exit) == ("alpha/holds", code)
    assert reason in failure.reason


def test_one_engine_twice_is_one_engine(fakes):
    (failure,) = judge_claim(fakes.result(evidence=fakes.EVIDENCE[:1] * 2))
    assert failure.exit is Exit.UNVERIFIED


def test_a_near_miss_that_is_not_rejected(fakes):
    (failure,) = judge_claim(fakes.prove("alpha/kept-near-miss", 0))
    assert failure.exit is Exit.VIOLATED
    assert "'wrong sign' was not rejected: search found nothing" in failure.reason


def test_laws_that_hold():
    assert judge_laws([law("holds"), law("not-applicable", name="chunk size")]) == ()


@pytest.mark.parametrize(
    ("verdict", "code"), [("violated", Exit.VIOLATED), ("unverified", Exit.UNVERIFIED), ("no such verdict", Exit.UNVERIFIED)]
)
def test_laws_that_do_not(verdict, code):
    (failure,) = judge_laws([law("holds", name="prefix invariance"), law(verdict, detail="bad at t = 3")])
    assert (failure.where, failure.exit, failure.reason) == ("alpha.recurrent / packing", code, "bad at t = 3")


def test_a_form_of_which_no_law_ran_is_unverified():
    failures = judge_laws([law("holds"), law("not-applicable", form="chunkwise"), law("not-applicable", form="chunkwise")])
    assert [(failure.where, failure.exit) for failure in failures] == [("alpha.chunkwise", Exit.UNVERIFIED)]


def test_a_report_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="read its exit_code"):
        bool(Report("1", 0, "quick", (), (), ()))


@pytest.mark.parametrize("ratio", [math.inf, math.nan])
def test_a_ratio_that_json_cannot_say_is_named(ratio):
    row = law_to_dict(law("violated", ratio=ratio, detail="bad"))
    assert row["worst_error_over_bound"] is None
    assert str(ratio) in row["detail"] and "bad" in row["detail"]


def test_the_json_has_the_promised_keys(fakes):
    report = Report("1", 0, "quick", (fakes.result(),), (law("holds", ratio=0.5),), ())
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert found["schema"] == 1
    assert {"version", "claims", "summary", "laws"} <= found.keys()
    (claim,) = found["claims"]
    promised = {"id", "verdict", "expected", "scope", "assumptions", "sources", "evidence", "near_misses", "seconds"}
    assert promised <= claim.keys()
    assert claim["near_misses"]["total"] == claim["near_misses"]["rejected"] == 1
    assert [item.keys() for item in claim["evidence"]] == [{"kind", "engine", "engine_version", "detail"}] * 2
    assert found["summary"] == {"proved": 1, "qualified": 0, "refuted": 0, "unknown": 0, "total": 1}
    assert found["laws"][0]["worst_error_over_bound"] == 0.5
