"""`isoform show`: one claim, as a paper would put it."""

import click

from isoform.commands import options


@click.command()
@click.argument("id", metavar="ID")
@click.option("--latex", "as_latex", is_flag=True, help="Print LaTeX.")
@options.as_json
@options.seed
@options.time_limit
def command(id: str, as_latex: bool, as_json: bool, seed: int, time_limit: float) -> int:
    """Verify a claim and show its statement, assumptions, sources, steps, and near misses with their counterexamples."""
    from isoform import inspection, outcome, pages

    if as_latex and as_json:
        raise click.UsageError("--latex and --json exclude each other")
    result = inspection.show(id, seed=seed, time_limit=time_limit)
    if as_json:
        options.print_json(inspection.show_to_dict(result))
    elif as_latex:
        click.echo(pages.latex(result))
    else:
        pages.print_claim(result)
    return outcome.exit_code(outcome.judge_claim(result))
