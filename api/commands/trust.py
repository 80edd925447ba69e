"""`isoform trust`: what a verdict rests on."""

import click

from isoform.commands import options


@click.command()
@click.argument("id", metavar="ID")
@options.as_json
@options.seed
@options.time_limit
def command(id: str, as_json: bool, seed: int, time_limit: float) -> int:
    """Verify a claim and show the methods, engines, versions and assumed lemmas that its verdict rests on."""
    from isoform import inspection, pages

    trust = inspection.trust(id, seed=seed, time_limit=time_limit)
    if as_json:
        options.print_json(trust.to_dict())
    else:
        pages.print_trust(trust)
    return trust.exit_code
