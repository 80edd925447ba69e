"""The folder that a site is written into: empty, new, or one that a site was written into before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

MARKER = ".isoform-report.json"
"""Lists the files of a site; what it does not list is never touched."""


class UnusableFolder(ValueError):
    """A folder that holds something else than a site of ours, or that cannot be written into."""


def reserve(directory: Path) -> Path:
    """Return the folder, made if it does not exist. Raises UnusableFolder unless it is empty or holds a site, and can be written into."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableFolder(f"{directory} cannot be a folder: {error.strerror or error}") from None
    if not os.access(directory, os.W_OK):
        raise UnusableFolder(f"{directory} cannot be written into")
    if any(directory.iterdir()):
        listed(directory)
    return directory


def listed(directory: Path) -> tuple[str, ...]:
    """Return the files of the site in a folder. Raises UnusableFolder where there is none."""
    try:
        found = json.loads((directory / MARKER).read_text("utf-8"))
        return tuple(str(name) for name in found["files"])
    except FileNotFoundError:
        raise UnusableFolder(f"{directory} is not empty and holds no report: name a folder that is new, empty, or holds one") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise UnusableFolder(f"{directory / MARKER} cannot be read: name another folder") from None


def replace(directory: Path, pages: Mapping[str, str]) -> None:
    """Write pages, given by path and text, in place of the site that was there."""
    old = listed(directory) if (directory / MARKER).exists() else ()
    _mark(directory, {*old, *pages})
    for name, text in pages.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for name in {*old} - {*pages}:
        _remove(directory, name)
    _mark(directory, pages)


def _mark(directory: Path, files: Iterable[str]) -> None:
    (directory / MARKER).write_text(json.dumps({"schema": 1, "files": sorted(files)}, indent=1) + "\n", encoding="utf-8")


def _remove(directory: Path, name: str) -> None:
    """Delete a page of the last site, and the folders that this leaves empty."""
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        return
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == directory or any(parent.iterdir()):
            return
        parent.rmdir()
