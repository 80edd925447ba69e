"""The tutorial's code runs, and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "add-your-layer.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """The code of the page, each with the output shown below it."""
    found = BLOCK.findall(page)
    assert {kind for kind, _ in found} <= {"python", "text"}
    return [(code, found[n + 1][1]) for n, (kind, code) in enumerate(found) if kind == "python" and found[n + 1][0] == "text"]


def run(code: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), names)
    return out.getvalue()


def test_the_page_prints_what_it_shows() -> None:
    page = PAGE.read_text("utf-8")
    shown = blocks(page)
    assert len(shown) == page.count("```python\n")
    names: dict[str, Any] = {}
    for code, output in shown:
        assert run(code, names) == output
