"""The closed list of assumed theorems: the second engine has looked at each, and a proof that cites one says so."""

from __future__ import annotations

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.assumed import ASSUMED, Theorem
from isoform.derivations.kernel.formulas import LessEqual, Statement
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Product, Sign
from isoform.derivations.kernel.terms import Exp, scalar


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
