"""The findings, written by hand in docs/findings.md: a checkout has them, an installed wheel does not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

if TYPE_CHECKING:
    from isoform.book.linking import Links

PATH = Path(__file__).parents[2] / "docs" / "findings.md"


def exist() -> bool:
    """Whether there are any."""
    return PATH.is_file()


def html(links: Links) -> Markup:
    """Return the findings as HTML; a name in code style that has a page becomes a link to it, other files' links become text."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = [_outward(token) for token in reader.parse(PATH.read_text("utf-8"))]
    reader.add_render_rule("code_inline", lambda self, tokens, n, options, env: str(links.link(tokens[n].content, "", code=True)))
    return Markup(reader.renderer.render(tokens, reader.options, {}))


def _outward(token: Token) -> Token:
    """Links that lead out of the site stay; those to other files of the repository become their text."""
    kept: list[Token] = []
    open_ = True
    for child in token.children or []:
        if child.type == "link_open":
            open_ = _leads(child.attrGet("href"))
        if open_ or not child.type.startswith("link_"):
            kept.append(child)
    return token.copy(children=kept) if token.children else token


def _leads(href: Any) -> bool:
    return str(href).startswith(("http://", "https://", "#"))
