"""The numbers of the kernel's own look at a point: exact complex numbers, enclosures, and power series over both.

A ``Number`` has an exact part (a Fraction) or an enclosing interval as its real and as its imaginary part. A
``Series`` is a polynomial in one variable, cut off at an order or not, over the elements of lower levels: the
variable of an integral or of a derivative. Only the sum, product, quotient and square root of mpmath's intervals are
used, which round outwards; the exponential and the logarithm are summed here, with their remainders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from math import isqrt
from typing import Any, TypeAlias

import mpmath  # type: ignore[import-untyped]
from mpmath import iv, libmp

Real: TypeAlias = Any  # a Fraction, or an interval of mpmath
Truth: TypeAlias = bool | None


class NoValue(ValueError):
    """A term has no value at this point."""


class Undecided(NoValue):
    """The enclosures are too wide to tell whether a term has a value."""


class NotPolynomial(NoValue):
    """A function of an unbounded polynomial that is no polynomial was asked for."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Intervals are rounded outwards to this many bits meanwhile."""
    before = iv.prec
    iv.prec = bits
    try:
        yield
    finally:
        iv.prec = before


def is_exact(x: Real) -> bool:
    """Whether a real part is a rational number, not an interval."""
    return type(x) is Fraction


def interval(x: Real) -> Any:
    """An interval around a real number."""
    return _rounded(x, iv.prec) if is_exact(x) else x


@lru_cache(maxsize=1 << 12)
def _rounded(x: Fraction, bits: int) -> Any:
    """The interval around a rational number at a precision, which is the current one."""
    return iv.mpf(x.numerator) / iv.mpf(x.denominator)


def ends(x: Real) -> tuple[Fraction, Fraction]:
    """The end points of a real number's enclosure. Raises Undecided if it is unbounded."""
    if is_exact(x):
        return x, x
    if any(e in (libmp.finf, libmp.fninf, libmp.fnan) for e in x._mpi_):
        raise Undecided("an enclosure grew without bound")
    lo, hi = (Fraction(*map(int, libmp.to_rational(e))) for e in x._mpi_)
    return lo, hi


def hull(*xs: Real) -> Any:
    """The smallest interval around several real numbers."""
    found = [e for x in xs for e in ends(x)]
    lo, hi = (interval(e) for e in (min(found), max(found)))
    return iv.mpf([lo.a, hi.b])


def _plus(a: Real, b: Real) -> Real:
    if is_exact(a) and is_exact(b):
        return a + b
    if is_exact(a) and a == 0:
        return b
    return a if is_exact(b) and b == 0 else interval(a) + interval(b)


def _times(a: Real, b: Real) -> Real:
    if is_exact(a) and is_exact(b):
        return a * b
    if (is_exact(a) and a == 0) or (is_exact(b) and b == 0):
        return Fraction(0)
    return interval(a) * interval(b)


def _over(a: Real, b: Real) -> Real:
    """The quotient by a number that is certainly not 0."""
    return a / b if is_exact(a) and is_exact(b) else interval(a) / interval(b)


def _excludes_zero(x: Real) -> bool:
    return x != 0 if is_exact(x) else 0 not in x


@dataclass(frozen=True, slots=True)
class Number:
    """A complex number, each part exact or enclosed."""

    re: Real
    im: Real = Fraction(0)

    @property
    def exact(self) -> bool:
        return is_exact(self.re) and is_exact(self.im)

    @property
    def real(self) -> bool:
        return is_exact(self.im) and self.im == 0

    @property
    def nonzero(self) -> bool:
        """Whether it is certainly not zero."""
        return _excludes_zero(self.re) or _excludes_zero(self.im)

    def __add__(self, o: Number) -> Number:
        return Number(_plus(self.re, o.re), _plus(self.im, o.im)) if type(o) is Number else NotImplemented

    def __neg__(self) -> Number:
        return Number(-self.re, -self.im)

    def __sub__(self, o: Element) -> Element:
        return self + -o

    def __mul__(self, o: Number) -> Number:
        if type(o) is not Number:
            return NotImplemented
        if self.real and o.real:
            return Number(_times(self.re, o.re))
        re = _plus(_times(self.re, o.re), -_times(self.im, o.im))
        return Number(re, _plus(_times(self.re, o.im), _times(self.im, o.re)))


