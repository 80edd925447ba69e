"""How the rows and columns of a term are numbered: from 1, except where a Stack or Rows gives labels."""

from __future__ import annotations

from typing import cast

from sympy import Basic, Expr, Integer

from ..kernel import terms as k
from .errors import UnsupportedTerm

Labels = tuple[Expr, Expr]
ONE = Integer(1)


def labels(x: k.Term) -> Labels:
    """The labels of the first row and of the first column.

    A product has the rows of its first factor and the columns of its last. Raises UnsupportedTerm where
    terms of different labels are combined entry by entry.
    """
    a = x.args
    if isinstance(x, (k.Stack, k.Rows)):
        inner = labels(cast(k.Term, a[0]))
        return cast(Expr, a[-2]), _closed(x, inner)[1] if isinstance(x, k.Stack) else inner[1]
    if isinstance(x, k.Row):
        return ONE, labels(cast(k.Term, a[0]))[1]
    if isinstance(x, k.Transpose):
        rows, cols = labels(cast(k.Term, a[0]))
        return cols, rows
    if isinstance(x, (k.Conj, k.Deriv)):
        return labels(cast(k.Term, a[0]))
    if isinstance(x, (k.Sum, k.Integral, k.At)):
        return _closed(x, labels(cast(k.Term, a[0])))
    if isinstance(x, k.Rec):
        return labels(x.init)
    if isinstance(x, (k.Add, k.Hadamard)):
        return _common(x, a)
    if isinstance(x, k.Where):
        return _common(x, a[1:])
    if isinstance(x, k.Diag):
        rows = labels(cast(k.Term, a[0]))[0]
        return rows, rows
    if isinstance(x, k.Mul) and not x.is_scalar_term:
        return _product(x)
    return ONE, ONE


def groups(x: k.Mul) -> list[list[k.Term]]:
    """The matrix factors of a product, cut after every partial product that is a scalar."""
    found: list[list[k.Term]] = []
    for f in cast("tuple[k.Term, ...]", x.args):
        if f.is_scalar_term:
            continue
        if not found or k.Mul(*found[-1]).is_scalar_term:
            found.append([])
        found[-1].append(f)
    return found


def _product(x: k.Mul) -> Labels:
    last = groups(x)[-1]
    return labels(last[0])[0], labels(last[-1])[1]


def _closed(x: k.Term, found: Labels) -> Labels:
    if any(x.args[1] in k.free(e) for e in found):
        raise UnsupportedTerm(f"the labels of {x} depend on its bound index")
    return found


def _common(x: k.Term, parts: tuple[Basic, ...]) -> Labels:
    first, *rest = [labels(cast(k.Term, p)) for p in parts]
    for other in rest:
        if not (k.same(first[0], other[0]) and k.same(first[1], other[1])):
            raise UnsupportedTerm(f"the parts of {x} number their rows or columns differently")
    return first
