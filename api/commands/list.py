"""`isoform list`: the claims that there are."""

import click

from isoform.commands import options


@click.command()
@click.argument("names", nargs=-1, metavar="[ID or ARCHITECTURE]...")
@options.as_json
def command(names: tuple[str, ...], as_json: bool) -> int:
    """List the claims as the lock file records them; nothing is verified."""
    import isoform
    from isoform import inspection, outcome, tables

    entries = inspection.claims(*names)
    if as_json:
        listed = [{"id": entry.id, "version": entry.version, "title": entry.title} for entry in entries]
        options.print_json({"schema": outcome.SCHEMA, "version": isoform.__version__, "claims": listed})
    else:
        tables.print_list(entries)
    return 0
