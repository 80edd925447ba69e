"""The registry: a column is a file, found by reading the folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import isoform.derivations
from isoform.derivations import registry

COLUMN = """
from isoform.derivations.claim import Claim, Source
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.terms import scalar

x = scalar("x")


def claim(id: str) -> Claim:
    return Claim(id, "a square", Statement(Equation(x * x, x**2)), (Source("Euclid"),), ())


CLAIMS = ({claims})
"""


@pytest.fixture
def floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second folder of columns, the only one that the registry looks into."""
    monkeypatch.setattr(registry, "_FLOOR", tmp_path)
    monkeypatch.setattr(isoform.derivations, "__path__", [*isoform.derivations.__path__, str(tmp_path)])
    _forget()
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    _forget()


def _forget() -> None:
    registry.architectures.cache_clear()
    registry.column.cache_clear()


def write(path: Path, *ids: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(COLUMN.format(claims="".join(f"claim({id!r}), " for id in ids)), encoding="utf-8")


def test_a_column_is_found_by_its_file(floor: Path) -> None:
    write(floor / "planted_column.py", "planted-column/one", "planted-column/two")
    assert registry.architectures() == ("planted-column",)
    assert [c.id for c in registry.claims()] == ["planted-column/one", "planted-column/two"]
    assert registry.claim("planted-column/two").title == "a square"


def test_a_folder_is_a_column_too(floor: Path) -> None:
    write(floor / "planted_folder" / "themes.py", "planted-folder/one")
    (floor / "planted_folder" / "__init__.py").write_text("from .themes import CLAIMS as CLAIMS\n", encoding="utf-8")
    assert registry.architectures() == ("planted-folder",)
    assert [c.id for c in registry.claims()] == ["planted-folder/one"]


def test_a_file_without_claims_is_no_column(floor: Path) -> None:
    (floor / "helper.py").write_text("RECLAIMS = ()\n# CLAIMS come elsewhere\n", encoding="utf-8")
    assert registry.architectures() == ()
    assert registry.claims() == ()


def test_an_id_outside_its_file_is_refused(floor: Path) -> None:
    write(floor / "planted_stray.py", "another-column/one")
    with pytest.raises(ValueError, match="another-column/one stands in the file of planted-stray"):
        registry.claims()


def test_two_claims_with_one_id_are_refused(floor: Path) -> None:
    write(floor / "planted_twice.py", "planted-twice/one", "planted-twice/one")
    with pytest.raises(registry.DuplicateClaim, match="planted-twice/one"):
        registry.claims()


def test_a_claim_that_is_named_twice_is_given_once(floor: Path) -> None:
    write(floor / "planted_again.py", "planted-again/one", "planted-again/two")
    found = registry.claims(["planted-again/two", "planted-again"])
    assert [c.id for c in found] == ["planted-again/two", "planted-again/one"]


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("no-such-column", "no-such-column"),
        ("no-such-column/state", "no-such-column"),
        ("linear-attention/no-such-claim", "linear-attention/no-such-claim"),
        ("linear_attention", "linear_attention"),
        ("", ""),
    ],
)
def test_an_unknown_name_is_refused(name: str, unknown: str) -> None:
    with pytest.raises(registry.UnknownClaim) as refused:
        registry.claims([name])
    assert refused.value.args == (unknown,)


def test_the_columns_of_the_house_are_found() -> None:
    names = registry.architectures()
    assert "linear-attention" in names
    assert list(names) == sorted(set(names))
    for name in names:
        assert registry.column(name)
        assert {c.id.partition("/")[0] for c in registry.column(name)} == {name}


def test_operators_are_declared_once() -> None:
    operators = [d.operator for name in registry.architectures() for d in registry.declarations(name)]
    assert "linear-attention" in operators
    assert len(set(operators)) == len(operators)


def test_a_column_says_what_it_is() -> None:
    assert registry.summary("delta-rule").startswith("The delta rule: what a key finds")
