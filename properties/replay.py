"""Run one case of one law again, without a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .columns import operator
from .laws import Comparison, laws
from .operator import Form
from .strategies import Case


def replay(function: Callable[..., Any], law: str, case: str, step: Callable[..., Any] | None = None) -> tuple[Comparison, ...]:
    """The comparisons of a law on one case (JSON, as a witness prints it). Raises what the function raises, KeyError for an unknown law."""
    chosen = {x.name: x for x in laws()}[law]
    read = Case.from_json(case)
    return tuple(chosen.check(operator(read.operator), Form(function.__name__, function, step), read))
