"""Terms that are non-negative as they are written: squares, numbers, exp(x) - 1 - x for a real x, exp(x) - 1 for one of these, and
sums, products and reciprocals of such.

The normal form multiplies a square out; a certificate may name it as it stands.
"""

from __future__ import annotations

from typing import cast

from sympy import Expr, Symbol

from . import terms as tm
from .affine import implied, name, read
from .algebra import fresh_name
from .normal import Reader
from .signs import Signs
from .terms import Term
from .zero import Nonzero, residue

INCREASING = "exp-increasing"
TANGENT = "exp-above-tangent"

def nonneg(x: Term, reader: Reader, signs: Signs, nonzero: Nonzero) -> bool:
    """Whether a scalar is known to be non-negative, by its normal form or as it is written."""

    def parts(terms: tuple[Term, ...]) -> bool:
        return all(nonneg(a, reader, signs, nonzero) for a in terms)

    x = cast(Term, tm.unnamed(x))
    if not x.is_scalar_term:
        return False
    if signs.nonneg(reader.normal(x)):
        return True
    match x:
        case tm.Add():
            terms = cast("tuple[Term, ...]", x.args)
            return parts(terms) or _above_one(terms, reader, signs, nonzero) or _above_tangent(terms, reader, nonzero)
        case tm.Mul():
            factors = cast("tuple[Term, ...]", x.args)
            return _square(factors, reader, nonzero) or parts(factors)
        case tm.Ind():
            return implied(reader.facts, read(x.expr))
        case tm.Inverse():  # that it exists is a condition of the reading
            return parts(cast("tuple[Term, ...]", x.args))
        case tm.Power():
            base, exponent = cast("tuple[Term, Expr]", x.args)
            return bool(exponent.is_Integer and exponent % 2 == 0) and _square((base, base), reader, nonzero)
        case tm.Trace():
            of = cast(Term, x.args[0])
            return isinstance(of, tm.Mul) and _square(cast("tuple[Term, ...]", of.args), reader, nonzero)
        case tm.Sum():
            body, i, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", x.args)
            own = fresh_name()
            span = frozenset({name(own) - read(lo), read(hi) - name(own)})
            inside = cast(Term, tm.substitute(body, {i: Symbol(own, integer=True)}))
            return nonneg(inside, reader.under(span), signs.under(span), nonzero)
    return False


def _above_one(terms: tuple[Term, ...], reader: Reader, signs: Signs, nonzero: Nonzero) -> bool:
    """Whether this is exp(x) - 1 for an x that is not negative."""
    if len(terms) != 2 or not isinstance(terms[0], tm.Exp) or reader.read(terms[1] + 1):
        return False
    found = nonneg(cast(Term, terms[0].args[0]), reader, signs, nonzero)
    reader.trace.assumed |= {INCREASING} if found else set()
    return found


def _above_tangent(terms: tuple[Term, ...], reader: Reader, nonzero: Nonzero) -> bool:
    """Whether this is exp(x) - 1 - x for a real x."""
    if not isinstance(terms[0], tm.Exp):
        return False
    x = cast(Term, terms[0].args[0])
    zero = (tm.Add(*terms) - terms[0] + 1 + x, x - tm.Conj(x))
    found = not any(residue(reader.read(z), reader.facts, nonzero) for z in zero)
    reader.trace.assumed |= {TANGENT} if found else set()
    return found


def _square(factors: tuple[Term, ...], reader: Reader, nonzero: Nonzero) -> bool:
    """Whether these are two factors, and the first is the adjoint of the second."""
    if len(factors) != 2:
        return False
    adjoint = factors[1].H
    if not all(map(tm.same, factors[0].shape, adjoint.shape)):
        return False
    return not residue(reader.read(factors[0] - adjoint), reader.facts, nonzero)


__all__ = ["nonneg"]
