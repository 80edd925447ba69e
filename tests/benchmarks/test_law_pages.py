"""Every law has its page, which says what the law says; the pictures' regions have wrong and right parts."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from isoform.properties.laws import laws
from isoform.properties.laws.table import KINDS

ROOT = Path(__file__).parents[2]
SHOWN = ROOT / "docs" / "laws"
LAWS = {law.name: law for law in laws()}


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.law_pages")


def test_there_is_a_page_for_every_law_and_for_nothing_else():
    assert {p.stem for p in SHOWN.glob("*.md")} == {*LAWS, "README"}
    assert {p.stem for p in SHOWN.glob("*.svg")} <= {*LAWS}


def test_the_list_is_of_these_laws(pages):
    assert (SHOWN / "README.md").read_text("utf-8") == pages.contents()


@pytest.mark.parametrize("law", laws(), ids=lambda law: law.name)
def test_the_page_says_what_the_law_says(law, pages):
    text = (SHOWN / f"{law.name}.md").read_text("utf-8")
    assert text.startswith(f"# {law.name}\n\n{law.says[0].upper()}{law.says[1:]}.\n")
    assert all(f"- {KINDS[kind]} ({kind})\n" in text for kind in law.kinds)
    assert f"Asked of the forms of {', '.join(pages.asked(law))}." in text or "Asked of the forms of every operator." in text
    assert (f"]({law.name}.svg)" in text) == (SHOWN / f"{law.name}.svg").exists()


def test_a_fault_of_tails_is_seen_where_there_are_tails(pages):
    law = LAWS["split-and-resume"]
    tail = next(s for s in pages.seen(law) if s.fault == "ragged tail decayed once more")
    names = pages.axes(law, tail.case)
    assert names == ["t", "chunk"]
    found = pages.region(law, tail, *names)
    assert np.all(found[0] <= 1), "chunks of one token have no tail"
    assert np.all(found[1:, 1:] > 1)
