"""Names of claims and architectures in running text become links to their pages."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from isoform.book.contents import page_of

_TICKED = re.compile(r"(``?)(.+?)\1")


def ticked(text: str) -> Markup:
    """Return a text in which what stands between backticks is code; a filter of the templates."""
    parts = _TICKED.split(text)
    shown = [Markup("<code>{}</code>").format(part) if n % 3 == 2 else escape(part) for n, part in enumerate(parts) if n % 3 != 1]
    return Markup("").join(shown)


class Links:
    """The names that have a page."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        ids = sorted((name for name in self.names if "/" in name), key=len, reverse=True)
        self._ids = re.compile(rf"(?<![\w/-])({'|'.join(map(re.escape, ids))})(?![\w/-])") if ids else None

    @pass_context
    def linked(self, context: Context, text: str) -> Markup:
        """Return a text in which the ids of claims are links; a filter of the templates."""
        if self._ids is None:
            return escape(text)
        parts = self._ids.split(text)
        return Markup("").join(self.link(part, context["root"]) if n % 2 else escape(part) for n, part in enumerate(parts))

    def link(self, name: str, root: str, *, code: bool = False) -> Markup:
        """Return a link to a name's page, or the name alone where it has none."""
        shown = Markup("<code>{}</code>").format(name) if code else escape(name)
        return Markup('<a href="{}{}">{}</a>').format(root, page_of(name), shown) if name in self.names else shown
