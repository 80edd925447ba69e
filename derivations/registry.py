"""Which claims there are: every file or folder here that defines CLAIMS is a column, found by reading the folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .claim import Claim
    from .kernel.formulas import Declaration

_FLOOR = Path(__file__).parent
_DEFINES = re.compile(r"^(CLAIMS\b|from .* import .*\bCLAIMS\b)", re.MULTILINE)


class UnknownClaim(KeyError):
    """No claim or architecture has the name asked for."""


class DuplicateClaim(ValueError):
    """Two claims have one id."""


@cache
def architectures() -> tuple[str, ...]:
    """The names of the columns, as in ids; nothing is imported."""
    files = [p for p in _FLOOR.glob("*.py") if p.name != "__init__.py"] + list(_FLOOR.glob("*/__init__.py"))
    found = [p.stem if p.name != "__init__.py" else p.parent.name for p in files if _DEFINES.search(p.read_text("utf-8"))]
    return tuple(sorted(name.replace("_", "-") for name in found))


@cache
def column(architecture: str) -> tuple[Claim, ...]:
    """The claims of one column. Raises UnknownClaim, and ValueError for an id outside its own file."""
    if architecture not in architectures():
        raise UnknownClaim(architecture)
    module = import_module(f"{__package__}.{architecture.replace('-', '_')}")
    claims: tuple[Claim, ...] = module.CLAIMS
    for c in claims:
        if c.id.partition("/")[0] != architecture:
            raise ValueError(f"the claim {c.id} stands in the file of {architecture}")
    return claims


def declarations(architecture: str) -> tuple[Declaration, ...]:
    """The operators that a column declares."""
    module = import_module(f"{__package__}.{architecture.replace('-', '_')}")
    found: tuple[Declaration, ...] = getattr(module, "DECLARATIONS", ())
    return found


def claim(id: str) -> Claim:
    """The claim with this id. Raises UnknownClaim."""
    for c in column(id.partition("/")[0]):
        if c.id == id:
            return c
    raise UnknownClaim(id)


def claims(selection: Iterable[str] = ()) -> tuple[Claim, ...]:
    """The claims with the given ids or of the given architectures; all of them without a selection.

    Raises UnknownClaim for a name that fits neither, DuplicateClaim for an id that occurs twice.
    """
    wanted = tuple(selection) or architectures()
    out: dict[str, Claim] = {}
    for name in wanted:
        for c in column(name) if "/" not in name else (claim(name),):
            if out.get(c.id, c) is not c:
                raise DuplicateClaim(f"two claims have the id {c.id}")
            out[c.id] = c
    return tuple(out.values())
