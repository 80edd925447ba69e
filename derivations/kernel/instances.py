"""Instances of a statement: terms put for its families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from sympy import Basic, Symbol

from . import terms as tm
from .formulas import Assumption, Formula, Statement
from .terms import Term, substitute

Families = Mapping[str, tuple[tuple[Symbol, ...], Term]]


def instantiate(statement: Statement, families: Families) -> Statement:
    """The statement with ``term`` for every member of each family, its indices put for the symbols given."""
    if not families:
        return statement
    put = cast("Any", lambda x: _replace(x, families))
    assumptions = tuple(Assumption(a.name, put(a.formula)) for a in statement.assumptions)
    return replace(statement, conclusion=cast(Formula, put(statement.conclusion)), assumptions=assumptions)


def _replace(x: Basic, families: Families) -> Basic:
    if isinstance(x, tm.Var) and x.name in families:
        symbols, term = families[x.name]
        return cast(Basic, substitute(term, dict(zip(symbols, x.indices, strict=True))))
    binds: Mapping[int, tuple[int, ...]] = getattr(x, "binds", {})
    incoming = frozenset().union(*[tm.free(t) - set(s) for s, t in families.values()])
    args = list(x.args)
    if not args or not isinstance(x, (tm.Term, Formula, tm.Tuple)):
        return x
    for b, scope in binds.items():
        if args[b] in incoming:
            new = tm.fresh(args[b], incoming.union(*[tm.free(args[n]) for n in scope], {args[c] for c in binds}))
            for n in scope:
                args[n] = tm.put(args[n], {args[b]: new})
            args[b] = new
    return cast(Basic, x.func(*[a if n in binds else _replace(a, families) for n, a in enumerate(args)]))


__all__ = ["instantiate"]
