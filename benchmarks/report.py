"""The findings of a run as Markdown tables and as a plot."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten
from typing import Any

from benchmarks.operators import BATCH, BOTH, CHANNELS, FORWARD, HEADS, KEY, MODES, OPERATORS, STATE, VALUE, Operator

DIRECTIONS = (FORWARD, BOTH)
Found = dict[str, Any]


def table(found: Found) -> str:
    """The whole report."""
    return "\n\n".join([_head(found), summary(found), _growth(found), *_operators(found), _absent(found)]) + "\n"


def summary(found: Found) -> str:
    """Each operator beside the best peer at the longest length, and beside its floor."""
    length = max(found["lengths"])
    rows = []
    for operator in _present(found):
        for run in found["runs"]:
            for direction in DIRECTIONS:
                rows.append((operator.name, run["threads"], direction, operator.form, *_beside(found, run, operator, direction, length)))
    head = ("operator", "threads", "pass", "form", "ms", "best torch peer", "ms", "ratio", "to reach", "reached", "over floor")
    return f"## Beside the best torch peer at T = {length}\n\n" + markdown(head, rows)


def plot(found: Found, path: Path) -> None:
    """Log time against log length on one thread: one panel an operator, the forward pass drawn through, both passes dashed."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams |= {"svg.hashsalt": "isoform", "font.size": 8}
    present = _present(found)
    figure, panels = plt.subplots(2, -(-len(present) // 2), figsize=(12, 9), squeeze=False, layout="constrained")
    run = found["runs"][0]
    for panel in panels.flat[len(present) :]:
        panel.set_axis_off()
    for operator, panel in zip(present, panels.flat, strict=False):
        names = sorted(_names(run, operator), key=lambda name: name != f"isoform {operator.form}")
        for name in names:
            for direction, line in zip(DIRECTIONS, ("-", "--")):
                ours = name.startswith("isoform")
                points = sorted((t["length"], t["processor"]) for t in _of(run["times"], operator, name, direction))
                label = name if direction == FORWARD else None
                panel.plot(*zip(*points), line, marker=".", color=f"C{names.index(name)}", linewidth=2 if ours else 1, label=label)
        panel.set(title=operator.name, xscale="log", yscale="log", xlabel="T", ylabel="processor time, ms")
        panel.set_xticks(found["lengths"], [str(n) for n in found["lengths"]])
        panel.minorticks_off()
        panel.legend(fontsize=6, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    figure.suptitle("one thread, float32: forward (drawn through), forward and backward (dashed)")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _head(found: Found) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in found["packages"].items() if number != "not installed")
    load = " and ".join(f"{load:.1f}" for load in found["load"])
    return f"""# Speed beside public implementations

float32, B={BATCH}; H={HEADS} K={KEY} V={VALUE} with heads; D={CHANNELS} channels, with N={STATE} (S6) or {MODES} pairs (S4D).
{packages}; {found["cores"]} cores, load before and after the run {load}, in
{found["seconds"] / 60:.0f} minutes. Medians of calls that take turns. One thread: processor time of the process; more threads: time on
the clock. The floor of a form is its counted operations over the rate of a large float32 matrix product in the same process. Every
result was compared with the recurrence (of attention: with the online softmax) in float64 before it was timed: an error is the largest
difference over the largest entry, and more than 2⁻⁸ is wrong. Wrong or broken results are not timed."""


def _growth(found: Found) -> str:
    lengths = sorted({int(n) for fit in found["growth"] for n in fit["times"]})
    rows = []
    for operator in filter(lambda operator: not operator.quadratic, _present(found)):
        fits = {fit["direction"]: f"{fit['exponent']:.2f}" for fit in found["growth"] if fit["operator"] == operator.name}
        rows.append((operator.name, *_cost(found["costs"][operator.name]), *(fits.get(way, "") for way in DIRECTIONS)))
    head = ("operator", "million operations", "MB written", "straight lines in T", *(f"exponent, {way}" for way in DIRECTIONS))
    text = "Counted in one forward pass at T = 8192; exponents fitted to the processor time of one thread"
    span = f" from T = {lengths[0]} to {lengths[-1]}" if lengths else ""
    return f"## How the forms grow\n\n{text}{span}.\n\n" + markdown(head, rows)


def _cost(cost: Found) -> tuple[str, str, str]:
    if "missing" in cost:
        return (cost["missing"], "", "")
    return (f"{cost['operations'] / 1e6:.0f}", f"{cost['bytes'] / 1e6:.0f}", "yes, both" if cost["straight"] else "no")


def _operators(found: Found) -> Iterable[str]:
    for operator in _present(found):
        for run in found["runs"]:
            head = ("", *(f"{way} {n}" for way in DIRECTIONS for n in found["lengths"]), "error, output", "error, gradient")
            rows = [_row(found, run, operator, name) for name in _names(run, operator)]
            yield f"## {operator.name}, {_threads(run)}, ms\n\n" + markdown(head, rows)


def _row(found: Found, run: Found, operator: Operator, name: str) -> tuple[str, ...]:
    cells = []
    for direction in DIRECTIONS:
        taken = {t["length"]: _milliseconds(run, t) for t in _of(run["times"], operator, name, direction)}
        long = {s["length"] for s in _of(found["skipped"], operator, name, direction)}
        cells += [number(taken[n]) if n in taken else "too long" if n in long else "–" for n in found["lengths"]]
    checks = _of(found["checks"], operator, name)
    errors = [max((c[kind] for c in checks if c[kind] is not None), default=None) for kind in ("output", "gradient")]
    return (name, *cells, *map(_error, errors))


def _absent(found: Found) -> str:
    reasons: dict[str, list[int]] = {}
    for operator, names in found["missing"].items():
        reasons |= {f"{operator}: {name}: {reason}": [] for name, reason in names.items()}
    for c in found["checks"]:
        if wrong := [way for way, right in c["right"].items() if not right]:
            why = c["broken"] or f"wrong, by {_error(c['output'])} in the output and {_error(c['gradient'])} in a gradient"
            reasons.setdefault(f"{c['operator']}: {c['name']}, {' and '.join(wrong)}: {shorten(why, 120)}", []).append(c["length"])
    lines = [f"- {reason}" + (f" (T = {', '.join(map(str, lengths))})" if lengths else "") for reason, lengths in reasons.items()]
    return "## Not timed, and why\n\n" + ("\n".join(lines) or "Nothing.")


def _beside(found: Found, run: Found, operator: Operator, direction: str, length: int) -> tuple[str, ...]:
    times = [t for t in run["times"] if (t["operator"], t["direction"], t["length"]) == (operator.name, direction, length)]
    ours = next((_milliseconds(run, t) for t in times if t["name"] == f"isoform {operator.form}"), None)
    if ours is None:
        return ("missing", *[""] * 6)
    floor = _floor(found, run, operator, direction)
    over = f"{ours / floor:.1f}" if floor else "–"
    peers = {t["name"]: _milliseconds(run, t) for t in times if t["name"] in found["torch_peers"]}
    if not peers:
        return (number(ours), "none", "", "", f"{operator.target(direction)}", "", over)
    best = min(peers, key=peers.__getitem__)
    ratio, target = ours / peers[best], operator.target(direction)
    return (number(ours), best, number(peers[best]), f"{ratio:.2f}", f"{target}", "yes" if ratio <= target else "no", over)


def _floor(found: Found, run: Found, operator: Operator, direction: str) -> float | None:
    """Milliseconds; of the forward pass alone, for that is what is counted."""
    operations = found["costs"][operator.name].get("operations")
    if operations is None or direction != FORWARD:
        return None
    return operations / run["rate"]["processor" if run["threads"] == 1 else "clock"]


def _milliseconds(run: Found, taken: Found) -> float:
    return taken["processor"] if run["threads"] == 1 else taken["clock"]


def _threads(run: Found) -> str:
    return "one thread" if run["threads"] == 1 else f"{run['threads']} threads"


def _present(found: Found) -> list[Operator]:
    return [operator for operator in OPERATORS if operator.name in found["costs"]]


def _names(run: Found, operator: Operator) -> list[str]:
    return list(dict.fromkeys(t["name"] for t in run["times"] if t["operator"] == operator.name))


def _of(rows: Iterable[Found], operator: Operator, name: str, direction: str | None = None) -> list[Found]:
    named = [r for r in rows if (r["operator"], r["name"]) == (operator.name, name)]
    return [r for r in named if direction is None or r["direction"] == direction]


def _error(error: float | None) -> str:
    return "–" if error is None else f"{error:.1e}"


def number(milliseconds: float) -> str:
    """Three digits."""
    return f"{milliseconds:.{max(0, 2 - len(str(int(milliseconds))) + 1)}f}"


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
