"""Write docs/laws/: a page for each law, with the planted faults that it sees and where one of them shows. `make law-pages` runs it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoform import plan
from isoform.properties.columns import columns, operators
from isoform.properties.crosscheck import forms_of
from isoform.properties.laws import Comparison, Law, laws
from isoform.properties.laws.table import KINDS
from isoform.properties.operator import Form, FormRaised, Operator
from isoform.properties.running import crash, run_law
from isoform.properties.strategies import Case
from tests.planted.catalogue import CATALOGUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).parents[1] / "docs" / "laws"
EXAMPLES = 6
LISTED, SWEPT_FAULTS = 6, 2
"""Planted faults on a page, at most two of an operator, and of how many the sizes are swept."""
SWEPT = {"t": range(13), "chunk": range(1, 7), "window": range(1, 7), "b": range(1, 5), "n": range(1, 5), "k": range(1, 5)}
CALLED = {"t": "tokens", "chunk": "chunk size", "window": "window", "b": "sequences", "n": "size of the state", "k": "K"}
LIMITS = (1e-3, 1e6)
"""Error over bound, from one end of the colours to the other; exactly 0 is below them."""


@dataclass(frozen=True)
class Seen:
    """A planted fault that a law sees: as an operator's form, with a case and what is wrong there."""

    operator: Operator
    form: Form
    case: Case
    says: str

    @property
    def fault(self) -> str:
        """Its name in words, without the operator's."""
        name = self.form.name.split("__")[0]
        spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
        return " ".join(spaced.replace("_", " ").split())


@cache
def implemented() -> tuple[tuple[Operator, Form], ...]:
    """Every operator with each of its forms in impl."""
    found = []
    for column in columns():
        module = plan.forms(column)
        steps, cached = (getattr(module, name, {}) for name in ("STEPS", "CACHED"))
        for o in operators(column):
            found += [(o, f) for f in forms_of(module.FORMS[o.name], steps.get(o.name), cached.get(o.name))]
    return tuple(found)


def asked(law: Law) -> list[str]:
    """The operators of whose forms the law asks something."""
    return sorted({o.name for o, f in implemented() if not law.missing(o, f)})


@cache
def seen(law: Law) -> tuple[Seen, ...]:
    """Planted faults of the law's kinds that it sees, as many operators as there are first."""
    by_name = {o.name: o for o, _ in implemented()}
    found: list[Seen] = []
    for planted in sorted(CATALOGUE, key=lambda p: -len({*p.kinds} & {*law.kinds})):
        operator, others = by_name[planted.operator], sum(f.operator.name == planted.operator for f in found)
        if not {*planted.kinds} & {*law.kinds} or others > 1 or len(found) == LISTED:
            continue
        form = Form(planted.name, planted.kernel)
        witness = run_law(law, operator, form, examples=EXAMPLES, minimise=False).witness
        if witness is not None:
            found.append(Seen(operator, form, witness.case, witness.what))
    return tuple(found)


def compared(law: Law, s: Seen, case: Case) -> Comparison | None:
    """The worst comparison of a case; None where there is none."""
    found: list[Comparison] = []
    try:
        found.extend(law.check(s.operator, s.form, law.prepare(case)))
    except FormRaised as error:
        found.append(crash(str(error)))
    return max(found, key=lambda c: c.worst, default=None)


def axes(law: Law, case: Case) -> list[str]:
    """Two axes of the case whose sizes the law leaves as they are drawn, the first in `SWEPT`."""
    own = dict(case.sizes)
    return [a for a, sizes in SWEPT.items() if a in own and all(law.prepare(case.resized(**{a: n})).size(a) == n for n in sizes)][:2]


def region(law: Law, s: Seen, x: str, y: str) -> Any:
    """Error over bound at every size of two axes; NaN where there is nothing to compare."""
    found = np.full((len(SWEPT[y]), len(SWEPT[x])), np.nan)
    for (row, n), (column, m) in ((a, b) for a in enumerate(SWEPT[y]) for b in enumerate(SWEPT[x])):
        c = compared(law, s, s.case.resized(**{y: n, x: m}))
        found[row, column] = np.nan if c is None else c.worst
    return found


def shown(law: Law) -> tuple[Seen, list[str], Any] | None:
    """The fault, of those that are seen, that fails at some sizes and not at others, if there is one; its axes and region."""
    best = None
    for s in seen(law)[:SWEPT_FAULTS]:
        names = axes(law, s.case)
        if len(names) < 2:
            continue
        found = region(law, s, *names)
        share = np.mean(found[~np.isnan(found)] > 1) if np.any(~np.isnan(found)) else 0.0
        if share and (best is None or abs(share - 0.5) < best[0]):
            best = abs(share - 0.5), (s, names, found)
    return None if best is None else best[1]


