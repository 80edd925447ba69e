"""`isoform verify`: prove and cross-check."""

import click

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
def command(
    names: tuple[str, ...],
    as_json: bool,
    jobs: int | None,
    seed: int,
    fail_fast: bool,
    symbolic_only: bool,
    level: str,
    time_limit: float,
) -> int:
    """Prove the named claims (all, if none is named) and cross-check their implementations."""
    from isoform import plan, runner, tables

    wanted = plan.make(names, seed=seed, level=level, jobs=jobs, time_limit=time_limit, symbolic_only=symbolic_only, fail_fast=fail_fast)
    with tables.progress(wanted) as watch:
        report = runner.run(wanted, watch)
    if as_json:
        options.print_json(report.to_dict())
    else:
        tables.print_report(report)
    return report.exit_code
