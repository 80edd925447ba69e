"""`isoform cite`: a claim, the release and the papers behind it, as BibTeX."""

from __future__ import annotations

from pathlib import Path

import click

from isoform.commands import options


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--from", "given", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Take the verdicts from a certificate.")
@options.as_json
@options.seed
@options.time_limit
def command(ids: tuple[str, ...], given: Path | None, as_json: bool, seed: int, time_limit: float) -> int:
    """Verify the named claims, and print BibTeX entries for them, for the release, and for their sources."""
    from isoform import plan, tables
    from isoform.citing import citation

    if given:
        with options.reading_a_certificate():
            found = citation.cite(*ids, certificate=given)
    else:
        report = tables.watched(plan.make(ids, seed=seed, time_limit=time_limit, symbolic_only=True))
        if report.state == "interrupted":
            raise KeyboardInterrupt
        found = citation.of_report(report)
    if as_json:
        options.print_json(found.to_dict())
    else:
        click.echo(found.bibtex)
        for failure in found.failures:
            click.echo(f"isoform: {failure.where}: {failure.reason}", err=True)
    return found.exit_code
