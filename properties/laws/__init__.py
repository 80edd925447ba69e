"""The laws, one theme a file: every module here that defines LAWS adds to the table."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from .table import Comparison, Law, LawResult, Witness

__all__ = ["Comparison", "Law", "LawResult", "Witness", "laws"]


@cache
def laws() -> tuple[Law, ...]:
    """Every law, in the order of the files' names. Raises ValueError if two have one name."""
    modules = [import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    found = tuple(law for m in modules for law in getattr(m, "LAWS", ()))
    names = [law.name for law in found]
    if len(set(names)) != len(names):
        raise ValueError(f"two laws have one name: {names}")
    return found
