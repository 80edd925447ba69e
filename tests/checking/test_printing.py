"""What is shown of a check leads with the diagnosis, and fits on a screen however many laws one fault breaks."""

import pytest

from isoform.checking.printing import DETAILED, print_report, telling
from isoform.checking.report import CheckReport, Diagnosis, LawReport, Witness

CASE = {"operator": "delta-rule", "sizes": [["t", 1]], "dtype": "float32", "scale": "small", "flags": []}


def broken(name):
    """A violated law."""
    witness = Witness(CASE, "output", f"{name} broke", ("time",), (0,), 0.5, 1.0, 1e-9, snippet=f"call of {name}", file=f"{name}.json")
    return LawReport(name, f"{name} says", "violated", 3, 9.0, smallest=witness, worst=witness)


@pytest.fixture
def show(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")

    def run(*laws, **more):
        report = CheckReport("0", "delta-rule", "k.py:f", "plain", "", "default", 0, "", 64, laws, **more)
        print_report(report)
        return report, capsys.readouterr().out

    return run


def test_what_is_the_matter_comes_first_and_few_laws_are_shown_whole(show):
    laws = [broken(f"law-{n}") for n in range(12)]
    report, shown = show(*laws, diagnosis=(Diagnosis("it fails at night", ("law-7", "law-8")), Diagnosis("and by day", ("law-2",))))
    assert [law.law for law in telling(report)[:DETAILED]] == ["law-7", "law-2", "law-0"]
    assert shown.count("  smallest:") == DETAILED and shown.count("also violated  ") == 12 - DETAILED
    assert shown.index("it fails at night") < shown.index("law-7 says") < shown.index("law-2 says") < shown.index("also violated")
    assert "also violated  law-11: law-11 broke" in shown and shown.count("call of") == 1 and "call of law-7" in shown
    assert len(report.to_dict()["laws"]) == 12 and all(law["witness"] for law in report.to_dict()["laws"])


def test_an_expected_violation_is_not_among_those_that_are_shown(show):
    report, shown = show(broken("old"), broken("new"), expected={"old": "known"}, diagnosis=(Diagnosis("both", ("old", "new")),))
    assert [law.law for law in telling(report)] == ["new"]
    assert "expected  old: known" in shown and "old says" not in shown and "call of new" in shown


def test_laws_of_other_layers_have_one_line_and_those_that_a_kernel_leaves_out_their_reasons(show):
    reasons = {
        "semigroup": "delta-rule has no semigroup",
        "scipy-agrees": "SciPy has no delta-rule",
        "forms-agree": "there is no other form",
        "chunk-size": "the form has no argument chunk_size",
        "group-map": "groups are refused: there is no other choice",
    }
    laws = [LawReport(name, "", "not-applicable", detail=why) for name, why in reasons.items()]
    report, shown = show(LawReport("layout", "", "holds", 3, 0.1), *laws, LawReport("window", "", "unverified", detail="there is no time"))
    assert "not-applicable  of other layers or other forms: semigroup, scipy-agrees, forms-agree\n" in shown
    assert "the form has no argument chunk_size: chunk-size" in shown and "groups are refused: there is no other choice: group-map" in shown
    assert "unverified  there is no time: window" in shown
    assert [law["detail"] for law in report.to_dict()["laws"]][1] == "delta-rule has no semigroup"