@dataclass(frozen=True, slots=True)
class Series:
    """Coefficients of the powers of the variable of a level, lowest first; powers from ``order`` on are dropped."""

    level: int
    order: int | None
    coefficients: tuple[Element, ...]

    @property
    def cut(self) -> int:
        """The order. Raises NotPolynomial if there is none."""
        if self.order is None:
            raise NotPolynomial("a variable of integration")
        return self.order

    def __add__(self, o: Element) -> Element:
        if self.level < level(o):
            return o + self
        a, b = self.coefficients, coefficients(o, self.level)
        longest = max(len(a), len(b))
        return series(self.level, self.order, [x + y for x, y in zip(_padded(a, longest), _padded(b, longest))])

    __radd__ = __add__

    def __neg__(self) -> Element:
        return Series(self.level, self.order, tuple(-c for c in self.coefficients))

    def __sub__(self, o: Element) -> Element:
        return self + -o

    def __rsub__(self, o: Element) -> Element:
        return o + -self

    def __mul__(self, o: Element) -> Element:
        if self.level < level(o):
            return o * self
        a, b = self.coefficients, coefficients(o, self.level)
        found = len(a) + len(b) - 1
        out: list[Element] = [ZERO] * (found if self.order is None else min(found, self.order))
        for i, x in enumerate(a):
            for j, y in enumerate(b[: max(0, len(out) - i)]):
                out[i + j] = out[i + j] + x * y
        return series(self.level, self.order, out)

    __rmul__ = __mul__


Element: TypeAlias = Any  # a Number or a Series
ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


def exact(x: Any) -> Number:
    """A rational number, or a pair of them, as a Number."""
    re, im = x if isinstance(x, tuple) else (x, 0)
    return Number(Fraction(re), Fraction(im))


def level(x: Element) -> int:
    """The level of the outermost variable; 0 for a number."""
    return x.level if isinstance(x, Series) else 0


def series(level: int, order: int | None, found: Sequence[Element]) -> Element:
    """A series without the leading coefficients that are exactly 0; its constant if nothing else is left."""
    kept = list(found[:order])
    while len(kept) > 1 and exactly_zero(kept[-1]):
        kept.pop()
    return kept[0] if len(kept) == 1 else Series(level, order, tuple(kept))


def coefficients(x: Element, level: int) -> tuple[Element, ...]:
    """The coefficients of an element in the variable of a level that no other variable in it exceeds."""
    return x.coefficients if isinstance(x, Series) and x.level == level else (x,)


def _padded(found: Sequence[Element], length: int) -> list[Element]:
    return [*found, *[ZERO] * (length - len(found))]


def numbers(x: Element) -> list[Number]:
    """All numbers that an element is made of."""
    return [n for c in x.coefficients for n in numbers(c)] if isinstance(x, Series) else [x]


def exactly_zero(x: Element) -> bool:
    """Whether an element is known to be 0."""
    return all(n.exact and not n.nonzero for n in numbers(x))


def orders(x: Element) -> dict[int, int | None]:
    """The orders of the variables in an element, by level."""
    if not isinstance(x, Series):
        return {}
    return reduce(lambda a, b: a | b, (orders(c) for c in x.coefficients), {x.level: x.order})


def base(x: Element) -> Element:
    """An element where the variables that are cut off at an order are 0."""
    while isinstance(x, Series) and x.order is not None:
        x = x.coefficients[0]
    return x


def constant(x: Element) -> Number:
    """An element where its variables are 0. Raises NotPolynomial if one of them is not cut off."""
    found = base(x)
    if isinstance(found, Series):
        raise NotPolynomial("a variable of integration")
    return found


def conjugate(x: Element) -> Element:
    """The complex conjugate, for real values of the variables."""
    if isinstance(x, Series):
        return Series(x.level, x.order, tuple(map(conjugate, x.coefficients)))
    return Number(x.re, -x.im)


def enclosed(x: Element) -> Element:
    """An element with intervals for its numbers, other than 0: their numerators and denominators grow no more."""
    if isinstance(x, Series):
        return Series(x.level, x.order, tuple(map(enclosed, x.coefficients)))
    return Number(*[e if is_exact(e) and e == 0 else interval(e) for e in (x.re, x.im)])


def norm(x: Element) -> Fraction:
    """A bound on the sum of the absolute values of all parts: it never exceeds the product of two for a product."""
    if any(order is None for order in orders(x).values()):
        raise NotPolynomial("a variable of integration")
    return sum((abs(e) for n in numbers(x) for e in (_largest(n.re), _largest(n.im))), Fraction(0))


def _largest(x: Real) -> Fraction:
    return max(map(abs, ends(x)))


def widened(x: Element, error: Fraction, real: bool, variables: Sequence[tuple[int, int]]) -> Element:
    """An element with every coefficient blown up by an error; ``variables`` are level and order, outermost first."""
    if not variables:
        ball = hull(-error, error)
        return Number(_plus(x.re, ball), x.im if real else _plus(x.im, ball))
    (outer, order), *rest = variables
    return series(outer, order, [widened(c, error, real, rest) for c in _padded(coefficients(x, outer), order)])


def reciprocal(x: Element) -> Element:
    """1/x. Raises NoValue at 0, Undecided where x may be 0."""
    if isinstance(x, Series):
        return _reciprocal_series(x)
    if x.real and _excludes_zero(x.re):
        return Number(_over(Fraction(1), x.re))
    if not x.nonzero:
        raise (NoValue if x.exact else Undecided)("a division by 0" if x.exact else "a division by what may be 0")
    square = _plus(_squared(x.re), _squared(x.im))
    return Number(_over(x.re, square), _over(-x.im, square))


