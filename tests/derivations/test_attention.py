"""The attention declarations, run on data, and what the column's proofs must not be able to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isoform.derivations import attention
from isoform.derivations.attention import prefix, updates
from isoform.derivations.attention.operators import FULL, MASKED
from isoform.derivations.claim import Claim
from isoform.derivations.evaluate import certify, oracle
from isoform.derivations.kernel import scripts as sc
from isoform.derivations.kernel.formulas import Declaration, Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.terms import Entry, Exp, Named, NegInf, Sum, indices, le, walk
from isoform.derivations.verification import prove_claim

Array = np.ndarray[Any, Any]
Visible = Callable[[int, int], bool]

OPERATORS = [(MASKED, lambda i, j: j <= i), (FULL, lambda i, j: True)]


def inputs(length: int, d_k: int = 3, d_v: int = 2) -> dict[str, Array]:
    """Sixteenths: exact in every number system."""
    rng = np.random.default_rng(5)
    return {name: rng.integers(-32, 33, (length, d)) / 16 for name, d in (("q", d_k), ("k", d_k), ("v", d_v))}


def softmax_attention(data: dict[str, Array], visible: Visible) -> Array:
    """The paper's formula without scale: -inf where a key is not visible, then softmax, then the values."""
    logits = data["q"] @ data["k"].T
    seen = np.array([[visible(i, j) for j in range(len(logits))] for i in range(len(logits))])
    weights = np.exp(np.where(seen, logits, -np.inf))
    return (weights / weights.sum(axis=1, keepdims=True)) @ data["v"]


@pytest.mark.parametrize(("declaration", "visible"), OPERATORS, ids=lambda x: getattr(x, "operator", ""))
def test_a_declaration_computes_the_papers_formula(declaration: Declaration, visible: Visible) -> None:
    data = inputs(6)
    balls, state = oracle(declaration, data, length=6, system="arb")
    floats, _ = oracle(declaration, data, length=6, system="float64")
    expected = softmax_attention(data, visible)
    assert state is None
    assert balls.shape == floats.shape == expected.shape == (6, 2)
    # the logits are exact; an exponential is within 2u, each of two sums of n terms within (n-1)u, a product and a
    # quotient within u each, all relative to the weighted mean of |v|; eps = 2u leaves room for the second order
    bound = (2 * 6 + 2) * np.finfo(float).eps * softmax_attention({**data, "v": np.abs(data["v"])}, visible)
    exact = np.array([[float(x) for x in row] for row in balls])
    assert (np.abs(floats - exact) <= bound).all()
    assert (np.abs(expected - exact) <= bound).all()


def test_the_two_operators_differ_before_the_last_row_and_agree_in_it() -> None:
    data = inputs(5)
    masked, full = (oracle(d, data, length=5, system="arb")[0] for d in (MASKED, FULL))
    assert all(a.overlaps(b) for a, b in zip(masked[-1], full[-1], strict=True))
    assert not any(a.overlaps(b) for a, b in zip(masked[0], full[0], strict=True))


def test_no_tokens_give_no_rows() -> None:
    for declaration in (MASKED, FULL):
        out, _ = oracle(declaration, inputs(0), length=0, system="float64")
        assert out.shape == (0, 2)


def part(claim: Claim, n: int, script: sc.Script) -> Claim:
    """One part of a claim's conclusion, with another proof."""
    conclusion = claim.statement.conclusion.args[n]
    return replace(claim, statement=replace(claim.statement, conclusion=conclusion), proof=script)


def test_the_downward_induction_needs_its_hypothesis_and_its_step() -> None:
    claim = prefix.DOWNWARD_INDUCTION
    step = sc.Given("one step", at={prefix.m: prefix.T - prefix.i, prefix.s: prefix.t})
    for reasons in ((sc.Hypothesis(),), (step,)):
        script = sc.Rowwise(prefix.t, sc.Induction(prefix.i, step=sc.Direct(reasons)))
        with pytest.raises(Unproved, match="leaves"):
            prove_claim(part(claim, 0, script))


def test_a_row_that_stays_needs_both_directions_of_its_premise() -> None:
    with pytest.raises(Unproved, match="leaves"):
        prove_claim(part(updates.FULL_NOT_PREFIX_INVARIANT, 1, sc.Both(sc.Direct(), sc.Direct())))


def no_lemma(claim: str) -> Statement:
    raise Unproved(f"no lemma {claim}")


def labelled(label: str) -> list[Named]:
    """The terms of the column that are shown under a label."""
    found = [n for c in attention.CLAIMS for s in (c.statement, *[m.statement for m in c.near_misses]) for n in walk(s.conclusion)]
    return list(dict.fromkeys(n for n in found if isinstance(n, Named) and n.label == label))


def test_softmax_is_of_what_its_label_shows() -> None:
    """Each entry of a term shown as softmax(X) is the softmax of that row of X."""
    shown = labelled("softmax")
    assert len(shown) > 5
    r, c, l, d_k, S, T, W, i, m, n = indices("r c l d_k S T W i m n")
    for node in shown:
        (x,) = node.arguments
        height, width = node.shape
        weight = Exp(Entry(x, r, c)) / Sum(Exp(Entry(x, r, l)), l, 1, width)
        where = le(1, r) & le(r, height) & le(1, c) & le(c, width) & le(1, d_k)
        where &= le(0, T) & le(T, S) & le(1, W) & le(0, i) & le(i, T) & le(1, m) & le(0, n)
        said = Statement(Equation(Entry(node, r, c), weight), where)
        if any(isinstance(n, NegInf) for n in walk(x)):  # a value for the kernel alone
            assert prove(said, sc.Direct(), no_lemma)
        else:
            assert certify(said).holds is True, node
