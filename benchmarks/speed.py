"""Time our forms beside public ones, and write a table, a plot and the numbers: `python -m benchmarks.speed`. Run by `make bench`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.operators import OPERATORS
from benchmarks.report import plot, summary, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
MARKS = ("<!-- speed: written by benchmarks/speed.py -->\n", "<!-- /speed -->")
PACKAGES = (
    "torch",
    "flash-linear-attention",
    "transformers",
    "mambapy",
    "torchscale",
    "pytorch-fast-transformers",
    "s5-pytorch",
    "rwkv",
    "scipy",
)
LENGTHS, GROWTH = (512, 2048, 8192), (2048, 4096, 8192, 16384)
QUICK, QUICK_GROWTH = (256, 512), (256, 512, 1024)
THREADS = (1, 2)


def main() -> None:
    """Check everyone, time everyone, write the report; the page in docs only beside the results in their usual place."""
    options = _options()
    begin = time.perf_counter()
    lengths, growth = (QUICK, QUICK_GROWTH) if options.quick else (LENGTHS, GROWTH)
    plan = {"operators": options.operators, "seconds": 0.1 if options.quick else options.seconds, "longest": options.longest}
    found = {"packages": _versions(), "lengths": lengths, "cores": os.cpu_count(), "load": [os.getloadavg()[0]]}
    found |= _worker(plan | {"do": "check", "lengths": lengths}, threads=1)
    plan["right"] = [[c["operator"], c["name"], c["length"], way] for c in found["checks"] for way, right in c["right"].items() if right]
    found["runs"] = [_worker(plan | {"do": "time", "lengths": lengths}, threads) for threads in options.threads]
    found["growth"] = _worker(plan | {"do": "grow", "lengths": growth}, threads=1)
    found["load"].append(os.getloadavg()[0])
    found["seconds"] = time.perf_counter() - begin

    options.to.mkdir(parents=True, exist_ok=True)
    (options.to / "speed.json").write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    (options.to / "speed.md").write_text(table(found), encoding="utf-8")
    plot(found, options.to / "speed.svg")
    print(summary(found))
    if options.to == RESULTS:
        write_between(PAGE, MARKS, summary(found) + "\n")


def write_between(page: Path, marks: tuple[str, str], text: str) -> None:
    """Replace what stands between two marks on a page."""
    before, rest = page.read_text(encoding="utf-8").split(marks[0])
    page.write_text(before + marks[0] + text + marks[1] + rest.split(marks[1])[1], encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Time every operator beside its peers.")
    names = [operator.name for operator in OPERATORS]
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help=f"all by default: {', '.join(names)}")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS, help="a run for each number of threads (default 1 2)")
    parser.add_argument("--quick", action="store_true", help="short sequences and few laps: shows that everything runs, measures nothing")
    parser.add_argument("--seconds", type=float, default=0.5, help="processor time for each call at each length (default 0.5)")
    parser.add_argument("--longest", type=float, default=20.0, help="skip, and name, a call of more processor seconds (default 20)")
    parser.add_argument("--to", type=Path, default=RESULTS, help="folder for speed.md, speed.svg and speed.json")
    options = parser.parse_args()
    options.operators = options.operators or names
    if unknown := sorted(set(options.operators) - set(names)):
        parser.error(f"no operator {', '.join(unknown)}; there are {', '.join(names)}")
    return options


def _worker(plan: dict[str, Any], threads: int) -> Any:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    if threads == 1:
        environment["OMP_WAIT_POLICY"] = "PASSIVE"  # of several threads it would time their waking
    command = [sys.executable, "-m", "benchmarks.worker"]
    text = json.dumps(plan | {"threads": threads})
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, env=environment)
    return json.loads(done.stdout)


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


if __name__ == "__main__":
    main()
