"""Attacks by what is not there: sizes below 0, conclusions without a value, chunks that no model fills.

Each false statement was proved, or certified, once.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from isoform.derivations.evaluate import certify, refute
from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Formula, LessEqual, NonZero, Statement
from isoform.derivations.kernel.proof import Proof, Unproved
from isoform.derivations.kernel.scripts import (
    Absurd,
    Cases,
    Chain,
    Contradiction,
    Direct,
    Given,
    Lemma,
    Link,
    NullVector,
    Product,
    Script,
    Sign,
    Using,
)
from isoform.derivations.kernel.terms import (
    Cond,
    Eye,
    Ind,
    Index,
    Inverse,
    Num,
    Stack,
    Sum,
    Trace,
    cuts,
    le,
    recurrence,
    scalars,
    vector,
)

from .attacks import ANYWHERE, a, check, given, i, j, k, n, prover, x, y

size_n = Trace(Eye(n))
kept = recurrence("R", Stack(scalars("r")[k], k, 1, n), lambda t, R: 2 * R)[0]
of_rows = kept.T * kept - kept.T * kept
b = cuts("b")
inside, outside = scalars("p"), scalars("q")
no_rows = NullVector(vector("w", n), j, 0, "v", Absurd(Direct((Using(Given("length 1"), left=-1),))))
as_written = Sign((Product((Trace(Eye(n) * Eye(n)),)),))

# an index of a script or under a binder is no size of the statement: it may be negative
SIZES: dict[str, tuple[Formula, Formula, Cond, Script]] = {
    "more columns than a negative number of rows": (Equation(x, y), Equation(x + size_n, y + size_n), le(n, -1), no_rows),
    "the square of an identity of negative size": (LessEqual(0, Ind(n)), LessEqual(0, size_n), ANYWHERE, as_written),
    "the state of a recursion over a range": (LessEqual(0, Ind(n) + of_rows), LessEqual(0, size_n + of_rows), ANYWHERE, as_written),
}


@pytest.mark.parametrize("name", SIZES)
def test_an_index_is_no_size(name: str) -> None:
    false, true, where, script = SIZES[name]
    check(Statement(false, where), Statement(true, where), script)
    n_is_free = "recursion" not in name  # the second engine takes the rows of a state for a size
    assert (refute(Statement(false, where)) is not None) is n_is_free


def test_identities_of_sizes_below_0_are_empty() -> None:
    def total(first: Index, last: Index, value: int) -> Statement:
        return Statement(Equation(Sum(Trace(Eye(i)), i, first, last), value))

    check(total(-3, 0, -6), total(0, 3, 6), Direct())
    assert refute(total(-3, 0, -6)) is not None


def test_a_lemma_about_a_size_says_nothing_of_a_negative_index() -> None:
    ones = Sum(Num(1), i, 1, n)
    lemma = Statement(Equation(size_n, ones))
    cases = Cases(((le(0, n), Direct()), (le(n, -1), no_rows)))
    attempt = prover({"size": lemma})
    assert isinstance(attempt(lemma, cases), Proof)
    by_lemma = Direct((Using(Lemma("size")),))
    assert isinstance(attempt(Statement(Equation(ones, Ind(n)), le(0, n)), by_lemma), Proof)
    with pytest.raises(Unproved, match="conditions of lemma: size"):
        attempt(Statement(Equation(ones, Ind(n))), by_lemma)


def test_a_size_that_is_put_into_a_lemma_is_not_negative() -> None:
    count = Statement(Equation(size_n, Sum(Num(1), i, 1, n)))

    def told(last: Index) -> Statement:
        return Statement(Equation(x * Sum(Num(1), i, 1, last), x * Ind(last)), le(0, k))

    attempt = prover({"size": count})
    at_k, at_less = (Direct((Using(Lemma("size", at={n: e}), left=x),)) for e in (k, k - 1))
    assert isinstance(attempt(told(k), at_k), Proof)
    assert refute(told(k - 1)) is not None
    with pytest.raises(Unproved, match="conditions of lemma: size"):
        attempt(told(k - 1), at_less)


# a conclusion without a value does not fail, and is not true -------------------------------------------

VALUES: dict[str, Formula] = {
    "a reciprocal that cancels": LessEqual(Inverse(x), a + Inverse(x)),
    "a reciprocal of what the negation says": LessEqual(0, a + Inverse(a + x) * Fraction(0)),
}


@pytest.mark.parametrize("name", VALUES)
def test_by_contradiction_only_what_has_a_value(name: str) -> None:
    positive = given("positive", LessEqual(0, a))
    exist = (given("x", NonZero(x)), given("a + x", NonZero(a + x)))
    check(
        Statement(VALUES[name], ANYWHERE, (positive,)),
        Statement(VALUES[name], ANYWHERE, (positive, *exist)),
        Contradiction("positive"),
    )


# assumptions that contradict each other hold in chunks without tokens ----------------------------------


def contradicting(end: Index) -> Statement:
    said = [Assumption(f"{v}", ForAll(Equation(inside[j], v), j, 1, end)) for v in (0, 1)]
    return Statement(Equation(Sum(outside[j], j, 1, end), 0), le(1, n), tuple(said))


def test_models_with_empty_chunks_alone_certify_nothing() -> None:
    statement = contradicting(b[n])
    by = Chain((Link(Sum(outside[j] * inside[j], j, 1, b[n]), (Given("1"),)),), (Given("0"),))
    assert isinstance(prover({})(statement, by), Proof)
    found = certify(statement)
    assert found.holds is None and "b[n] = 0" in found.reason
    zero = Assumption("zero", ForAll(Equation(outside[j], 0), j, 1, b[n]), {outside[j]: Num(0)})
    assert certify(Statement(statement.conclusion, statement.where, (zero,)), draws=8).holds is True


def test_a_condition_about_a_cut_that_is_not_drawn_is_no_crash() -> None:
    assert refute(Statement(Equation(x, x + 1), le(n, b[n + 60]) & le(0, n)), tries=4) is None
