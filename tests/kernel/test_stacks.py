"""A matrix given by its rows inside a product: equal rows over one range make equal matrices, and nothing else is used of it."""

import pytest

from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct, Hypothesis, Induction
from isoform.derivations.kernel.terms import (
    Apply,
    Expect,
    Num,
    Row,
    Stack,
    Term,
    indices,
    le,
    matrix,
    recurrence,
    vectors,
)

n, m, t, i, j, r = indices("n m t i j r")
A, H0 = matrix("A", m, n), matrix("H0", m, n)
x, v = vectors("x", n), vectors("v", m)


def gate(at: Term, k=i, last=n) -> Term:
    return Stack(1 - Row(at, k), k, 1, last)


def shown(lhs: Term, rhs: Term, by=Direct()) -> bool:  # noqa: B008
    try:
        prove(Statement(Equation(lhs, rhs), le(0, t)), by, None)
    except Unproved:
        return False
    return True


@pytest.mark.parametrize(
    ("lhs", "rhs", "equal"),
    [
        (A * gate(x[t]), A * gate(x[t], j), True),
        (A * gate(x[t]), A * Stack(Num(1) - 1 * Row(x[t], i), i, 1, n), True),
        ((A * gate(x[t])).T, gate(x[t]).T * A.T, True),
        (A * gate(x[t]) + A * gate(x[t]), 2 * A * gate(x[t]), True),
        (A * gate(x[t]), A * gate(x[t + 1]), False),
        (A * gate(x[t]), A * gate(-x[t]), False),
        (A * gate(x[t]), A * Stack(1 - Row(x[i], 1), i, 1, n), False),
        (A * gate(x[t]), A * Stack(1 - Row(x[t], n + 1 - i), i, 1, n), False),
        (A * gate(x[t]), A * Stack(1 - Row(x[t], i), i, 0, n - 1), False),
        (v[t] * gate(x[t]).T, (gate(x[t], j) * v[t].T).T, True),
        (Expect(A * gate(x[t]), "x"), A * gate(x[t]), False),
    ],
)
def test_rows(lhs: Term, rhs: Term, equal: bool) -> None:
    assert shown(lhs, rhs) == equal


def test_no_function_of_that_name() -> None:
    assert not shown(A * gate(x[t]), A * Apply("stack", (x[t],), n, 1))


def test_inside_a_recursion() -> None:
    """The update is the same with another spelling of its rows, and not with rows of another time."""
    kept = recurrence("H", H0, lambda t, H: H + v[t] * gate(x[t]).T)
    same = recurrence("G", H0, lambda t, G: v[t] * gate(x[t], r).T + G)
    late = recurrence("G", H0, lambda t, G: v[t] * gate(x[t - 1], r).T + G)
    by = Induction(t, Direct(), Direct((Hypothesis(),)))
    assert shown(kept[t], same[t], by)
    assert not shown(kept[t], late[t], by)
