"""`isoform replay`: run the cases of a witness file again."""

from __future__ import annotations

from pathlib import Path

import click

from isoform.commands import options


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--on", "target", default=None, metavar="MODULE:FUNCTION|FILE.py:FUNCTION", help="Another kernel.")
@options.as_json
def command(file: Path, target: str | None, as_json: bool) -> int:
    """Run the cases of a witness file again: exit 1 if the law is still violated in them, 0 if it holds now."""
    from isoform.checking import printing, replaying
    from isoform.checking.target import Unusable, parse

    try:
        report = replaying.replay(file, None if target is None else parse(target))
    except Unusable as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        options.print_json(report.to_dict())
    else:
        printing.print_replay(report)
    return report.exit_code
