"""Attacks through lemmas, inductions, names and nodes: the false statement is refused, a true sibling is proved.

The false statements were all proved once, or crashed the kernel; the second engine, or a counterexample by hand,
shows that they are false.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sympy import Integer

from isoform.derivations.kernel.formulas import (
    And,
    Equation,
    ForAll,
    Statement,
)
from isoform.derivations.kernel.proof import Proof, Unproved
from isoform.derivations.kernel.scripts import (
    Blockwise,
    Cases,
    Direct,
    Each,
    ForEach,
    Given,
    Hypothesis,
    Induction,
    Lemma,
    Rowwise,
    Sizes,
    Unfold,
    Using,
)
from isoform.derivations.kernel.terms import (
    Add,
    Block,
    Conj,
    Deriv,
    Exp,
    Expect,
    Ind,
    Integral,
    Num,
    Prod,
    Rec,
    Stack,
    Term,
    Trace,
    Var,
    Where,
    Zero,
    cuts,
    equal,
    index,
    le,
    matrix,
    recurrence,
    scalars,
)

from .attacks import (
    ANYWHERE,
    REFUSALS,
    A,
    B,
    M,
    T,
    a,
    al,
    b,
    be,
    check,
    d,
    given,
    i,
    identity,
    k,
    n,
    prover,
    s,
    t,
    u,
    x,
    y,
    z,
)

# lemmas ------------------------------------------------------------------------------------------

null = given("null", Equation(al[t], 0))
same = given("same", ForAll(Equation(al[i], be[i]), i, 1, 5))

LEMMAS: dict[str, tuple[Statement, Statement, Lemma | Using, Statement, Lemma | Using]] = {
    "an index that the lemma's assumption speaks of": (
        Statement(Equation(al[t] * be[t], 0), le(0, t), (null,)),
        Statement(Equation(al[t + 1] * be[t + 1], 0), le(0, t), (null,)),
        Lemma("lemma"),
        Statement(Equation(al[t] * be[t] * x, 0), le(0, t), (null,)),
        Lemma("lemma"),
    ),
    "an index that is fixed in the lemma and not in its assumption": (
        Statement(Equation(al[t] * be[t], 0), le(0, t), (null,)),
        Statement(Equation(al[t + 1] * be[t + 1], 0), le(0, t), (null,)),
        Lemma("lemma", at={t: t + 1}),
        Statement(Equation(al[t + 1] * be[t + 1], 0), le(0, t), (given("null", Equation(al[t + 1], 0)),)),
        Lemma("lemma", at={t: t + 1}),
    ),
    "the range that the lemma quantifies over": (
        Statement(ForAll(Equation(al[i] * be[i], be[i] * be[i]), i, 1, 5), ANYWHERE, (same,)),
        Statement(Equation(al[7] * be[7], be[7] * be[7]), ANYWHERE, (same,)),
        Lemma("lemma"),
        Statement(Equation(al[4] * be[4], be[4] * be[4]), ANYWHERE, (same,)),
        Lemma("lemma"),
    ),
    "a complex number for a real one": (
        Statement(Equation(Conj(x) * y, x * y)),
        Statement(Equation(Conj(z) * y, z * y)),
        Using(Lemma("lemma", families={"x": ((), z)})),
        Statement(Equation(Conj(a) * y, a * y)),
        Using(Lemma("lemma", families={"x": ((), a)})),
    ),
    "a matrix of another size": (
        Statement(Equation(x * Trace(A**0), x * Ind(d))),
        Statement(Equation(x * Ind(n), x * Ind(d))),
        Using(Lemma("lemma", families={"A": ((), matrix("C", n, n))})),
        Statement(Equation(x * Trace(B**0), x * Ind(d))),
        Using(Lemma("lemma", families={"A": ((), B)})),
    ),
    "a lemma about matrices of another size": (
        Statement(Equation(x * Trace(A**0), x * Ind(d))),
        Statement(Equation(x * Trace(matrix("C", n, n) ** 0), x * Ind(d))),
        Using(Lemma("lemma", at={d: n}, families={"A": ((), matrix("C", n, n))})),
        Statement(Equation(x * Trace(matrix("C", n, n) ** 0), x * Ind(n))),
        Using(Lemma("lemma", at={d: n}, families={"A": ((), matrix("C", n, n))})),
    ),
    "a number for a size": (
        Statement(Equation(x * Trace(A**0), x * Ind(d))),
        Statement(Equation(x * y, 2 * x * y)),
        Using(Lemma("lemma", at={d: 2}), right=y),
        Statement(Equation(x, x * Ind(1))),
        Using(Lemma("lemma", at={d: 1}, families={"A": ((), Num(1))})),
    ),
    "something random for a constant": (
        Statement(Equation(Expect(a * x, "x"), a * Expect(x, "x"))),
        Statement(Equation(Expect(x * x, "x"), x * Expect(x, "x"))),
        Using(Lemma("lemma", families={"a": ((), x)})),
        Statement(Equation(Expect(b * x, "x"), b * Expect(x, "x"))),
        Using(Lemma("lemma", families={"a": ((), b)})),
    ),
    "a variable of integration": (
        Statement(Equation(al[0] * Integral(s * y, s, 0, 1), al[0] * y / 2)),
        Statement(Equation(5 * al[0] * y, al[0] * y / 2)),
        Using(Lemma("lemma", families={"s": ((), Num(5))})),
        Statement(Equation(al[0] * Integral(s * b, s, 0, 1), al[0] * b / 2)),
        Using(Lemma("lemma", families={"y": ((), b)})),
    ),
    "the variable of a derivative": (
        Statement(Equation(Deriv(a * s, s) * y, a * y)),
        Statement(Equation(2 * s * y, s * y)),
        Using(Lemma("lemma", families={"a": ((), s)})),
        Statement(Equation(Deriv(b * s, s) * y, b * y)),
        Using(Lemma("lemma", families={"a": ((), b)})),
    ),
}


@pytest.mark.parametrize("name", LEMMAS)
def test_lemmas(name: str) -> None:
    lemma, false, wrongly, true, rightly = LEMMAS[name]
    attempt = prover({"lemma": lemma})
    assert attempt(true, Direct((rightly,)))
    with pytest.raises(REFUSALS):
        attempt(false, Direct((wrongly,)))


@pytest.mark.parametrize("name", ["a complex number for a real one", "a variable of integration", "the variable of a derivative"])
def test_what_does_not_fit_a_lemma_is_named(name: str) -> None:
    lemma, false, wrongly, _, _ = LEMMAS[name]
    with pytest.raises(ValueError, match=r"is real|of its own|differentiate"):
        prover({"lemma": lemma})(false, Direct((wrongly,)))


# inductions and scopes ---------------------------------------------------------------------------


def test_an_induction_starts_somewhere() -> None:
    """From 2 - 2t it would start at the even numbers, and never show t = 1."""
    from_two = Where(le(2, t), x, Num(0))
    assert prover({})(Statement(Equation(from_two, x), le(2, t)), Induction(t, start=2, step=Direct()))
    with pytest.raises(Unproved, match="moves with it"):
        prover({})(Statement(Equation(from_two, x), le(1, t)), Induction(t, start=2 - 2 * t, step=Direct()))


def test_a_strong_induction_keeps_the_ranges_that_it_quantifies_over() -> None:
    """Smaller t say nothing of i = 1 where the statement is about i = 0 alone."""
    W = scalars("W")
    shift = given("shift", ForAll(ForAll(Equation(W[i, t], W[i + 1, t - 1]), i, 0), t, 1))
    later = Direct((Given("shift"), Hypothesis()))
    strong = Induction(t, strong=True, step=ForEach(Cases(((le(t, 0), Direct((Given("first"),))), (le(1, t), later)))))

    def statement(last: int | None) -> Statement:
        first = given("first", ForAll(ForAll(Equation(W[i, t], 0), i, 0, last), t, 0, 0))
        return Statement(ForAll(Equation(W[i, t] * x, 0), i, 0, last), le(0, t), (shift, first))

    check(statement(0), statement(None), strong)


def test_a_scope_is_the_smallest_size_that_all_parts_reach() -> None:
    commute, associate = Equation(A * B, B * A), Equation((A * B).T, B.T * A.T)
    both = Statement(And(associate, commute))
    assert prover({})(both, Each((Sizes({d: (0, 1, 2)}), Sizes({d: (0, 1)})))).scope == "sizes <= 1"
    assert prover({})(Statement(And(associate, associate)), Each((Sizes({d: (0, 1, 2)}),) * 2)).scope == "sizes <= 2"


def test_an_index_is_no_size_to_state() -> None:
    """A statement that fails at t = 2 is not shown for sizes <= 1, whatever they are."""
    up_to_one = Statement(Equation(Where(le(t, 1), x, Num(0)), x), le(0, t))
    with pytest.raises(Unproved, match="no sizes here"):
        prover({})(up_to_one, Sizes({t: (0, 1)}))


def test_size_0_is_a_size() -> None:
    statement = Equation(Where(le(1, d), x, Num(0)) + Trace(identity), x + Trace(identity))
    assert prover({})(Statement(statement, le(1, d)), Sizes({d: (1, 2)})).scope == "sizes <= 2"
    with pytest.raises(Unproved, match="at d = 0"):
        prover({})(Statement(statement), Sizes({d: (1, 2)}))


# nodes, names and proofs by hand -----------------------------------------------------------------


def forged(name: str, base: type, **members: Any) -> Any:
    return type(name, (base,), members)


def test_a_node_that_is_called_zero_is_not_zero() -> None:
    fake = forged("Zero", Var)("q", (), 1, 1)
    with pytest.raises(Unproved, match="no node of the language"):
        prover({})(Statement(Equation(fake, 0)), Direct())
    assert prover({})(Statement(Equation(Zero(1, 1), x - x)), Direct())


def test_a_recursion_with_another_step() -> None:
    H = recurrence("H", Num(1), lambda t, state: state * x)
    lying = forged("Rec", Rec, step_at=lambda self, t, previous: Num(0))(*H[t + 1].args)
    with pytest.raises(Unproved, match="no node of the language"):
        prover({})(Statement(Equation(H[t + 1], 0), le(0, t)), Direct((Unfold(lying),)))
    assert prover({})(Statement(Equation(H[t + 1], x * H[t]), le(0, t)), Direct((Unfold(H[t + 1]),)))


def test_a_node_made_around_its_constructor() -> None:
    from sympy import Basic

    ill = Basic.__new__(Add, x, Zero(d, d))
    with pytest.raises(REFUSALS):
        prover({})(Statement(Equation(ill, x)), Direct())
    assert prover({})(Statement(Equation(Add(x, Zero(1, 1)), x)), Direct())


@pytest.mark.parametrize("name", ["#1.0", "$0", "tʹ"])
def test_a_generic_row_keeps_off_bound_names(name: str) -> None:
    """Row i of u'(Π_k (M_i + M_k)) is not u' Π_k (2 M_k)."""

    def rows(left: Any) -> Term:
        return Stack(u.T * Prod(left + M[k], k, 1, n), i, 1, T)

    false = Statement(Equation(rows(M[i]), rows(M[k])), le(0, n) & le(0, T))
    true = Statement(Equation(rows(M[i]), rows(M[i]) * identity), le(0, n) & le(0, T))
    with pytest.raises(Unproved, match="reserved"):
        prover({})(false, Rowwise(index(name)))
    check(false, true, Rowwise(t))


@pytest.mark.parametrize("row", [0, Integer(0), 2 * t, cuts("b")[0]])
def test_a_generic_row_is_a_symbol(row: Any) -> None:
    """A column that is 0 in row 0, and in even rows, is not 0."""
    column = Stack(Where(equal(i, 1), x, Num(0)), i, 0, 3)
    with pytest.raises(Unproved, match="is one row"):
        prover({})(Statement(Equation(column, 0 * column)), Rowwise(row))
    assert prover({})(Statement(Equation(column, 1 * column)), Rowwise(t))
    with pytest.raises(Unproved, match="is on an index"):
        prover({})(Statement(Equation(x, y)), Induction(row))


@pytest.mark.parametrize("name", ["negation", "premise", "premise 2", "part 1"])
def test_names_of_what_a_proof_supposes(name: str) -> None:
    statement = Statement(Equation(x * x, x * y), ANYWHERE, (given(name, Equation(x, y)),))
    with pytest.raises(Unproved, match="reserved"):
        prover({})(statement, Direct((Given(name),)))
    assert prover({})(replace(statement, assumptions=(given("equal", Equation(x, y)),)), Direct((Given("equal"),)))


def test_a_changed_copy_of_a_proof_is_no_proof() -> None:
    proof = prover({})(Statement(Equation(x + x, 2 * x)), Direct())
    with pytest.raises(TypeError, match="by hand"):
        replace(proof, scope="all sizes", used=frozenset({"nothing"}))
    with pytest.raises(TypeError, match="by hand"):
        Proof("direct", (), frozenset(), frozenset(), frozenset())


def test_blocks_that_do_not_correspond() -> None:
    script = Blockwise()
    true = Statement(Equation(Block([A, B]) * Block([A], [B]), Block([A * A + B * B])))
    false = Statement(Equation(Block([A]) * Block([B], [Zero(0, d)]), Block([B * A])))
    check(false, true, script)


def test_terms_nested_too_deeply_are_an_error() -> None:
    deep: Term = x
    for _ in range(400):
        deep = Exp(deep)
    with pytest.raises(Unproved, match="too deeply"):
        prover({})(Statement(Equation(deep, 0)), Direct())
    assert prover({})(Statement(Equation(Exp(Exp(x)) * 1, Exp(Exp(x)))), Direct())
