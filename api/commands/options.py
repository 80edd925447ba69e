"""Options that several subcommands share."""

import json
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout, and nothing else there.")
seed = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of every random choice.")
time_limit = click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="A claim that takes longer is unknown.",
)


def print_json(value: dict[str, Any]) -> None:
    """Print a value as JSON; a number that JSON cannot say is an error."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
