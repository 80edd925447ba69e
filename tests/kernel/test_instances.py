"""Instances of a statement: factors 1 and I fall away where nothing but they did, and an equation is used row by row."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.instances import instantiate
from isoform.derivations.kernel.scripts import Direct, Given, Rowwise, Using
from isoform.derivations.kernel.terms import Index, Num, Prod, Stack, Term, le, matrices, matrix, recurrence, vectors

from .attacks import ANYWHERE, REFUSALS, A, M, al, be, d, given, i, identity, j, m, n, prover, t, u, v

ONES = {"al": ((t,), Num(1)), "M": ((t,), identity)}
X = matrices("X", d, d)
k = vectors("k", d)


def instance(x: Term) -> Term:
    put = instantiate(Statement(Equation(x, x)), ONES).conclusion
    assert isinstance(put, Equation)
    return put.lhs


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (al[t] * X[t], X[t]),
        (M[t] * X[t] * M[t + 1], X[t]),
        (X[t] * (al[t] * X[i]), X[t] * X[i]),
        (u.T * M[t] * v, u.T * v),
        (u.T * v * M[t], u.T * v * identity),
        (M[t] * (u.T * v), identity * (u.T * v)),
        (M[t] * M[i], identity),
        (al[t] * al[i], Num(1)),
        (be[t] * M[t], be[t] * identity),
        (Prod(al[i], i, 1, t), Num(1)),
        (Prod(M[i], i, 1, t), identity),
        (Prod(be[i] * M[i], i, 1, t) * X[t], Prod(be[i], i, 1, t) * X[t]),
        (Prod(be[i] * M[i], i, 1, t), Prod(be[i], i, 1, t) * identity),
        (Prod(M[i] + X[i], i, 1, t), Prod(identity + X[i], i, 1, t)),
        (Prod(be[i] * M[i] * X[i], i, 1, t), Prod(be[i] * X[i], i, 1, t)),
    ],
)
def test_what_says_nothing_falls_away(before: Term, after: Term) -> None:
    assert instance(before) == after
    assert instance(before).shape == after.shape


def test_an_instance_is_the_recurrence_as_it_is_written() -> None:
    start = matrix("S0", d, d)
    general = recurrence("S", start, lambda t, S: al[t] * (M[t] * S * M[t]) + X[t])
    assert instance(general[t]) == recurrence("S", start, lambda t, S: S + X[t])[t]


# One row of an equation -----------------------------------------------------------------------------


def keys(first: Index, last: Index) -> Term:
    return Stack(k[j].T, j, first, last)


values = Stack((A * k[j]).T + u.T, j, 1, n)
sums = given("rows", Equation(keys(1, n) + Stack(u.T, j, 1, n), values))
one_row = Statement(Equation(keys(1, n), values - Stack(u.T, j, 1, n)), ANYWHERE, (sums,))


def test_a_row_of_an_equation_is_a_certificate() -> None:
    assert prover({})(one_row, Rowwise(i, Direct((Using(Given("rows"), row=i),)))).used == {"rows"}


@pytest.mark.parametrize("row", [i + 1, i - 1, 1, m])
def test_a_row_that_need_not_exist_or_is_another_one_is_none(row: Index) -> None:
    with pytest.raises(REFUSALS):
        prover({})(one_row, Rowwise(i, Direct((Using(Given("rows"), row=row),))))


def test_rows_that_are_numbered_differently_have_no_row_in_common() -> None:
    shifted = given("rows", Equation(keys(1, n), Stack((A * k[j]).T, j, 2, n + 1)))
    false = Statement(Equation(keys(1, n), Stack((A * k[j]).T, j, 1, n)), le(1, n), (shifted,))
    with pytest.raises(REFUSALS):
        prover({})(false, Rowwise(i, Direct((Using(Given("rows"), row=i),))))
