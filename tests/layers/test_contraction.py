"""Products of numbers, diagonal matrices and corrections make no vector longer within the bounds of each; beyond them they may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from isoform.derivations.claim import Claim
from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import And, ForAll, Formula, Implies, LessEqual
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.terms import Diag, Eye, Inverse, Num, Row, Term, index, indices, norm2, scalars, vectors
from isoform.derivations.layer import derive, layer
from isoform.derivations.layer.contraction import Corrected, Gated, Scaled, factored
from isoform.derivations.layer.examples import KDA, TITANS, TWO_STEPS
from isoform.derivations.layer.functions import exp, larger, sigmoid
from isoform.derivations.verification import prove_claim, verify_claim

m, n = indices("m n")
t = index("t")
k, l, a = (x[t] for x in (vectors("k", n), vectors("l", n), vectors("a", n)))
beta, eta, g = (x[t] for x in (scalars("beta"), scalars("eta"), scalars("g")))
I = Eye(n)


def correcting(rate: Term, key: Term) -> Term:
    return I - rate * key * key.T


def with_transition(step: Callable[..., Term], **more: Any) -> tuple[Claim, ...]:
    inputs = {"q": n, "k": n, "l": n, "v": m, "a": n, "beta": 1, "eta": 1, "g": 1}
    given: dict[str, Any] = {"state": {"S": (m, n)}, "update": step, "read": lambda S, q: S * q, **more}
    return derive(layer("odd", inputs=inputs, source="none", **given))


def stable(claims: tuple[Claim, ...]) -> Claim | None:
    return next((c for c in claims if c.id.endswith("/stable")), None)


PRODUCTS: dict[str, tuple[Claim, ...]] = {
    "gates, then a correction": derive(KDA),
    "two corrections": derive(TWO_STEPS),
    "a correction, then gates": with_transition(lambda S, k, v, a, beta: S * (correcting(beta, k) * Diag(a)) + v * k.T),
    "two corrections and a number, written as a sum": with_transition(
        lambda S, k, l, v, beta, eta, g: g * ((S - beta * (S * k) * k.T) - eta * ((S - beta * (S * k) * k.T) * l) * l.T) + v * k.T
    ),
    "from the left": with_transition(
        lambda S, k, v, a, beta: correcting(beta, k) * Diag(a) * S + k * v.T, state={"S": (n, m)}, read=lambda S, q: S.T * q
    ),
    "gates between two corrections": with_transition(
        lambda S, k, l, v, a, beta, eta: S * correcting(beta, k) * Diag(a) * correcting(eta, l) + v * k.T
    ),
    "one key twice, at one rate": with_transition(lambda S, k, v, beta: S * correcting(beta, k) * correcting(beta, k) + v * k.T),
    "functions of inputs": with_transition(
        lambda S, k, v, a, g: S * Diag(exp(a)) * correcting(sigmoid(g) / (1 + norm2(k)), k) + v * k.T
    ),
}  # fmt: skip
QUICK = {"gates, then a correction", "two corrections", "from the left"}


@pytest.mark.parametrize("name", [pytest.param(x, marks=[] if x in QUICK else [pytest.mark.deep]) for x in PRODUCTS])
def test_within_the_bounds_nothing_grows(name: str) -> None:
    claim = stable(PRODUCTS[name])
    assert claim is not None
    found = verify_claim(claim)
    assert (found.holds, found.reason, found.scope) == (True, "", "all sizes")
    assert len(found.near_misses) >= (1 if name == "functions of inputs" else 3)


@pytest.mark.parametrize("name", PRODUCTS)
def test_no_near_miss_is_proved(name: str) -> None:
    claim = stable(PRODUCTS[name])
    assert claim is not None
    for miss in claim.near_misses:
        with pytest.raises(Unproved):
            prove_claim(replace(claim, statement=miss.statement))


@pytest.mark.parametrize(
    "step",
    [
        lambda S, k, v, a, beta: S * (Diag(a) * correcting(beta, k) * Diag(-a)) + v * k.T,
        lambda S, k, l, v, beta: S * correcting(beta, k) * correcting(-beta, l) + v * k.T,
        lambda S, k, l, v, a, beta: S * Diag(larger(a, l)) * correcting(beta, k) + v * k.T,
    ],
    ids=["gates and their negatives", "rates of both signs", "the larger of two gates"],
)
def test_bounds_on_functions_of_one_input(step: Callable[..., Term]) -> None:
    claim = stable(with_transition(step))
    assert claim is not None
    found = verify_claim(claim)
    assert (found.holds, found.reason) == (True, "")
    assert len(found.near_misses) >= 2


def test_what_no_token_keeps_within_has_no_condition() -> None:
    assert stable(with_transition(lambda S, k, l, v, beta, eta: 2 * S * correcting(beta, k) * correcting(eta, l) + v * k.T)) is None
    assert stable(with_transition(lambda S, k, l, v, beta, eta: S * correcting(beta, k) * correcting(eta, l) / 2 + v * k.T)) is not None


def changed(claim: Claim, change: Callable[[Formula], Formula]) -> Claim:
    product, implied = claim.statement.conclusion.args
    assert isinstance(implied, Implies)
    premise, conclusion = implied.args
    assert isinstance(premise, And)
    said = And(product, Implies(And(*map(change, premise.args)), conclusion))
    return replace(claim, statement=replace(claim.statement, conclusion=said))


def test_wider_bounds_are_refuted() -> None:
    claim, i = stable(derive(KDA)), index("i")
    assert claim is not None
    gate = Row(KDA.inputs["a"][KDA.t], i)

    def rate(f: Formula) -> Formula:
        return LessEqual(f.args[0], Num(5) / Num(2)) if isinstance(f, LessEqual) and f.args[1] == Num(2) else f

    def gates(f: Formula) -> Formula:
        wider = And(LessEqual(Num(-2), gate), LessEqual(gate, 1))
        return ForAll(wider, i, 1, KDA.inputs["a"].rows) if isinstance(f, ForAll) else f

    assert prove_claim(changed(claim, lambda f: f)).scope == "all sizes"
    for change in (rate, gates):
        wrong = changed(claim, change)
        assert wrong.statement.conclusion != claim.statement.conclusion
        with pytest.raises(Unproved):
            prove_claim(wrong)
        assert certify(wrong.statement, draws=200).holds is False


def test_how_a_transition_is_read() -> None:
    one, other = Corrected(k, beta), Corrected(l, eta)
    assert factored(correcting(beta, k) * correcting(eta, l)) == (one, other)
    assert factored(I - beta * k * k.T - eta * l * l.T + eta * beta * l * (l.T * k) * k.T) == (other, one)
    assert factored(Diag(a) - beta * Diag(a) * k * k.T) == (Gated(Diag(a)), one)
    assert factored(Diag(a) - beta * k * (k.T * Diag(a))) == (one, Gated(Diag(a)))
    assert factored(g * correcting(beta, k) * Diag(a)) == (Scaled(g), one, Gated(Diag(a)))


@pytest.mark.parametrize(
    "matrix",
    [
        I - beta * k * k.T - eta * l * l.T,
        Diag(a) - beta * k * k.T,
        I - beta * k * l.T,
        correcting(beta, k) + g * I,
        correcting(beta, k) * Inverse(I + k * k.T),
        Diag(a) * (k * l.T),
    ],
)
def test_what_is_no_such_product(matrix: Term) -> None:
    assert factored(matrix) is None


def test_states_that_use_each_other_have_no_condition() -> None:
    assert stable(derive(TITANS)) is None
