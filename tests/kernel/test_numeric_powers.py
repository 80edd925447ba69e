"""Powers of numbers with symbolic exponents: a constant in the exponent is a factor, and nothing else is."""

from __future__ import annotations

from fractions import Fraction

import pytest

from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.scripts import Direct, Induction
from isoform.derivations.kernel.terms import Index, Num, Sum, Term, le, recurrence

from .attacks import check, j, m, n, x

TWO, HALF, MINUS, ZERO = Num(2), Num(Fraction(1, 2)), Num(-1), Num(0)


@pytest.mark.parametrize(
    ("left", "false", "true"),
    [
        (TWO ** (m + 1), 2 * TWO**m + 1, 2 * TWO**m),
        (TWO ** (m + 1), TWO**m, TWO**m + TWO**m),
        (TWO ** (m + 3), 6 * TWO**m, 8 * TWO**m),
        (HALF ** (m + 1), 2 * HALF**m, Fraction(1, 2) * HALF**m),
        (MINUS ** (m + 1), MINUS**m, -(MINUS**m)),
        (MINUS ** (2 * m), MINUS**m, Num(1)),
        (MINUS ** (2 * m + 1), Num(1), Num(-1)),
        (MINUS ** (3 * m), MINUS ** (2 * m), MINUS ** (-m)),
        (MINUS ** (m - n), MINUS ** (2 * m - n), MINUS ** (n - m)),
        (MINUS**m * MINUS**m, MINUS**m, Num(1)),
        ((-x) ** (2 * m), -(x ** (2 * m)), x ** (2 * m)),
        (Num(-2) ** (2 * m), TWO**m, Num(-2) ** m * Num(-2) ** m),
        (TWO ** (2 * m + 1), 2 * TWO**m, 2 * TWO**m * TWO**m),
        (TWO ** (m + n + 1), 2 * TWO**m + TWO**n, 2 * TWO**m * TWO**n),
        (ZERO ** (m + 1), ZERO**m, ZERO ** (m + 1) + 0),
    ],
)
def test_a_constant_in_the_exponent_is_a_factor(left: Term, false: Term, true: Term) -> None:
    known = le(0, m) & le(0, n)
    check(Statement(Equation(left, false), known), Statement(Equation(left, true), known), Direct())


def powers(of: Term, first: Index, last: Index) -> Term:
    """The sum of the powers of a number."""
    return Sum(of**j * x, j, first, last)


def test_under_a_sum_the_index_is_shifted() -> None:
    shifted = Sum(TWO ** (j + 1) * x, j, 0, n)
    false, true = (Statement(Equation(shifted, powers(TWO, 1, last)), le(0, n)) for last in (n, n + 1))
    check(false, true, Direct())


def test_doubling() -> None:
    doubled = recurrence("L", Num(1), lambda level, count: count + count)
    false, true = (Statement(Equation(doubled[m], TWO**e), le(0, m)) for e in (m + 1, m))
    check(false, true, Induction(m))
