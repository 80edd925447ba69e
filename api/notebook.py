"""What a notebook shows of a run, a check, or what a verdict rests on: plain HTML, in the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from isoform.outcome import LAW_VERDICTS, VERDICTS, Failure, Report, engines_of, verdict_line

if TYPE_CHECKING:
    from isoform.checking.report import CheckReport
    from isoform.derivations.claim import ClaimResult
    from isoform.inspection import Trust


def report_html(report: Report) -> str:
    """Return a run as HTML: counts, what failed, and a table of the claims."""
    counts = [f"{report.summary['total']} claims: {_counts(report.summary, VERDICTS)}"]
    if report.laws:
        counts.append(f"{report.law_summary['total']} checks of laws: {_counts(report.law_summary, LAW_VERDICTS)}")
    ending = "" if report.state == "complete" else f", {report.state}"
    counts.append(f"isoform {report.version}, seed {report.seed}, level {report.level}{ending}: exit {report.exit_code}")
    rows = [(c.id, verdict_line(c), c.scope, _rejected(c), ", ".join(engines_of(c.evidence))) for c in report.claims]
    headings = ("claim", "verdict", "scope", "near misses rejected", "engines")
    return "".join((*(f"<p>{escape(line)}</p>" for line in counts), _failures(report.failures), _table(headings, rows)))


def check_html(report: CheckReport) -> str:
    """Return a check of a kernel as HTML: what it was, counts, where it fails, and a table of the laws."""
    ending = "" if report.state == "complete" else f", {report.state}"
    lines = [
        f"{report.target} as {report.operator}: {_counts(report.summary, LAW_VERDICTS)}",
        *(diagnosis.says for diagnosis in report.diagnosis),
        *report.notes,
        *report.problems,
        f"isoform {report.version}, seed {report.seed}, level {report.level}{ending}: exit {report.exit_code}",
    ]
    rows = [
        (law.law, law.verdict, str(law.examples), "" if (r := law.worst_error_over_bound) is None else f"{r:.2g}", law.detail)
        for law in report.laws
    ]
    return "".join((*(f"<p>{escape(line)}</p>" for line in lines), _table(("law", "verdict", "examples", "error/bound", "detail"), rows)))


def trust_html(trust: Trust) -> str:
    """Return what a verdict rests on as HTML: methods, engines with their versions, lemmas."""
    rests = {
        "methods of proof": trust.methods,
        "claims used as lemmas": trust.lemmas or ("none",),
        "textbook lemmas assumed": trust.assumed or ("none",),
        "assumptions that the proof does not use": trust.unneeded or ("none",),
    }
    rows = [(item.kind, item.engine, item.engine_version, item.detail) for item in trust.evidence]
    return "".join(
        (
            f"<p><b>{escape(trust.id)}</b>: {escape(trust.verdict)}{escape(f', {trust.scope}' if trust.scope else '')}</p>",
            _failures(trust.failures),
            *(f"<p>{name}: {escape(', '.join(found))}</p>" for name, found in rests.items()),
            _table(("evidence", "engine", "version", "detail"), rows),
            f"<p>{escape(trust.trusted)}</p>",
        )
    )


def _rejected(claim: ClaimResult) -> str:
    return f"{sum(miss.rejected for miss in claim.near_misses)} of {len(claim.near_misses)}"


def _counts(summary: dict[str, int], verdicts: Iterable[str]) -> str:
    return ", ".join(f"{summary[verdict]} {verdict}" for verdict in verdicts)


def _failures(failures: Iterable[Failure]) -> str:
    lines = [f"<li>{failure.exit.name.lower()}: {escape(failure.where)}: {escape(failure.reason)}</li>" for failure in failures]
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
