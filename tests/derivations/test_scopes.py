"""A proof that covers less than its claim says is no proof of it: the claim does not hold, and the run says so."""

from __future__ import annotations

from dataclasses import replace

from isoform.derivations.claim import Claim
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.scripts import Sizes
from isoform.derivations.kernel.terms import indices, matrix
from isoform.derivations.registry import claim
from isoform.derivations.verification import verify_claim

n, m = indices("n m")
A, B = matrix("A", n, m), matrix("B", m, n)


def weakened(scope: str) -> Claim:
    """A true statement, proved at stated sizes only."""
    statement = Statement(Equation((A * B).T, B.T * A.T))
    return replace(claim("linear-attention/state"), statement=statement, proof=Sizes({n: (1, 2), m: (1, 2)}), scope=scope)


def test_a_proof_of_less_does_not_hold() -> None:
    found = verify_claim(weakened("all sizes"))
    assert "proved for sizes <= 2, where all sizes is claimed" in found.unfinished
    assert not found.holds


def test_a_proof_of_what_is_claimed_is_not_blamed_for_its_scope() -> None:
    assert not any("is claimed" in why for why in verify_claim(weakened("sizes <= 2")).unfinished)
