"""Whether a formula fits the sizes of what it uses: it is tried on matrices of these sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isoform.scaffold.description import TERMS, ScaffoldError, check_formula, functions, named_sizes


def check_fits(what: str, sizes: Mapping[str, str], shape: str, formula: str) -> None:
    """Raise ScaffoldError for what is no formula over these names and their sizes, or has another shape; that may be any if it is empty."""
    from isoform.derivations.kernel import terms
    from isoform.derivations.layer import functions as module

    check_formula(what, formula, set(sizes), named_sizes(sizes))
    names = {n: getattr(terms, n) for n in TERMS} | {n: getattr(module, n) for n in functions()}
    names |= {n: terms.index(n) for n in named_sizes(sizes)}
    names |= {n: terms.matrix(n, *_shape(own)) for n, own in sizes.items()}
    try:
        found = terms.lift(eval(compile(formula, "<formula>", "eval"), {"__builtins__": {}}, names))
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        raise ScaffoldError(f"{what} does not fit together: {' '.join(str(error).split())}") from error
    wanted = terms.matrix("wanted", *_shape(shape)) if shape else found
    if not all(map(terms.same, found.shape, wanted.shape)):
        raise ScaffoldError(f"{what} is {terms.shown_shape(found)}, and should be {terms.shown_shape(wanted)}")


def _shape(size: str) -> tuple[Any, Any]:
    from isoform.derivations.kernel.terms import index

    rows, _, cols = size.partition("*")
    return tuple(1 if n in ("", "1") else index(n) for n in (rows, cols))  # type: ignore[return-value]
