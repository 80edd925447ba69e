"""`isoform report`: what a run finds, as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isoform.commands import options


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[ID or ARCHITECTURE]...")
@options.as_json
@options.jobs
@options.seed
@options.symbolic_only
@options.level
@options.time_limit
@options.given
@click.pass_context
def command(
    ctx: click.Context,
    directory: Path,
    names: tuple[str, ...],
    as_json: bool,
    jobs: int | None,
    seed: int,
    symbolic_only: bool,
    level: str,
    time_limit: float,
    given: Path | None,
) -> int:
    """Verify the named claims (all, if none is named), and write what was found into DIR as pages that need no network.

    DIR is new, empty, or holds such a report, which is replaced. An interrupted run is written as far as it came. With --from, the
    claims are those of a certificate, and what it says of them is compared with what is found here.
    """
    from isoform import book, certificate, outcome, plan, recheck, tables

    effort: dict[str, Any] = {"jobs": jobs, "time_limit": time_limit, "symbolic_only": symbolic_only}
    try:
        book.require()
        if given:
            options.refuse_what_a_certificate_gives(ctx)
            with options.reading_a_certificate():
                content = certificate.read(given)
            book.reserve(directory)
            report = recheck.recheck(content, *names, begin=tables.watched, **effort)
        else:
            wanted = plan.make(names, seed=seed, level=level, **effort)
            book.reserve(directory)
            report = tables.watched(wanted)
    except (book.MissingLibrary, book.UnusableFolder) as error:
        raise click.ClickException(str(error)) from None
    pages = book.write(report, directory)
    if as_json:
        facts = {"schema": outcome.SCHEMA, "index": str(directory / "index.html"), "pages": pages, "summary": report.summary}
        options.print_json({**facts, "failures": [outcome.failure_to_dict(failure) for failure in report.failures]})
    else:
        tables.print_summary(report)
        click.echo(str(directory / "index.html"))
    return report.exit_code
