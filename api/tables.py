"""What `isoform verify` and `isoform list` show, and `isoform check` as well: progress on stderr, tables on stdout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from isoform.exits import Exit
from isoform.outcome import LAW_VERDICTS, Failure, Law, Report, engines_of, verdict_line

if TYPE_CHECKING:
    from isoform.derivations.claim import ClaimResult
    from isoform.derivations.lock import LockEntry
    from isoform.plan import Plan
    from isoform.pool import Ended, Event

WIDTH_WITHOUT_TERMINAL = 160
NUMBERS = ("s", "near misses", *LAW_VERDICTS, "examples", "error/bound")
COLOURS = {
    "proved": "green",
    "qualified": "green",
    "refuted": "green",
    "holds": "green",
    "not-applicable": "dim",
    "unknown": "yellow",
    "unverified": "yellow",
    "violated": "red",
}


def console() -> Console:
    """Return a console on stdout that never cuts a table where no terminal is."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)


@contextmanager
def progress(total: int | None, known: Callable[[Ended], int | None] = lambda ended: None) -> Iterator[Callable[[Event], None]]:
    """Show on stderr how many tasks have ended, if that is a terminal; yields the function to tell of events.

    ``total`` is how many there are, None where that is not known yet; ``known`` says it, once a task that has ended tells.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from isoform.pool import Started

    screen = Console(stderr=True, highlight=False)
    tail = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False, table_column=tail))
    with Progress(*columns, console=screen, transient=True, expand=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task("", total=total)
        running: dict[str, None] = {}

        def watch(event: Event) -> None:
            if isinstance(event, Started):
                running[event.key] = None
            else:
                running.pop(event.key, None)
                bar.update(task, advance=1, total=known(event))
            bar.update(task, description=", ".join(running))

        yield watch


def watched(plan: Plan) -> Report:
    """Run a plan and show how far it is."""
    from isoform import runner

    with progress(len(plan.claims) + len(plan.columns)) as watch:
        return runner.run(plan, watch)


def print_report(report: Report) -> None:
    """Print the claims, the laws, what failed, and the counts."""
    screen = console()
    if report.claims:
        screen.print(_claims_table(report.claims))
    if report.laws:
        screen.print(_laws_table(report.laws))
    print_summary(report)


def print_summary(report: Report) -> None:
    """Print the notes, what failed, and the counts."""
    screen = console()
    for line in _notes(report):
        screen.print(line)
    for failure in report.failures:
        screen.print(_failure_line(failure))
    screen.print(_summary(report))


def print_list(entries: Iterable[LockEntry]) -> None:
    """Print the claims of the lock file."""
    table = empty_table("claim", "version", "title")
    for entry in entries:
        table.add_row(entry.id, str(entry.version), Text(entry.title))
    console().print(table)


def _claims_table(claims: Iterable[ClaimResult]) -> Table:
    table = empty_table("claim", "verdict", "scope", "near misses", "engines", "s")
    for claim in claims:
        rejected = sum(miss.rejected for miss in claim.near_misses)
        misses = Text(f"{rejected}/{len(claim.near_misses)}", style="" if rejected == len(claim.near_misses) else "red")
        table.add_row(claim.id, _verdict(claim), claim.scope, misses, ", ".join(engines_of(claim.evidence)), f"{claim.seconds:.2f}")
    return table


def _verdict(claim: ClaimResult) -> Text:
    expected = claim.verdict in (claim.expected, "unknown")
    note = "" if claim.verdict == claim.expected else f" (expected {claim.expected})"
    return Text(verdict_line(claim) + note, style=COLOURS.get(claim.verdict, "red") if expected else "red")


def _laws_table(laws: Iterable[Law]) -> Table:
    table = empty_table("form", *LAW_VERDICTS, "examples", "error/bound")
    by_form: dict[str, list[Law]] = {}
    for law in laws:
        by_form.setdefault(f"{law.operator}.{law.form}", []).append(law)
    for form, rows in by_form.items():
        counts = Counter(law.verdict for law in rows)
        cells = (Text(str(counts[verdict] or ""), style=COLOURS[verdict]) for verdict in LAW_VERDICTS)
        table.add_row(form, *cells, str(sum(law.examples for law in rows)), _worst(rows))
    return table


def _worst(laws: Iterable[Law]) -> str:
    ratios = [law.worst_error_over_bound for law in laws if law.worst_error_over_bound is not None]
    return f"{max(ratios):.2g}" if ratios else ""


def _notes(report: Report) -> Iterator[Text]:
    for note in report.notes:
        yield Text.assemble(("note  ", "yellow"), note)
    failed = {failure.where for failure in report.failures}
    for claim in report.claims:
        if claim.reason and claim.id not in failed:
            yield Text.assemble(("note  ", "yellow"), (claim.id, "bold"), f": {claim.reason}")


def _failure_line(failure: Failure) -> Text:
    colour = "yellow" if failure.exit == Exit.UNVERIFIED else "red"
    return Text.assemble((f"{failure.exit.name.lower()}  ", colour), (failure.where, "bold"), f": {failure.reason}")


def _summary(report: Report) -> Text:
    ending = {"complete": "", "stopped": ", stopped at the first failure", "interrupted": ", interrupted"}[report.state]
    lines = [
        counts("claims", report.summary),
        counts("law checks", report.law_summary) if report.laws else "law checks: none",
        f"isoform {report.version}, seed {report.seed}, level {report.level}{ending}: exit {report.exit_code}",
    ]
    return Text("\n".join(lines))


def counts(noun: str, summary: dict[str, int]) -> str:
    """Return a sum in words: how many there are, and of what verdicts."""
    parts = ", ".join(f"{count} {verdict}" for verdict, count in summary.items() if verdict != "total")
    return f"{noun}: {summary['total']} = {parts}"


def empty_table(*headings: str) -> Table:
    """Return a table without rows; columns of numbers have them at their right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for heading in headings:
        table.add_column(heading, overflow="fold", justify="right" if heading in NUMBERS else "left")
    return table
