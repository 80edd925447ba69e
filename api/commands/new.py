"""`isoform new`: the files of a new column."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from isoform.commands import options

NEEDED = ("inputs", "state", "update", "read", "domains", "source", "where")


@click.command()
@click.argument("name")
@click.option("--inputs", default="", metavar="NAME:SIZE...", help="Inputs of a token, as 'q:d_k k:d_k v:d_v beta:1'.")
@click.option("--parameters", default="", metavar="NAME:SIZE...", help="What is the same for all tokens.")
@click.option("--state", default="", metavar="NAME:SIZE...", help="What is kept from token to token, as 'H:d_v*d_k'.")
@click.option(
    "--update", multiple=True, metavar="FORMULA", help="The state after a token, as 'H + v * k.T'; 'NAME = …' for each of several."
)
@click.option("--read", default="", metavar="FORMULA", help="What is read after the update, as 'H * q'; H_before is the state before it.")
@click.option("--domain", "domains", multiple=True, metavar="NAMES: DOMAIN", help="Where inputs lie, as 'beta: real, 0 <= beta <= 1'.")
@click.option("--log", "logs", multiple=True, metavar="NAME=ARGUMENT", help="A decay that forms are given by its logarithm, as 'a=g'.")
@click.option("--source", default="", metavar="CITATION", help="The paper: 'Authors, Title, arXiv 1234.56789'.")
@click.option("--where", default="", metavar="PLACE", help="The equation or section of the source.")
@options.as_json
def command(name: str, as_json: bool, **given: Any) -> int:
    """Write a new architecture: its derivations, its forms, its properties, from one description.

    In isoform's own tree the files go to its floors, elsewhere into the package that the folder is in. Without options, a terminal
    is asked. One near miss is left to fill in: until then `isoform verify NAME` says that it is not rejected.
    """
    from isoform.scaffold import asking, column, description

    try:
        description.check_name(name)
        if not any(given.values()) and _terminal():
            column.free_place(name, Path.cwd())
            given = asking.ask()
        missing = [f"--{'domain' if key == 'domains' else key}" for key in NEEDED if not given[key]]
        if missing:
            raise click.UsageError(f"{name} needs {', '.join(missing)}; on a terminal, `isoform new {name}` without options asks for all.")
        made = column.make(description.describe(name, **given), Path.cwd())
    except description.ScaffoldError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        options.print_json(made.to_dict())
    else:
        _print(made)
    return 0


def _terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _print(made: Any) -> None:
    for path in made.files:
        click.echo(f"wrote {path}")
    if made.without_code:
        click.echo(f"no forms: {made.without_code}")
    click.echo(f"update: {made.kind}")
    click.echo(f"claims: {', '.join(made.claims)}")
    if made.entry_point:
        click.echo(f"\nAdd to pyproject.toml, and install the package again:\n\n{made.entry_point}\n")
    click.echo(f"Next: fill in the near miss of {made.claims[-1]} in {made.files[0].name}, then `isoform verify {made.name}`.")
