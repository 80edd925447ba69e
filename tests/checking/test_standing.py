"""A check beside a list of expected failures: exit codes, and what is said."""

import json
from dataclasses import replace

import pytest

import isoform
from isoform.checking.printing import print_report
from isoform.impl import delta_rule

CASE = {
    "operator": "delta-rule",
    "sizes": [["b", 1], ["t", 3], ["h", 1], ["groups", 1], ["k", 2], ["v", 3], ["chunk", 64]],
    "seed": 3,
    "dtype": "float32",
    "scale": "small",
    "flags": [],
}
ENTRY = """
[[expected]]
law = "{law}"
reason = "the start is not read"
link = "https://example.org/1"
since = 2026-01-01
expires = {expires}
witness = '{witness}'
"""


def forgetful(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    return delta_rule.recurrent(q, k, v, beta, scale, None, output_final_state)


def forgetful_elsewhere(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Right for values of the width that the pinned case has."""
    return (right if v.shape[3] == 3 else forgetful)(q, k, v, beta, scale, initial_state, output_final_state)


def right(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    return delta_rule.recurrent(q, k, v, beta, scale, initial_state, output_final_state)


@pytest.fixture
def check(tmp_path):
    def run(kernel, law="split-and-resume", expires="2999-01-01", laws=("split-and-resume",)):
        text = ENTRY.format(law=law, expires=expires, witness=json.dumps(CASE))
        (tmp_path / "known.toml").write_text(text, encoding="utf-8")

        def closure(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
            return kernel(q, k, v, beta, scale, initial_state, output_final_state)

        return isoform.check(closure, "delta-rule", level="quick", laws=laws, expected=tmp_path / "known.toml")

    return run


def test_a_violation_that_is_pinned_is_no_failure(check, capsys):
    report = check(forgetful)
    assert (report.exit_code, report.problems, list(report.expected)) == (0, (), ["split-and-resume"])
    assert report.summary["violated"] == 1 and report.to_dict()["expected"] == report.expected
    print_report(report)
    printed = capsys.readouterr().out
    assert "expected  split-and-resume: the start is not read (https://example.org/1), since 2026-01-01" in " ".join(printed.split("\n"))
    assert "exit 0" in printed


def test_another_violation_still_is_one(check):
    report = check(forgetful, laws=("split-and-resume", "state-equals-oracle"))
    assert report.exit_code == 1 and list(report.expected) == ["split-and-resume"] and not report.problems


@pytest.mark.parametrize(
    ("kernel", "options", "says"),
    [
        (right, {}, "split-and-resume holds now"),
        (forgetful_elsewhere, {}, "split-and-resume is violated elsewhere"),
        (forgetful, {"law": "split-and-resum"}, "there is no law 'split-and-resum'"),
        (forgetful, {"expires": "2026-01-02"}, "has expired on 2026-01-02"),
    ],
)
def test_a_list_that_does_not_stand_is_a_failure(check, capsys, kernel, options, says):
    report = check(kernel, **options)
    assert report.exit_code == 1 and not report.expected
    (problem,) = report.problems
    assert says in problem and "\n" not in problem and report.to_dict()["problems"] == [problem]
    print_report(report)
    assert says in capsys.readouterr().out.replace("\n", " ")


def test_problems_alone_are_a_failure(check):
    report = check(right, law="layout")
    assert not report.problems and report.exit_code == 0, "a law that did not run is not judged"
    assert replace(report, problems=("x",)).exit_code == 1


def test_a_list_that_cannot_be_read_is_said_before_anything_is_tried(tmp_path):
    calls = []
    with pytest.raises(ValueError, match="there is no file"):
        isoform.check(lambda q, k, v, beta: calls.append(q), "delta-rule", level="quick", expected=tmp_path / "none.toml")
    assert not calls
