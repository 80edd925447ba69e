"""Write docs/layers.md: the example layers side by side, as a run finds them. `make layer-page` runs it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from isoform.derivations.claim import Claim, ClaimResult
from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.layer import Classification, classify, costs, derive
from isoform.derivations.layer.examples import EXAMPLES, LOGS
from isoform.derivations.layer.torch_call import Call
from isoform.derivations.layer.torch_code import torch_code
from isoform.derivations.layer.torch_parallel import Parallel, attempts
from isoform.derivations.verification import verify_claim
from isoform.properties.crosscheck import LEVELS, check_forms, forms_of
from isoform.properties.declared import operator_of
from isoform.properties.laws import LawResult

PAGE = Path(__file__).parents[1] / "docs" / "layers.md"
LEVEL, SEED = "quick", 0
THEOREMS = {
    "update": ("update",),
    "unrolled": ("unrolled",),
    "split-resume": ("split-resume",),
    "chunkwise": ("chunkwise",),
    "scan": ("scan",),
    "all outputs": ("masked", "outputs"),
    "gradient-step": ("gradient-step",),
    "stable": ("stable",),
    "step-cost": ("step-cost",),
}
"""The columns, with the ids of the claims in them behind the slash; with several states those end in the state's name."""
NONE = "–"
HEAD = """# {count} layers, side by side

`make layer-page` writes this page from a run over `isoform.derivations.layer.examples`: what each layer was classified as, what is
proved of it, which PyTorch forms are written, and which laws those hold. [Add your layer](add-your-layer.md) has the way of one."""


