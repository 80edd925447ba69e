"""Which operators there are: every file here that defines OPERATORS is a column, and so is every guest with this floor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path

from isoform.derivations.guests import ColumnError, guests

from .operator import Operator

_FLOOR = Path(__file__).parent
_DEFINES = re.compile(r"^OPERATORS\b", re.MULTILINE)


@cache
def columns() -> tuple[str, ...]:
    """The names of the columns, as in ids; none is imported."""
    own = (p.stem.replace("_", "-") for p in _FLOOR.glob("*.py") if _DEFINES.search(p.read_text("utf-8")))
    return tuple(sorted((*own, *(name for name, guest in guests().items() if guest.has("properties")))))


def operators(column: str) -> tuple[Operator, ...]:
    """The operators of one column. Raises ModuleNotFoundError for a column that has none, ColumnError for a guest that cannot be loaded."""
    guest = guests().get(column.replace("_", "-"))
    module = guest.load("properties") if guest else import_module(f"{__package__}.{column.replace('-', '_')}")
    found: tuple[Operator, ...] = module.OPERATORS
    return found


def operator(name: str) -> Operator:
    """The operator of this name. Raises KeyError, and ColumnError where a guest has one of that name too."""
    own = [column for column in columns() if column not in guests()]
    others = [column for column in columns() if column in guests()]
    found = [*islice(_named(name, own), 1), *_named(name, others)]
    if len(found) > 1:
        places = " and ".join(f"{column} ({guests()[column]})" if column in guests() else column for column, _ in found)
        raise ColumnError(f"two columns have an operator {name}: {places}")
    if not found:
        raise KeyError(name)
    return found[0][1]


def _named(name: str, columns: Iterable[str]) -> Iterator[tuple[str, Operator]]:
    return ((column, o) for column in columns for o in operators(column) if o.name == name)
