"""Traps that computer algebra falls into silently: SymPy's own, index capture, ranges and matrices with nothing in them.

Beside every truth that the kernel proves stands the wrong answer of the trap, which it must refuse.
"""

from __future__ import annotations

import pytest
from sympy import Expr

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct
from isoform.derivations.kernel.terms import (
    At,
    Cond,
    Deriv,
    Exp,
    Eye,
    Ind,
    Num,
    Prod,
    Sum,
    Term,
    Trace,
    Zero,
    indices,
    le,
    matrices,
    matrix,
    scalar,
    scalars,
    substitute,
    vector,
)

d, e, t, s, i, j, n = indices("d e t s i j n")
A, B, E = (matrix(name, d, d) for name in "ABE")
X = matrix("X", d, d, "complex")
M, R = matrices("M", d, d), matrices("R", d, e)
u, w = vector("u", d), vector("w", d)
a, b = scalars("a"), scalars("b")
x = scalar("x")
ANYWHERE = Cond()


def proved(left: Term, right: Term | int, where: Cond = ANYWHERE) -> bool:
    """Whether the kernel proves the equation; what it proves, the second engine must not refute."""
    statement = Statement(Equation(left, right), where)
    try:
        prove(statement, Direct(), lambda id: pytest.fail(id))
    except ValueError:
        return False
    assert certify(statement, seed=1).holds is True
    return True


# traps of SymPy --------------------------------------------------------------------------------------


def slope(value: Term) -> Term:
    return At(Deriv(value, x), x, 0)


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        (Trace((A + x * E) * B) + Trace(A + x * E), Trace(E * B) + Trace(E), Trace(E * B)),
        (Trace((A + x * E) * B) + Trace((A + x * E) * (A + x * E)), Trace(E * B) + 2 * Trace(A * E), 2 * Trace(A * E)),
        (u.T * (A + x * E) * u + w.T * (A + x * E) * w, u.T * E * u + w.T * E * w, w.T * E * w),
    ],
    ids=["two traces", "a trace and a square", "two entries"],
)
def test_the_derivative_of_a_sum_has_every_term(value: Term, right: Term, wrong: Term) -> None:
    """SymPy's derivative of these sums by a matrix is 0."""
    assert proved(slope(value), right)
    assert not proved(slope(value), wrong)
    assert not proved(slope(value), 0)


def test_a_sum_of_matrices_over_an_empty_range_is_a_matrix() -> None:
    """SymPy makes it the number 0, to which no matrix can be added."""
    nothing = Sum(R[i], i, 1, 0)
    assert nothing.shape == (d, e)
    assert proved(nothing + R[1], R[1])
    assert not proved(nothing + R[1], Zero(d, e))


def test_the_adjoint_of_a_power_stays_an_adjoint() -> None:
    """SymPy simplifies x adjoint(x²) x to x⁴ for an x that does not commute."""
    product = X * (X * X).H * X
    assert proved(product, X * X.H * X.H * X)
    assert not proved(product, X * X * X * X)
    assert not proved(product, X * X * X.H * X.H)


def test_zeros_put_into_an_exponential_afterwards() -> None:
    """SymPy's exponential of a symbolic 2 x 2 matrix, at entries 0, is not the identity but a matrix with a zero row."""
    general = Exp(x * A + x * B)
    assert proved(substitute(general, {x: Num(0)}), Eye(d))
    assert proved(At(general, x, 0), Eye(d))
    assert not proved(At(general, x, 0), Zero(d, d))
    assert not proved(At(Exp(x * A + B), x, 0), Eye(d))
    assert proved(At(Exp(x * A + B), x, 0), Exp(B))


# capture ---------------------------------------------------------------------------------------------


def test_an_index_that_is_put_in_is_not_captured() -> None:
    outside = substitute(Sum(a[i] * b[j], i, 1, t), {j: i})
    assert proved(outside, b[i] * Sum(a[j], j, 1, t), le(0, t))
    assert not proved(outside, Sum(a[j] * b[j], j, 1, t), le(0, t))


def test_a_range_that_is_put_in_is_not_captured() -> None:
    inside = substitute(Sum(Sum(a[j], j, 1, n), i, 1, t), {n: i})
    assert proved(inside, Ind(t) * Sum(a[j], j, 1, i), le(0, t) & le(0, i))
    assert not proved(inside, Sum(Sum(a[j], j, 1, i), i, 1, t), le(0, t) & le(0, i))


def test_sums_that_share_an_index_are_multiplied_as_two() -> None:
    both = Sum(a[i], i, 1, t) * Sum(b[i], i, 1, t)
    assert proved(both, Sum(Sum(a[i] * b[j], i, 1, t), j, 1, t), le(0, t))
    assert not proved(both, Sum(a[i] * b[i], i, 1, t), le(0, t))


# nothing, and one ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "total", "product", "wrong"),
    [(0, Zero(d, d), Eye(d), Zero(d, d)), (1, M[1], M[1], M[0])],
    ids=["no step", "one step"],
)
def test_ranges_of_no_and_of_one_step(steps: int, total: Term, product: Term, wrong: Term) -> None:
    at: dict[Expr, int] = {t: steps}
    added, multiplied = (substitute(whole, at) for whole in (Sum(M[i], i, 1, t), Prod(M[i], i, 1, t)))
    assert proved(added, total) and not proved(added, Eye(d))
    assert proved(multiplied, product) and not proved(multiplied, wrong)


def test_what_holds_of_sizes_from_one_on_does_not_hold_of_size_0() -> None:
    """Of size 0, I is 0 and its trace is 0; from size 1 on, neither is."""
    assert proved(Trace(Eye(d)), Ind(d))
    assert not proved(Trace(Eye(d)), 1)
    assert not proved(Eye(d), Zero(d, d))
    assert not proved(u.T * w, 0)


# several sums ----------------------------------------------------------------------------------------


def test_several_sums_cancel() -> None:
    whole, first, second = Sum(M[i], i, 1, t), Sum(M[j], j, 1, s), Sum(M[n], n, s + 1, t)
    where = le(0, s) & le(s, t)
    assert proved(first + second - whole, Zero(d, d), where)
    assert proved(A * whole * B - A * first * B, Sum(A * M[i] * B, i, s + 1, t), where)
    assert not proved(first + Sum(M[n], n, s, t) - whole, Zero(d, d), where)
    assert not proved(first + second - whole, M[s], where)


def test_parts_of_three_sums_cancel() -> None:
    mixed = Sum(a[i] + b[i], i, 1, t) - Sum(a[i], i, 1, t) - Sum(b[i], i, 1, t)
    assert proved(mixed, 0, le(0, t))
    assert proved(mixed + Sum(a[i + 1], i, 0, t - 1), Sum(a[j], j, 1, t), le(0, t))
    assert not proved(mixed + Sum(a[i + 1], i, 1, t), Sum(a[j], j, 1, t), le(0, t))
