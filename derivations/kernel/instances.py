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


class NoInstance(ValueError):
    """A term cannot stand for a family: its shape or field differs, or something around it speaks of the family."""


def instantiate(statement: Statement, families: Families) -> Statement:
    """The statement with ``term`` for every member of each family, its indices put for the symbols given.

    Factors 1 and I fall away, and products of multiples of I become numbers. Raises NoInstance.
    """
    if not families:
        return statement
    parts = [statement.conclusion, *[a.formula for a in statement.assumptions]]
    for node in (n for p in parts for n in tm.walk(p)):
        _stays(node, families)
    put = cast("Any", lambda x: _replace(x, families))
    assumptions = tuple(Assumption(a.name, put(a.formula)) for a in statement.assumptions)
    return replace(statement, conclusion=cast(Formula, put(statement.conclusion)), assumptions=assumptions)


def _stays(x: Basic, families: Families) -> None:
    """What binds a variable, differentiates by it or averages over a family must not notice the terms put."""
    incoming = frozenset().union(*[tm.free(t) for _, t in families.values()])
    held = [x.args[b] for b in getattr(x, "binds", {})] + ([x.args[1]] if isinstance(x, tm.Deriv) else [])
    if any(isinstance(v, tm.Var) and v.name in families for v in held):
        raise NoInstance(f"{x} speaks of a variable of its own that is to be replaced")
    if isinstance(x, tm.Deriv) and x.args[1] in incoming:
        raise NoInstance(f"{x} would differentiate what is put for a constant")
    if isinstance(x, tm.Expect):
        names = {n.name for _, t in families.values() for n in tm.walk(t) if isinstance(n, (tm.Var, tm.Apply, tm.Rec))}
        if x.random & (names | families.keys()):
            raise NoInstance(f"{x} would average over what is put for a constant, or the other way round")


def _replace(x: Basic, families: Families) -> Basic:
    if isinstance(x, tm.Var) and x.name in families:
        return _member(x, *families[x.name])
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
    return _without_ones(cast(Basic, x.func(*[a if n in binds else _replace(a, families) for n, a in enumerate(args)])))


def _without_ones(x: Basic) -> Basic:
    """A product without factors 1 and I where the others have its shape; one of multiples of I is a number times I."""
    if isinstance(x, tm.Prod):
        return _product_of_multiples(x)
    if not isinstance(x, tm.Mul):
        return x
    kept = list(cast("tuple[Term, ...]", x.args))
    for one in filter(_is_one, x.args):
        n = kept.index(cast(Term, one))
        rest = kept[:n] + kept[n + 1 :]
        kept = rest if _has_shape(rest, x) else kept
    return _times(kept)


def _product_of_multiples(x: tm.Prod) -> Term:
    body, i, lo, hi = cast("tuple[Term, Symbol, Any, Any]", x.args[:4])
    factors = cast("tuple[Term, ...]", body.args if isinstance(body, tm.Mul) else (body,))
    numbers, ones = [f for f in factors if not _is_one(f)], [f for f in factors if _is_one(f)]
    if len(ones) != 1 or i in tm.free(ones[0]) or not all(f.is_scalar_term for f in numbers):
        return x
    return tm.Mul(tm.Prod(_times(numbers), i, lo, hi), ones[0]) if numbers else ones[0]


def _times(factors: list[Term]) -> Term:
    return factors[0] if len(factors) == 1 else tm.Mul(*factors)


def _is_one(x: Basic) -> bool:
    return x == tm.Num(1) or isinstance(x, tm.Eye)


def _has_shape(factors: list[Term], x: Term) -> bool:
    """Whether a product of some factors has the shape of a term; one of none has none."""
    return bool(factors) and all(map(tm.same, _times(factors).shape, x.shape))


def _member(x: tm.Var, symbols: tuple[Symbol, ...], term: Term) -> Term:
    """The term that stands for a member of a family."""
    new = cast(Term, substitute(term, dict(zip(symbols, x.indices, strict=True))))
    if not (tm.same(new.rows, x.rows) and tm.same(new.cols, x.cols)):
        raise NoInstance(f"{x} is {tm.shown_shape(x)}, and {new} is {tm.shown_shape(new)}")
    if x.field == "real" and any(n.field == "complex" for n in tm.walk(new) if isinstance(n, (tm.Var, tm.Apply))):
        raise NoInstance(f"{x} is real, and {new} need not be")
    return new


__all__ = ["Families", "NoInstance", "instantiate"]
