"""Gates written as they are in papers: entrywise products, and what a gate leaves, 1 - f. All that follows is proved of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isoform.derivations.claim import Claim
from isoform.derivations.kernel.formulas import Declaration, Equation
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.scripts import Direct, Unfold
from isoform.derivations.kernel.terms import Diag, Hadamard, Term, indices, walk
from isoform.derivations.layer import classify, derive, layer
from isoform.derivations.layer.classify import put
from isoform.derivations.layer.functions import entrywise, exp, sigmoid, tanh
from isoform.derivations.verification import prove_claim, verify_claim

m, n, p = indices("m n p")


def rest(f: Term) -> Term:
    """1 - f, entry by entry."""
    return entrywise(lambda x: 1 - x, f)


GATES: dict[str, Any] = {"domains": {"f": "real, 0 <= f_i <= 1"}, "source": "none"}
WITH_INPUTS: dict[str, Any] = {"inputs": {"x": p}, "parameters": {"W": (n, p), "U": (n, p)}, "state": {"h": n}, "source": "none"}

MINGRU = layer(
    "mingru",
    **WITH_INPUTS,
    update=lambda h, x, W, U: Hadamard(rest(sigmoid(W * x)), h) + Hadamard(sigmoid(W * x), U * x),
    read=lambda h: h,
)
QRNN = layer(
    "qrnn",
    inputs={"f": n, "z": n, "o": n},
    state={"c": n},
    update=lambda c, f, z: Hadamard(f, c) + Hadamard(rest(f), tanh(z)),
    read=lambda c, o: Hadamard(o, c),
    **GATES,
)
HGRN2 = layer(
    "hgrn2",
    inputs={"q": n, "f": n, "v": m},
    state={"H": (m, n)},
    update=lambda H, f, v: H * Diag(f) + v * rest(f).T,
    read=lambda H, q: H * q,
    **GATES,
)
OUTER = layer(
    "outer-gate",
    inputs={"q": n, "k": n, "v": m, "a": m, "g": n},
    state={"H": (m, n)},
    update=lambda H, k, v, a, g: Hadamard(a * exp(g).T, H) + v * k.T,
    read=lambda H, q: H * q,
    source="none",
)
MOVED = layer(
    "moved-by-a-gate",
    inputs={"z": n, "u": n},
    state={"h": n},
    update=lambda h, z, u: h + Hadamard(z, u - h),
    read=lambda h: h,
    source="none",
)
LAYERS = (MINGRU, QRNN, HGRN2, OUTER, MOVED)
SEQUENCE = ("update", "unrolled", "split-resume", "chunkwise", "scan")
SLOW = {"chunkwise", "scan", "masked"}


def slug(c: Claim) -> str:
    return c.id.partition("/")[2]


EACH = [pytest.param(d, c, id=c.id, marks=[pytest.mark.deep] if slug(c) in SLOW else []) for d in LAYERS for c in derive(d)]


@pytest.mark.parametrize(("declaration", "claim"), EACH)
def test_each_theorem_holds(declaration: Declaration, claim: Claim) -> None:
    found = verify_claim(claim, among=derive(declaration))
    assert found.reason == ""
    assert found.holds
    assert found.scope == "all sizes"


@pytest.mark.parametrize("declaration", [pytest.param(d, id=d.operator, marks=[] if d is QRNN else [pytest.mark.deep]) for d in LAYERS])
def test_all_that_there_are_for_a_diagonal_matrix_are_proved(declaration: Declaration) -> None:
    claims = derive(declaration)
    assert {*SEQUENCE} < set(map(slug, claims))
    assert str(classify(declaration).updates[0]).startswith("diagonal")
    for claim in claims:
        assert prove_claim(claim, claims).scope == "all sizes"


def test_the_update_is_proved_of_what_was_written() -> None:
    """The declared state has entrywise products; that they are products of matrices is shown."""
    update, written = derive(QRNN)[0], QRNN.state.member.step_at(QRNN.t, QRNN.state[QRNN.t - 1])
    assert any(isinstance(x, Hadamard) and QRNN.state[QRNN.t - 1] in x.args for x in walk(written))
    found = verify_claim(update)
    assert found.holds
    assert found.parts[0].startswith("c_{t+1}(n) = diag(f_{t+1}) c_t(n) + ")


WRONG: dict[str, tuple[Declaration, dict[str, Any]]] = {
    "the gate beside the new value too": (QRNN, {"update": lambda S, f, z: Hadamard(f, S) + Hadamard(f, tanh(z))}),
    "the gates changed places": (QRNN, {"update": lambda S, f, z: Hadamard(rest(f), S) + Hadamard(f, tanh(z))}),
    "no gate": (QRNN, {"update": lambda S, f, z: S + Hadamard(rest(f), tanh(z))}),
    "rows without a gate": (OUTER, {"update": lambda S, k, v, g: S * Diag(exp(g)) + v * k.T}),
    "a key without its gate": (HGRN2, {"update": lambda S, f, v: S * Diag(f) + v * f.T}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_theorem_of_one_is_none_of_a_wrong_one(name: str) -> None:
    """What the update of the right layer is, said of a state with another update, is refuted."""
    right, change = WRONG[name]
    own = {x: f.rows if f.cols == 1 else f.shape for x, f in right.inputs.items()}
    start: Any = right.initial_state
    given: dict[str, Any] = {"inputs": own, "state": {"S": n if start.cols == 1 else start.shape}}
    wrong = layer(right.operator, **given | change, read=lambda S: S, source="a wrong edit")
    update = next(c for c in derive(right) if slug(c) == "update")
    conclusion = update.statement.conclusion
    says = conclusion if isinstance(conclusion, Equation) else conclusion.args[0]
    assert isinstance(says, Equation)
    mixed = Equation(wrong.state[right.t + 1], put(says.rhs, {right.state[right.t]: wrong.state[right.t]}))
    said = replace(update, statement=replace(update.statement, conclusion=mixed), proof=Direct((Unfold(mixed.lhs),)), near_misses=())
    with pytest.raises(Unproved):
        prove_claim(said)
    assert "refuted at" in verify_claim(said).reason
