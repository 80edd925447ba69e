"""Terms, conditions, formulas and statements as text for a terminal and as LaTeX.

One traversal serves both: a :class:`Style` says how a construct is spelt, the functions below say which
construct a node is and where parentheses are needed. Every function returns the spelling together with its
level; an operand whose level is below the one its place needs is put in parentheses. Index expressions are
written without spaces, so ``t+1`` is one index and ``t + 1`` a sum of terms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from string import Template
from typing import Any, TypeAlias, cast

import sympy
from sympy import Basic, Expr, Rational, Symbol, Tuple
from sympy.core.symbol import Str

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
from .terms import (
    Add,
    Apply,
    At,
    Block,
    Cond,
    Conj,
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
    NegInf,
    Num,
    Power,
    Prod,
    Rec,
    Row,
    Rows,
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
    walk,
)

Printable: TypeAlias = Term | Cond | Formula | Statement | Assumption | Expr
Out: TypeAlias = tuple[str, int]

# how tightly a spelling holds together, loosest first
FREE, CONNECTIVE, RELATION, SUM, QUOTIENT, PRODUCT, PREFIX, FACTOR, POSTFIX, INDEXED, ATOM = range(11)


@dataclass(frozen=True)
class Style:
    """How the constructs of the language are spelt."""

    templates: Mapping[str, str]
    letters: Mapping[str, str]
    minus: str
    dot: str
    index_dot: str
    line: str
    digits: Mapping[int, int]
    short_scripts: bool
    stacked_quotients: bool
    cases: int

    def fill(self, template: str, **parts: str) -> str:
        return Template(self.templates[template]).substitute(parts)

    def script(self, inner: str) -> str:
        """What follows ``_`` or ``^``."""
        return inner if self.short_scripts and len(inner) == 1 else f"{{{inner}}}"


_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi omega"
_CAPITALS = "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"


def _greek(name: str) -> str:
    case = "SMALL" if name.islower() else "CAPITAL"
    return unicodedata.lookup(f"GREEK {case} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}")


_LETTERS = [*_GREEK.split(), *_CAPITALS.split()]

# construct -> its text, its LaTeX
_SPELLINGS: Mapping[str, tuple[str, str]] = {
    "Paren": ("($a)", r"\left($a\right)"),
    "Word": ("$a", r"\mathrm{$a}"),
    "bar": ("$a\u0304", r"\bar{$a}"),
    "hat": ("$a\u0302", r"\hat{$a}"),
    "tilde": ("$a\u0303", r"\tilde{$a}"),
    "Digits": ("$a$d", "{${a}_{$d}}"),
    "Prime": ("${a}′", "{$a'}"),
    "Suffix": ("${a}_$d", "{${a}_{$d}}"),
    "Indexed": ("${a}_$i", "${a}_$i"),
    "Fraction": ("$a/$b", r"\tfrac{$a}{$b}"),
    "Stacked": ("$a / $b", r"\frac{$a}{$b}"),
    "Quotient": ("$a / $b", "$a / $b"),
    "NegInf": ("−∞", r"-\infty"),
    "Zero": ("0", "0"),
    "Eye": ("I", "I"),
    "Transpose": ("${a}ᵀ", r"$a^{\top}"),
    "Adjoint": ("${a}ᴴ", "$a^{*}"),
    "Conj": ("conj($a)", r"\overline{$a}"),
    "Hadamard": ("$a ⊙ $b", r"$a \odot $b"),
    "Diag": ("diag($a)", r"\operatorname{diag}\left($a\right)"),
    "Inverse": ("${a}⁻¹", "$a^{-1}"),
    "Power": ("$a^$n", "$a^$n"),
    "Exp": ("exp($a)", r"\exp\left($a\right)"),
    "MatrixExp": ("e^$n", "e^$n"),
    "Log": ("log($a)", r"\log\left($a\right)"),
    "Sqrt": ("√($a)", r"\sqrt{$a}"),
    "Trace": ("tr($a)", r"\operatorname{tr}\left($a\right)"),
    "Iverson": ("[$c]", r"\left[$c\right]"),
    "Where": ("{$a if $c; else $b}", r"\begin{cases} $a & \text{if } $c \\ $b & \text{otherwise} \end{cases}"),
    "Sum": ("Σ_{$i=$lo..$hi} $a", r"\sum_{$i=$lo}^{$hi} $a"),
    "Prod": ("Π_{$i=$lo..$hi} $a", r"\prod_{$i=$lo}^{$hi} $a"),
    "Increasing": ("Π→_{$i=$lo..$hi} $a", r"\mathop{\overrightarrow{\prod}}_{$i=$lo}^{$hi} $a"),
    "Decreasing": ("Π←_{$i=$lo..$hi} $a", r"\mathop{\overleftarrow{\prod}}_{$i=$lo}^{$hi} $a"),
    "Stack": ("stack_{$i=$lo..$hi}($a)", r"\operatorname{stack}_{$i=$lo}^{$hi}\left($a\right)"),
    "Row": ("$a[$i,:]", "$a[$i,:]"),
    "Entry": ("$a[$i,$j]", "$a[$i,$j]"),
    "Rows": ("$a[$i:$j]", "$a[$i{:}$j]"),
    "Block": ("[$a]", r"\begin{bmatrix} $a \end{bmatrix}"),
    "Cell": (", ", " & "),
    "Line": ("; ", r" \\ "),
    "Apply": ("$f($a)", r"$f\left($a\right)"),
    "Integral": ("∫_{$lo}^{$hi} $a d$s", r"\int_{$lo}^{$hi} $a\,d$s"),
    "Deriv": ("d/d$s ($a)", r"\frac{d}{d$s}\left($a\right)"),
    "At": ("($a)|_{$s=$v}", r"\left.$a\right|_{$s=$v}"),
    "Expect": ("E_{$n}[$a]", r"\mathbb{E}_{$n}\left[$a\right]"),
    "Certain": ("E[$a]", r"\mathbb{E}\left[$a\right]"),
    "True": ("true", r"\text{true}"),
    "Equation": ("$a = $b", "$a = $b"),
    "Equal": (" = ", " = "),
    "AtMost": (" ≤ ", r" \le "),
    "Below": (" < ", " < "),
    "LessEqual": ("$a ≤ $b", r"$a \le $b"),
    "Less": ("$a < $b", "$a < $b"),
    "NonZero": ("$a ≠ 0", r"$a \ne 0"),
    "Invertible": ("$a is invertible", r"$a \text{ is invertible}"),
    "Conjunction": (" ∧ ", r" \wedge "),
    "Implies": ("$a ⟹ $b", r"$a \implies $b"),
    "Iff": ("$a ⟺ $b", r"$a \iff $b"),
    "ForAll": ("∀ $i ∈ $lo..$hi: $a", r"\forall $i \in \{$lo,\dots,$hi\}:\ $a"),
    "ForAllFrom": ("∀ $i ≥ $lo: $a", r"\forall $i \ge $lo:\ $a"),
    "For": ("for $a", r"\text{for } $a"),
    "Assuming": ("assuming $n: $a", r"\text{assuming $n: } $a"),
}

TEXT = Style(
    templates={name: spelling[0] for name, spelling in _SPELLINGS.items()},
    letters={**{name: _greek(name) for name in _LETTERS}, "ell": "ℓ"},
    minus="−",
    dot=" · ",
    index_dot="·",
    line="\n  ",
    digits=str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"),
    short_scripts=True,
    stacked_quotients=False,
    cases=ATOM,
)

LATEX = Style(
    templates={name: spelling[1] for name, spelling in _SPELLINGS.items()},
    letters={**{name: rf"\{name}" for name in _LETTERS}, "ell": r"\ell"},
    minus="-",
    dot=r" \cdot ",
    index_dot=" ",
    line=r" \quad ",
    digits={},
    short_scripts=False,
    stacked_quotients=True,
    cases=SUM,
)


def text(x: Printable) -> str:
    """Unicode text, as one would read it in a paper."""
    return _show(_told_apart(x), TEXT)[0]


def latex(x: Printable) -> str:
    """LaTeX for mathematics mode."""
    return _show(_told_apart(x), LATEX)[0]


def _told_apart(x: Printable) -> Printable:
    """Give different recursions of one name different names: the second gets a prime."""
    if not isinstance(x, (Term, Formula)):
        return x
    families: dict[str, list[Basic]] = {}
    for node in walk(x):
        if isinstance(node, Rec) and node.moved(0) not in families.setdefault(node.name, []):
            families[node.name].append(node.moved(0))
    if all(len(f) == 1 for f in families.values()):
        return x
    return cast(Printable, _primed(x, families))


def _primed(x: Basic, families: Mapping[str, list[Basic]]) -> Basic:
    if not isinstance(x, (Term, Formula, Tuple)) or isinstance(x, Var):
        return x
    args = [_primed(a, families) for a in x.args]
    if isinstance(x, Rec):
        args[0] = Str(x.name + "'" * families[x.name].index(x.moved(0)))
    return x.func(*args)


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

_NAME = re.compile(r"([^\W\d_]+)(\d*)('*)(?:_(\w+))?")
_ACCENTS = ("bar", "hat", "tilde")


def _name(name: str, s: Style) -> str:
    match = _NAME.fullmatch(name)
    if match is None:
        return s.fill("Word", a=name.replace("_", r"\_") if s is LATEX else name)
    letters, digits, primes, suffix = match.groups()
    out = _letters(letters, s)
    if digits:
        out = s.fill("Digits", a=out, d=digits.translate(s.digits))
    for _ in primes:
        out = s.fill("Prime", a=out)
    return s.fill("Suffix", a=out, d=_suffix(suffix, s)) if suffix else out


def _letters(name: str, s: Style) -> str:
    for accent in _ACCENTS:
        base = name.removesuffix(accent)
        if base != name and (len(base) == 1 or base in s.letters):
            return unicodedata.normalize("NFC", s.fill(accent, a=s.letters.get(base, base)))
    return s.letters.get(name) or (name if len(name) == 1 else s.fill("Word", a=name))


def _suffix(suffix: str, s: Style) -> str:
    return suffix if suffix.isdigit() else _name(suffix, s)


def _indexed(name: str, indices: Iterable[Expr], s: Style) -> Out:
    inner = ",".join(_index(i, s) for i in indices)
    base = _name(name, s)
    return (s.fill("Indexed", a=base, i=s.script(inner)) if inner else base), ATOM


# index expressions and conditions


def _monomials(e: Expr) -> list[tuple[Rational, Expr]]:
    """Coefficients and monomials: positive ones first, the constant last unless it alone is positive."""
    found = [t.as_coeff_Mul(rational=True) for t in sympy.Add.make_args(sympy.expand(e))]
    ranked = sorted(found, key=lambda cm: (cm[1] == 1, cm[0].is_negative, str(cm[1])))
    if ranked[0][0].is_negative and ranked[-1][0].is_positive:
        ranked.insert(0, ranked.pop())
    return ranked


def _index(e: Expr, s: Style) -> str:
    return _show_index(e, s)[0]


@_show.register
def _show_index(e: Expr, s: Style) -> Out:
    monomials = _monomials(e)
    parts = [(s.minus if c < 0 else "+") + _monomial(abs(c), m, s) for c, m in monomials]
    out = "".join(parts).removeprefix("+")
    coefficient, m = monomials[0]
    if len(monomials) > 1 or coefficient < 0:
        return out, SUM
    if m == 1:
        return out, _rational(coefficient, s)[1]
    return out, (ATOM if isinstance(e, Symbol) else PRODUCT)


def _monomial(coefficient: Rational, m: Expr, s: Style) -> str:
    number, level = _rational(coefficient, s)
    if m == 1:
        return number
    head = "" if coefficient == 1 else number if level == ATOM else s.fill("Paren", a=number)
    return head + s.index_dot.join(sorted(_atom(f, s) for f in sympy.Mul.make_args(m)))


def _atom(f: Expr, s: Style) -> str:
    base, exponent = f.as_base_exp()
    out = _name(base.name, s) if isinstance(base, Symbol) else s.fill("Word", a=str(base))
    return out if exponent == 1 else s.fill("Power", a=out, n=s.script(_index(exponent, s)))


def _rational(value: Rational, s: Style) -> Out:
    """A number that is not negative."""
    if value.q == 1:
        return str(value.p), ATOM
    return s.fill("Fraction", a=str(value.p), b=str(value.q)), FACTOR if s.stacked_quotients else QUOTIENT


def _relation(e: Expr, strict: bool) -> tuple[Expr, str, Expr]:
    """The inequality e >= 0 with the negative monomials on the left; strict allows ``a < b`` for ``a + 1 <= b``."""
    monomials = _monomials(e)
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
            out += (", " if out else "") + _index(left, s)
        out += s.templates[relation] + _index(right, s)
        last = right
    return out or s.templates["True"], RELATION


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
        return bool(x.value < 0), _rational(abs(x.value), s)
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
    above = list(factors)
    below: list[Term] = []
    while len(above) > 1 and _divides(above[-1]):
        below.insert(0, cast(Term, above.pop().args[0]))
    if s.stacked_quotients and len(above) == len(below) == 1:
        return False, (s.fill("Stacked", a=_at(above[0], FREE, s), b=_at(below[0], FREE, s)), FACTOR)
    negative = bool(above) and isinstance(above[0], Num) and bool(above[0].value < 0)
    if negative:
        above[0] = Num(-cast(Num, above[0]).value)
        if above[0] == Num(1) and len(above) > 1 and not isinstance(above[1], Num):
            above.pop(0)
    out = _juxtaposed(above, FACTOR if below else PREFIX, s)
    for divisor in below:
        out = s.fill("Quotient", a=out, b=_at(divisor, FACTOR, s))
    return negative, (out, QUOTIENT if below else PRODUCT)


def _juxtaposed(factors: list[Term], last: int, s: Style) -> str:
    """Factors side by side; the last may be of a looser level, since nothing follows it."""
    if not factors:
        return "1"
    parts = [_at(f, FACTOR, s) for f in factors[:-1]] + [_at(factors[-1], last, s)]
    out = parts[0]
    for part in parts[1:]:
        out += (s.dot if re.match(r"\d|\\t?frac\{\d", part) else " ") + part
    return out


# the remaining terms


@_show.register
def _member(x: Var | Rec, s: Style) -> Out:
    return _indexed(x.name, x.indices if isinstance(x, Var) else (x.at,), s)


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
    return s.fill("Power", a=_at(x.args[0], INDEXED, s), n=s.script(_at(x.args[1], FREE, s))), POSTFIX


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


def _ranged(template: str, x: Sum | Prod | Stack, need: int, s: Style) -> str:
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
    return _ranged("Stack", x, FREE, s), ATOM


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
    return s.fill("Apply", f=_name(x.name, s), a=", ".join(_at(a, FREE, s) for a in x.arguments)), ATOM


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
    names = ",".join(_name(str(n), s) for n in x.args[1:])
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
    name = x.name.replace("_", r"\_") if s is LATEX else x.name
    return s.fill("Assuming", n=name, a=_at(x.formula, FREE, s)), FREE


@_show.register
def _statement(x: Statement, s: Style) -> Out:
    where = [s.fill("For", a=_at(x.where, FREE, s))] if x.where.args else []
    lines = [_at(x.conclusion, FREE, s), *where, *[_at(a, FREE, s) for a in x.assumptions]]
    return s.line.join(lines), FREE
