"""A lemma is a proved claim, for all sizes, that does not rest on what it is used for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from isoform.derivations import verification
from isoform.derivations.claim import Claim, Source
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.scripts import Direct, Induction, Lemma, Script, Sizes
from isoform.derivations.kernel.terms import Term, indices, le, matrix, recurrence
from isoform.derivations.registry import UnknownClaim
from isoform.derivations.verification import prove_claim

n, t = indices("n t")
A, B, C = (matrix(name, n, n) for name in "ABC")


def claimed(id: str, lhs: Term, rhs: Term, proof: Script) -> Claim:
    return Claim(id, "a claim of this test", Statement(Equation(lhs, rhs), le(0, t)), (Source("none"),), (), proof)


USE = claimed("test/use", A * B * C, B * A * C, Direct((Lemma("test/commute"),)))


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes the given claims all that there are."""
    known: dict[str, Claim] = {}

    def claim(id: str) -> Claim:
        if id not in known:
            raise UnknownClaim(id)
        return known[id]

    monkeypatch.setattr(verification, "claim", claim)
    verification._proved.cache_clear()
    yield lambda *claims: known.update({c.id: c for c in claims})
    verification._proved.cache_clear()


def test_a_proved_claim_is_a_lemma(house: Callable[..., None]) -> None:
    powers = recurrence("P", A, lambda t, P: P * B)
    house(claimed("test/powers", powers[t], A * B**t, Induction(t)))
    use = claimed("test/other", powers[t] * C, A * B**t * C, Direct((Lemma("test/powers"),)))
    assert prove_claim(use).lemmas == {"test/powers"}
    with pytest.raises(Unproved, match="leaves"):
        prove_claim(replace(use, proof=Direct()))


def test_a_claim_that_is_not_proved_is_none(house: Callable[..., None]) -> None:
    house(claimed("test/commute", A * B, B * A, Direct()))
    with pytest.raises(Unproved, match="the lemma test/commute is not proved: "):
        prove_claim(USE)


def test_a_claim_of_stated_sizes_is_none(house: Callable[..., None]) -> None:
    """Numbers commute: the claim is proved at size 1, and what would follow from it is false at size 2."""
    short = claimed("test/commute", A * B, B * A, Sizes({n: (1,)}))
    house(short)
    assert prove_claim(short).scope == "sizes <= 1"
    with pytest.raises(Unproved, match="it is proved for sizes <= 1 only"):
        prove_claim(USE)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_claims_that_rest_on_each_other_are_none(house: Callable[..., None], length: int) -> None:
    ids = ["test/commute", *(f"test/{k}" for k in range(1, length))]
    house(*(claimed(id, A * B, B * A, Direct((Lemma(ids[(k + 1) % length]),))) for k, id in enumerate(ids)))
    with pytest.raises(Unproved, match="the lemmas go in a circle: test/commute"):
        prove_claim(USE)


def test_a_claim_that_is_not_there_is_none(house: Callable[..., None]) -> None:
    with pytest.raises(Unproved, match="there is no claim test/commute"):
        prove_claim(USE)


def test_claims_that_are_not_registered_are_lemmas_of_each_other(house: Callable[..., None]) -> None:
    powers = recurrence("P", A, lambda t, P: P * B)
    lemma = claimed("test/powers", powers[t], A * B**t, Induction(t))
    use = claimed("test/other", powers[t] * C, A * B**t * C, Direct((Lemma("test/powers"),)))
    assert prove_claim(use, (use, lemma)).lemmas == {"test/powers"}
    with pytest.raises(Unproved, match="there is no claim test/powers"):
        prove_claim(use)
    false = replace(lemma, statement=Statement(Equation(powers[t], B * A**t), le(0, t)))
    with pytest.raises(Unproved, match="the lemma test/powers is not proved: "):
        prove_claim(use, (use, false))


def test_no_circle_among_claims_that_are_not_registered(house: Callable[..., None]) -> None:
    one = claimed("test/one", A * B, B * A, Direct((Lemma("test/two"),)))
    two = claimed("test/two", A * B, B * A, Direct((Lemma("test/one"),)))
    with pytest.raises(Unproved, match="in a circle: test/two -> test/one -> test/two"):
        prove_claim(one, (one, two))
