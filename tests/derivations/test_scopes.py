"""Every claim is proved for all sizes, but for those named here: a proof that covers less is no longer that claim's."""

from __future__ import annotations

import pytest

from isoform.derivations.claim import Claim
from isoform.derivations.registry import claims
from isoform.derivations.verification import prove_claim

STATED: dict[str, str] = {}
"""The scope of the claims that are proved at stated sizes only."""


@pytest.mark.parametrize("claim", claims(), ids=lambda c: c.id)
def test_the_scope_is_all_sizes_unless_it_says_otherwise(claim: Claim) -> None:
    assert prove_claim(claim).scope == STATED.get(claim.id, "all sizes")


def test_the_exceptions_are_claims() -> None:
    assert STATED.keys() <= {c.id for c in claims()}
