"""Which claims there are: every file or folder here that defines CLAIMS is a column, and so is every guest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from .guests import ColumnError, guests

if TYPE_CHECKING:
    from .claim import Claim
    from .kernel.formulas import Declaration

_FLOOR = Path(__file__).parent
_DEFINES = re.compile(r"^(CLAIMS\b|from .* import .*\bCLAIMS\b)", re.MULTILINE)


class UnknownClaim(KeyError):
    """No claim or architecture has the name asked for."""


class DuplicateClaim(ColumnError):
    """Two claims have one id."""


@cache
def architectures() -> tuple[str, ...]:
    """The names of the columns, as in ids; none is imported. Raises ColumnError if two have one name."""
    for name in own():
        if name in guests():
            raise ColumnError(f"two columns are named {name}: {_FLOOR / name.replace('-', '_')}, and {guests()[name]}")
    return tuple(sorted((*own(), *guests())))


def own() -> tuple[str, ...]:
    """The names of the columns of this folder; nothing is imported."""
    files = [p for p in _FLOOR.glob("*.py") if p.name != "__init__.py"] + list(_FLOOR.glob("*/__init__.py"))
    found = [p.stem if p.name != "__init__.py" else p.parent.name for p in files if _DEFINES.search(p.read_text("utf-8"))]
    return tuple(sorted(name.replace("_", "-") for name in found))


@cache
def column(architecture: str) -> tuple[Claim, ...]:
    """The claims of one column. Raises UnknownClaim, and ColumnError for an id outside its own file and a guest without claims."""
    if architecture not in architectures():
        raise UnknownClaim(architecture)
    module = _module(architecture)
    if not hasattr(module, "CLAIMS"):
        raise ColumnError(f"the column {architecture} ({guests()[architecture]}) has no CLAIMS in {module.__name__}")
    claims: tuple[Claim, ...] = module.CLAIMS
    for c in claims:
        if c.id.partition("/")[0] != architecture:
            raise ColumnError(f"the claim {c.id} stands in the file of {architecture}, {module.__name__}")
    return claims


def declarations(architecture: str) -> tuple[Declaration, ...]:
    """The operators that a column declares."""
    found: tuple[Declaration, ...] = getattr(_module(architecture), "DECLARATIONS", ())
    return found


def summary(architecture: str) -> str:
    """What a column says first of itself."""
    return " ".join((_module(architecture).__doc__ or "").partition("\n\n")[0].split())


def _module(architecture: str) -> ModuleType:
    guest = guests().get(architecture)
    return guest.load("derivations") if guest else import_module(f"{__package__}.{architecture.replace('-', '_')}")


def claim(id: str) -> Claim:
    """The claim with this id. Raises UnknownClaim."""
    for c in column(id.partition("/")[0]):
        if c.id == id:
            return c
    raise UnknownClaim(id)


def claims(selection: Iterable[str] = ()) -> tuple[Claim, ...]:
    """The claims with the given ids or of the given architectures; all of them without a selection.

    Raises UnknownClaim for a name that fits neither, ColumnError for an id that occurs twice, a guest that cannot be loaded, and
    (without a selection) an operator that two columns declare.
    """
    selection = tuple(selection)
    wanted = selection or architectures()
    out: dict[str, Claim] = {}
    for name in wanted:
        for c in column(name) if "/" not in name else (claim(name),):
            if out.get(c.id, c) is not c:
                place = _module(c.id.partition("/")[0]).__name__
                raise DuplicateClaim(f"two claims in {place} have the id {c.id}: {out[c.id].title!r} and {c.title!r}")
            out[c.id] = c
    if guests() and not selection:
        _check_operators()
    return tuple(out.values())


def _check_operators() -> None:
    found: dict[str, str] = {}
    for architecture in architectures():
        place = _module(architecture).__name__
        for d in declarations(architecture):
            if found.setdefault(d.operator, place) != place:
                raise ColumnError(f"two columns declare an operator {d.operator}: {found[d.operator]} and {place}")
