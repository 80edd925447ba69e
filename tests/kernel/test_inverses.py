"""An inverse that is named, and what every inverse satisfies: each proves its truth and refuses its falsehood."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import And, Assumption, Equation, Formula, Invertible, NonZero, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Cancels, Direct, Each, Exists, Given, Induction, Lemma, Script, UniqueInverse, Using
from isoform.derivations.kernel.terms import Eye, Inverse, Num, Term, Trace, indices, le, matrix, scalar

n, r, t = indices("n r t")
A, M = matrix("A", n, n), matrix("M", n, n)
P, Q = matrix("P", n, r), matrix("Q", n, r)
a, b = scalar("a"), scalar("b")

changed, capacity = M + P * Q.T, Eye(r) + Q.T * Inverse(M) * P
woodbury = Inverse(M) - Inverse(M) * P * Inverse(capacity) * Q.T * Inverse(M)
cancelled = Using(Cancels(capacity), left=-P, right=Q.T * Inverse(M))
identity = Eye(n)
regular = Assumption("M⁻¹", Invertible(M))
capable = Assumption("capacity", Invertible(capacity))


def proves(conclusion: Formula, script: Script, *assumptions: Assumption) -> bool:
    try:
        prove(Statement(conclusion, le(0, t), assumptions), script, lambda id: pytest.fail(id))
    except Unproved:
        return False
    return True


def test_what_has_a_right_inverse_is_invertible() -> None:
    named = Exists(inverse=woodbury, by=(cancelled,))
    assert proves(Invertible(changed), named, regular, capable)
    assert not proves(Invertible(changed), Exists(inverse=woodbury), regular, capable)
    assert not proves(Invertible(changed), named, regular)
    assert not proves(Invertible(changed), named, capable)
    assert not proves(Invertible(M + 2 * P * Q.T), named, regular, capable)
    assert not proves(Invertible(M - P * Q.T), named, regular, capable)


def test_an_inverse_that_was_shown_to_exist_can_be_found() -> None:
    exists, found = Exists(inverse=woodbury, by=(cancelled,)), UniqueInverse((cancelled,))
    both = And(Invertible(changed), Equation(Inverse(changed), woodbury))
    assert proves(both, Each((exists, found)), regular, capable)
    assert not proves(Equation(Inverse(changed), woodbury), found, regular, capable)


def test_an_inverse_is_not_named_by_itself() -> None:
    for by in ((), (Using(Cancels(A)),)):
        assert not proves(Invertible(A), Exists(inverse=Inverse(A), by=by))
        assert not proves(Invertible(changed), Exists(inverse=Inverse(changed), by=(Using(Cancels(changed)),)), regular)


def test_the_shape_of_a_named_inverse() -> None:
    onto = Assumption("right inverse", Equation(Q.T * P, Eye(r)))
    # QᵀP = I for n > r: P Qᵀ is no inverse of anything
    assert not proves(Invertible(P * Q.T), Exists(inverse=P * Q.T), onto)
    assert not proves(Invertible(A), Exists(inverse=a), onto)
    assert not proves(NonZero(a), Exists(inverse=Eye(n)))


def test_a_number_with_a_reciprocal_is_not_zero() -> None:
    product = Assumption("ab = 1", Equation(a * b, 1))
    assert proves(NonZero(a), Exists(inverse=b, by=(Using(Given(product.name)),)), product)
    assert not proves(NonZero(a + 1), Exists(inverse=b, by=(Using(Given(product.name)),)), product)
    assert not proves(NonZero(a), Exists(inverse=b))


@pytest.mark.parametrize(
    ("of", "exists", "one"),
    [
        (A, Invertible(A), Eye(n)),
        (capacity, Invertible(capacity), Eye(r)),
        (A + M, Invertible(A + M), Eye(n)),
        (a, NonZero(a), Num(1)),
        (a + b, NonZero(a + b), Num(1)),
    ],
    ids=str,
)
def test_cancelling_needs_an_inverse(of: Term, exists: Formula, one: Term) -> None:
    said, by = Equation(of * Inverse(of), one), Direct((Using(Cancels(of)),))
    assert proves(said, by, regular, Assumption("exists", exists))
    assert not proves(said, by, regular)
    assert not proves(Equation(of * Inverse(of), 2 * one), by, regular, Assumption("exists", exists))


def test_cancelling_proves_nothing_else() -> None:
    by = Direct((Using(Cancels(A)),))
    invertible = Assumption("A⁻¹", Invertible(A))
    assert not proves(Equation(A, Eye(n)), by, invertible)
    assert not proves(Equation(A * A, Eye(n)), by, invertible)
    assert not proves(Equation(Trace(A * Inverse(A)), 1), Direct((Using(Cancels(A), trace=True),)), invertible)
    assert not proves(Equation(a, b), Direct((Cancels(a),)), Assumption("a ≠ 0", NonZero(a)))


def test_what_a_lemma_assumes_may_have_been_shown() -> None:
    cubed = Statement(Equation(A * A * Inverse(A), A), assumptions=(Assumption("A⁻¹", Invertible(A)),))

    def shows(conclusion: Formula, script: Script, *assumptions: Assumption) -> bool:
        try:
            prove(Statement(conclusion, le(0, t), assumptions), script, lambda id: cubed)
        except Unproved:
            return False
        return True

    twice = Assumption("A² = I", Equation(A * A, identity))
    exists = Exists(inverse=A, by=(Using(Given(twice.name)),))
    used = Direct((Using(Lemma("x"), left=1),))
    said = Equation(A * A * Inverse(A) + M, A + M)
    assert shows(And(Invertible(A), said), Each((exists, used)), twice)
    assert not shows(And(said, Invertible(A)), Each((used, exists)), twice)
    assert not shows(said, used, twice)
    assert not shows(And(Invertible(A + M), said), Each((Exists(), used)), twice, Assumption("other", Invertible(A + M)))
    assert not shows(And(Invertible(A), said), Each((exists, Induction(t, used, used))), twice)
