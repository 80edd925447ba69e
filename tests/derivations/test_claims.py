"""Every claim that the registry finds: it gets its verdict, and nothing that must fail passes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from sympy import Basic, Integer

from isoform.derivations import lock, registry, verification
from isoform.derivations.claim import Claim, ClaimResult
from isoform.derivations.evaluate.certificates import Certificate
from isoform.derivations.kernel import formulas as fm
from isoform.derivations.kernel import terms as tm
from isoform.derivations.kernel.assumed import ASSUMED
from isoform.derivations.kernel.proof import Proof, Unproved
from isoform.derivations.verification import KERNEL, SECOND, _certified, prove_claim, verify_claim

CLAIMS = registry.claims()
ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*")
SCOPE = re.compile(r"all sizes|sizes <= [1-9][0-9]*")
METHODS = {
    "normal form",
    "no such indices",
    "sign certificate",
    "sign certificate, by contradiction",
    "product of known factors",
    "null vector",
}

every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id, scope="module")
"""Claim by claim, since the tests of a claim share its result."""
every_third_claim = pytest.mark.parametrize(
    "claim", [pytest.param(c, id=c.id, marks=[pytest.mark.deep] * (n % 3 != 0)) for n, c in enumerate(CLAIMS)], scope="module"
)
"""And all of them in the deep tier."""


@cache
def result(id: str) -> ClaimResult:
    return verify_claim(registry.claim(id))


def proof(id: str) -> Proof:
    return prove_claim(registry.claim(id))


tried: dict[str, list[tuple[fm.Statement, Proof | str]]] = {}
"""What the script of a claim made of other statements, a proof or why not: those that drop an assumption are near misses too."""


def attempt(claim: Claim) -> Proof:
    """`prove_claim` of a claim's script on another statement, tried once. Raises Unproved."""
    known = tried.setdefault(claim.id, [])
    found = next((answer for statement, answer in known if statement == claim.statement), None)
    if found is None:
        try:
            found = prove_claim(claim)
        except Unproved as e:
            found = str(e)
        known.append((claim.statement, found))
    if isinstance(found, str):
        raise Unproved(found)
    return found


def nodes(statement: fm.Statement) -> Iterator[Basic]:
    for part in (statement.conclusion, *(a.formula for a in statement.assumptions)):
        yield from tm.walk(part)


def without(claim: Claim, assumption: str) -> Claim:
    kept = tuple(a for a in claim.statement.assumptions if a.name != assumption)
    return replace(claim, statement=replace(claim.statement, assumptions=kept))


def test_there_are_claims() -> None:
    assert CLAIMS


def test_ids_are_unique_and_well_formed() -> None:
    counts = Counter(c.id for name in registry.architectures() for c in registry.column(name))
    assert [id for id, n in counts.items() if n > 1] == []
    assert [id for id in counts if not ID.fullmatch(id)] == []
    assert sorted(counts) == sorted(c.id for c in CLAIMS)


@every_claim
def test_the_verdict_is_the_expected_one(claim: Claim) -> None:
    found = result(claim.id)
    assert (found.verdict, found.reason) == (claim.expected, "")
    assert found.holds
    assert {e.engine for e in found.evidence} >= {KERNEL, SECOND}


@every_claim
def test_every_near_miss_is_rejected_by_both_engines(claim: Claim) -> None:
    found = result(claim.id).near_misses
    assert len(found) >= 2
    assert len({n.name for n in found}) == len(found)
    for n in found:
        assert n.rejected, f"{n.name}: {n.reason}"
        assert set(n.engines) == {KERNEL, SECOND}
        assert n.counterexample
        assert n.kind in ("exact", "enclosed")
        assert n.kind == "enclosed" or "+/-" not in n.counterexample


def test_draws_that_say_nothing_are_counted_in_the_evidence() -> None:
    told = _certified(Certificate(True, "arb 128 bits", draws=9, undecided=2, singular=3, acceptance=1.0))
    assert "2 undecided" in told and "3 singular, drawn again" in told
    plain = _certified(Certificate(True, "QQ", draws=9))
    assert "undecided" not in plain and "singular" not in plain


