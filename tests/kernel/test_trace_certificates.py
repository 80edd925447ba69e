"""The trace of a multiple of a known equation is known, that of anything else is not."""

from __future__ import annotations

import pytest

from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.scripts import Direct, Given, Using
from isoform.derivations.kernel.terms import Eye, Ind, Sum, Term, Trace, le, matrix, vectors

from .attacks import REFUSALS, A, B, d, given, j, n, prover, u

k = vectors("k", d)
MOMENT = Sum(k[j] * k[j].T, j, 1, n)
WHITE = (given("white", Equation(MOMENT, Eye(d))),)
SKEW = (given("skew", Equation(A * B, B * A + Eye(d))),)


def traced(left: Term, value: Term) -> Statement:
    return Statement(Equation(Trace(left * MOMENT), value), le(0, n), WHITE)


def using(name: str, left: Term, *, trace: bool = True) -> Direct:
    return Direct((Using(Given(name), left=left, trace=trace),))


def test_the_trace_of_a_multiple() -> None:
    attempt = prover({})
    proof = attempt(traced(A, Trace(A)), using("white", A))
    assert proof.used == {"white"}
    assert attempt(traced(Eye(d), Ind(d)), using("white", Eye(d)))
    # trace(AB) = trace(BA): there is no such A and B, unless they have no rows
    assert attempt(Statement(Equation(Ind(d), 0), assumptions=SKEW), using("skew", -1 * Eye(d)))


@pytest.mark.parametrize(
    ("statement", "script"),
    [
        (traced(A, Trace(B)), using("white", A)),
        (traced(A, Trace(A)), using("white", B)),
        (traced(A * B, Trace(A)), using("white", A)),
        (traced(A, Trace(A)), using("white", A, trace=False)),
        (traced(A, Trace(A)), using("white", u.T)),  # a row has no trace
        (Statement(Equation(MOMENT, A), le(0, n), WHITE), using("white", A)),
        (Statement(Equation(Trace(A * MOMENT), Trace(A)), le(0, n)), using("white", A)),
    ],
)
def test_nothing_else_is_known_by_it(statement: Statement, script: Direct) -> None:
    with pytest.raises(REFUSALS):
        prover({})(statement, script)


def test_a_trace_is_a_number() -> None:
    C = matrix("C", d, d)
    with pytest.raises(REFUSALS):
        prover({})(Statement(Equation(C, C + MOMENT - Eye(d)), le(0, n), WHITE), using("white", Eye(d)))
