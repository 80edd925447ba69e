"""The conjugate of a multiple of a known equation is known, that of anything else is not."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import Equation, Less, NonZero, Statement
from isoform.derivations.kernel.scripts import Direct, Given, Sign, Unfold, Using
from isoform.derivations.kernel.terms import Conj, Term, indices, le, matrix, recurrence, scalar, vector

from .attacks import REFUSALS, given, prover

n, t = indices("n t")
A, B, C = (matrix(name, n, n, "complex") for name in "ABC")
w = vector("w", n, "complex")
SAME = (given("same", Equation(A, B)),)
z = recurrence("z", w, lambda t, z: A * z, field="complex")


def known(left: Term, right: Term) -> Statement:
    return Statement(Equation(left, right), assumptions=SAME)


def using(left: Term | int, *, conjugate: bool = True) -> Direct:
    return Direct((Using(Given("same"), left=left, conjugate=conjugate),))


def test_the_conjugate_of_a_multiple() -> None:
    assert prover({})(known(Conj(A), Conj(B)), using(1)).used == {"same"}
    assert prover({})(known(Conj(C * A), Conj(C) * Conj(B)), using(C))


def test_the_conjugate_of_an_update() -> None:
    step = Statement(Equation(Conj(z[t + 1]), Conj(A) * Conj(z[t])), le(0, t))
    assert prover({})(step, Direct((Using(Unfold(z[t + 1]), conjugate=True),)))
    with pytest.raises(REFUSALS):
        prover({})(step, Direct((Using(Unfold(z[t + 1])),)))


@pytest.mark.parametrize(
    ("statement", "script"),
    [
        (known(Conj(A), B), using(1)),
        (known(Conj(A), Conj(C)), using(1)),
        (known(A, B), using(1)),
        (known(Conj(A), Conj(B)), using(1, conjugate=False)),
        (known(C * Conj(A), C * Conj(B)), using(C)),  # the factor is conjugated too
        (Statement(Equation(Conj(A), Conj(B))), using(1)),
    ],
)
def test_nothing_else_is_known_by_it(statement: Statement, script: Direct) -> None:
    with pytest.raises(REFUSALS):
        prover({})(statement, script)


@pytest.mark.parametrize("name", ["a", "z"])
def test_a_modulus_is_positive_where_the_number_or_its_conjugate_is_not_zero(name: str) -> None:
    """Whichever of the two is read first; a number that may be zero has a modulus that may be."""
    x = scalar(name, "complex")
    for nonzero in (x, Conj(x)):
        some = Statement(Less(0, Conj(x) * x), assumptions=(given("some", NonZero(nonzero)),))
        assert prover({})(some, Sign()).used == {"some"}
    with pytest.raises(REFUSALS):
        prover({})(Statement(Less(0, Conj(x) * x), assumptions=(given("other", NonZero(x + 1)),)), Sign())
