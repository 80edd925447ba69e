"""`isoform verify`: prove and cross-check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from isoform.commands import options


@click.command()
@click.argument("names", nargs=-1, metavar="[ID or ARCHITECTURE]...")
@options.as_json
@options.jobs
@options.seed
@click.option("--fail-fast", is_flag=True, help="Stop at the first failure.")
@options.symbolic_only
@options.level
@options.time_limit
@click.option("--certificate", "target", type=click.Path(path_type=Path), help="Write what was found to this file, also if interrupted.")
@options.given
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
    effort: dict[str, Any] = {"jobs": jobs, "time_limit": time_limit, "symbolic_only": symbolic_only, "fail_fast": fail_fast}
    if given:
        options.refuse_what_a_certificate_gives(ctx)
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
        raise click.ClickException(f"--certificate {path}: a file in a folder that can be written to is needed")
