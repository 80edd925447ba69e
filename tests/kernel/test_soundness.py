"""The soundness campaign: what the kernel calls equal is equal, and it recognises what sound moves leave equal.

The judge is exact evaluation in a finite field by the second engine, which shares only the term language.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isoform.derivations.evaluate import certify, refute
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct, Unfold
from isoform.derivations.kernel.terms import Term
from isoform.derivations.registry import claim

from .identities import WHERE, H, falsity, identity, t

BATCH = 250
BATCHES = 4
SEEDS = st.integers(0, 2**40)
DECIDED = 0.95


def kernel_says_equal(left: Term, right: Term) -> bool:
    """The kernel's word on an equation; the recursion may be unfolded at t + 1."""
    try:
        prove(Statement(Equation(left, right), WHERE), Direct((Unfold(H[t + 1]),)), lambda id: claim(id).statement)
    except Unproved:
        return False
    return True


def evaluation_says(left: Term, right: Term, seed: int) -> bool | None:
    return certify(Statement(Equation(left, right), WHERE), seed=seed, draws=8).holds


def check_false(seed: int) -> None:
    """A spoiled identity that the kernel accepts must hold after all."""
    left, right = falsity(seed)
    if left != right and kernel_says_equal(left, right):
        assert evaluation_says(left, right, seed) is True, f"seed {seed}: {left} = {right}"


def check_true(seed: int) -> bool | None:
    """Whether the kernel decides a true identity; None if both sides are one term. The moves themselves are checked."""
    left, right = identity(seed)
    if left == right:
        return None
    assert evaluation_says(left, right, seed) is True, f"seed {seed}: the moves changed {left} into {right}"
    return kernel_says_equal(left, right)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_true_identities_are_decided(batch: int) -> None:
    found = [check_true(batch * BATCH + n) for n in range(BATCH)]
    decided = [f for f in found if f is not None]
    assert len(decided) > 0.9 * BATCH
    assert sum(decided) >= DECIDED * len(decided)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_false_identity_is_accepted(batch: int) -> None:
    for n in range(BATCH):
        check_false(batch * BATCH + n)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(SEEDS)
def test_no_false_identity_is_accepted_anywhere(seed: int) -> None:
    check_false(seed)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(SEEDS)
def test_a_difference_has_a_witness(seed: int) -> None:
    """What evaluation calls different, the kernel does not accept, and a small witness shows it or a large one exists."""
    left, right = falsity(seed)
    if left == right or evaluation_says(left, right, seed) is not False:
        return
    assert not kernel_says_equal(left, right)
    statement = Statement(Equation(left, right), WHERE)
    found = refute(statement, seed=seed, tries=300) or certify(statement, seed=seed, draws=24).holds is False
    assert found


@pytest.mark.deep
@pytest.mark.parametrize("block", range(100))
def test_deep_campaign(block: int) -> None:
    """A hundred thousand identities, half of them spoiled."""
    first = 10**6 + 500 * block
    found = [check_true(first + n) for n in range(500)]
    decided = [f for f in found if f is not None]
    assert sum(decided) >= DECIDED * len(decided)
    for n in range(500):
        check_false(first + n)