def test_a_softmax_in_balls_is_evidence_enclosed_and_not_exact() -> None:
    (written,) = [e for e in result("attention/zero-mask").evidence if e.detail.startswith("as written fails")]
    assert written.kind == "enclosed"
    (written,) = [e for e in result("state-space/recurrence-is-convolution").evidence if e.detail.startswith("as written fails")]
    assert written.kind == "exact"


@pytest.mark.deep
@every_claim
def test_what_is_false_is_not_proved_by_the_claims_own_script(claim: Claim) -> None:
    false = [n.statement for n in claim.near_misses] + ([claim.as_written] if claim.as_written else [])
    for statement in false:
        with pytest.raises(Unproved):
            attempt(replace(claim, statement=statement))


@every_third_claim
def test_a_near_miss_in_the_place_of_the_claim_is_unknown(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "prove_claim", lambda c, among: attempt(c))
    found = verify_claim(replace(claim, statement=claim.near_misses[0].statement, near_misses=()))
    assert found.verdict == "unknown"
    assert not found.holds
    assert found.reason


@every_claim
def test_the_proof_keeps_to_the_methods_of_the_kernel(claim: Claim) -> None:
    found = proof(claim.id)
    assert found.obligations
    assert {o.method for o in found.obligations} <= METHODS
    assert found.assumed <= set(ASSUMED)
    assert all(o.text and o.latex for o in found.obligations)


@every_claim
def test_a_scope_of_all_sizes_has_symbolic_sizes(claim: Claim) -> None:
    scope = result(claim.id).scope
    assert SCOPE.fullmatch(scope) and scope == claim.scope == proof(claim.id).scope
    if scope == "all sizes":
        assert [str(n) for n in nodes(claim.statement) if has_fixed_size(n)] == []


def has_fixed_size(node: Any) -> bool:
    """Whether an atom has a size other than 1, or an index range a length, that is a number.

    What a recursion binds is no atom: its state may keep a few values side by side.
    """
    if isinstance(node, (tm.Var, tm.Apply)) and tm.PRIME not in node.name:
        return any(n.is_number and n != 1 for n in node.shape)
    if isinstance(node, (tm.Sum, tm.Prod, tm.Stack)):
        return isinstance(node.args[2], Integer) and isinstance(node.args[3], Integer)
    return False


@every_claim
def test_every_assumption_is_needed_or_reported(claim: Claim) -> None:
    found = result(claim.id)
    for a in claim.statement.assumptions:
        if a.name not in proof(claim.id).used:
            assert a.name in found.unneeded
            continue
        assert a.name in {n.drops for n in claim.near_misses}
        with pytest.raises(Unproved):
            attempt(without(claim, a.name))


@every_claim
def test_sources_and_words_are_there(claim: Claim) -> None:
    assert claim.title.strip()
    assert claim.sources
    assert all(s.citation.strip() and s.where.strip() for s in claim.sources)


@every_claim
def test_a_claim_about_an_operator_uses_its_declaration(claim: Claim) -> None:
    """Among the recursions of a statement that bear a declared state's name is the declared one."""
    declared = {member.moved(0) for member in states(claim.id.partition("/")[0])}
    found = {n.moved(0) for n in nodes(claim.statement) if isinstance(n, tm.Rec)}
    namesakes = {n for n in found if n.name in {d.name for d in declared}}
    assert not namesakes or namesakes & declared
    assert claim.operator is None or claim.operator in registry.declarations(claim.id.partition("/")[0])


def states(architecture: str) -> Iterator[tm.Rec]:
    for declared in registry.declarations(architecture):
        several = declared.state if isinstance(declared.state, tuple) else (declared.state,)
        yield from (s.member if isinstance(s, tm.Recurrence) else s for s in several if s is not None)


def test_the_lock_file_agrees() -> None:
    assert [str(p) for p in lock.check(CLAIMS)] == []


def test_a_fixed_size_is_seen() -> None:
    n, i = tm.indices("n i")
    assert has_fixed_size(tm.matrix("A", 2, n))
    assert has_fixed_size(tm.Sum(tm.scalars("x")[i], i, 1, 3))
    assert not has_fixed_size(tm.vector("k", n))
    assert not has_fixed_size(tm.Sum(tm.scalars("x")[i], i, 1, n))
