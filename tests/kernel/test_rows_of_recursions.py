"""A row of a recursion at its start is that row of its initial value, and no other; a row that is not there is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import Assumption, Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct, Given, Hypothesis, Induction
from isoform.derivations.kernel.terms import (
    Block,
    Cond,
    Conj,
    Deriv,
    Entry,
    Eye,
    Power,
    Recurrence,
    Row,
    Stack,
    Term,
    entries,
    equal,
    indicator,
    indices,
    le,
    matrix,
    recurrence,
    scalar,
    vector,
    vectors,
)

d, T, s, r, t = indices("d T s r t")
x = vectors("x", d)


P = recurrence("P", Eye(T), lambda t, P: matrix("A", T, T) * P)


def rows(first: int) -> Recurrence:
    """Rows that double at each step, numbered from ``first``."""
    return recurrence("X", Stack(x[r].T, r, first, T), lambda t, X: X + X)


def no_lemma(claim: str) -> Statement:
    raise Unproved(f"no lemma {claim}")


def show(term: Term, value: Term, where: Cond) -> bool:
    return bool(prove(Statement(Equation(term, value), where), Direct(), no_lemma))


INSIDE = le(1, s) & le(s, T)


def test_a_row_at_the_start_is_that_of_the_initial_value() -> None:
    assert show(Row(rows(1)[0], s), x[s].T, INSIDE)
    assert show(Row(rows(0)[0], s), x[s].T, le(0, s) & le(s, T))
    assert show(Row(rows(1)[t], s), x[s].T, INSIDE & le(0, t) & le(t, 0))


@pytest.mark.parametrize(
    ("term", "value", "where"),
    [
        (Row(rows(1)[0], s), x[s + 1].T, INSIDE),
        (Row(rows(0)[0], s), x[s + 1].T, INSIDE),
        (Row(rows(1)[1], s), x[s].T, INSIDE),
        (Row(rows(1)[t], s), x[s].T, INSIDE & le(0, t)),
        (Row(rows(1)[t], s), x[s].T, INSIDE & le(t, 0)),
        (Row(rows(1)[0], s), x[s].T, le(0, s) & le(s, T)),
        (Row(rows(1)[0], s), x[s].T, le(1, s) & le(s, T + 1)),
    ],
    ids=["next row", "another numbering", "a later time", "any time", "before the start", "row 0", "row T + 1"],
)
def test_other_rows_and_times_are_refused(term: Term, value: Term, where: Cond) -> None:
    with pytest.raises(Unproved):
        show(term, value, where)


BOTH = INSIDE & le(1, r) & le(r, T)


def test_an_entry_at_the_start_is_that_of_the_initial_value() -> None:
    assert show(Entry(P[0], s, r), indicator(equal(s, r)), BOTH)
    assert show(Entry(rows(1)[0], s, r), Row(x[s], r), BOTH & le(T, d))


@pytest.mark.parametrize(
    ("term", "value", "where"),
    [
        (Entry(P[0], s, r), indicator(equal(s, r + 1)), BOTH),
        (Entry(P[1], s, r), indicator(equal(s, r)), BOTH),
        (Entry(P[t], s, r), indicator(equal(s, r)), BOTH & le(0, t)),
        (Entry(P[0], s, r), indicator(equal(s, r)), INSIDE & le(1, r)),
        (Entry(rows(1)[0], s, r), Row(x[r], s), BOTH & le(T, d)),
    ],
    ids=["beside the diagonal", "a later time", "any time", "beyond the last column", "transposed"],
)
def test_other_entries_and_times_are_refused(term: Term, value: Term, where: Cond) -> None:
    with pytest.raises(Unproved):
        show(term, value, where)


def squares(name: str, by: Callable[[Term], Term]) -> Recurrence:
    """A column whose entries are squared at each step."""
    return recurrence(name, vector("h", d), lambda t, h: Stack(by(Row(h, r)), r, 1, d))


def test_a_recursion_is_known_by_another_one_in_its_rows_too() -> None:
    """The hypothesis of an induction reaches the rows that an update takes of the member before."""
    one, other, wrong = squares("H", lambda e: e * e), squares("G", lambda e: e**2), squares("G", lambda e: e * e + e)
    by = Induction(t, Direct(), Direct((Hypothesis(),)))
    assert prove(Statement(Equation(one[t], other[t]), le(0, t)), by, no_lemma)
    with pytest.raises(Unproved):
        prove(Statement(Equation(one[t], wrong[t]), le(0, t)), by, no_lemma)


def test_rows_that_are_numbered_otherwise_are_not_known_by_an_equal_recursion() -> None:
    """Row 1 of rows numbered from 0 is their second one."""
    from_0 = recurrence("Y", Stack(x[r].T, r, 0, T - 1), lambda t, Y: Y + Y)
    same = Assumption("same", Equation(rows(1)[t], from_0[t]))
    says = Statement(Equation(Row(rows(1)[t], 1), Row(from_0[t], 1)), le(2, T) & le(0, t), (same,))
    with pytest.raises(Unproved):
        prove(says, Direct((Given("same"),)), no_lemma)


ROW, e = le(0, t) & le(1, s) & le(s, T), scalar("e")
SCALED = recurrence("X", Stack(x[r].T, r, 0, T), lambda t, X: e * X)
TURNED = recurrence("X", Stack(x[r].T, r, 0, T).T, lambda t, X: 2 * X)
SQUARE = recurrence("X", entries(Row(x[r], s + 1), r, (0, d - 1), s, (0, d - 1)), lambda t, X: 2 * X)
WITHIN = le(0, t) & le(1, s) & le(s, d - 1)


@pytest.mark.parametrize(
    ("other", "term", "where"),
    [
        (Block([SCALED[t]]), SCALED[t], ROW),
        (2 * Block([Conj(SCALED[t])]), 2 * SCALED[t], ROW),
        (Block([TURNED[t]]).T, TURNED[t].T, ROW),
        (Power(SQUARE[t], 1), SQUARE[t], WITHIN),
        (Block([Deriv(SCALED[t], e)]), Deriv(SCALED[t], e), ROW),
        (Deriv(Block([SCALED[t]]), e), Deriv(SCALED[t], e), ROW),
    ],
    ids=["a block", "a multiple of a block", "a turned block", "a power", "a block of a derivative", "the derivative of a block"],
)
def test_row_1_of_a_block_is_no_row_1_of_what_begins_with_row_0(other: Term, term: Term, where: Cond) -> None:
    false = Statement(Equation(Row(other, s), Row(term, s)), where)
    assert certify(false).holds is False
    with pytest.raises(Unproved):
        prove(false, Direct(), no_lemma)


@pytest.mark.parametrize(
    ("other", "value"),
    [
        (Row(Block([P[t]]), s), Row(P[t], s)),
        (Row(Deriv(SCALED[t], e), s), Deriv(Row(SCALED[t], s), e)),
        (Row(2 * SCALED[t], s), 2 * Row(SCALED[t], s)),
    ],
    ids=["a block", "a derivative", "a multiple"],
)
def test_rows_of_one_numbering_are_the_same(other: Term, value: Term) -> None:
    assert show(other, value, ROW)
