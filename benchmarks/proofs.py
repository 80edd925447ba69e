"""Print what isoform costs: importing, listing, and every proof in one process. Run by `make bench`."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

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
    """Time every claim, once, one after the other: its proof alone (lemmas proved before), then with everything else."""
    begin = time.perf_counter()
    from isoform.derivations.registry import claims
    from isoform.derivations.verification import prove_claim, verify_claim

    table = Table("claim", "verdict", "proof s", "all s", title="every claim, one process: the proof; with second engine and near misses")
    table.add_row("(importing the derivations)", "", f"{time.perf_counter() - begin:.3f}", "")
    proofs, wholes = [], []
    for claim in claims():
        proofs.append(_seconds(prove_claim, claim)[0])
        whole, result = _seconds(verify_claim, claim)
        wholes.append(whole)
        table.add_row(claim.id, result.verdict, f"{proofs[-1]:.3f}", f"{whole:.3f}")
    table.add_section()
    table.add_row(f"{len(proofs)} claims", "", f"{sum(proofs):.3f}", f"{sum(wholes):.3f}")
    table.add_row("median", "", f"{statistics.median(proofs):.3f}", f"{statistics.median(wholes):.3f}")
    table.add_row("largest", "", f"{max(proofs):.3f}", f"{max(wholes):.3f}")
    return table


def _seconds(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.process_time()
    value = call(*arguments)
    return time.process_time() - start, value


def _process_seconds(arguments: tuple[str, ...]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
