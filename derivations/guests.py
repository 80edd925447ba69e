"""Columns of other packages: the entry points of the group `isoform.columns`.

An entry point `my-layer = "my_package.my_layer"` names the column and a package whose modules `derivations`, `impl` and
`properties` are its floors; the last two may be absent. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import MappingProxyType, ModuleType

GROUP = "isoform.columns"
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class ColumnError(ValueError):
    """A column cannot be used: it cannot be loaded, or two things have one name. The message is a sentence."""


@dataclass(frozen=True)
class Guest:
    """A column of another package: its name as in ids, its package, and the distribution that brings it."""

    name: str
    package: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} of {self.distribution} {self.version}"

    def has(self, floor: str) -> bool:
        """Whether the column has this floor. Raises ColumnError."""
        try:
            return find_spec(f"{self.package}.{floor}") is not None
        except Exception as error:
            raise self._broken(error) from error

    def load(self, floor: str) -> ModuleType:
        """The module of a floor. Raises ColumnError."""
        try:
            return import_module(f"{self.package}.{floor}")
        except Exception as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> ColumnError:
        reason = " ".join(str(error).split())
        return ColumnError(f"the column {self.name} ({self}) cannot be loaded: {type(error).__name__}: {reason}")


@cache
def guests() -> Mapping[str, Guest]:
    """The columns of other packages, by name. Raises ColumnError for a bad name, and for two of one name."""
    found: dict[str, Guest] = {}
    for guest in sorted(map(_guest, entry_points(group=GROUP)), key=lambda g: (g.name, g.package, g.distribution)):
        if not NAME.fullmatch(guest.name):
            raise ColumnError(f"{guest.name!r} ({guest}) is no name of a column: lower-case letters, digits and single hyphens are allowed")
        if guest.name in found:
            raise ColumnError(f"two columns are named {guest.name}: {found[guest.name]}, and {guest}")
        found[guest.name] = guest
    return MappingProxyType(found)


def _guest(point: EntryPoint) -> Guest:
    return Guest(point.name, point.value, point.dist.name if point.dist else "?", point.dist.version if point.dist else "?")
