"""The benchmark of checks runs; nothing here looks at a time."""

import importlib
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from isoform.checking.target import load, parse
from isoform.properties.columns import operator
from tests.planted.catalogue import OPERATORS


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def test_every_operator_of_the_catalogue_has_a_form_of_ours(benchmark):
    forms = benchmark("power").IMPL
    assert set(forms) == set(OPERATORS)
    for name in forms.values():
        assert callable(load(parse(f"isoform.impl.{name}")))


def test_a_planted_fault_is_killed_by_name_and_a_right_one_would_survive(benchmark, monkeypatch):
    power = benchmark("power")
    catalogue = importlib.import_module("tests.planted.catalogue")
    planted = next(p for p in catalogue.CATALOGUE if p.name == "one_output_squeezed__lti")
    right = planted.__class__("right", ("K3",), planted.operator, catalogue.BASES[planted.operator])
    monkeypatch.setattr(catalogue, "CATALOGUE", (planted, right))
    check = partial(power.isoform.check, laws=["empty-and-single"], level="quick")
    monkeypatch.setattr(power.isoform, "check", check)
    found = power.kill(planted.name)
    assert found.law == "empty-and-single" and found.seconds > 0 and not found.trouble
    assert power.kill("right").law == ""


def test_public_references_are_of_operators_that_there_are(benchmark):
    references = benchmark("references")
    for reference in references.REFERENCES:
        assert operator(reference.operator).name == reference.operator
        assert reference.home or callable(getattr(references, reference.function))


def test_a_reference_that_is_not_installed_is_said_to_be_missing(benchmark):
    references, conformance = benchmark("references"), benchmark("conformance")
    screen = Console(record=True, width=200)
    conformance.judged(screen, references.Public("no_such_package", "x.py", "f", "delta-rule"), "quick", 1)
    assert screen.export_text().strip() == "no_such_package f: not checked: no_such_package is not installed"


def test_a_reference_is_judged_law_by_law(benchmark):
    references, conformance = benchmark("references"), benchmark("conformance")
    screen = Console(record=True, width=300)
    chosen = {"laws": ("layout", "chunk-size")}
    ours = references.Public("isoform", "isoform.impl.linear_attention", "recurrent", "linear-attention", chosen)
    conformance.judged(screen, ours, "quick", 1)
    lines = screen.export_text().splitlines()
    assert lines[0].startswith("isoform recurrent as linear-attention: 1 holds, 1 not-applicable")
    assert [line.strip() for line in lines[1:3]] == ["holds: layout", "not applicable: chunk-size"]
