"""What `isoform check` sees and costs: planted faults killed, seconds to the first violation and of a clean check, public references.

Run by `make bench` as ``python -m benchmarks.conformance``; ``--only`` chooses one of the parts.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

import isoform
from benchmarks import power
from benchmarks.references import REFERENCES, Public
from isoform.checking.report import CheckReport
from isoform.levels import LEVELS
from isoform.pool import default_jobs

PARTS = ("power", "clean", "references")
TO_VIOLATION, TO_CLEAN = 5.0, 60.0
"""Seconds that are aimed at: the median to the first violation, and a clean check on two cores."""
CALL = 60.0
"""Seconds that a call of a public reference may take: an adapter imports the package in its first one."""


def main() -> None:
    """Print the parts as they are done."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=PARTS, action="append", help="This part; all by default.")
    options.add_argument("--level", choices=LEVELS, default="default", help="Of the public references.")
    options.add_argument("--jobs", type=int, default=2, help="Worker processes.  [default: 2]")
    chosen = options.parse_args()
    screen = Console(highlight=False)
    place = f"{platform.machine()}, {default_jobs()} cores, {chosen.jobs} workers"
    screen.print(f"isoform {isoform.__version__}, torch {version('torch')}, {place}")
    for part in chosen.only or PARTS:
        if part == "power":
            killing(screen, chosen.jobs)
        elif part == "clean":
            screen.print(clean(chosen.jobs))
        else:
            for reference in REFERENCES:
                judged(screen, reference, chosen.level, chosen.jobs)


def killing(screen: Console, jobs: int) -> None:
    """Print kills, survivors by name, and the seconds to the first violation."""
    names = power.names()
    found = list(power.kills(names, jobs))
    dead = [k for k in found if k.law]
    seconds = sorted(k.seconds for k in dead)
    start = power.start()
    screen.print(f"kills: {len(dead)} of {len(names)} planted faults, at the default level")
    for k in found:
        if not k.law:
            screen.print(f"  survives: {k.name}" + (f" ({k.trouble})" if k.trouble else ""))
    if seconds:
        median, most = statistics.median(seconds), seconds[-1]
        screen.print(
            f"seconds to the first violation: median {median:.2f}, worst {most:.1f}; "
            f"a check by name starts in {start:.1f} s, so {median + start:.1f} s in all (aim: {TO_VIOLATION:g})"
        )


def clean(jobs: int) -> Table:
    """Time whole default checks of our own forms, each with processes of its own."""
    table = Table("operator", "s", f"of {TO_CLEAN:g}", "verdicts", title="a clean default check")
    for operator in power.IMPL:
        report = power.clean(operator, jobs)
        table.add_row(operator, f"{report.seconds:.1f}", "within" if report.seconds <= TO_CLEAN else "over", counts(report))
    return table


def counts(report: CheckReport) -> str:
    """How many laws there are of each verdict that there is."""
    return ", ".join(f"{n} {verdict}" for verdict, n in report.summary.items() if n and verdict != "total")


def judged(screen: Console, reference: Public, level: str, jobs: int) -> None:
    """Print the verdict of every law on a public reference."""
    begin = time.perf_counter()
    try:
        report = isoform.check(reference.target, reference.operator, level=level, jobs=jobs, call_limit=CALL, **reference.options)
    except (ModuleNotFoundError, ValueError) as error:
        screen.print(f"{reference.name}: not checked: {error}", markup=False)
        return
    screen.print(f"{reference.name} as {reference.operator}: {counts(report)} ({time.perf_counter() - begin:.0f} s)", markup=False)
    for verdict in ("holds", "violated", "unverified", "not-applicable"):
        laws = [law for law in report.laws if law.verdict == verdict]
        if laws and verdict in ("holds", "not-applicable"):
            screen.print(f"  {verdict.replace('-', ' ')}: {', '.join(law.law for law in laws)}", markup=False)
        for law in laws if verdict in ("violated", "unverified") else ():
            seen = law.smallest.breaks if law.smallest else law.detail
            screen.print(f"  {verdict}: {law.law}: {seen}", markup=False)
    for remark in report.limits:
        screen.print(f"  limit: {remark}", markup=False)


if __name__ == "__main__":
    main()
