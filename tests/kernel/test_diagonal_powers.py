"""Identities and powers of diagonal matrices, read entry by entry: each proves its truth and refuses its falsehood."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Formula, NonZero, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct, Rowwise, Script
from isoform.derivations.kernel.terms import (
    Diag,
    Entry,
    Eye,
    Num,
    Row,
    Rows,
    Sum,
    equal,
    indicator,
    indices,
    le,
    matrix,
    vector,
)

n, m, l, i, j = indices("n m l i j")
a, b = vector("a", n), vector("b", n)
X, Y = matrix("X", n, m), matrix("Y", n, n)
inside = le(1, i) & le(i, n) & le(0, l)
power = Diag(a) ** l


def proves(conclusion: Formula, script: Script, where: object = inside, *assumptions: Assumption) -> bool:
    try:
        prove(Statement(conclusion, where, assumptions), script, lambda id: pytest.fail(id))  # type: ignore[arg-type]
    except Unproved:
        return False
    return True


def test_rows_of_an_identity() -> None:
    assert proves(Equation(Row(Eye(n) * X, i), Row(X, i)), Direct())
    assert not proves(Equation(Row(Eye(n) * X, i), Row(X, i)), Direct(), le(1, i))
    assert not proves(Equation(Row(Eye(n) * X, i), 2 * Row(X, i)), Direct())
    here = inside & le(1, j) & le(j, n)
    assert proves(Equation(Entry(Eye(n), i, j), indicator(equal(i, j))), Direct(), here)
    assert not proves(Equation(Entry(Eye(n), i, j), Num(1)), Direct(), here)


def test_rows_of_a_power_of_a_diagonal_matrix() -> None:
    assert proves(Equation(Row(power * X, i), Row(a, i) ** l * Row(X, i)), Direct())
    assert not proves(Equation(Row(power * X, i), Row(a, i) ** (l + 1) * Row(X, i)), Direct())
    assert not proves(Equation(Row(power * X, i), Row(b, i) ** l * Row(X, i)), Direct())
    assert not proves(Equation(Row(Y**l * X, i), Row(a, i) ** l * Row(X, i)), Direct())
    assert proves(Equation(Row(Diag(a) ** 0 * X, i), Row(X, i)), Direct())
    assert proves(Equation(Row(Y**0 * X, i), Row(X, i)), Direct())
    assert not proves(Equation(Row(Y**1 * X, i), Row(X, i)), Direct())


def test_a_negative_power_needs_numbers_that_are_not_zero() -> None:
    nonzero = Assumption("a ≠ 0", ForAll(NonZero(Row(a, i)), i, 1, n))
    back = Equation(Row(Diag(a) ** -l * X, i), Row(a, i) ** -l * Row(X, i))
    here = inside & le(1, l)
    assert proves(back, Direct(), here, nonzero)
    assert not proves(back, Direct(), here)


def test_a_power_and_one_factor_more() -> None:
    assert proves(Equation(Diag(a) * power, Diag(a) ** (l + 1)), Direct())
    assert proves(Equation(power * Diag(a) * power, Diag(a) ** (2 * l + 1)), Direct())
    assert not proves(Equation(Diag(b) * power, Diag(a) ** (l + 1)), Direct())
    assert not proves(Equation(Diag(a) * power, Diag(a) ** (l + 2)), Direct())
    geometric = Equation(Sum(Diag(a) ** j, j, 0, l) * (Eye(n) - Diag(a)), Eye(n) - Diag(a) ** (l + 1))
    assert proves(geometric, Direct())


def test_a_column_is_the_stack_of_its_rows() -> None:
    assert proves(Equation(Rows(b, 1, n), b), Rowwise(i), le(0, n))
    assert not proves(Equation(Rows(b, 1, n), a), Rowwise(i), le(0, n))
