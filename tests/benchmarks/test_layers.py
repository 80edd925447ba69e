"""The page of the example layers has their rows, the claims and forms that there are and no others; deep, its verdicts too."""

import importlib
from pathlib import Path

import pytest

from isoform.derivations.layer import derive
from isoform.derivations.layer.examples import EXAMPLES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "layers.md").read_text("utf-8")
each = pytest.mark.parametrize("declaration", EXAMPLES, ids=lambda d: d.operator)


@pytest.fixture
def layers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.layers")


def tables():
    """The rows of each table of the page by the first cell of its head line's section."""
    found = {}
    for part in PAGE.split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        lines = [line[2:-2].split(" | ") for line in rest.splitlines() if line.startswith("| ")]
        found[title] = lines
    return found


def test_every_layer_has_its_rows(layers):
    names = [d.operator for d in EXAMPLES]
    kinds, proved, forms = (tables()[t] for t in ("What they are", "What is proved", "Which forms there are, and which laws hold"))
    assert [r[0] for r in kinds[1:]] == [r[0] for r in proved[1:]] == list(dict.fromkeys(r[0] for r in forms[1:])) == names
    assert proved[0] == ["layer", *layers.THEOREMS]


@each
def test_what_is_seen_without_a_run_is_what_a_run_sees(declaration, layers):
    layer = layers.Layer(declaration)
    assert f"\n{layers.kinds(layer)}\n" in PAGE
    missing = layers.absent(layer)
    assert [line for line in PAGE.splitlines() if line.startswith(f"- {layer.name} has no ")] == missing
    cells = next(r for r in tables()["What is proved"] if r[0] == layer.name)[1:]
    there = [bool(layer.about(column)) for column in layers.THEOREMS]
    assert [cell != layers.NONE for cell in cells] == there
    said = [what for line in missing for what in line.partition(" has no ")[2].partition(":")[0].split(", ")]
    assert [what for what in said if not what.endswith(" form")] == [c for c, t in zip(layers.THEOREMS, there, strict=True) if not t]
    assert [c for column in layers.THEOREMS for c in layer.about(column)] == sorted(derive(declaration), key=order(layers))
    written = [name for name, form in layer.forms().items() if not isinstance(form, str)][:1]
    rows = [r[1] for r in tables()["Which forms there are, and which laws hold"] if r[0] == layer.name]
    assert rows == ["recurrent", *written]


def order(layers):
    """Claims in the order of the columns."""
    places = {slug: n for n, slugs in enumerate(layers.THEOREMS.values()) for slug in slugs}

    def place(claim):
        slug = claim.id.partition("/")[2]
        return max((n for s, n in places.items() if slug == s or slug.startswith(f"{s}-")), default=-1)

    return place


def test_what_there_is_not_is_said_of_titans_and_gru():
    assert "\n- titans has no stable: no condition is known here" in PAGE
    assert "\n- gru has no update, unrolled, chunkwise, scan, all outputs, gradient-step, stable: the update is not affine" in PAGE
    assert "\n- gru has no chunkwise form, parallel_scan form: " in PAGE


def test_a_claim_that_fails_or_a_law_that_is_violated_would_be_seen(layers):
    """The cells are made of results: another verdict is another cell."""
    layer = layers.Layer(EXAMPLES[-1])
    claims = {c.id: result("proved", 2, 2) for c in layer.claims}
    bad = claims | {f"{layer.name}/split-resume": result("unknown", 1, 2)}
    assert "proved 2/2" in layers.theorems(layer, claims) and "unknown" not in layers.theorems(layer, claims)
    assert "unknown 1/2" in layers.theorems(layer, bad)
    (good,) = layers.laws(layer, [law("form-equals-oracle", "holds")])
    (worse,) = layers.laws(layer, [law("form-equals-oracle", "violated"), law("layout", "unverified")])
    assert good == "| gru | recurrent | 1 | 0 | none |"
    assert worse == "| gru | recurrent | 0 | 0 | form-equals-oracle violated, layout unverified |"


def result(verdict, rejected, total):
    from types import SimpleNamespace as Result

    return Result(verdict=verdict, near_misses=[Result(rejected=n < rejected) for n in range(total)])


def law(name, verdict):
    from isoform.properties.laws import LawResult

    return LawResult(name, "gru", "recurrent", verdict)


@pytest.mark.deep
@each
def test_a_run_writes_the_rows_of_the_page(declaration, layers):
    layer = layers.Layer(declaration)
    found = layers.verified(layer)
    assert f"\n{layers.theorems(layer, found)}\n" in PAGE
    assert f"By {layers.engines(found.values())}." in PAGE
    for line in layers.laws(layer, layers.held(layer)):
        assert f"\n{line}\n" in PAGE
