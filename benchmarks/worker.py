"""One process of the benchmark, with its number of threads set before torch starts: `python -m benchmarks.worker`.

It reads a plan (JSON) from standard input and writes its findings (JSON) to standard output; progress goes to standard error.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.checking import LIMIT, checks
from benchmarks.contestants import Contestant, contestants
from benchmarks.counts import cost
from benchmarks.operators import BOTH, FORWARD, OPERATORS, Operator
from benchmarks.peers import PEERS
from benchmarks.timing import Time, exponent, forecast, interleaved, matrix_product_rate, prepared

DIRECTIONS = (FORWARD, BOTH)


def main() -> None:
    """Do what the plan says: "check", "time" or "grow"."""
    plan = json.load(sys.stdin)
    chosen = [operator for operator in OPERATORS if operator.name in plan["operators"]]
    torch.set_num_threads(plan["threads"])
    with redirect_stdout(sys.stderr):
        findings = {"check": check, "time": time, "grow": grow}[plan["do"]](chosen, plan)
    json.dump(findings, sys.stdout)


def check(operators: list[Operator], plan: dict[str, Any]) -> dict[str, Any]:
    """Who can run, with which error, and why the others cannot; which calls would take too long; what ours cost."""
    missing: dict[str, dict[str, str]] = {}
    rows, skipped, costs = [], [], {}
    for operator in operators:
        able, missing[operator.name] = contestants(operator)
        past: dict[tuple[str, str], dict[int, float]] = {(one.name, direction): {} for one in able for direction in DIRECTIONS}
        for length in plan["lengths"]:
            _say(f"checking {operator.name} at T = {length}")
            long = {call for call, taken in past.items() if forecast(taken, length) > 1000 * plan["longest"]}
            skipped += [{"operator": operator.name, "name": name, "length": length, "direction": way} for name, way in sorted(long)]
            for name, found in checks(operator, length, able, lambda *call, long=long: call not in long).items():
                right = {direction: found.right(direction) for direction in DIRECTIONS if (name, direction) not in long}
                rows.append({"operator": operator.name, "name": name, "length": length, "right": right} | asdict(found))
                for direction, milliseconds in found.milliseconds.items():
                    past[name, direction][length] = milliseconds
        try:
            costs[operator.name] = asdict(cost(operator))
        except (LookupError, NotImplementedError, TypeError) as reason:
            costs[operator.name] = {"missing": str(reason)}
    torch_peers = sorted({peer.name for peer in PEERS if peer.language == "torch"})
    return {"limit": LIMIT, "missing": missing, "checks": rows, "skipped": skipped, "costs": costs, "torch_peers": torch_peers}


def time(operators: list[Operator], plan: dict[str, Any]) -> dict[str, Any]:
    """Time everyone whose results are right."""
    rates, rows = [matrix_product_rate()], []
    for operator in operators:
        able, _ = contestants(operator)
        for direction in DIRECTIONS:
            for length in plan["lengths"]:
                _say(f"{plan['threads']} thread(s): {operator.name}, T = {length}, {direction}")
                right = [one for one in able if [operator.name, one.name, length, direction] in plan["right"]]
                for name, taken in _times(right, operator, length, direction, plan).items():
                    rows.append({"operator": operator.name, "name": name, "length": length, "direction": direction} | asdict(taken))
        rates.append(matrix_product_rate())
    return {"threads": plan["threads"], "times": rows, "rate": dict(zip(("processor", "clock"), map(max, zip(*rates))))}


def grow(operators: list[Operator], plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Fit the exponent of time in length for our forms that are linear in it."""
    rows = []
    for operator in filter(lambda operator: not operator.quadratic, operators):
        able = [one for one in contestants(operator)[0] if one.name == f"isoform {operator.form}"]
        for direction in DIRECTIONS:
            _say(f"growth of {operator.name}, {direction}")
            times = {n: _times(able, operator, n, direction, plan) for n in plan["lengths"]}
            for one in able:
                taken = {n: found[one.name].processor for n, found in times.items()}
                rows.append({"operator": operator.name, "direction": direction, "times": taken, "exponent": exponent(taken)})
    return rows


def _times(able: list[Contestant], operator: Operator, length: int, direction: str, plan: dict[str, Any]) -> dict[str, Time]:
    return interleaved({one.name: prepared(one, operator, length, direction) for one in able}, plan["seconds"])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
