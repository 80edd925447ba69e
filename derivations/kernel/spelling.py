"""How constructs, names, numbers and index expressions are spelt, in text and in LaTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template
from typing import TypeAlias

import sympy
from sympy import Expr, Rational, Symbol

from .naming import Names
from .terms import Cut

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
    fractions: Mapping[tuple[int, int], str]
    superscripts: Mapping[int, int]
    underscore: str
    prime: str
    bars: str
    names: Names = field(default_factory=Names)

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
    "Primes": ("$a$p", "{$a$p}"),
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
    "Increasing": ("Π→_{$i=$lo..$hi} $a", r"\mathop{\underset{$i=$lo}{\overset{$hi}{\overrightarrow{\prod}}}} $a"),
    "Decreasing": ("Π←_{$i=$lo..$hi} $a", r"\mathop{\underset{$i=$lo}{\overset{$hi}{\overleftarrow{\prod}}}} $a"),
    "Stack": ("[$a]_{$i}", r"\left[$a\right]_{$i}"),
    "Axis": ("$i=$lo..$hi", r"$i=$lo,\dots,$hi"),
    "Axes": (", ", r",\ "),
    "Modulus": ("|$a|²", r"\left|$a\right|^{2}"),
    "Norm": ("‖$a‖²", r"\left\|$a\right\|^{2}"),
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
    "Cuts": ("0 = ${a}_0 ≤ ${a}_1 ≤ …", r"0 = ${a}_0 \le ${a}_1 \le \dots"),
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
    fractions={(1, 2): "½", (1, 3): "⅓", (2, 3): "⅔", (1, 4): "¼", (3, 4): "¾", (1, 6): "⅙", (1, 8): "⅛"},
    superscripts=str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"),
    underscore="_",
    prime="′",
    bars="‖",
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
    fractions={},
    superscripts={},
    underscore=r"\_",
    prime="'",
    bars=r"\|",
)


# names

_NAME = re.compile(r"([^\W\d_]+)(\d*)('*)(?:_(\w+))?")
_ACCENTS = ("bar", "hat", "tilde")


def spell_name(name: str, s: Style) -> str:
    """A name: Greek letters and accents by their own names, digits and what follows ``_`` as subscripts."""
    match = _NAME.fullmatch(name)
    if match is None:
        return s.fill("Word", a=name.replace("_", s.underscore))
    letters, digits, primes, suffix = match.groups()
    out = _letters(letters, s)
    if digits:
        out = s.fill("Digits", a=out, d=digits.translate(s.digits))
    if primes:
        out = s.fill("Primes", a=out, p=s.prime * len(primes))
    return s.fill("Suffix", a=out, d=_suffix(suffix, s)) if suffix else out


def _letters(name: str, s: Style) -> str:
    for accent in _ACCENTS:
        base = name.removesuffix(accent)
        if base != name and (len(base) == 1 or base in s.letters):
            return unicodedata.normalize("NFC", s.fill(accent, a=s.letters.get(base, base)))
    return s.letters.get(name) or (name if len(name) == 1 else s.fill("Word", a=name))


def _suffix(suffix: str, s: Style) -> str:
    return suffix if suffix.isdigit() else spell_name(suffix, s)


# numbers and index expressions


def monomials_of(e: Expr) -> list[tuple[Rational, Expr]]:
    """Coefficients and monomials: positive ones first, the constant last unless it alone is positive."""
    found = [t.as_coeff_Mul(rational=True) for t in sympy.Add.make_args(sympy.expand(e))]
    ranked = sorted(found, key=lambda cm: (cm[1] == 1, cm[0].is_negative, str(cm[1])))
    if ranked[0][0].is_negative and ranked[-1][0].is_positive:
        ranked.insert(0, ranked.pop())
    return ranked


def spell_index(e: Expr, s: Style) -> Out:
    """An index expression, without spaces."""
    monomials = monomials_of(e)
    parts = [(s.minus if c < 0 else "+") + _monomial(abs(c), m, s) for c, m in monomials]
    out = "".join(parts).removeprefix("+")
    coefficient, m = monomials[0]
    if len(monomials) > 1 or coefficient < 0:
        return out, SUM
    if m == 1:
        return out, spell_rational(coefficient, s)[1]
    return out, (ATOM if isinstance(e, (Symbol, Cut)) else PRODUCT)


def _monomial(coefficient: Rational, m: Expr, s: Style) -> str:
    number, level = spell_rational(coefficient, s)
    if m == 1:
        return number
    head = "" if coefficient == 1 else number if level == ATOM else s.fill("Paren", a=number)
    return head + s.index_dot.join(sorted(_atom(f, s) for f in sympy.Mul.make_args(m)))


def _atom(f: Expr, s: Style) -> str:
    base, exponent = f.as_base_exp()
    if isinstance(base, Cut):
        out = s.fill("Indexed", a=spell_name(base.name, s), i=s.script(spell_index(base.at, s)[0]))
    else:
        out = spell_name(base.name, s) if isinstance(base, Symbol) else s.fill("Word", a=str(base))
    return out if exponent == 1 else s.fill("Power", a=out, n=s.script(spell_index(exponent, s)[0]))


def spell_rational(value: Rational, s: Style) -> Out:
    """A number that is not negative."""
    if value.q == 1:
        return str(value.p), ATOM
    if (value.p, value.q) in s.fractions:
        return s.fractions[value.p, value.q], ATOM
    return s.fill("Fraction", a=str(value.p), b=str(value.q)), FACTOR if s.stacked_quotients else QUOTIENT


