"""Terms, conditions, formulas and statements as text for a terminal and as LaTeX.

One traversal serves both: a :class:`Style` says how a construct is spelt, the functions below say which
construct a node is and where parentheses are needed. Every function returns the spelling together with its
level; an operand whose level is below the one its place needs is put in parentheses. Index expressions are
written without spaces, so ``t+1`` is one index and ``t + 1`` a sum of terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import singledispatch
from typing import Any, TypeAlias, cast

import sympy
from sympy import Basic, Expr

from .formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Iff,
    Implies,
    Invertible,
    Less,
    LessEqual,
    NonZero,
    Statement,
)
from .naming import Definition, Names
from .spelling import (
    ATOM,
    CONNECTIVE,
    FACTOR,
    FREE,
    INDEXED,
    LATEX,
    POSTFIX,
    PREFIX,
    PRODUCT,
    QUOTIENT,
    RELATION,
    SUM,
    TEXT,
    Out,
    Style,
    monomials_of,
    spell_index,
    spell_name,
    spell_rational,
)
from .terms import (
    Add,
    Apply,
    At,
    Block,
    Cond,
    Conj,
    Cuts,
    Deriv,
    Diag,
    Entry,
    Exp,
    Expect,
    Eye,
    Hadamard,
    Ind,
    Integral,
    Inverse,
    Log,
    Mul,
    Named,
    NegInf,
    Num,
    Power,
    Prod,
    Rec,
    Row,
    Rows,
    ShapeError,
    Sqrt,
    Stack,
    Sum,
    Term,
    Trace,
    Transpose,
    Var,
    Where,
    Zero,
    same,
    unnamed,
    walk,
)

Printable: TypeAlias = Term | Cond | Cuts | Formula | Statement | Assumption | Expr


def text(x: Printable, names: Names | None = None) -> str:
    """Unicode text, as one would read it in a paper; ``names`` are those of all that is printed together."""
    return _show(x, replace(TEXT, names=names or Names((x,))))[0]


def latex(x: Printable, names: Names | None = None) -> str:
    """LaTeX for mathematics mode."""
    return _show(x, replace(LATEX, names=names or Names((x,))))[0]


def defined(x: Definition, names: Names) -> tuple[str, str]:
    """What a name stands for, as text and as LaTeX; LaTeX writes the start H₀ as it does H at 0, and need not say so."""
    told = [e for e in x.equations if len({latex(side, names).strip("{}") for side in e.args}) > 1]
    return ", ".join(text(e, names) for e in x.equations), r",\quad ".join(latex(e, names) for e in told)


# class -> the level that its operands need, the level that it has
_TEMPLATED: Mapping[type, tuple[int, int]] = {
    NegInf: (FREE, SUM),
    Zero: (FREE, ATOM),
    Eye: (FREE, ATOM),
    Conj: (FREE, ATOM),
    Hadamard: (FACTOR, PRODUCT),
    Diag: (FREE, ATOM),
    Inverse: (INDEXED, POSTFIX),
    Log: (FREE, ATOM),
    Sqrt: (FREE, ATOM),
    Trace: (FREE, ATOM),
    Equation: (FREE, RELATION),
    LessEqual: (FREE, RELATION),
    Less: (FREE, RELATION),
    NonZero: (FREE, RELATION),
    Invertible: (FREE, RELATION),
    Implies: (RELATION, CONNECTIVE),
    Iff: (RELATION, CONNECTIVE),
}


@singledispatch
def _show(x: Any, s: Style) -> Out:
    if type(x) not in _TEMPLATED:
        raise TypeError(f"no way to print a {type(x).__name__}")
    need, level = _TEMPLATED[type(x)]
    operands = {name: _at(a, need, s) for name, a in zip("ab", x.args, strict=False)}
    return s.fill(type(x).__name__, **operands), level


def _at(x: Any, level: int, s: Style) -> str:
    """The spelling of x, in parentheses where it is looser than the level."""
    out, has = _show(x, s)
    return out if has >= level else s.fill("Paren", a=out)


# names


def _indexed(name: str, indices: Iterable[Expr], s: Style) -> Out:
    inner = ",".join(spell_index(i, s)[0] for i in indices)
    base = spell_name(name, s)
    return (s.fill("Indexed", a=base, i=s.script(inner)) if inner else base), ATOM


@_show.register
def _var(x: Var, s: Style) -> Out:
    return _indexed(x.name, x.indices, s)


@_show.register
def _called(x: Rec | Named, s: Style) -> Out:
    called = s.names.called(x)
    if called is None:
        return _show(cast(Named, x).body, s)
    out, level = _indexed(called.name, called.subscripts, s)
    inner = ", ".join(_at(a, FREE, s) for a in called.arguments)
    return s.fill("Apply", f=out, a=inner) if inner else out, level


# index expressions and conditions


@_show.register
def _index(e: Expr, s: Style) -> Out:
    return spell_index(e, s)


def _relation(e: Expr, strict: bool) -> tuple[Expr, str, Expr]:
    """The inequality e >= 0 with the negative monomials on the left; strict allows ``a < b`` for ``a + 1 <= b``."""
    monomials = monomials_of(e)
    left = sympy.Add(*[-c * m for c, m in monomials if c < 0 and m != 1])
    right = sympy.Add(*[c * m for c, m in monomials if c > 0 and m != 1])
    constant = sum(c for c, m in monomials if m == 1)
    if strict and constant == -1 and left != 0:
        return left, "Below", right
    return left - min(constant, 0), "AtMost", right + max(constant, 0)


def _relations(c: Cond) -> Iterable[tuple[Expr, str, Expr]]:
    exprs = list(cast("tuple[Expr, ...]", c.args))
    while exprs:
        e = exprs.pop(0)
        if exprs and same(e, -exprs[0]):
            exprs.pop(0)
            left, _, right = _relation(e, strict=False)
            yield left, "Equal", right
        else:
            yield _relation(e, strict=True)


@_show.register
def _cond(c: Cond, s: Style) -> Out:
    out, last = "", None
    for left, relation, right in _relations(c):
        if last is None or left != last:
            out += (", " if out else "") + spell_index(left, s)[0]
        out += s.templates[relation] + spell_index(right, s)[0]
        last = right
    return out or s.templates["True"], RELATION


@_show.register
def _cuts(x: Cuts, s: Style) -> Out:
    return s.fill("Cuts", a=spell_name(x.name, s)), RELATION


# sums and products


@_show.register
def _signed_term(x: Num | Mul | Add, s: Style) -> Out:
    if isinstance(x, Add):
        return _add(x, s)
    negative, (out, level) = _signed(x, s)
    return (s.minus + out, SUM) if negative else (out, level)


def _signed(x: Basic, s: Style) -> tuple[bool, Out]:
    """Whether x is written with a minus sign, and the rest."""
    if isinstance(x, Num):
        return bool(x.value < 0), spell_rational(abs(x.value), s)
    if isinstance(x, Mul):
        return _product(cast("tuple[Term, ...]", x.args), s)
    return False, _show(x, s)


def _add(x: Add, s: Style) -> Out:
    out = ""
    for n, term in enumerate(x.args):
        negative, (body, level) = _signed(term, s)
        sign = (s.minus if negative else "") if n == 0 else f" {s.minus if negative else '+'} "
        out += sign + (body if level > SUM else s.fill("Paren", a=body))
    return out, SUM


def _divides(x: Term) -> bool:
    return isinstance(x, Inverse) and x.is_scalar_term


def _product(factors: tuple[Term, ...], s: Style) -> tuple[bool, Out]:
    if (length := _norm(factors, s)) is not None:
        return False, (length, POSTFIX)
    above = list(factors)
    below: list[Term] = []
    while len(above) > 1 and _divides(above[-1]):
        below.insert(0, cast(Term, above.pop().args[0]))
    if s.stacked_quotients and len(above) == len(below) == 1:
        return False, (s.fill("Stacked", a=_at(above[0], FREE, s), b=_at(below[0], FREE, s)), FACTOR)
    negative, above = _unsigned(above)
    if not negative:
        negative, above = _unsigned(_opened(above))
    out = _juxtaposed(above, FACTOR if below else PREFIX, s)
    for divisor in below:
        out = s.fill("Quotient", a=out, b=_at(divisor, FACTOR, s))
    return negative, (out, QUOTIENT if below else PRODUCT)


def _unsigned(factors: list[Term]) -> tuple[bool, list[Term]]:
    """Whether the first factor is a negative number, and the factors without its sign; without it, if it is -1."""
    first = factors[0] if factors else None
    if not isinstance(first, Num) or first.value >= 0:
        return False, factors
    rest = factors[1:]
    if first.value == -1 and rest and not isinstance(rest[0], Num):
        return True, _opened(rest)
    return True, _opened([Num(-first.value), *rest])


def _norm(factors: Iterable[Basic], s: Style) -> str | None:
    """The squared norm or modulus that this product is; one inside stands in parentheses or is not written."""
    x = _normed(tuple(factors))
    inner = "" if x is None else _at(x, FREE, s)
    if x is None or any(bar in _open_part(inner) for bar in (s.bars, "|")):
        return None
    return s.fill("Modulus" if x.is_scalar_term else "Norm", a=inner)


def _open_part(spelling: str) -> str:
    """What stands outside all parentheses."""
    depth, out = 0, ""
    for c in spelling:
        depth -= c == ")"
        out += c if depth == 0 else ""
        depth += c == "("
    return out


def _normed(factors: tuple[Basic, ...]) -> Term | None:
    """x if the factors are xᴴ and x, or xᵀ and a real x, or the conjugate of a complex number x and x."""
    if len(factors) < 2 or not isinstance(factors[0], (Transpose, Conj)):
        return None
    rest = cast("tuple[Term, ...]", factors[1:])
    if not _multiply(list(rest)):
        return None
    x = Mul(*rest) if len(rest) > 1 else rest[0]
    real = all(n.field == "real" for n in walk(unnamed(x)) if isinstance(n, (Var, Apply)))
    if isinstance(factors[0], Conj):
        return x if factors[0].args[0] == x and x.is_scalar_term and not real else None
    turned = factors[0].args[0]
    return x if turned == (x if real else Conj(x)) and x.cols == 1 and not x.is_scalar_term else None


def _opened(factors: list[Term]) -> list[Term]:
    """The factors, with the scalar products among them written out where that reads as the same product."""
    out: list[Term] = []
    for n, f in enumerate(factors):
        inner = _opened(list(cast("tuple[Term, ...]", f.args))) if _may_open(f, n, len(factors)) else [f]
        out += inner if _multiply([*factors[:n], *inner, *factors[n + 1 :]]) else [f]
    # two factors alone come from a norm that is not written as one
    for n in range(len(out) - 1 if len(out) > 2 else 0):
        if _normed((out[n], out[n + 1])) is not None and all(x.is_scalar_term for x in out[:n]):
            return [*out[:n], Mul(*out[n : n + 2]), *out[n + 2 :]]
    return out


def _may_open(f: Term, n: int, count: int) -> bool:
    """Whether a factor is a scalar product that needs no parentheses at its place."""
    if not (isinstance(f, Mul) and f.is_scalar_term) or _normed(f.args) is not None or _divides(cast(Term, f.args[-1])):
        return False
    if n > 0 and isinstance(f.args[0], Num):
        return False
    return n == count - 1 or all(cast(Term, a).is_scalar_term for a in f.args)


def _multiply(factors: list[Term]) -> bool:
    try:
        Mul(*factors)
    except ShapeError:
        return False
    return True


def _juxtaposed(factors: list[Term], last: int, s: Style) -> str:
    """Factors side by side; the last may be of a looser level, since nothing follows it."""
    if not factors:
        return "1"
    parts = [_at(f, FACTOR, s) for f in factors[:-1]] + [_at(factors[-1], last, s)]
    out = parts[0]
    for part in parts[1:]:
        out += (s.dot if re.match(r"\d|[¼-¾⅓-⅞]|\\t?frac\{\d", part) else " ") + part
    return out


# the remaining terms


@_show.register
def _ind(x: Ind, s: Style) -> Out:
    return _show(x.expr, s)


@_show.register
def _transpose(x: Transpose, s: Style) -> Out:
    inner = x.args[0]
    if isinstance(inner, Conj):
        return s.fill("Adjoint", a=_at(inner.args[0], INDEXED, s)), POSTFIX
    return s.fill("Transpose", a=_at(inner, INDEXED, s)), POSTFIX


@_show.register
def _power(x: Power, s: Style) -> Out:
    base, exponent = _at(x.args[0], INDEXED, s), _at(x.args[1], FREE, s)
    if s.superscripts and exponent.isdecimal():
        return base + exponent.translate(s.superscripts), POSTFIX
    return s.fill("Power", a=base, n=s.script(exponent)), POSTFIX


@_show.register
def _exp(x: Exp, s: Style) -> Out:
    inner = _at(x.args[0], FREE, s)
    return (s.fill("Exp", a=inner), ATOM) if x.is_scalar_term else (s.fill("MatrixExp", n=s.script(inner)), POSTFIX)


@_show.register
def _where(x: Where, s: Style) -> Out:
    cond, a, b = x.args
    c = _at(cond, FREE, s)
    if (a, b) == (Num(1), Num(0)):
        return s.fill("Iverson", c=c), ATOM
    return s.fill("Where", c=c, a=_at(a, FREE, s), b=_at(b, FREE, s)), s.cases


def _ranged(template: str, x: Sum | Prod, need: int, s: Style) -> str:
    body, i, lo, hi = x.args[:4]
    return s.fill(template, a=_at(body, need, s), i=_at(i, FREE, s), lo=_at(lo, FREE, s), hi=_at(hi, FREE, s))


@_show.register
def _sum(x: Sum, s: Style) -> Out:
    return _ranged("Sum", x, PRODUCT, s), PREFIX


@_show.register
def _prod(x: Prod, s: Style) -> Out:
    template = "Decreasing" if x.decreasing else "Prod" if x.is_scalar_term else "Increasing"
    return _ranged(template, x, FACTOR, s), PREFIX


@_show.register
def _stack(x: Stack, s: Style) -> Out:
    """Rows, or entries where the rows are written entry by entry."""
    body, axes = cast(Term, x.args[0]), [x.args[1:]]
    if isinstance(body, Transpose) and isinstance(body.args[0], Stack):
        body, axes = cast(Term, body.args[0].args[0]), [*axes, body.args[0].args[1:]]
    return s.fill("Stack", a=_at(body, FREE, s), i=_axes(axes, s)), ATOM


def _axes(axes: list[tuple[Basic, ...]], s: Style) -> str:
    names = [_at(i, FREE, s) for i, _, _ in axes]
    ranges = {(_at(lo, FREE, s), _at(hi, FREE, s)) for _, lo, hi in axes}
    if len(ranges) == 1:
        ((lo, hi),) = ranges
        return s.fill("Axis", i=",".join(names), lo=lo, hi=hi)
    each = [s.fill("Axis", i=_at(i, FREE, s), lo=_at(lo, FREE, s), hi=_at(hi, FREE, s)) for i, lo, hi in axes]
    return s.templates["Axes"].join(each)


@_show.register
def _part(x: Row | Entry | Rows, s: Style) -> Out:
    numbers = {name: _at(a, FREE, s) for name, a in zip("ij", x.args[1:], strict=False)}
    return s.fill(type(x).__name__, a=_at(x.args[0], INDEXED, s), **numbers), INDEXED


@_show.register
def _block(x: Block, s: Style) -> Out:
    lines = [s.templates["Cell"].join(_at(b, FREE, s) for b in row) for row in x.grid]
    return s.fill("Block", a=s.templates["Line"].join(lines)), ATOM


@_show.register
def _apply(x: Apply, s: Style) -> Out:
    return s.fill("Apply", f=spell_name(x.name, s), a=", ".join(_at(a, FREE, s) for a in x.arguments)), ATOM


@_show.register
def _integral(x: Integral, s: Style) -> Out:
    body, variable, lo, hi = (_at(a, PRODUCT if n == 0 else FREE, s) for n, a in enumerate(x.args))
    return s.fill("Integral", a=body, s=variable, lo=lo, hi=hi), PREFIX


@_show.register
def _deriv(x: Deriv, s: Style) -> Out:
    return s.fill("Deriv", a=_at(x.args[0], FREE, s), s=_at(x.args[1], FREE, s)), PREFIX


@_show.register
def _value_at(x: At, s: Style) -> Out:
    body, variable, value = (_at(a, FREE, s) for a in x.args)
    return s.fill("At", a=body, s=variable, v=value), POSTFIX


@_show.register
def _expect(x: Expect, s: Style) -> Out:
    names = ",".join(spell_name(str(n), s) for n in x.args[1:])
    return s.fill("Expect" if names else "Certain", a=_at(x.args[0], FREE, s), n=names), ATOM


# formulas and statements


@_show.register
def _and(x: And, s: Style) -> Out:
    return s.templates["Conjunction"].join(_at(a, RELATION, s) for a in x.args) or s.templates["True"], CONNECTIVE


@_show.register
def _for_all(x: ForAll, s: Style) -> Out:
    body, i, lo, end = x.args
    parts = {"a": _at(body, FREE, s), "i": _at(i, FREE, s), "lo": _at(lo, FREE, s)}
    if end.args:
        return s.fill("ForAll", hi=_at(end.args[0], FREE, s), **parts), CONNECTIVE
    return s.fill("ForAllFrom", **parts), CONNECTIVE


@_show.register
def _assumption(x: Assumption, s: Style) -> Out:
    return s.fill("Assuming", n=x.name.replace("_", s.underscore), a=_at(x.formula, FREE, s)), FREE


@_show.register
def _statement(x: Statement, s: Style) -> Out:
    conditions = [*x.cuts, *([x.where] if x.where.args else [])]
    where = [s.fill("For", a=", ".join(_at(c, FREE, s) for c in conditions))] if conditions else []
    lines = [_at(x.conclusion, FREE, s), *where, *[_at(a, FREE, s) for a in x.assumptions]]
    return s.line.join(lines), FREE