def _squared(x: Real) -> Real:
    return x * x if is_exact(x) else x**2


def convolved(a: Sequence[Element], b: Sequence[Element], k: int, first: int) -> Element:
    """The sum of a_i b_{k-i} over first <= i <= k as far as both go."""
    pairs = [a[i] * b[k - i] for i in range(first, min(k, len(a) - 1) + 1) if k - i < len(b)]
    return reduce(lambda x, y: x + y, pairs, ZERO)


def _reciprocal_series(x: Series) -> Element:
    order = x.cut
    found = [reciprocal(x.coefficients[0])]
    for k in range(1, order):
        found.append(-(found[0] * convolved(x.coefficients, found, k, 1)))
    return series(x.level, order, found)


def square_root(x: Element) -> Element:
    """The non-negative root of a non-negative number. Raises NoValue elsewhere, Undecided where that is not known."""
    if isinstance(x, Series):
        return _root_series(x)
    lo, hi = ends(_real(x, "square root"))
    if hi < 0:
        raise NoValue("the square root of a negative number")
    if lo < 0:
        raise Undecided("the square root of what may be negative")
    if x.exact:
        n, d = isqrt(lo.numerator), isqrt(lo.denominator)
        if n * n == lo.numerator and d * d == lo.denominator:
            return Number(Fraction(n, d))
    return Number(iv.sqrt(interval(x.re)))


def _root_series(x: Series) -> Element:
    order = x.cut
    found = [square_root(x.coefficients[0])]
    half = exact(Fraction(1, 2)) * reciprocal(found[0])
    for k in range(1, order):
        given = x.coefficients[k] if k < len(x.coefficients) else ZERO
        found.append((given - convolved(found[:k], found, k, 1)) * half)
    return series(x.level, order, found)


def logarithm(x: Element, exponential: Any) -> Element:
    """The logarithm of a positive number, by the exponential of a number. Raises NoValue and Undecided as the root does."""
    if isinstance(x, Series):
        return _logarithm_series(x, exponential)
    lo, hi = ends(_real(x, "logarithm"))
    if hi <= 0:
        raise NoValue("the logarithm of a number that is not positive")
    if lo <= 0:
        raise Undecided("the logarithm of what may not be positive")
    if lo == hi == 1:
        return ZERO
    return Number(hull(*[_logarithm(e, exponential) for e in {lo, hi}]))


def _logarithm(q: Fraction, exponential: Any) -> Any:
    """log q = y + log(1 + r) with r = q e^-y - 1, and r - r² <= log(1 + r) <= r for |r| <= 1/2."""
    with mpmath.workprec(iv.prec):
        y = Fraction(*map(int, libmp.to_rational((mpmath.log(q.numerator) - mpmath.log(q.denominator))._mpf_)))
    r = interval(q) * interval(exponential(Number(-y)).re) - 1
    if _largest(r) > Fraction(1, 2):
        raise Undecided("a logarithm")
    return interval(y) + hull(r, r - r**2)


def _logarithm_series(x: Series, exponential: Any) -> Element:
    """From x y' = x': k x_0 y_k = k x_k - sum of i y_i x_{k-i} over 0 < i < k."""
    order = x.cut
    first = reciprocal(x.coefficients[0])
    found, weighted = [logarithm(x.coefficients[0], exponential)], [ZERO]
    for k in range(1, order):
        given = x.coefficients[k] if k < len(x.coefficients) else ZERO
        weighted.append((exact(k) * given - convolved(weighted, x.coefficients, k, 1)) * first)
        found.append(weighted[k] * exact(Fraction(1, k)))
    return series(x.level, order, found)


def _real(x: Number, what: str) -> Real:
    if not x.real:
        raise NoValue(f"the {what} of a number that is not known to be real")
    return x.re


def same(a: Number, b: Number) -> Truth:
    """Whether two numbers are equal: certain only between exact numbers, or where their enclosures are disjoint."""
    if a.exact and b.exact:
        return bool(a.re == b.re and a.im == b.im)
    return False if _apart(a.re, b.re) or _apart(a.im, b.im) else None


def _apart(a: Real, b: Real) -> bool:
    (a_lo, a_hi), (b_lo, b_hi) = ends(a), ends(b)
    return a_hi < b_lo or b_hi < a_lo


def below(a: Number, b: Number, strict: bool) -> Truth:
    """Whether a < b, or a <= b. Raises NoValue if one is certainly not real; one that may be real is taken for it."""
    if _excludes_zero(a.im) or _excludes_zero(b.im):
        raise NoValue("an order between numbers that are not real")
    (a_lo, a_hi), (b_lo, b_hi) = ends(a.re), ends(b.re)
    if a_hi < b_lo or (not strict and a_hi <= b_lo):
        return True
    return False if a_lo > b_hi or (strict and a_lo >= b_hi) else None
