"""`isoform report`: what a run finds, as a static site."""

from __future__ import annotations

from pathlib import Path

import click

from isoform.commands import options


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[ID or ARCHITECTURE]...")
@options.as_json
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes.  [default: the number of cores]")
@options.seed
@click.option("--symbolic-only", is_flag=True, help="Leave out the numeric cross-checks.")
@click.option("--level", type=click.Choice(["quick", "default", "deep"]), default="quick", show_default=True, help="Of the cross-checks.")
@options.time_limit
def command(
    directory: Path,
    names: tuple[str, ...],
    as_json: bool,
    jobs: int | None,
    seed: int,
    symbolic_only: bool,
    level: str,
    time_limit: float,
) -> int:
    """Verify the named claims (all, if none is named), and write what was found into DIR as pages that need no network.

    DIR is new, empty, or holds such a report, which is replaced. An interrupted run is written as far as it came.
    """
    from isoform import book, outcome, plan, tables

    try:
        book.require()
        wanted = plan.make(names, seed=seed, level=level, jobs=jobs, time_limit=time_limit, symbolic_only=symbolic_only)
        book.reserve(directory)
    except (book.MissingLibrary, book.UnusableFolder) as error:
        raise click.UsageError(str(error)) from None
    report = tables.watched(wanted)
    pages = book.write(report, directory)
    if as_json:
        facts = {"schema": outcome.SCHEMA, "index": str(directory / "index.html"), "pages": pages, "summary": report.summary}
        options.print_json({**facts, "failures": [outcome.failure_to_dict(failure) for failure in report.failures]})
    else:
        tables.print_summary(report)
        click.echo(str(directory / "index.html"))
    return report.exit_code
