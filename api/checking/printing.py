"""What `isoform check` shows: progress on stderr, the answer on stdout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.text import Text

from isoform import tables
from isoform.checking.report import CheckReport, LawReport, Witness
from isoform.checking.snippet import spelt_out
from isoform.tables import COLOURS, console, counts, empty_table

if TYPE_CHECKING:
    from isoform.checking.replaying import ReplayReport
    from isoform.pool import Event

DETAILED = 3
"""Violated laws, at most, that are shown with their witnesses; the others have a line each."""
ELSEWHERE = re.compile(r"\S+ has no |there is no |there are no ")
"""How the reason begins why a law does not apply, if it is no reason of the kernel's."""


def progress() -> AbstractContextManager[Callable[[Event], None]]:
    """Show on stderr how many laws are done; how many there are is known when the kernel is loaded."""
    from isoform.checking.setup import Prepared

    return tables.progress(None, lambda ended: 1 + len(ended.value.laws) if isinstance(ended.value, Prepared) else None)


def print_report(report: CheckReport) -> None:
    """Print the laws, the witnesses, the diagnosis with a call that goes wrong, and the counts."""
    screen = console()
    rows = empty_table("law", "verdict", "examples", "error/bound", "s")
    for law in report.laws:
        if law.verdict != "not-applicable":
            rows.add_row(*_row(law))
    if rows.row_count:
        screen.print(rows)
    for line in (*_left_out(report.laws), *_remarks(report)):
        screen.print(line)
    for n, found in enumerate(report.diagnosis):
        screen.print(Text.assemble("" if n else "\n", ("diagnosis  ", "bold"), found.says))
    told = telling(report)
    for line in (*(line for law in told[:DETAILED] for line in _witnesses(law)), *_others(told[DETAILED:]), *_standing(report)):
        screen.print(line, soft_wrap=True)
    snippet = next((w.snippet for law in (*told, *report.violated) for w in (law.smallest, law.worst) if w and w.snippet), "")
    if snippet:
        screen.print(Text(f"\n{snippet}"), soft_wrap=True)
    screen.print(_summary(report))


def telling(report: CheckReport) -> list[LawReport]:
    """The laws that are violated and not expected to be, the most telling first: one of each diagnosis, then in the order of the table."""
    new = [law for law in report.violated if law.law not in report.expected]
    first = [next((law for law in new if law.law in found.laws), None) for found in report.diagnosis]
    return list({law.law: law for law in (*first, *new) if law is not None}.values())


def _others(laws: Iterable[LawReport]) -> Iterator[Text]:
    """Violated laws by their smallest cases, in a line each."""
    for n, law in enumerate(laws):
        shown = f": {law.smallest.breaks}" if law.smallest else ""
        yield Text.assemble("" if n else "\n", ("also violated  ", "red"), (law.law, "bold"), shown)


def _standing(report: CheckReport) -> Iterator[Text]:
    """Laws that are violated as expected, and what is wrong with the list of them."""
    for law in report.violated:
        if law.law in report.expected:
            yield Text.assemble(("\nexpected  ", "yellow"), (law.law, "bold"), f": {report.expected[law.law]}")
    for problem in report.problems:
        yield Text.assemble(("\nviolated  ", "red"), problem)


def _left_out(laws: Iterable[LawReport]) -> Iterator[Text]:
    """Laws without a verdict, by the reason why; those of other layers, and of forms beside the one that is checked, together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for law in laws:
        if law.verdict in ("not-applicable", "unverified"):
            elsewhere = law.verdict == "not-applicable" and ELSEWHERE.match(law.detail)
            reasons.setdefault((law.verdict, "of other layers or other forms" if elsewhere else law.detail), []).append(law.law)
    for (verdict, reason), names in reasons.items():
        yield Text.assemble((f"{verdict}  ", COLOURS[verdict]), f"{reason}: ", (", ".join(names), "bold"))


def _remarks(report: CheckReport) -> Iterator[Text]:
    for kind in ("wiring", "limits", "notes"):
        for remark in getattr(report, kind):
            yield Text.assemble((f"{kind.rstrip('s')}  ", "yellow"), remark)


def _witnesses(law: LawReport) -> Iterator[Text]:
    """The smallest and the worst case in which a law does not hold."""
    yield Text.assemble(("\nviolated  ", "red"), (law.law, "bold"), f": {law.says}")
    for kind, witness in (("smallest", law.smallest), ("worst", law.worst)):
        if witness is not None and (kind == "smallest" or sentence(witness) != sentence(law.smallest or witness)):
            yield Text(f"  {kind}: {sentence(witness)}\n    with {witness.where}")
    if law.smallest is not None and law.smallest.file:
        yield Text(f"  isoform replay {law.smallest.file}")


def _row(law: LawReport) -> tuple[Text | str, ...]:
    worst = law.worst_error_over_bound
    ratio = "" if worst is None else f"{worst:.2g}"
    return law.law, Text(law.verdict, style=COLOURS[law.verdict]), str(law.examples), ratio, f"{law.seconds:.1f}"


def sentence(witness: Witness) -> str:
    """A witness in one line."""
    if witness.found is None or witness.right is None or witness.bound is None:
        return witness.breaks
    at = f"at {witness.place}: " if witness.index else ""
    found, right = (spelt_out(x, witness.bound) for x in (witness.found, witness.right))
    return f"{witness.breaks}; {at}{found} where {right} is right, within {witness.bound:.2g}"


def _summary(report: CheckReport) -> Text:
    ending = {"complete": "", "stopped": ", stopped at the first violation", "interrupted": ", interrupted"}[report.state]
    return Text(
        f"{counts('laws', report.summary)}\n"
        f"{report.target} as {report.operator}, isoform {report.version}, seed {report.seed}, level {report.level}{ending}: "
        f"exit {report.exit_code}"
    )


def print_replay(report: ReplayReport) -> None:
    """Print what the cases of a witness file show now."""
    screen = console()
    for witness in report.witnesses:
        code = f"\n{witness.snippet}" if witness.snippet else ""
        screen.print(Text(f"{sentence(witness)}\n  with {witness.where}\n{code}"), soft_wrap=True)
    if report.detail:
        screen.print(Text(report.detail))
    verdict = Text(report.verdict, style=COLOURS[report.verdict])
    ending = "" if report.detail else f" in {len(report.witnesses) or report.cases} of {report.cases} cases"
    screen.print(Text.assemble(f"{report.target} as {report.operator}, {report.law}: ", verdict, f"{ending}: exit {report.exit_code}"))
