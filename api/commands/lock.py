"""`isoform lock`: write or check claims.lock."""

import click

from isoform.commands import options


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if the lock file and the claims disagree.")
@options.as_json
def command(check: bool, as_json: bool) -> int:
    """Write the lock file: every claim's id, version, title and fingerprint; columns of other packages have no part in it."""
    from isoform import outcome
    from isoform.derivations import lock, registry

    claims = registry.claims(registry.own())
    try:
        problems = lock.check(claims) if check else ()
        if not check:
            lock.write(claims)
    except lock.LockError as error:
        click.echo(f"isoform: {error}", err=True)
        return 1
    if as_json:
        listed = [{"id": problem.id, "text": problem.text, "blocking": problem.blocking} for problem in problems]
        options.print_json({"schema": outcome.SCHEMA, "claims": len(claims), "problems": listed})
    else:
        for problem in problems:
            click.echo(str(problem))
        click.echo(f"{len(claims)} claims, " + (f"{len(problems)} problems" if check else "written"))
    return 1 if problems else 0
