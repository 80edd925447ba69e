"""Attacks by integrals, derivatives and inverses: what moves with a variable, and what has no value.

Each false statement was proved once.
"""

from __future__ import annotations

from typing import Any

import pytest

from isoform.derivations.evaluate import certify, refute
from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Invertible, Less, NonZero, Statement
from isoform.derivations.kernel.proof import Proof, Unproved
from isoform.derivations.kernel.scripts import Direct, Exists, Given, Integrands, Unfold
from isoform.derivations.kernel.terms import (
    Apply,
    At,
    Cond,
    Deriv,
    Diag,
    Entry,
    Exp,
    Ind,
    Integral,
    Inverse,
    Log,
    Num,
    Row,
    Stack,
    Sum,
    Term,
    le,
    recurrence,
)

from .attacks import ANYWHERE, A, B, a, al, check, d, f, given, i, j, k, n, prover, s, t, u, x, y, z


def moving(at: Term) -> Term:
    return Apply("F", (at,), d, d)


def over(body: Term, last: int) -> Term:
    return Integral(body, s, 0, last)


# many matrices under one integral --------------------------------------------------------------------

member = recurrence("H", moving(s), lambda t, state: state * moving(s) + B)[t]
MATRICES: dict[str, tuple[tuple[Term, Term], tuple[Term, Term]]] = {
    "integrals of a matrix that moves": (
        (over(moving(s), 1) * over(moving(s), 2), over(moving(s), 2) * over(moving(s), 1)),
        (over(Exp(s * A), 1) * over(Exp(s * A), 2), over(Exp(s * A), 2) * over(Exp(s * A), 1)),
    ),
    "exponentials of integrals of a matrix that moves": (
        (Exp(over(moving(s), 1)) * Exp(over(moving(s), 2)), Exp(over(moving(s), 1) + over(moving(s), 2))),
        (Exp(2 * over(moving(s), 1)) * Exp(over(moving(s), 1)), Exp(3 * over(moving(s), 1))),
    ),
    "integrals of a member of a recursion that moves": (
        (over(member, 1) * over(member, 2), over(member, 2) * over(member, 1)),
        (over(member, 1) * over(member, 1) * over(member, 2), over(member, 1) ** 2 * over(member, 2)),
    ),
}


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_that_moves_under_an_integral_is_many(name: str) -> None:
    false, true = MATRICES[name]
    check(Statement(Equation(*false), le(0, t)), Statement(Equation(*true), le(0, t)), Direct())
    assert refute(Statement(Equation(*false), le(0, t))) is not None


@pytest.mark.parametrize("value", [al[3], f(x), Ind(n), Num(0)])
def test_integrands_are_compared_at_a_variable(value: Any) -> None:
    """Where something known is 0, s and s² are equal; their integrals are not."""
    zero = (given("zero", Equation(value, 0)),) if value != Num(0) else ()
    by = Direct((Given("zero"),)) if zero else Direct()
    statement = Statement(Equation(over(s, 1), over(s * s, 1)), ANYWHERE, zero)
    with pytest.raises(Unproved, match="is no variable"):
        prover({})(statement, Integrands(value, by))
    assert isinstance(prover({})(Statement(Equation(over(s, 1), over(s * 1, 1)), ANYWHERE, zero), Integrands(y, Direct())), Proof)


def test_a_matrix_of_size_0_is_zero() -> None:
    """An identity has an inverse of every size, and is not zero only where there is a size."""
    false = Statement(NonZero(A), ANYWHERE, (given("inverse", Invertible(A)),))
    with pytest.raises(Unproved, match="size 0"):
        prover({})(false, Exists(inverse=Inverse(A)))
    assert certify(false).holds is None
    scalar = Statement(NonZero(x * x), ANYWHERE, (given("inverse", NonZero(x)),))
    assert isinstance(prover({})(scalar, Exists(inverse=Inverse(x) ** 2)), Proof)


# what has no value ---------------------------------------------------------------------------------------

positive, nonzero = given("value", Less(0, s)), given("value", NonZero(x))
each = given("value", ForAll(NonZero(al[i]), i, 1, n))
entries = given("value", ForAll(NonZero(Row(u, j)), j, 1, d))
among = le(1, i) & le(i, d) & le(1, n)
VALUES: dict[str, tuple[Equation, Cond, tuple[Assumption, ...], Assumption]] = {
    "the slope of a logarithm below 0": (Equation(Deriv(Log(s), s), Inverse(s)), ANYWHERE, (given("not 0", NonZero(s)),), positive),
    "the slope beside a constant without a value": (Equation(Deriv(Inverse(x) + s, s), 1), ANYWHERE, (), nonzero),
    "the slope at a point": (Equation(At(Deriv(Inverse(x) + s, s), s, 2), 1), ANYWHERE, (), nonzero),
    "a slope under an integral": (Equation(over(Deriv(Inverse(x) + s, s), 1), 1), ANYWHERE, (), nonzero),
    "slopes under a sum": (
        Equation(Sum(Deriv(Inverse(al[i]) + s, s), i, 1, n), Ind(n)),
        le(0, n) & le(1, i) & le(i, 1),
        (given("the outer index", NonZero(al[i])),),
        each,
    ),
    "an entry of a negative power": (
        Equation(Entry(Diag(u) ** -n, i, i), Row(u, i) ** -n), among, (given("this one", NonZero(Row(u, i))),), entries,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_what_has_no_value_proves_nothing(name: str) -> None:
    conclusion, where, weaker, needed = VALUES[name]
    with pytest.raises(Unproved, match="is not known to be"):
        prover({})(Statement(conclusion, where, weaker), Direct())
    assert isinstance(prover({})(Statement(conclusion, where, (*weaker, needed)), Direct()), Proof)


def test_a_zeroth_power_of_what_has_no_value() -> None:
    inside = le(1, i) & le(i, d)
    with pytest.raises(ValueError, match="no entry"):
        prover({})(Statement(Equation(Entry(Inverse(A) ** 0, i, i), 1), inside), Direct())
    assert isinstance(prover({})(Statement(Equation(Entry(A**0, i, i), 1), inside), Direct()), Proof)


def test_a_member_before_the_start_has_no_slope() -> None:
    powers = recurrence("Q", x, lambda t, state: state * x)
    flat = Equation(Deriv(powers[t], s), 0)
    check(Statement(flat), Statement(flat, le(0, t)), Direct())


LABELLED = Stack(u.T, k, 3, 3)


@pytest.mark.parametrize("of", [Deriv(s * LABELLED, s), At(s * LABELLED, s, 1)])
def test_a_derivative_and_a_value_keep_the_numbers_of_rows(of: Term) -> None:
    """The one row here is row 3; there is no row 1."""
    check(Statement(Equation(Row(of, 1), u.T)), Statement(Equation(Row(of, 3), u.T)), Direct())


def test_a_function_of_a_real_variable_has_no_slope_at_complex_numbers() -> None:
    """The real part has slopes along s and along y, but no complex derivative that both are multiples of."""

    def along(of: Term, step: Term) -> Statement:
        return Statement(Equation(x * Deriv(of, s), step * Deriv(of, y)))

    check(along(f(z * s + x * y), z), along(f(a * s + x * y), a), Direct())
    kept = recurrence("H", s, lambda t, state: f(state))
    slope = Statement(Equation(Deriv(kept[1], s), Deriv(f(s), s)))
    assert isinstance(prover({})(slope, Direct((Unfold(kept[1]),))), Proof)
