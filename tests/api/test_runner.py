"""Whole runs, over fake claims in real workers."""

import pytest

import isoform
from isoform import plan, pool, runner
from isoform.exits import Exit


def test_everything_that_holds(house):
    report = isoform.verify("alpha/holds", "beta-net", seed=3)
    assert report.exit_code == Exit.HELD
    assert [claim.verdict for claim in report.claims] == ["proved", "refuted"]
    assert (report.seed, report.state, report.failures) == (3, "complete", ())


def test_cross_checks_add_evidence_to_their_own_column(house):
    report = isoform.verify("alpha/holds", "beta-net", seed=3, level="default")
    kinds = {claim.id: [item.kind for item in claim.evidence] for claim in report.claims}
    assert kinds == {"alpha/holds": ["proved", "certified", "bounded"], "beta-net/refuted": ["proved", "certified"]}
    assert report.claims[0].evidence[-1].detail == "level default, seed 3"
    assert [(row.law, row.verdict) for row in report.laws] == [("prefix invariance", "holds"), ("packing", "not-applicable")]


def test_forms_are_no_evidence_for_a_claim_about_something_else(fakes):
    found = {"alpha": {"alpha": fakes.EVIDENCE[:1]}}
    about, aside = fakes.result(), fakes.result(operator="")
    assert len(runner._with_evidence(about, found).evidence) == len(about.evidence) + 1
    assert runner._with_evidence(aside, found) == aside


def test_symbolic_only_leaves_them_out(house):
    assert isoform.verify("alpha/holds", symbolic_only=True).laws == ()


@pytest.mark.parametrize(
    ("id", "code", "verdict"),
    [
        ("alpha/differs", Exit.VIOLATED, "refuted"),
        ("alpha/kept-near-miss", Exit.VIOLATED, "proved"),
        ("alpha/unknown", Exit.VIOLATED, "unknown"),
        ("alpha/crashes", Exit.FAILED, "unknown"),
    ],
)
def test_what_fails_a_run(house, id, code, verdict):
    report = isoform.verify("alpha/holds", id)
    assert report.exit_code == code
    assert [failure.where for failure in report.failures] == [id]
    assert report.claims[1].verdict == verdict


def test_a_slow_claim_is_unknown_with_the_reason(house):
    report = isoform.verify("alpha/slow", "alpha/holds", time_limit=0.3, jobs=1)
    slow = next(claim for claim in report.claims if claim.id == "alpha/slow")
    assert (slow.verdict, slow.reason) == ("unknown", "exceeded its time limit of 0.3 s")
    assert report.exit_code == Exit.UNVERIFIED
    assert report.summary == {"proved": 1, "qualified": 0, "refuted": 0, "unknown": 1, "total": 2}


def test_a_violated_law_fails_a_run(house, monkeypatch):
    monkeypatch.setattr(plan, "cross_check", house.violated_cross_check)
    report = isoform.verify("alpha/holds")
    assert report.exit_code == Exit.VIOLATED
    assert [failure.where for failure in report.failures] == ["alpha.recurrent / chunk size"]
    assert [item.kind for item in report.claims[0].evidence] == ["proved", "certified"]


def test_a_cross_check_that_crashes_fails_a_run(house, calls, monkeypatch):
    monkeypatch.setattr(plan, "cross_check", calls.double)
    report = isoform.verify("alpha/holds")
    assert report.exit_code == Exit.FAILED
    assert [row.verdict for row in report.laws] == ["unverified"]


def test_fail_fast_accounts_for_what_did_not_run(house):
    report = isoform.verify("alpha/differs", "alpha/kept-near-miss", "alpha/unknown", fail_fast=True, jobs=1)
    assert report.state == "stopped"
    assert report.exit_code == Exit.VIOLATED
    assert [claim.reason for claim in report.claims[1:]] == ["not run: stopped at the first failure"] * 2
    assert report.summary["total"] == len(report.claims) == 3


def test_an_interrupt_keeps_what_there_is(house):
    def watch(event):
        if isinstance(event, pool.Ended):
            raise KeyboardInterrupt

    report = runner.run(plan.make(["alpha/holds", "beta-net"], jobs=1), watch)
    assert report.exit_code == 130
    assert [claim.verdict for claim in report.claims] == ["proved", "unknown"]
    assert report.claims[1].reason == "not run: interrupted"


def test_the_function_passes_an_interrupt_on(house, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(pool, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        isoform.verify("alpha/holds")


@pytest.mark.parametrize("wrong", [{"level": "slow"}, {"jobs": 0}, {"time_limit": 0}, {"time_limit": float("nan")}])
def test_wrong_arguments_are_named(house, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        isoform.verify("alpha/holds", **wrong)


def test_an_unknown_name(house):
    with pytest.raises(isoform.UnknownName, match="did you mean 'alpha/holds'"):
        isoform.verify("alpha/hold")


def test_a_claim_that_is_known_and_gone_fails_a_full_run(house, monkeypatch):
    monkeypatch.setattr("isoform.derivations.registry.claims", lambda selection=(): house.CLAIMS[:1])
    report = isoform.verify()
    assert report.exit_code == Exit.VIOLATED
    assert [failure.where for failure in report.failures] == sorted(claim.id for claim in house.CLAIMS[1:])


def test_a_run_over_nothing_is_no_success(house, monkeypatch):
    monkeypatch.setattr("isoform.derivations.registry.claims", lambda selection=(): ())
    with pytest.raises(RuntimeError, match="no claim was found"):
        isoform.verify()
