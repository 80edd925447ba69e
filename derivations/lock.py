"""The lock file: which claims exist, in which version, saying what.

`claims.lock` is read without SymPy. An id is permanent and a statement never changes under an unchanged version, so a lock
that is merely behind can be written again, while one that contradicts the claims cannot.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PATH = Path(__file__).with_name("claims.lock")
HEADER = "# Written by `isoform lock`. An id is permanent; a changed statement needs a new version.\n"


class Lockable(Protocol):
    """What the lock asks of a claim."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def title(self) -> str: ...
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class LockEntry:
    """One claim as the lock file records it."""

    id: str
    version: int
    title: str
    fingerprint: str


@dataclass(frozen=True)
class Problem:
    """A disagreement of claims and lock; a blocking one is mended in the claims, not by writing the lock again."""

    id: str
    text: str
    blocking: bool

    def __str__(self) -> str:
        return f"{self.id}: {self.text}"


class LockError(Exception):
    """The lock file is missing, malformed, or must not be written."""


def read(path: Path | None = None) -> tuple[LockEntry, ...]:
    """Return the entries of the lock file, sorted by id."""
    path = path or PATH
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LockError(f"there is no {path.name}: run `isoform lock` to write it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise LockError(f"{path.name} is not readable: {error}") from None
    return tuple(_entry(id, table[id], path) for id in sorted(table))


def write(claims: Iterable[Lockable], path: Path | None = None) -> tuple[LockEntry, ...]:
    """Write the lock file, or raise LockError where that would break a promise made by the present one."""
    path = path or PATH
    claims = tuple(claims)
    known = read(path) if path.exists() else ()
    blocking = [problem for problem in _problems(claims, known) if problem.blocking]
    if blocking:
        raise LockError("; ".join(map(str, blocking)))
    entries = tuple(sorted(map(entry_of, claims), key=lambda entry: entry.id))
    path.write_text(HEADER + "".join(map(_toml, entries)), encoding="utf-8")
    return entries


def check(claims: Iterable[Lockable], path: Path | None = None) -> tuple[Problem, ...]:
    """Return every disagreement of the claims and the lock file; none means that the lock is up to date."""
    return tuple(_problems(tuple(claims), read(path)))


def entry_of(claim: Lockable) -> LockEntry:
    """Return the entry that describes a claim now."""
    return LockEntry(claim.id, claim.version, claim.title, claim.fingerprint())


def _problems(claims: tuple[Lockable, ...], known: tuple[LockEntry, ...]) -> Iterable[Problem]:
    locked = {entry.id: entry for entry in known}
    seen: set[str] = set()
    for now in map(entry_of, claims):
        if now.id in seen:
            yield Problem(now.id, "two claims carry this id", True)
        seen.add(now.id)
        if now.id not in locked:
            yield Problem(now.id, "the lock does not list it: run `isoform lock`", False)
        else:
            yield from _differences(locked[now.id], now)
    for id in sorted(locked.keys() - seen):
        yield Problem(id, "the lock lists it, but the claim is gone: ids are permanent", True)


def _differences(was: LockEntry, now: LockEntry) -> Iterable[Problem]:
    if now.version < was.version:
        yield Problem(now.id, f"version {now.version} is older than the locked {was.version}", True)
    elif now.version == was.version and now.fingerprint != was.fingerprint:
        yield Problem(now.id, f"the statement changed, but the version is still {now.version}: raise it", True)
    elif now != was:
        yield Problem(now.id, f"the lock is behind (version {was.version}, {was.title!r}): run `isoform lock`", False)


def _entry(id: str, fields: object, path: Path) -> LockEntry:
    expected = {"version": int, "title": str, "fingerprint": str}
    if not isinstance(fields, dict) or fields.keys() != expected.keys():
        raise LockError(f"{path.name} is not readable: {id} must have exactly version, title and fingerprint")
    for name, kind in expected.items():
        if type(fields[name]) is not kind:
            raise LockError(f"{path.name} is not readable: {name} of {id} must be {kind.__name__}")
    return LockEntry(id, **fields)


def _toml(entry: LockEntry) -> str:
    id, title = (json.dumps(text, ensure_ascii=False) for text in (entry.id, entry.title))
    return f'\n[{id}]\nversion = {entry.version}\ntitle = {title}\nfingerprint = "{entry.fingerprint}"\n'
