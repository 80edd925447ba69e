"""What is written by hand in docs/ and belongs into the book; a checkout has it, an installed wheel does not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

if TYPE_CHECKING:
    from isoform.book.linking import Links

FOLDER = Path(__file__).parents[2] / "docs"
TITLES = {"findings": "Findings", "what-proved-means": "What the words mean"}


def there() -> dict[str, str]:
    """Return the titles of the documents that there are, by file name without its ending."""
    return {name: title for name, title in TITLES.items() if (FOLDER / f"{name}.md").is_file()}


def html(name: str, links: Links) -> Markup:
    """Return a document as HTML: names in code style that have a page are links, links to files without one become text."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = [_outward(token) for token in reader.parse((FOLDER / f"{name}.md").read_text("utf-8"))]
    reader.add_render_rule("code_inline", lambda self, tokens, n, options, env: str(links.link(tokens[n].content, "", code=True)))
    return Markup(reader.renderer.render(tokens, reader.options, {}))


def _outward(token: Token) -> Token:
    return token.copy(children=list(_followed(token.children))) if token.children else token


def _followed(tokens: Iterable[Token]) -> Iterable[Token]:
    """The tokens of a text without the links that would lead nowhere."""
    leads = True
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrGet("href")))
            leads = bool(target)
            token.attrSet("href", target)
        if leads or not token.type.startswith("link_"):
            yield token


def _target(href: str) -> str:
    """Where a link of docs/ leads to from a page of the book; nowhere, if it is to a file without a page."""
    if href.startswith(("http://", "https://")):
        return href
    name, _, fragment = href.partition(".md")
    return f"{name}.html" if name in there() and not fragment.strip("#") else ""
