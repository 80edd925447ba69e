"""`isoform check`: hold a kernel against the laws of an operator."""

from __future__ import annotations

from pathlib import Path

import click

from isoform.commands import options
from isoform.levels import LEVELS


@click.command()
@click.argument("target", metavar="MODULE:FUNCTION|FILE.py:FUNCTION")
@click.option("--as", "operator", required=True, metavar="OPERATOR", help="What it should compute, e.g. gated-delta-rule.")
@click.option("--signature", default="plain", show_default=True, help="How it is called: plain (fla), mamba, sdpa, onnx.")
@click.option("--map", "mapping", default="", help="Small differences from the signature, e.g. q=query,k=key.")
@click.option("--level", type=click.Choice(LEVELS), default="default", show_default=True, help="How much is tried.")
@options.seed
@click.option("--precision", default="", help="Of sums and operands, e.g. bf16-operands.  [default: read from the dtype]")
@click.option("--discretization", default=None, help="Of the selective scan: euler (the default) or zoh.")
@click.option("--limits", default="", help="What it does not claim to accept, e.g. 'T%16,K=V'.")
@click.option("--chunk", type=click.IntRange(min=1), default=None, help="Its chunk size, if it has no argument for it.  [default: 64]")
@click.option("--laws", default="", metavar="NAME,...", help="Only these laws.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first violation.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes.  [default: the number of cores]")
@click.option("--call-limit", type=float, default=10.0, show_default=True, metavar="SECONDS", help="A call that takes longer hangs.")
@click.option("--witnesses", default="isoform-witnesses", show_default=True, metavar="DIR|none", help="Folder for witness files.")
@click.option("--expected", type=click.Path(path_type=Path), default=None, metavar="FILE", help="A list of expected failures, in TOML.")
@options.as_json
def command(
    target: str,
    operator: str,
    signature: str,
    mapping: str,
    level: str,
    seed: int,
    precision: str,
    discretization: str | None,
    limits: str,
    chunk: int | None,
    laws: str,
    fail_fast: bool,
    jobs: int | None,
    call_limit: float,
    witnesses: str,
    expected: Path | None,
    as_json: bool,
) -> int:
    """Hold a kernel against the laws of an operator, within derived bounds."""
    from isoform.checking import plan, printing, runner, standing
    from isoform.checking.expected import read
    from isoform.checking.target import Unusable, parse

    try:
        found = parse(target)
        wanted = plan.make(
            found,
            str(found),
            operator,
            signature=signature,
            map=mapping,
            level=level,
            seed=seed,
            precision=precision,
            discretization=discretization,
            limits=limits,
            chunk=chunk,
            laws=tuple(name.strip() for name in laws.split(",") if name.strip()),
            jobs=jobs,
            call_limit=call_limit,
            fail_fast=fail_fast,
        )
        known = None if expected is None else read(expected)
        with printing.progress() as watch:
            report = runner.run(wanted, watch=watch, witnesses=None if witnesses == "none" else Path(witnesses))
        report = report if known is None else standing.beside(report, wanted, None, known)
    except Unusable as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        options.print_json(report.to_dict())
    else:
        printing.print_report(report)
    return report.exit_code
