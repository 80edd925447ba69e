"""What a notebook shows of the objects that users hold."""

import html5lib
import pytest

from isoform.book.mathematics import convert
from isoform.checking.report import CheckReport, Diagnosis, LawReport
from isoform.derivations.registry import claim
from isoform.derivations.verification import verify_claim
from isoform.exits import Exit
from isoform.inspection import Trust
from isoform.outcome import Failure, Law, Report


@pytest.fixture(scope="module")
def result():
    return verify_claim(claim("delta-rule/unrolled"))


def texts(html):
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse("<!DOCTYPE html><title>x</title>" + html)
    return " ".join(" ".join(tree.find("body").itertext()).split())


def test_a_claim_is_its_verdict_and_its_statement(result):
    shown = result._repr_latex_()
    assert shown.startswith("$$") and shown.endswith("$$") and "delta-rule/unrolled: proved, all sizes" in shown
    assert result.definitions[0][1] in shown and result.parts_latex[0] in shown
    assert "\\" not in convert(shown.strip("$"))


def test_a_report_is_counts_failures_and_claims(result):
    laws = (Law("delta_rule", "padding", "delta-rule", "recurrent", "violated", 3, 7.5, "<2>"),)
    failure = Failure("delta-rule.recurrent / padding", Exit.VIOLATED, "<2>")
    shown = texts(Report("1.0", 7, "quick", (result,), laws, (failure,))._repr_html_())
    for part in ("1 claims: 1 proved", "0 holds, 1 violated", "seed 7", "exit 1", "violated: delta-rule.recurrent / padding: <2>"):
        assert part in shown
    assert "delta-rule/unrolled proved all sizes 3 of 3 isoform kernel, evaluator" in shown


def test_trust_is_what_a_verdict_rests_on(result):
    trust = Trust("a/b", "proved", "proved", "all sizes", ("normal form",), (), result.evidence, ("c/d",), (), (), ())
    shown = texts(trust._repr_html_())
    for part in ("a/b : proved, all sizes", "methods of proof: normal form", "lemmas: c/d", "assumed: none", "GF(2^61-1)", "not formally"):
        assert part in shown


def test_a_check_is_where_it_fails_and_its_laws():
    laws = (LawReport("padding", "says", "violated", 3, 7.5, "<2>"), LawReport("layout", "says", "holds", 8, None, ""))
    diagnosis = (Diagnosis("wrong with padding", ("padding",)),)
    check = CheckReport("1.0", "delta-rule", "m:f", "plain", "", "quick", 7, "float32", 0, laws, diagnosis=diagnosis)
    shown = texts(check._repr_html_())
    for part in ("m:f as delta-rule: 1 holds, 1 violated", "wrong with padding", "padding violated 3 7.5 <2>", "layout holds 8", "exit 1"):
        assert part in shown
