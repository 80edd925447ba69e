"""Functions that layers use, of numbers or entry by entry of columns, spelled so that both engines evaluate them."""

from __future__ import annotations

from collections.abc import Callable

from ..kernel import terms as tm
from ..kernel.terms import Exp, Like, Log, Num, Row, Sqrt, Stack, Term, index, named


def entrywise(f: Callable[..., Like], *values: Like) -> Term:
    """f of numbers, applied to columns of one height entry by entry; numbers among them go to every entry."""
    columns = tuple(map(tm.lift, values))
    tall = [x for x in columns if not x.is_scalar_term]
    if not tall:
        return tm.lift(f(*columns))
    if any(x.cols != 1 or not tm.same(x.rows, tall[0].rows) for x in tall):
        raise tm.ShapeError(f"a function applied entry by entry needs columns of one height, not {', '.join(map(tm.shown_shape, tall))}")
    taken = frozenset().union(*map(tm.free, columns))
    i = index("i") if index("i") not in taken else tm.fresh(index("i"), taken)
    return Stack(tm.lift(f(*[x if x.is_scalar_term else Row(x, i) for x in columns])), i, 1, tall[0].rows)


def _called(label: str, f: Callable[[Term], Term], x: Like) -> Term:
    return entrywise(lambda x: named(label, f(x), x), x)


def exp(x: Like) -> Term:
    """The exponential."""
    return entrywise(Exp, x)


def sigmoid(x: Like) -> Term:
    """1 / (1 + e^{-x})."""
    return _called("sigmoid", lambda x: Num(1) / (Num(1) + Exp(-x)), x)


def tanh(x: Like) -> Term:
    """The hyperbolic tangent, (1 - e^{-2x}) / (1 + e^{-2x})."""
    return _called("tanh", lambda x: (Num(1) - Exp(Num(-2) * x)) / (Num(1) + Exp(Num(-2) * x)), x)


def softplus(x: Like) -> Term:
    """log(1 + e^x)."""
    return _called("softplus", lambda x: Log(Num(1) + Exp(x)), x)


def absolute(x: Like) -> Term:
    """|x| of a real x."""
    return _called("abs", lambda x: Sqrt(x * x), x)


def larger(x: Like, y: Like) -> Term:
    """The larger of two real values, (x + y + |x - y|) / 2."""
    return entrywise(lambda x, y: named("max", (x + y + absolute(x - y)) / Num(2), x, y), x, y)


def over(x: Like, y: Like) -> Term:
    """The quotient."""
    return entrywise(lambda x, y: x / y, x, y)


__all__ = ["absolute", "entrywise", "exp", "larger", "over", "sigmoid", "softplus", "tanh"]
