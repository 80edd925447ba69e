"""What follows from a declaration is proved for it by both engines; a wrong layer, a wrong theorem and a wrong source are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isoform.derivations.claim import Claim, variant
from isoform.derivations.kernel.formulas import Declaration, Equation
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.terms import Diag, Eye, Hadamard, Index, Prod, Term
from isoform.derivations.layer import classify, derive, layer
from isoform.derivations.layer.examples import COMBA, EXAMPLES, GRU, KDA, LONGHORN, LRU, MLSTM, QKV, STATE, TITANS, TWO_STEPS, d, d_k
from isoform.derivations.verification import prove_claim, verify_claim

SEQUENCE = ("update", "unrolled", "split-resume", "chunkwise", "scan")
EVERY = [(d, c) for d in EXAMPLES for c in derive(d)]
SLOW = {"scan", "chunkwise", "scan-c", "scan-n", "chunkwise-c", "chunkwise-n"}
every = pytest.mark.parametrize(
    ("declaration", "claim"),
    [pytest.param(d, c, id=c.id, marks=[pytest.mark.deep] if d is not KDA or c.id.partition("/")[2] in SLOW else []) for d, c in EVERY],
)


def slugs(declaration: Declaration) -> tuple[str, ...]:
    return tuple(c.id.partition("/")[2] for c in derive(declaration))


def the(slug: str, declaration: Declaration) -> Claim:
    return next(c for c in derive(declaration) if c.id == f"{declaration.operator}/{slug}")


def test_which_theorems_there_are() -> None:
    assert slugs(KDA) == (*SEQUENCE, "masked", "gradient-step", "stable", "step-cost")
    assert slugs(TWO_STEPS) == (*SEQUENCE, "outputs", "stable", "step-cost")
    assert slugs(COMBA) == (*SEQUENCE, "masked", "gradient-step", "stable", "step-cost")
    assert slugs(TITANS) == (*SEQUENCE, "outputs", "step-cost")
    assert slugs(LRU) == (*SEQUENCE, "outputs", "stable", "step-cost")
    assert slugs(GRU) == ("split-resume", "step-cost")
    assert slugs(MLSTM) == tuple(f"{s}-{n}" for n in "cn" for s in (*SEQUENCE, "stable")) + ("step-cost",)


def test_what_the_examples_are() -> None:
    assert {d.operator: str(classify(d).updates[0]).partition(":")[0] for d in EXAMPLES} == {
        "kda": "diagonal plus rank one on the right",
        "comba": "scalar plus rank one on the right",
        "longhorn": "identity plus rank one on the right",
        "two-steps": "identity plus low rank on the right",
        "titans": "general on the right",
        "mlstm": "scalar on the right",
        "lru": "diagonal on the left",
        "gru": "not affine",
    }


@every
def test_each_theorem_holds(declaration: Declaration, claim: Claim) -> None:
    found = verify_claim(claim, among=derive(declaration))
    assert found.reason == ""
    assert found.holds
    assert {e.kind for e in found.evidence} >= {"proved", "certified"}
    assert found.scope == "all sizes"
    assert found.operator == declaration.operator


@pytest.mark.parametrize("slug", ["unrolled", "split-resume", "masked", "gradient-step"])
def test_a_near_miss_is_not_proved_in_the_theorems_place(slug: str) -> None:
    claims, claim = derive(COMBA), the(slug, COMBA)
    for miss in claim.near_misses:
        with pytest.raises(Unproved):
            prove_claim(replace(claim, statement=miss.statement), claims)


def test_a_planted_wrong_theorem_is_refused_by_both_engines() -> None:
    """The decay of KDA after the correction: the same letters, another layer."""
    claim = the("unrolled", KDA)
    right = claim.statement.conclusion
    assert isinstance(right, Equation)

    def swapped(x: Term) -> Term:
        """Every diag(a) (I - β k kᵀ) as (I - β k kᵀ) diag(a)."""
        if isinstance(x, Prod):
            gates, keeps = x.args[0].args
            return Prod(keeps * gates, *x.args[1:])
        return x.func(*[swapped(a) if isinstance(a, Term) else a for a in x.args]) if x.args else x

    wrong = Equation(right.lhs, swapped(right.rhs))
    assert wrong != right
    found = verify_claim(replace(claim, statement=replace(claim.statement, conclusion=wrong), near_misses=()), among=derive(KDA))
    assert found.verdict == "unknown"
    assert "not proved" in found.reason
    assert "refuted at" in found.reason
    miss = variant(claim.statement, "the gates after the correction", wrong)
    with_it = verify_claim(replace(claim, near_misses=(*claim.near_misses, miss)), among=derive(KDA))
    assert with_it.near_misses[-1].rejected


def test_a_wrong_variant_of_a_layer_is_rejected() -> None:
    """A theorem of one layer is none of another, and the engines say where they differ."""
    wrong = layer(
        "kda",
        inputs={**QKV, "a": d_k, "beta": 1},
        state=STATE,
        update=lambda S, k, v, a, beta: S * ((Eye(d_k) - beta * k * k.T) * Diag(a)) + beta * v * k.T,
        read=lambda S, q: S * q,
        source="a wrong edit",
    )
    right, other = the("update", KDA), the("update", wrong)
    says = right.statement.conclusion.args[0]
    assert isinstance(says, Equation)
    mixed = Equation(wrong.state[wrong.t + 1], _of(says.rhs, KDA.state, wrong.state))
    found = verify_claim(replace(other, statement=replace(other.statement, conclusion=mixed), near_misses=()), among=derive(wrong))
    assert found.verdict == "unknown"
    assert "refuted at" in found.reason


def _of(x: Term, old: object, new: object) -> Term:
    """A term about one recurrence said of another."""
    from isoform.derivations.layer.classify import put

    t: Index = KDA.t
    return put(x, {old[t]: new[t]})  # type: ignore[index, return-value]


def test_that_an_update_is_not_affine_is_refuted_by_numbers() -> None:
    squared = layer("squared", inputs={"u": d}, state={"h": d}, update=lambda h, u: Hadamard(h, h) + u, read=lambda h: h, source="none")
    assert classify(squared).kind == "not affine"
    found = verify_claim(the("split-resume", squared))
    assert found.holds
    assert [n.rejected for n in found.near_misses if n.name == "the update is affine in the state"] == [True]
    assert "entrywise product of factors that both depend on the state: h_{t−1} ⊙ h_{t−1}" in found.title


def test_an_affine_update_that_is_called_not_affine_fails() -> None:
    """What is not written as affine may be: then that it is not is not refuted, and the claim does not hold."""
    hidden = layer(
        "hidden",
        inputs={"u": 1},
        state={"h": 1},
        update=lambda h, u: h * h + u - h**2 + h,
        read=lambda h: h,
        source="none",
    )
    assert classify(hidden).kind == "not affine"
    found = verify_claim(the("split-resume", hidden))
    assert found.verdict == "proved"
    assert not found.holds
    assert "the update is affine in the state: the search found no counterexample" in found.reason


def test_a_loss_is_claimed_only_of_a_gradient() -> None:
    """What is found with one key and written at another follows no gradient."""
    crossed = layer(
        "crossed",
        inputs={**QKV, "l": d_k},
        state=STATE,
        update=lambda S, k, l, v: S - (S * k - v) * l.T,
        read=lambda S, q: S * q,
        source="none",
    )
    assert str(classify(crossed).updates[0]) == "identity plus rank one on the right"
    assert "gradient-step" not in slugs(crossed)
    assert "stable" not in slugs(crossed)
    assert {"gradient-step", "stable"} <= set(slugs(LONGHORN))