@dataclass(frozen=True)
class Layer:
    """One of the examples, and what there is of it."""

    declaration: Declaration

    @property
    def name(self) -> str:
        """The name of its operator."""
        return self.declaration.operator

    @cached_property
    def kind(self) -> Classification:
        """What it is."""
        return classify(self.declaration)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What is claimed of it."""
        return derive(self.declaration)

    @property
    def call(self) -> Call:
        """How its forms are called."""
        return Call(self.declaration, True, LOGS.get(self.name, {}))

    def about(self, column: str) -> tuple[Claim, ...]:
        """The claims of a column, one for each state or one for all."""
        states = [u.state.member.name.lower().replace("_", "-") for u in self.kind.updates]
        ids = [f"{self.name}/{slug}{end}" for slug in THEOREMS[column] for end in ("", *(f"-{s}" for s in states))]
        return tuple(c for c in self.claims if c.id in ids)

    def forms(self) -> dict[str, Parallel | str]:
        """The forms that are no loop over tokens: what is written, or why none is."""
        return dict(attempts(self.call))


def transitions(layer: Layer) -> str:
    """What the updates are, by state."""
    found = [(u.state.member.name, str(u) if u.affine else f"{u.kind}: {u.reason}") for u in layer.kind.updates]
    return "; ".join(f"{name}: {kind}" if len(found) > 1 else kind for name, kind in found)


def why(layer: Layer, column: str) -> str:
    """Why a layer has no claim in a column."""
    if not layer.kind.affine:
        return f"the update is {transitions(layer)}"
    if column == "all outputs":
        return f"the read-out is no product with one state: {layer.kind.read.reason or 'there are several'}"
    if column == "gradient-step":
        return f"no real correction of what a key finds, written at that key: {transitions(layer)}"
    return f"no condition is known here for a transition of this kind: {transitions(layer)}"


def verified(layer: Layer) -> dict[str, ClaimResult]:
    """Every claim, proved and evaluated."""
    return {c.id: verify_claim(c, among=layer.claims, seed=SEED) for c in layer.claims}


def held(layer: Layer) -> tuple[LawResult, ...]:
    """Every form under every law."""
    module: dict[str, dict[str, object]] = {}
    exec(compile(torch_code(layer.declaration, logs=layer.call.logs), f"<{layer.name}>", "exec"), module)
    forms = forms_of(module["FORMS"][layer.name], module["STEPS"][layer.name])  # type: ignore[arg-type]
    return tuple(check_forms(operator_of(layer.declaration, logs=layer.call.logs), forms, LEVELS[LEVEL], SEED))


def theorems(layer: Layer, found: dict[str, ClaimResult]) -> str:
    """A row: verdicts, with the near misses that were rejected."""
    cells = []
    for column in THEOREMS:
        results = [found[c.id] for c in layer.about(column)]
        alike = {(r.verdict, f"{sum(m.rejected for m in r.near_misses)}/{len(r.near_misses)}") for r in results}
        cells.append("; ".join(f"{verdict} {misses}" for verdict, misses in sorted(alike)) or NONE)
    return row(layer.name, *cells)


def laws(layer: Layer, results: Sequence[LawResult]) -> list[str]:
    """A row for each form: how many laws hold, and which do not."""
    rows = []
    for form in dict.fromkeys(r.form for r in results):
        own = [r for r in results if r.form == form]
        counts = [sum(r.verdict == v for r in own) for v in ("holds", "not-applicable")]
        others = [f"{r.law} {r.verdict}" for r in own if r.verdict not in ("holds", "not-applicable")]
        rows.append(row(layer.name, form, *map(str, counts), ", ".join(others) or "none"))
    return rows


def kinds(layer: Layer) -> str:
    """A row: what was found by looking at the declaration alone."""
    read = "linear" if layer.kind.read.linear else "not linear"
    return row(layer.name, transitions(layer), read, f"`{costs(layer.declaration).numbers}`")


def absent(layer: Layer) -> list[str]:
    """What a layer has not, and why."""
    reasons = [(column, why(layer, column)) for column in THEOREMS if not layer.about(column)]
    forms = layer.forms()
    if not any(isinstance(f, Parallel) for f in forms.values()):
        reasons += [(f"{name} form", str(reason)) for name, reason in forms.items()]
    alike = {reason: [what for what, r in reasons if r == reason] for _, reason in reasons}
    return [f"- {layer.name} has no {', '.join(whats)}: {reason}" for reason, whats in alike.items()]


def engines(found: Iterable[ClaimResult]) -> str:
    """Who says so: the engines of every claim."""
    each = {" and ".join(dict.fromkeys(e.engine for e in r.evidence)) for r in found}
    return "; ".join(sorted(each))


def row(*cells: str) -> str:
    """A row of a table."""
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def table(head: Sequence[str], rows: Iterable[str]) -> str:
    """A table of rows."""
    return "\n".join([row(*head), "|" + "---|" * len(head), *rows])


def page(layers: Sequence[Layer]) -> str:
    """The page, from a run of all of it."""
    found = {layer.name: verified(layer) for layer in layers}
    forms = {layer.name: held(layer) for layer in layers}
    results = [r for own in found.values() for r in own.values()]
    missing = [line for layer in layers for line in absent(layer)]
    parts = [
        HEAD.format(count=len(layers)),
        "## What they are",
        table(("layer", "transition", "read-out", "numbers kept a head"), map(kinds, layers)),
        "## What is proved",
        f"Each verdict with the near misses that were rejected, of all. By {engines(results)}.",
        table(("layer", *THEOREMS), (theorems(layer, found[layer.name]) for layer in layers)),
        "## What there is not",
        "\n".join(missing),
        "## Which forms there are, and which laws hold",
        f"At level {LEVEL}; laws of other layers and forms do not apply.",
        table(("layer", "form", "hold", "do not apply", "others"), (line for layer in layers for line in laws(layer, forms[layer.name]))),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write the page, or that of the named layers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="LAYER", help="only these layers")
    parser.add_argument("--to", type=Path, default=PAGE, metavar="FILE")
    given = parser.parse_args()
    chosen = [Layer(d) for d in EXAMPLES if not given.names or d.operator in given.names]
    given.to.write_text(page(chosen), "utf-8")


if __name__ == "__main__":
    main()
