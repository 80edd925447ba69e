"""`isoform verify`: prove and cross-check."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.core import ParameterSource

from isoform.commands import options


@click.command()
@click.argument("names", nargs=-1, metavar="[ID or ARCHITECTURE]...")
@options.as_json
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes.  [default: the number of cores]")
@options.seed
@click.option("--fail-fast", is_flag=True, help="Stop at the first failure.")
@click.option("--symbolic-only", is_flag=True, help="Leave out the numeric cross-checks.")
@click.option("--level", type=click.Choice(["quick", "default", "deep"]), default="quick", show_default=True, help="Of the cross-checks.")
@options.time_limit
@click.option("--certificate", "target", type=click.Path(path_type=Path), help="Write what was found to this file, also if interrupted.")
@click.option("--from", "given", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Check this certificate.")
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    as_json: bool,
    jobs: int | None,
    seed: int,
    fail_fast: bool,
    symbolic_only: bool,
    level: str,
    time_limit: float,
    target: Path | None,
    given: Path | None,
) -> int:
    """Prove the named claims (all, if none is named) and cross-check their implementations.

    With --from, the claims are those of a certificate, and what it says of them is compared with what is found here.
    """
    from isoform import certificate, plan, recheck, tables

    if target:
        _check_target(target)
    effort = {"jobs": jobs, "time_limit": time_limit, "symbolic_only": symbolic_only, "fail_fast": fail_fast}
    if given:
        for name in ("seed", "level"):
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name} and --from exclude each other: the certificate gives the {name}")
        with options.reading_a_certificate():
            content = certificate.read(given)
        report = recheck.recheck(content, *names, begin=tables.watched, **effort)
    else:
        report = tables.watched(plan.make(names, seed=seed, level=level, **effort))
    if target:
        certificate.write(report, target)
    if as_json:
        options.print_json(report.to_dict())
    else:
        tables.print_report(report)
    return report.exit_code


def _check_target(path: Path) -> None:
    """Refuse, before a long run, a file that could not be written after it."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise click.UsageError(f"--certificate {path}: a file in a folder that can be written to is needed")
