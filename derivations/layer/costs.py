"""What a token costs: operations and numbers kept, as polynomials in the sizes, counted from the declaration as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import cast

import sympy
from sympy import Expr, Poly, Symbol

from .. import cost
from ..claim import Claim, Source, variant
from ..kernel import terms as tm
from ..kernel.formulas import And, Declaration, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each
from ..kernel.terms import Cond, Ind, Num, Term, le, named
from .classify import states

COUNTED = "the operations of the declaration as it is written, by the conventions of isoform.derivations.cost"


@dataclass(frozen=True)
class Costs:
    """Of one token, where no size is 0: ``operations`` by kind, and the ``numbers`` that the states hold. SymPy polynomials."""

    operations: Mapping[str, Expr]
    numbers: Expr


def costs(declaration: Declaration) -> Costs:
    """What one token takes and what is kept after it. Raises isoform.derivations.cost.Uncounted."""
    counted = cost.operations(*cost.step(declaration))
    return Costs({kind: polynomial(x) for kind, x in counted.items()}, polynomial(_kept(declaration)))


def _kept(declaration: Declaration) -> Term:
    return cost.numbers(*(s[declaration.t] for s in states(declaration)))


def polynomial(x: Term) -> Expr:
    """A count as a polynomial in sizes and indices that are all at least 1. Raises isoform.derivations.cost.Uncounted where it is none."""
    return cast(Expr, sympy.expand(_expression(x)))


def _expression(x: Term) -> Expr:
    if isinstance(x, Num):
        return x.value
    if isinstance(x, Ind):
        return x.expr
    if isinstance(x, tm.Where):
        cond, a, b = x.args
        return _expression(cast(Term, a if _holds(cast(Cond, cond)) else b))
    if isinstance(x, tm.Sum) and x.args[1] not in tm.free(cast(Term, x.args[0])):
        body, _, lo, hi = x.args
        length = cast(Expr, hi) - cast(Expr, lo) + 1
        return _expression(cast(Term, body)) * length if _holds(le(0, length)) else sympy.Integer(0)
    if isinstance(x, (tm.Add, tm.Mul)):
        parts = [_expression(cast(Term, a)) for a in x.args]
        return sympy.Add(*parts) if isinstance(x, tm.Add) else sympy.Mul(*parts)
    raise cost.Uncounted(f"no polynomial: {x}")


def _holds(cond: Cond) -> bool:
    """Whether a condition holds whatever the sizes from 1 on are; False if it never does."""
    return all(_never_negative(cast(Expr, e)) for e in cond.args)


def _never_negative(e: Expr) -> bool:
    """Whether an affine expression is at least 0 for all sizes from 1 on; False if it is below 0 for all."""
    terms = e.expand().as_coefficients_dict()
    slopes, at_ones = [c for n, c in terms.items() if n != 1], sum(terms.values())
    if all(c >= 0 for c in slopes) and at_ones >= 0:
        return True
    if all(c <= 0 for c in slopes) and at_ones < 0:
        return False
    raise cost.Uncounted(f"it depends on more than that sizes are at least 1 whether 0 <= {e}")


def _term(e: Expr) -> Term:
    """A polynomial as a term."""
    symbols = sorted(e.free_symbols, key=str)
    if not symbols:
        return Num(cast(int, e))
    monomials = [_monomial(Num(c), symbols, powers) for powers, c in Poly(e, *symbols).terms()]
    return reduce(tm.Add, monomials) if len(monomials) > 1 else monomials[0]


def _monomial(c: Num, symbols: list[Symbol], powers: tuple[int, ...]) -> Term:
    factors = [Ind(s) for s, p in zip(symbols, powers, strict=True) for _ in range(p)]
    return tm.Mul(*([] if c == Num(1) and factors else [c]), *factors) if len(factors) + (c != Num(1)) > 1 else factors[0] if factors else c


def step_cost(declaration: Declaration) -> Claim | None:
    """The counts are these polynomials; None where something has no convention, a number depends
    on time, or the counts are written so already."""
    try:
        found, counted = costs(declaration), cost.operations(*cost.step(declaration))
    except cost.Uncounted:
        return None
    computed = cost.step(declaration)
    sizes = sorted(set().union(found.numbers.free_symbols, *(e.free_symbols for e in found.operations.values())), key=str)
    if declaration.t in sizes:
        return None
    kept = Equation(named("numbers kept", _kept(declaration), *[s[declaration.t] for s in states(declaration)]), _term(found.numbers))

    def says(more: str = "", kept: Formula = kept) -> Formula:
        each = [
            Equation(named(kind, counted[kind], *computed), _term(e + 1 if kind == more else e)) for kind, e in found.operations.items()
        ]
        return And(*each, kept)

    if all(tm.unnamed(e.lhs) == e.rhs for e in cast("tuple[Equation, ...]", says().args)):
        return None
    where = reduce(Cond.__and__, [le(1, s) for s in sizes], le(1, declaration.t))
    statement = Statement(says(), where)
    misses = [variant(statement, f"one of the {kind} is left out", says(kind)) for kind in found.operations]
    misses += [variant(statement, "two numbers more are kept", says(kept=Equation(kept.lhs, kept.rhs + 2)))]
    own = Source(declaration.source, note=COUNTED)
    return Claim(
        f"{declaration.operator}/step-cost",
        "what a token takes, and the numbers that are kept",
        statement,
        (own,),
        tuple(misses),
        Each((Direct(),) * (len(found.operations) + 1)),
        operator=declaration,
    )
