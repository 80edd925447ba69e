"""`isoform.conformance`: a function that returns a kernel, as one pytest item for each law. Only pytest is imported."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MARK = "isoform"
LAW = "isoform_law"
"""The fixture that holds a kernel to the law of an item."""
_HELD = "isoform_conformance"


@dataclass(frozen=True)
class Conformance:
    """What a kernel should conform to: the operator, the options of `isoform.check`, and a list of expected failures."""

    operator: str
    options: Mapping[str, Any]
    expected: str | None = None


def conformance(operator: str, *, expected: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make of a function that returns a kernel one pytest item for each law of an operator.

    The function may take fixtures and be a method. ``options`` are those of `isoform.check`; ``--isoform-level`` and
    ``--isoform-seed`` win over ``level`` and ``seed``. ``expected`` names a list of expected failures, seen from the folder of the
    test file. A law that is violated or unverified is a failure, one that is not applicable is skipped, with the reason.

    An operator, an option or a law that there is not is an error of collection.
    """
    import pytest

    held = Conformance(operator, options, expected)

    def mark(test: Callable[..., Any]) -> Any:
        given = inspect.signature(test)
        law = inspect.Parameter(LAW, inspect.Parameter.KEYWORD_ONLY)

        @functools.wraps(test)
        def item(*args: Any, isoform_law: Callable[[Any], None], **fixtures: Any) -> None:
            isoform_law(test(*args, **fixtures))

        item.__signature__ = given.replace(parameters=[*given.parameters.values(), law], return_annotation=None)  # type: ignore[attr-defined]
        setattr(item, _HELD, held)
        return getattr(pytest.mark, MARK)(item)

    return mark


def conformance_of(test: Any) -> Conformance | None:
    """What `conformance` made of a test function, or None."""
    found = getattr(test, _HELD, None)
    return found if isinstance(found, Conformance) else None
