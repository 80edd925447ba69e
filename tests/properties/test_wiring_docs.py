"""The page on adapters says what is true: its Python runs and keeps the laws, its maps and limits are read, its table is complete."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from isoform.properties.columns import columns, operator, operators
from isoform.properties.laws import laws
from isoform.properties.limits import REFUSALS
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.wiring import SIGNATURES, WiringError, adapt, both, detect, parse_limits, parse_map, wire
from isoform.properties.wiring.calls import arguments, required

PAGE = (Path(__file__).parents[2] / "docs" / "your-kernel-adapter.md").read_text("utf-8")
FILES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.DOTALL))
LIMITS = re.search(r'adapter\.py:kernel --as delta-rule --limits "(.*?)"', PAGE)[1]
HELD = ("form-equals-oracle", "state-equals-oracle", "split-and-resume", "arguments-untouched", "every-length")


def adapter(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        importlib.invalidate_caches()
        return importlib.import_module("adapter").kernel
    finally:
        for name in FILES:
            importlib.sys.modules.pop(name, None)


def test_the_adapter_on_the_page_keeps_the_laws(tmp_path, monkeypatch):
    o, kernel = operator("delta-rule"), adapter(tmp_path, monkeypatch)
    wiring = wire(kernel, o)
    detected = detect(kernel, o, wiring, parse_limits(LIMITS, o))
    form = Form("kernel", adapt(kernel, o, detected.wiring), limits=detected.limits)
    for law in laws():
        if law.name in HELD:
            result = run_law(law, o, form, examples=0, corners=4, minimise=False)
            assert result.verdict == "holds", (law.name, result.detail)


def test_an_adapter_that_forgets_to_copy_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(FILES, "adapter", FILES["adapter"].replace(".clone()", ""))
    o, kernel = operator("delta-rule"), adapter(tmp_path, monkeypatch)
    form = Form("kernel", adapt(kernel, o, wire(kernel, o)), limits=parse_limits(LIMITS, o))
    law = next(law for law in laws() if law.name == "arguments-untouched")
    assert run_law(law, o, form, examples=0, corners=4, minimise=False).verdict == "violated"


def test_it_has_ten_lines():
    assert sum(bool(line.strip()) for line in FILES["adapter"].splitlines()) <= 12


@pytest.mark.parametrize("text", re.findall(r'--map "(.*?)"', PAGE))
def test_its_maps_are_read(text):
    o = operator("gated-delta-rule")
    assert parse_map(text, o, SIGNATURES["plain"](o)).limits


@pytest.mark.parametrize("text", re.findall(r'--limits "(.*?)"', PAGE))
def test_its_limits_are_read(text):
    assert both(parse_limits(text, operator("delta-rule")), parse_limits("", operator("delta-rule")))


def test_its_table_has_every_signature_and_what_it_is_for():
    table = [
        [cell.strip() for cell in row.strip("|\n").split("|")] for row in PAGE.partition("## 2.")[0].splitlines() if row.startswith("| `")
    ]
    named = {name for row in table for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(SIGNATURES)
    for row in table:
        signature = re.findall(r"`(\w+)`", row[0])[0]
        for name in () if row[1] == "all" else row[1].split(", "):
            assert SIGNATURES[signature](operator(name)).signature == signature
    said = {n for row in table if "`mamba`" in row[0] for n in row[1].split(", ")}
    with pytest.raises(WiringError, match="not for lti"):
        SIGNATURES["mamba"](operator("lti"))
    assert said == {"selective-scan", "causal-conv1d", "gated-retention"}


COMPUTED = dict(re.findall(r"^\| ([\w, -]+) \| (.*) \|$", PAGE.partition("## What each operator computes")[2], re.MULTILINE))


def test_it_says_what_every_operator_of_the_plain_call_computes():
    named = [name for names in COMPUTED for name in names.split(", ") if name != "operator"]
    assert sorted(named) == sorted(row[0] for row in ROWS if len(row) == 3)


def test_the_claims_that_it_points_to_are_there():
    lock = tomllib.loads((Path(__file__).parents[2] / "derivations" / "claims.lock").read_text("utf-8"))
    for names, text in COMPUTED.items():
        ids = re.findall(r"\b([\w-]+/[\w-]+)\b", text)
        assert names == "operator" or ids
        assert set(ids) <= set(lock), names


def test_every_limit_that_can_be_declared_has_a_line():
    assert sorted(re.findall(r"`no (\w+)`", PAGE.partition("## What a limit leaves out")[2])) == sorted(REFUSALS)


ROWS = [[cell.strip() for cell in row.strip("|").split("|")] for row in PAGE.partition("## The plain call")[2].splitlines() if "`" in row]


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 3], ids=lambda row: row[0])
def test_its_plain_calls_are_those_that_are_made(row):
    o = operator(row[0])
    names = re.findall(r"`(\w+)`", row[1])
    assert set(names) == set(arguments(o)) and set(names[: len(required(o))]) == set(required(o))
    for name, shape in re.findall(r"`(\w+)` \(([^)]*)\)", row[1]):
        assert " ".join(shape.split(", ")) == o.axes[name].axes.split("|")[0].strip()
    assert row[2] == (f"({', '.join(o.state_axes.split())})" if o.state_axes else "none")


def test_its_plain_calls_are_of_all_operators_of_sequences():
    layers = {"encoder", "decoder"}
    sequences = {o.name for c in columns() for o in operators(c) if "sequence" in o.capabilities} - layers
    assert {row[0] for row in ROWS if len(row) == 3} == sequences
