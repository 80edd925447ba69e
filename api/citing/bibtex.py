"""Write BibTeX entries. Text is escaped, letters beyond ASCII are written as LaTeX where LaTeX has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylatexenc.latexencode import UnicodeToLatexEncoder

_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".", "\u0308": '"',
    "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0328": "k",
}  # fmt: skip
_SCRIPTS = {"<super>": "textsuperscript", "<sub>": "textsubscript"}
_SIGNS = {"{": r"{\textbraceleft}", "}": r"{\textbraceright}", "√": r"\ensuremath{\surd}", "−": r"\ensuremath{-}"}


@dataclass(frozen=True)
class Entry:
    """An entry of type misc: its key, and its fields as LaTeX; an empty field is not written."""

    key: str
    fields: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"  {name:<13} = {{{value}}}," for name, value in self.fields.items() if value]
        return "\n".join((f"@misc{{{self.key},", *lines, "}"))


def names(authors: Iterable[str]) -> str:
    """Return a list of authors, each a name that is not to be taken apart; "et al." are others."""
    return " and ".join("others" if name == "et al." else f"{{{escape(name)}}}" for name in authors)


def verbatim(text: str) -> str:
    """Return a title that keeps its capitals in every style."""
    return f"{{{escape(text)}}}"


def escape(text: str) -> str:
    r"""Return text as LaTeX, its braces balanced, in one line.

    >>> escape("100% of β_t, Ré")
    "100\\% of \\ensuremath{\\beta}\\_t, R{\\'{e}}"
    """
    return _encoder().unicode_to_latex(" ".join(text.split()))


def slug(text: str) -> str:
    """Return a text as part of a key: lower-case ASCII letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


@cache
def _encoder() -> UnicodeToLatexEncoder:
    from pylatexenc.latexencode import RULE_CALLABLE, RULE_DICT, UnicodeToLatexConversionRule, UnicodeToLatexEncoder

    rules = [
        UnicodeToLatexConversionRule(RULE_CALLABLE, _accented, replacement_latex_protection="none"),
        UnicodeToLatexConversionRule(RULE_CALLABLE, _script, replacement_latex_protection="none"),
        UnicodeToLatexConversionRule(RULE_DICT, {ord(sign): latex for sign, latex in _SIGNS.items()}, replacement_latex_protection="none"),
        "defaults",
    ]
    return UnicodeToLatexEncoder(conversion_rules=rules, unknown_char_policy="keep", unknown_char_warning=False)


def _accented(text: str, at: int) -> tuple[int, str] | None:
    for length in (1, 2):
        letter = unicodedata.normalize("NFD", text[at : at + length])
        if len(letter) == 2 and letter[0].isascii() and letter[0].isalpha() and letter[1] in _ACCENTS:
            return length, f"{{\\{_ACCENTS[letter[1]]}{{{letter[0]}}}}}"
    return None


def _script(text: str, at: int) -> tuple[int, str] | None:
    kind, *codes = unicodedata.decomposition(text[at]).split() or [""]
    if kind not in _SCRIPTS:
        return None
    return 1, f"\\{_SCRIPTS[kind]}{{{escape(''.join(chr(int(code, 16)) for code in codes))}}}"
