"""Print what isoform costs: importing, listing, and every proof in one process. Run by `make bench`."""

import statistics
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

REPEATS = 5
COMMANDS = {
    "python -c 'import isoform'": ("-c", "import isoform"),
    "isoform list": ("-m", "isoform", "list"),
}


def main() -> None:
    """Print one table for the commands and one for the proofs."""
    screen = Console(highlight=False)
    screen.print(commands_table())
    screen.print(proofs_table())


def commands_table() -> Table:
    """Time whole processes, start of the interpreter included; an empty one stands beside them."""
    table = Table("command", "best s", title=f"best of {REPEATS}")
    for name, arguments in {"python -c ''": ("-c", ""), **COMMANDS}.items():
        table.add_row(name, f"{min(_process_seconds(arguments) for _ in range(REPEATS)):.3f}")
    return table


def proofs_table() -> Table:
    """Time every claim, once, one after the other: proof, second engine and near misses."""
    begin = time.perf_counter()
    from isoform.derivations.registry import claims
    from isoform.derivations.verification import verify_claim

    table = Table("claim", "verdict", "s", title="verification of every claim, one process")
    table.add_row("(importing the derivations)", "", f"{time.perf_counter() - begin:.3f}")
    seconds = []
    for claim in claims():
        start = time.perf_counter()
        result = verify_claim(claim)
        seconds.append(time.perf_counter() - start)
        table.add_row(claim.id, result.verdict, f"{seconds[-1]:.3f}")
    table.add_section()
    table.add_row(f"{len(seconds)} claims", "", f"{sum(seconds):.3f}")
    table.add_row("median", "", f"{statistics.median(seconds):.3f}")
    return table


def _process_seconds(arguments: tuple[str, ...]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
