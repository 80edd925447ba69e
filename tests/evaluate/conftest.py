"""Values of terms, for the tests of the second engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from isoform.derivations.evaluate import Environment, evaluate
from isoform.derivations.evaluate.systems import Rationals, System

Valued = Callable[..., Any]


@pytest.fixture
def valued() -> Valued:
    """The value of a term in QQ (or another system), as rows of numbers."""

    def value(term: Any, index: Any = None, values: Any = None, system: System | None = None) -> Any:
        found = system or Rationals()
        e = Environment(found, index or {}, values=values or {})
        result = evaluate(term, e)
        with found.context():
            return [list(r) for r in found.numbers(result) or ()]

    return value
