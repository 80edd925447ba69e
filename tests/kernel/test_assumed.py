"""The closed list of assumed theorems: the second engine has looked at each, and a proof that cites one says so."""

from __future__ import annotations

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.assumed import ASSUMED, Theorem
from isoform.derivations.kernel.formulas import Less, LessEqual, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Product, Sign
from isoform.derivations.kernel.terms import Conj, Exp, Term, scalar


@pytest.mark.parametrize("theorem", ASSUMED.values(), ids=lambda t: t.name)
def test_the_second_engine_finds_no_fault_with_a_theorem(theorem: Theorem) -> None:
    assert ASSUMED[theorem.name] is theorem
    assert certify(theorem.statement).holds is True
    assert theorem.source


def test_a_proof_says_what_it_assumes() -> None:
    x = scalar("x")
    above = Exp(x**2) - 1
    found = prove(Statement(LessEqual(0, above)), Sign((Product((above,)),)), lambda id: pytest.fail(id))
    assert found.assumed == {"exp-increasing"}
    positive = Exp(x**2) + x**2
    assert not prove(Statement(LessEqual(0, positive)), Sign((Product((positive,)),)), lambda id: pytest.fail(id)).assumed


def above(x: Term, tangent: Term | int = 0) -> Statement:
    """The exponential of x is at least 1 + x, or another tangent."""
    return Statement(LessEqual(0, Exp(x) - 1 - (tangent or x)))


def shown(statement: Statement) -> frozenset[str]:
    """What a proof of it assumes, where its gap is one term."""
    return prove(statement, Sign((Product((statement.conclusion.args[1],)),)), lambda id: pytest.fail(id)).assumed


def test_the_exponential_is_above_its_tangent_at_0_alone() -> None:
    x, y, z = scalar("x"), scalar("y"), scalar("z", "complex")
    assert shown(above(-x)) == shown(above(z * Conj(z))) == shown(above(x * y + 2)) == {"exp-above-tangent"}
    for false in (above(x, 2 * x), above(x, y), above(x, x + 1), above(x, -x)):
        assert certify(false).holds is False
        with pytest.raises(Unproved):
            shown(false)
    with pytest.raises(Unproved):
        shown(above(z))
    with pytest.raises(Unproved):  # with equality at 0
        prove(Statement(Less(0, Exp(x) - 1 - x)), Sign((Product((Exp(x) - 1 - x,)),)), lambda id: pytest.fail(id))
