"""Which operators there are: every file here that defines OPERATORS is a column."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

from .operator import Operator

_FLOOR = Path(__file__).parent
_DEFINES = re.compile(r"^OPERATORS\b", re.MULTILINE)


@cache
def columns() -> tuple[str, ...]:
    """The names of the columns, as in ids; nothing is imported."""
    return tuple(sorted(p.stem.replace("_", "-") for p in _FLOOR.glob("*.py") if _DEFINES.search(p.read_text("utf-8"))))


def operators(column: str) -> tuple[Operator, ...]:
    """The operators of one column. Raises ModuleNotFoundError for a column that has none."""
    found: tuple[Operator, ...] = import_module(f"{__package__}.{column.replace('-', '_')}").OPERATORS
    return found


def operator(name: str) -> Operator:
    """The operator of this name. Raises KeyError."""
    for column in columns():
        for o in operators(column):
            if o.name == name:
                return o
    raise KeyError(name)
