"""Integrals of explicit matrices over one variable: exact for polynomials, else enclosed by Taylor series with remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from .dense import Matrix, combined
from .enclosures import (
    ONE,
    ZERO,
    Element,
    NotPolynomial,
    NoValue,
    Number,
    Undecided,
    coefficients,
    constant,
    ends,
    exact,
    hull,
    numbers,
    orders,
    series,
)  # fmt: skip

BISECTIONS = 6


@dataclass(frozen=True)
class Integrand:
    """A matrix-valued function of one real variable, made of smooth operations wherever it can be evaluated.

    ``levels`` hands out the levels of series variables, ``order`` is the (even) number of Taylor terms.
    """

    function: Callable[[Element], Matrix]
    levels: Iterator[int]
    order: int

    def integral(self, lo: Element, hi: Element, pieces: int) -> Matrix:
        """The integral between real limits. Raises NoValue if they are not known to be real."""
        if not all(n.real for e in (lo, hi) for n in numbers(e)):
            raise NoValue("an integral whose limits are not known to be real")
        try:
            return self._primitive(lo, hi)
        except NotPolynomial:
            return self._enclosure(lo, hi, pieces)

    def _series(self, at: Element, order: int | None) -> tuple[Matrix, int]:
        """The function at ``at`` plus the variable of a level."""
        level = next(self.levels)
        return self.function(series(level, order, (at, ONE))), level

    def _primitive(self, lo: Element, hi: Element) -> Matrix:
        """Raises NotPolynomial if the function is none."""
        found, level = self._series(ZERO, None)

        def between(e: Element) -> Element:
            given = coefficients(e, level)
            return _risen(given, hi) - _risen(given, lo)

        return found.mapped(between)

    def _enclosure(self, lo: Element, hi: Element, pieces: int) -> Matrix:
        """From one rational point to another in pieces, and the rests at both ends."""
        a, b = (_middle(constant(e)) for e in (lo, hi))
        cuts = [a + (b - a) * Fraction(k, pieces) for k in range(pieces + 1)] if a != b else []
        parts = [self._piece(x, y, BISECTIONS) for x, y in zip(cuts, cuts[1:])]
        rests = [self._rest(b, hi), self._rest(a, lo).scaled(exact(-1))]
        return reduce(lambda x, y: x + y, [*parts, *rests])

    def _piece(self, a: Fraction, b: Fraction, bisections: int) -> Matrix:
        try:
            return self._taylor((a + b) / 2, (b - a) / 2)
        except Undecided:
            if bisections == 0:
                raise
            middle = (a + b) / 2
            return self._piece(a, middle, bisections - 1) + self._piece(middle, b, bisections - 1)

    def _taylor(self, middle: Fraction, half: Fraction) -> Matrix:
        """Even powers integrate to 2 half^(k+1)/(k+1); the last one takes its coefficient from the whole piece."""
        near, level = self._series(exact(middle), self.order)
        whole, last = self._series(Number(hull(middle - half, middle + half)), self.order + 1)
        weights = [exact(2 * half ** (k + 1) / (k + 1) if k % 2 == 0 else 0) for k in range(self.order + 1)]

        def total(e: Element, over: Element) -> Element:
            beyond = (*coefficients(over, last), *[ZERO] * self.order)[self.order]
            shares = [c * w for c, w in zip(coefficients(e, level), weights)]
            return reduce(lambda x, y: x + y, [*shares, beyond * weights[self.order]])

        return combined(near, whole, total)

    def _rest(self, start: Fraction, end: Element) -> Matrix:
        """From a rational point near the constant part c of an end to the end itself.

        Up to c by the mean value; from there by the Taylor series, as what is left of the end is nilpotent.
        """
        c = constant(end)
        first = self.function(Number(hull(start, c.re))).scaled(c - exact(start))
        steps = sum(order - 1 for order in orders(end).values() if order is not None)
        if steps == 0:
            return first
        found, level = self._series(c, steps)
        return first + found.mapped(lambda e: _risen(coefficients(e, level), end - c))


def _risen(given: Sequence[Element], x: Element) -> Element:
    """The sum of given[k] x^(k+1)/(k+1)."""
    shares = [c * exact(Fraction(1, k + 1)) for k, c in enumerate(given)]
    return reduce(lambda total, share: (total + share) * x, reversed(shares), ZERO)


def _middle(x: Number) -> Fraction:
    lo, hi = ends(x.re)
    return (lo + hi) / 2
