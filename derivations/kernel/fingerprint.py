"""What a statement says, as one string and as its SHA-256.

The string is JSON of nested lists, written here and nowhere taken from SymPy's printers. Factors and summands
stand as written. A bound index or variable is the number of binders around its own, so renaming it changes
nothing; a free one is its name. The label of a named term is no part of what is said. An index expression is the
sorted list of its monomials and coefficients; a cut is its family and its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from sympy import Basic, Dummy, Expr, Poly, PolynomialError, Rational, Symbol, Tuple
from sympy.core.symbol import Str
from sympy.logic.boolalg import BooleanAtom

from .formulas import Formula, Statement, plain
from .terms import Cond, Cut, Term, Var, index, unnamed

Bound = Mapping[Basic, int]


def fingerprint(statement: Statement, as_written: Statement | None = None, near_misses: Iterable[Statement] = ()) -> str:
    """SHA-256 of a statement, of its form as written in the paper, and of the near misses to be refuted."""
    written = None if as_written is None else _said(as_written)
    whole = [_said(statement), written, [_said(m) for m in near_misses]]
    return hashlib.sha256(_json(whole).encode()).hexdigest()


def canonical(statement: Statement | Term | Cond | Formula) -> str:
    """The string that alpha-equivalent statements share and others do not."""
    return _json(_said(statement))


def _said(x: Statement | Term | Cond | Formula) -> Any:
    return _node(plain(x) if isinstance(x, Statement) else unnamed(x), {})


def _json(x: Any) -> str:
    return json.dumps(x, separators=(",", ":"))


def _node(x: Any, bound: Bound) -> Any:
    if isinstance(x, Statement):
        assumptions = [_node(a.formula, bound) for a in x.assumptions]
        return ["Statement", _node(x.conclusion, bound), _node(x.where, bound), assumptions]
    if isinstance(x, Var) and x in bound:
        return bound[x]
    if isinstance(x, (Term, Cond, Formula)):
        return [type(x).__name__, *_arguments(x, bound)]
    if isinstance(x, Tuple):
        return [_node(a, bound) for a in x.args]
    if isinstance(x, Str):
        return str(x)
    if isinstance(x, BooleanAtom):
        return bool(x)
    if isinstance(x, Expr):
        return _polynomial(x, bound)
    raise TypeError(f"{x!r} is no part of a statement")


def _arguments(x: Basic, bound: Bound) -> Iterable[Any]:
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    depth = max(bound.values(), default=-1) + 1
    numbers = {b: depth + n for n, b in enumerate(binds)}
    for n, a in enumerate(x.args):
        if n in binds:
            yield _binder(a, bound)
        else:
            yield _node(a, {**bound, **{x.args[b]: numbers[b] for b, scope in binds.items() if n in scope}})


def _binder(x: Basic, bound: Bound) -> Any:
    """The kind of a bound index or variable, without its name."""
    if isinstance(x, Var):
        return [x.field, *[_polynomial(size, bound) for size in x.shape]]
    _symbol(cast(Symbol, x), bound)
    return "index"


def _symbol(x: Basic, bound: Bound) -> Any:
    if isinstance(x, Cut):
        return ["Cut", x.name, _polynomial(x.at, bound)]
    if not isinstance(x, Symbol) or x != index(x.name):
        raise TypeError(f"the symbol {x} is not made by index(): its name does not say what it is")
    return bound.get(x, x.name)


def _polynomial(e: Expr, bound: Bound) -> list[Any]:
    # a cut is an unknown of its own, whatever stands in it
    cuts = {c: Dummy() for c in e.atoms(Cut)}
    flat = e.xreplace(cuts)
    unknowns = {x: x for x in flat.free_symbols - set(cuts.values())} | cuts
    symbols = sorted(unknowns, key=str)
    try:
        terms = Poly(flat, *[unknowns[x] for x in symbols]).as_dict() if symbols else {(): e}
    except PolynomialError:
        raise TypeError(f"the index expression {e} is no polynomial") from None
    return sorted((_monomial(symbols, powers, c, bound) for powers, c in terms.items()), key=_json)


def _monomial(symbols: list[Basic], powers: tuple[int, ...], coefficient: Expr, bound: Bound) -> list[Any]:
    if not isinstance(coefficient, Rational):
        raise TypeError(f"the coefficient {coefficient} of an index expression is not rational")
    factors = [[_symbol(x, bound), int(n)] for x, n in zip(symbols, powers, strict=True) if n]
    return [sorted(factors, key=_json), f"{coefficient.p}/{coefficient.q}"]