def draw(law: Law, folder: Path) -> str:
    """Draw where a fault shows, into NAME.svg; its text alternative, or "" where there is nothing to draw."""
    found = shown(law)
    if found is None:
        return ""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": "isoform", "font.size": 9, "axes.titlesize": 9}
    import matplotlib.pyplot as plt

    s, names, sizes = found
    inside = compared(law, s, s.case)
    panels = 2 if inside is not None and inside.ratios.ndim > 1 and inside.ratios.shape[1] > 1 else 1
    figure, drawn = plt.subplots(1, panels, figsize=(4.6 * panels, 3), squeeze=False, layout="constrained")
    image = paint(drawn[0, 0], sizes, [SWEPT[n] for n in names], [CALLED[n] for n in names])
    drawn[0, 0].set_title(f"{s.fault}: worst error over bound")
    if panels == 2:
        rows = inside.ratios.swapaxes(0, 1).reshape(inside.ratios.shape[1], -1).T
        paint(drawn[0, 1], rows, [range(n) for n in reversed(rows.shape)], ["second axis (time, of an output)", "all others"])
        drawn[0, 1].set_title("inside the worst case that was found")
    figure.colorbar(image, ax=drawn[0].tolist(), extend="both", label="log₁₀ of error over bound; above 0 is wrong")
    figure.savefig(folder / f"{law.name}.svg", metadata={"Date": None})
    plt.close(figure)
    wrong, known = int(np.sum(sizes > 1)), int(np.sum(~np.isnan(sizes)))
    return f"{s.fault} in {s.operator.name}: {wrong} of {known} pairs of {CALLED[names[0]]} and {CALLED[names[1]]} are wrong"


def paint(panel: Axes, ratios: Any, ticks: Sequence[Sequence[int]], labels: Sequence[str]) -> Any:
    """Error over bound as colours, blue up to 1 and red above."""
    from matplotlib.colors import TwoSlopeNorm

    logs = np.log10(np.clip(np.where(np.isnan(ratios), np.nan, np.where(ratios > 0, ratios, LIMITS[0])), *LIMITS))
    image = panel.imshow(logs, cmap="RdBu_r", norm=TwoSlopeNorm(0, *np.log10(LIMITS)), origin="lower", aspect="auto", interpolation="none")
    for axis, own, label in zip((panel.xaxis, panel.yaxis), ticks, labels):
        step = max(1, len(own) // 9)
        axis.set_ticks(range(0, len(own), step), [str(n) for n in own[::step]])
        axis.set_label_text(label)
    return image


def page(law: Law, folder: Path) -> str:
    """The page of a law: what it says, what it is there for, whom it asks, and which planted faults it sees."""
    picture = draw(law, folder)
    lines = [f"# {law.name}", "", f"{law.says[0].upper()}{law.says[1:]}.", ""]
    if law.kinds:
        lines += ["It is there for", "", *(f"- {KINDS[kind]} ({kind})" for kind in law.kinds), ""]
    names = asked(law)
    everybody = len(names) == len({o.name for o, _ in implemented()})
    lines += ["Asked of the forms of " + ("every operator." if everybody else ", ".join(names) + "."), ""]
    if seen(law):
        lines += ["| planted fault | in | what is wrong |", "|---|---|---|"]
        lines += [f"| {s.fault} | {s.operator.name} | {s.says.replace('|', '/')} |" for s in seen(law)] + [""]
    if picture:
        lines += [f"![{picture}]({law.name}.svg)", "", f"{picture[0].upper()}{picture[1:]}.", ""]
    lines += [f"`isoform check MODULE:FUNCTION --as OPERATOR --laws {law.name}` asks it alone. [All laws](README.md)"]
    return "\n".join(lines) + "\n"


def contents() -> str:
    """The page that lists them all, by theme."""
    about = "`make law-pages` writes these pages from the laws and the planted faults."
    lines = ["# The laws", "", f"What must hold of any implementation. {about}", ""]
    theme = ""
    for law in laws():
        if law.check.__module__ != theme:
            theme = law.check.__module__
            first = (import_module(theme).__doc__ or "").split("\n")[0]
            lines += ["", f"**{first.rstrip('.')}**", ""]
        lines += [f"- [{law.name}]({law.name}.md): {law.says}"]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def main() -> None:
    """Write all pages, or those of the named laws."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="LAW", help="only these laws")
    parser.add_argument("--to", type=Path, default=HERE, metavar="DIR")
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    for law in laws():
        if not given.names or law.name in given.names:
            (given.to / f"{law.name}.md").write_text(page(law, given.to), "utf-8")
            print(law.name, flush=True)
    (given.to / "README.md").write_text(contents(), "utf-8")


if __name__ == "__main__":
    main()
