"""A check beside a list of expected failures: what stands of it, and what does not, in one sentence each."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial

from isoform.checking import expected
from isoform.checking.plan import CheckPlan
from isoform.checking.report import CheckReport
from isoform.checking.session import Session
from isoform.checking.target import Kernel


def beside(report: CheckReport, plan: CheckPlan, function: Kernel | None, known: expected.Known) -> CheckReport:
    """The report, which knows what was expected; laws that did not run are not judged."""
    ran = [law for law in report.laws if known.of(law.law) and (report.state == "complete" or law.verdict != "unverified")]
    if not ran:
        return replace(report, problems=known.problems)
    with closing(Session(plan, function)) as session:
        wrong = {law.law: expected.judge(law.law, law.verdict, known, partial(session.fails, law.law)) for law in ran}
    stands = {e.law: expected.sentence(e) for e in known.entries if wrong.get(e.law) == ""}
    return replace(report, expected=stands, problems=(*known.problems, *filter(None, wrong.values())))
