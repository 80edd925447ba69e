"""Options that several subcommands share."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from isoform.levels import LEVELS


def _number(ctx: click.Context, option: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter(f"{value} is no number of seconds.")
    return value


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout, and nothing else there.")
jobs = click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes.  [default: the number of cores]")
symbolic_only = click.option("--symbolic-only", is_flag=True, help="Leave out the numeric cross-checks.")
level = click.option("--level", type=click.Choice(LEVELS), default="quick", show_default=True, help="Of the cross-checks.")
given = click.option("--from", "given", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Check this certificate.")
seed = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of every random choice.")
time_limit = click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    callback=_number,
    help="A claim that needs more processor time is unknown.",
)


@contextmanager
def reading_a_certificate() -> Iterator[None]:
    """One that was altered is a violation, anything else that cannot be read is wrong usage."""
    from isoform import certificate

    try:
        yield
    except certificate.Malformed as error:
        raise click.ClickException(str(error)) from None
    except certificate.Altered as error:
        click.echo(f"isoform: {error}", err=True)
        raise click.exceptions.Exit(1) from None


def refuse_what_a_certificate_gives(ctx: click.Context) -> None:
    """A certificate has a seed and a level of its own: naming another is wrong usage."""
    for name in ("seed", "level"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} and --from exclude each other: the certificate gives the {name}")


def print_json(value: dict[str, Any]) -> None:
    """Print a value as JSON, in ASCII where stdout is not UTF-8; a number that JSON cannot say is an error."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    click.echo(json.dumps(value, indent=2, ensure_ascii=not unicode, allow_nan=False))
