"""What a citation says: authors, title, where; nothing that it does not say.

A claim's source is a line of text. One that reads "Authors, Title, where" is taken apart; any other stays whole.

>>> read("Dao, Fu, Ermon, Rudra, Ré, FlashAttention, arXiv 2205.14135").title
'FlashAttention'
>>> read("Elman, Finding Structure in Time, Cognitive Science 14 (1990)")
Reference(authors=('Elman',), title='Finding Structure in Time', where='Cognitive Science 14', year='1990', arxiv='')
>>> read("SciPy, scipy.signal.dlsim and dimpulse") is None
True
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ET_AL = "et al."
_NAME = r"(?:(?:Van|Von|De|van|von|de) )?[^\W\d_a-z][^\W\d_]*(?:[-’'][^\W\d_]+)*"
_LAST = re.compile(rf"(?P<one>{_NAME})(?: (?P<more>et al\.)| and (?P<two>{_NAME}))")
_PLACES = (
    re.compile(r"arXiv (?P<arxiv>\d{4}\.\d{4,5})"),
    re.compile(r"(?P<where>[^,]+ \d+) \((?P<year>\d{4})\)"),
    re.compile(r"(?P<where>[^,]+ \d+), (?P<year>\d{4})"),
    re.compile(r"(?P<where>\d+(?:st|nd|rd|th) ed\.)(?:, (?P<year>\d{4}))?"),
    re.compile(r"(?P<where>[A-Z]\w+) (?P<year>\d{4})"),
    re.compile(r"(?P<where>[A-Z]+(?:-[A-Z\d]+)+)"),
)
_DATED = re.compile(r"(?P<title>.+) \((?P<year>\d{4})\)")


@dataclass(frozen=True)
class Reference:
    """A citation, taken apart; what it does not say is empty."""

    authors: tuple[str, ...]
    title: str
    where: str = ""
    year: str = ""
    arxiv: str = ""


def read(citation: str) -> Reference | None:
    """Return what a citation says, or None for one that does not read "Authors, Title, where"."""
    parts = citation.split(", ")
    end, place = _place(parts)
    authors, begin = _authors(parts[: end - 1])
    title = ", ".join(parts[begin:end])
    dated = None if place else _DATED.fullmatch(title)
    if dated:
        title, place = dated["title"], {"year": dated["year"]}
    return Reference(authors, title, **place) if authors and title[:1].isupper() else None


def _place(parts: list[str]) -> tuple[int, dict[str, str]]:
    """Where the title ends, and what is said after it."""
    for end in range(2, len(parts)):
        tail = ", ".join(parts[end:])
        for place in _PLACES:
            if found := place.fullmatch(tail):
                return end, {key: value for key, value in found.groupdict().items() if value}
    return len(parts), {}


def _authors(parts: list[str]) -> tuple[tuple[str, ...], int]:
    """The authors that a citation begins with, and how many of its parts they take."""
    names: list[str] = []
    for part in parts:
        if last := _LAST.fullmatch(part):
            return (*names, last["one"], last["more"] or last["two"]), len(names) + 1
        if not re.fullmatch(_NAME, part):
            break
        names.append(part)
    return tuple(names), len(names)
