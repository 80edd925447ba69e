"""A claim in print: one name for one thing, definitions, chains, and what a near miss changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isoform.derivations.claim import Claim, NearMiss, variant
from isoform.derivations.kernel.formulas import And, Assumption, Equation, Statement
from isoform.derivations.kernel.naming import Names
from isoform.derivations.kernel.scripts import Chain, Each, Hypothesis, Induction, Link
from isoform.derivations.kernel.terms import Eye, Named, Rec, Sum, Zero, indices, le, lt, matrix, named, recurrence, vectors, walk
from isoform.derivations.registry import claims
from isoform.derivations.verification import prove_claim, verify_claim
from isoform.derivations.writing import Writing

t, j, d = indices("t j d")
k, v = vectors("k", d), vectors("v", d)
H0 = matrix("H0", d, d)
H = recurrence("H", H0, lambda t, h: h + v[t] * k[t].T)
other = recurrence("H", H0, lambda t, h: h + k[t] * v[t].T)
written = named("S", Sum(v[j] * k[j].T, j, 1, t), t)
fresh = Assumption("H_0 = 0", Equation(H0, Zero(d, d)), solve={H0: Zero(d, d)})
unrolled = Equation(H[t], H0 + written)
same = Equation(H[t] * 2, H[t] + H[t])
said = Statement(And(unrolled, same), le(0, t), (fresh,))
step = Chain((Link(H[t] + v[t + 1] * k[t + 1].T, note="the update"),), (Hypothesis(),), "the state before")

CLAIM = Claim(
    id="test/written",
    title="the state is what was written",
    statement=said,
    sources=(),
    proof=Each((Induction(t, step=step), Chain((Link(2 * H[t]),)))),
    near_misses=(
        variant(said, "transposed", And(Equation(other[t], H0 + written), same)),
        variant(said, "a state at the start", drop="H_0 = 0"),
        NearMiss("any time", Statement(said.conclusion, lt(0, t), (*said.assumptions, Assumption("d = I", Equation(H0, Eye(d)))))),
        variant(said, "the second part alone", same),
    ),
)


@pytest.fixture(scope="module")
def writing() -> Writing:
    return Writing(CLAIM, prove_claim(CLAIM))


def test_definitions_are_those_of_statement_and_derivation(writing: Writing) -> None:
    start, tex = writing.definitions()[0]
    assert start == "H_0 = H₀, H_t = H_{t−1} + v_t k_tᵀ"
    assert tex == r"H_{t} = H_{t-1} + v_{t} k_{t}^{\top}"
    assert [text for text, _ in writing.definitions()[1:]] == ["S_t = Σ_{j=1..t} v_j k_jᵀ"]


def test_parts_and_assumptions(writing: Writing) -> None:
    assert writing.parts() == ("H_t = H₀ + S_t", "H_t · 2 = H_t + H_t")
    assert writing.assumptions() == ("0 ≤ t", "H_0 = 0: H₀ = 0")


def test_steps_of_a_chain_continue_each_other(writing: Writing) -> None:
    steps = writing.steps()
    assert [s.continues for s in steps] == [False, False, True, False, True]
    assert steps[1].sides == ("H_{t+1}", "H_t + v_{t+1} k_{t+1}ᵀ")
    assert steps[2].sides == ("H_t + v_{t+1} k_{t+1}ᵀ", "H₀ + S_{t+1}")
    assert all(b.sides[0] == a.sides[1] for a, b in zip(steps, steps[1:], strict=False) if b.continues)


@pytest.mark.parametrize(
    ("n", "lines"),
    [
        (0, ("instead: H′_t = H₀ + S_t", "where H′_0 = H₀, H′_t = H′_{t−1} + k_t v_tᵀ")),
        (1, ("without the assumption: H_0 = 0",)),
        (2, ("for 1 ≤ t", "assuming d = I: H₀ = I")),
        (3, ("instead: H_t · 2 = H_t + H_t",)),
    ],
)
def test_changes(writing: Writing, n: int, lines: tuple[str, ...]) -> None:
    assert writing.changes(CLAIM.near_misses[n]) == lines


def test_latex_says_what_text_says(writing: Writing) -> None:
    assert writing.parts_latex() == (r"H_{t} = {H_{0}} + S_{t}", r"H_{t} \cdot 2 = H_{t} + H_{t}")
    assert writing.assumptions_latex() == (("", r"0 \le t"), ("H_0 = 0:", "{H_{0}} = 0"))
    assert writing.changes_latex(CLAIM.near_misses[1]) == (("without the assumption: H_0 = 0", ""),)
    assert writing.changes_latex(CLAIM.near_misses[2]) == (("for", r"1 \le t"), ("assuming d = I:", "{H_{0}} = I"))


def test_the_source_s_own_form_is_written_line_by_line() -> None:
    own = replace(CLAIM, as_written=replace(said, conclusion=And(same, unrolled), assumptions=()))
    lines = (("", r"H_{t} \cdot 2 = H_{t} + H_{t}"), ("", r"H_{t} = {H_{0}} + S_{t}"), ("for", r"0 \le t"))
    assert Writing(own, None).as_written_latex() == lines
    assert Writing(CLAIM, None).as_written_latex() == ()


def test_a_changed_statement_is_printed_anew() -> None:
    wrong = replace(CLAIM, statement=replace(said, conclusion=And(Equation(H[t], H0 * 1 + written), same)))
    assert Writing(wrong, None).parts()[0] == "H_t = H₀ · 1 + S_t"
    assert Writing(wrong, None).steps() == ()


def test_a_result_carries_what_is_written() -> None:
    result = verify_claim(replace(CLAIM, near_misses=CLAIM.near_misses[:1]))
    assert result.definitions and result.parts and result.near_misses[0].changes
    assert result.steps == Writing(CLAIM, prove_claim(CLAIM)).steps()


@pytest.mark.parametrize("claim", claims(), ids=lambda c: c.id)
def test_every_name_in_a_statement_is_defined(claim: Claim) -> None:
    names = Names((claim.statement,))
    sides = [e.lhs for d in names.definitions((claim.statement,)) for e in d.equations]
    defined = {called.name for x in sides if isinstance(x, (Named, Rec)) and (called := names.called(x))}
    used = [x for x in walk(claim.statement.conclusion) if isinstance(x, (Named, Rec))]
    shown = [called for x in used if (called := names.called(x))]
    assert {called.name for called in shown} <= defined
    assert bool(used) == bool(sides)
