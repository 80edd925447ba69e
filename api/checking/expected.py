"""Failures that are expected: a list that is strict, each entry pinned to a case that fails.

A file in TOML, an entry for each law::

    [[expected]]
    law = "layout"
    reason = "strides of keys are not read"
    link = "https://example.org/issues/12"
    since = 2026-11-02
    expires = 2027-05-01
    witness = "witnesses/layout.json"

``witness`` is a witness file as a check writes it, of which the first case counts, named from where the list is;
or the JSON of a case. An entry is void, and says so, once its law holds or its witness passes, once it has expired, and where
its law or a field is unknown.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import Any

from isoform.checking.target import Unusable, nearest

TABLE = "expected"


@dataclass(frozen=True)
class Expected:
    """A law that is known to be violated: why, where that is discussed, since and until when, and a case that shows it."""

    law: str
    reason: str
    link: str
    since: date
    expires: date
    witness: str


FIELDS = tuple(f.name for f in fields(Expected))


@dataclass(frozen=True)
class Known:
    """A list of expected failures, and in one sentence each what is wrong with it."""

    entries: tuple[Expected, ...] = ()
    problems: tuple[str, ...] = ()
    folder: Path = Path()

    def of(self, law: str) -> Expected | None:
        """The entry of a law."""
        return next((e for e in self.entries if e.law == law), None)

    def case(self, entry: Expected) -> Mapping[str, Any]:
        """The case that an entry is pinned to. Raises Unusable where there is none to be read."""
        return pinned(entry, self.folder)


def read(path: Path, today: date | None = None) -> Known:
    """Read a list as it is to be judged on a day. Raises Unusable for a file that is no such list."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Unusable(f"there is no file {path} of expected failures") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Unusable(f"{path} is no TOML: {' '.join(str(error).split())}") from None
    entries = found.get(TABLE, [])
    if set(found) - {TABLE} or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise Unusable(f"{path} is a list of [[{TABLE}]] entries and nothing else")
    from isoform.properties.laws import laws

    known, day = sorted(law.name for law in laws()), date.today() if today is None else today
    kept: dict[str, Expected] = {}
    problems: list[str] = []
    for number, entry in enumerate(entries, 1):
        where = f"{path.name}, entry {number}"
        wrong = _wrong(entry, known, kept, day)
        if wrong:
            problems.append(f"{where}: {wrong}")
        else:
            kept[entry["law"]] = Expected(**{name: entry[name] for name in FIELDS})
    return Known(tuple(kept.values()), tuple(problems), path.parent)


def _wrong(entry: Mapping[str, Any], laws: Sequence[str], kept: Mapping[str, Expected], today: date) -> str:
    """What is wrong with an entry, in words, or ""."""
    missing, more = [f for f in FIELDS if f not in entry], sorted(set(entry) - set(FIELDS))
    if missing or more:
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("unknown", more)) if names)
    for name in FIELDS:
        day = name in ("since", "expires")
        if not (type(entry[name]) is date if day else isinstance(entry[name], str) and entry[name].strip()):
            kind = "a date without a time, such as 2027-05-01" if day else "a text that is not empty"
            return f"{name} must be {kind}, not {_shown(entry[name])}"
    if entry["law"] not in laws:
        return f"there is no law {entry['law']!r}; {nearest(entry['law'], laws)}"
    if entry["law"] in kept:
        return f"{entry['law']} has an entry already"
    if entry["since"] > today:
        return f"since is {entry['since']}, which is in the future"
    if entry["expires"] < entry["since"]:
        return f"it expires on {entry['expires']}, before {entry['since']}, since when it is expected"
    if entry["expires"] < today:
        return f"the entry of {entry['law']} has expired on {entry['expires']}"
    return ""


def _shown(value: Any) -> str:
    return value.isoformat(" ") if isinstance(value, datetime) else repr(value)


def pinned(entry: Expected, folder: Path) -> Mapping[str, Any]:
    """The case of an entry. Raises Unusable."""
    text, where = entry.witness, f"the witness of {entry.law}"
    if not text.lstrip().startswith("{"):
        try:
            text = (folder / text).read_text(encoding="utf-8")
        except OSError:
            raise Unusable(f"{where}: there is no file {folder / entry.witness}") from None
    try:
        found = json.loads(text)
    except ValueError:
        raise Unusable(f"{where} is no JSON") from None
    if isinstance(found, dict) and found.get("law", entry.law) != entry.law:
        raise Unusable(f"{where} is one of the law {found['law']}")
    witnesses = found.get("witnesses") if isinstance(found, dict) else None
    case = witnesses[0].get("case") if isinstance(witnesses, list) and witnesses and isinstance(witnesses[0], dict) else found
    if not isinstance(case, dict) or not {"operator", "sizes", "seed", "dtype", "scale"} <= case.keys():
        raise Unusable(f"{where} is no case: it has operator, sizes, seed, dtype, scale and flags")
    return case


def judge(law: str, verdict: str, known: Known, fails: Callable[[Mapping[str, Any]], bool]) -> str:
    """What is wrong with the expectation of a law, in one sentence, or "": its entry stands, or there is none.

    ``fails`` says whether the law is violated in a case.
    """
    entry = known.of(law)
    if entry is None:
        return ""
    if verdict not in ("violated", "holds"):
        return f"{law} is expected to be violated ({entry.reason}) and is {verdict.replace('-', ' ')}"
    try:
        failing = fails(known.case(entry))
    except Unusable as error:
        return str(error)
    if failing:
        return ""
    if verdict == "violated":
        return f"{law} is violated elsewhere: the witness to which its entry is pinned ({entry.reason}) passes"
    return f"{law} holds now: its entry ({entry.reason}) is stale, take it out"


def sentence(entry: Expected) -> str:
    """An entry in words."""
    return f"{entry.reason} ({entry.link}), since {entry.since}, until {entry.expires}"
