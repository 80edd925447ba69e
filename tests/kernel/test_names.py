"""Named terms are their bodies: a label is printed, and changes nothing that is decided."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isoform.derivations.evaluate import certify, oracle, recheck, refute
from isoform.derivations.kernel.counterexample import refuted_by
from isoform.derivations.kernel.fingerprint import canonical, fingerprint
from isoform.derivations.kernel.formulas import (
    And,
    Assumption,
    Declaration,
    Equation,
    ForAll,
    Implies,
    Invertible,
    LessEqual,
    NonZero,
    Statement,
    plain,
)
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import is_trivial, prove
from isoform.derivations.kernel.scripts import (
    Blockwise,
    Chain,
    Direct,
    Exists,
    Given,
    Hypothesis,
    Induction,
    Lemma,
    Link,
    Rowwise,
    Script,
    Sign,
    Sizes,
    Unfold,
    UniqueInverse,
)
from isoform.derivations.kernel.terms import (
    Add,
    Block,
    BoundError,
    Exp,
    Eye,
    Inverse,
    Mul,
    Named,
    NegInf,
    Num,
    Row,
    Stack,
    Sum,
    Term,
    Zero,
    free,
    indices,
    le,
    matrix,
    named,
    norm2,
    recurrence,
    scalar,
    scalars,
    substitute,
    unnamed,
    vector,
    vectors,
    walk,
)

i, j, n, s, t, T, d = indices("i j n s t T d")
k, v = vectors("k", d), vectors("v", d)
a = scalars("a")
x, y = scalar("x"), scalar("y")
A, B = matrix("A", d, d), matrix("B", d, d)
HALF = Num(Fraction(1, 2))
H = recurrence("H", Zero(d, d), lambda t, h: h + v[t] * k[t].T)
total = Sum(v[j] * k[j].T, j, 1, t)


def nothing(claim: str) -> Statement:
    raise Unproved(f"no lemma {claim}")


def labelled(body: Term) -> Term:
    """The body under a label that mentions as much as possible of what is not in it."""
    loud = (T, s + 1, Exp(NegInf()), scalar("z", "complex"), H[t + 5], Inverse(Num(0)), v[t, t, t])
    return Named("X", loud, body)


# One label, two bodies ------------------------------------------------------------------------------------


PAIRS: list[tuple[Term, Term]] = [(A, B), (H[t], H[t - 1]), (A * B, B * A), (Num(1), Num(2)), (k[t], k[t + 1])]


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_a_label_makes_nothing_equal(one: Term, two: Term) -> None:
    said = Statement(Equation(named("X", one), named("X", two)), le(2, t))
    assert not is_trivial(said.conclusion)
    assert canonical(named("X", one)) != canonical(named("X", two))
    with pytest.raises(Unproved, match="leaves"):
        prove(said, Direct(), nothing)
    found = refute(said)
    assert found is not None and recheck(said, found)
    assert refuted_by(said, dict(found.sizes), dict(found.values)) == ""
    assert certify(said).holds is False


@pytest.mark.parametrize("body", [A, H[t], total, A * B, Num(2), Stack(v[i].T, i, 1, T)])
def test_two_labels_make_nothing_different(body: Term) -> None:
    for one, two in [(named("X", body), body), (named("X", body), named("Y", body)), (labelled(body), body)]:
        assert is_trivial(Equation(one, two)) and is_trivial(Implies(NonZero(x), Equation(one, two)))
        assert unnamed(one) == unnamed(two) and canonical(one) == canonical(two)
        with pytest.raises(Unproved, match="trivial"):
            prove(Statement(Equation(one, two)), Direct(), nothing)


def test_a_premise_is_trivial_under_another_label_too() -> None:
    assert is_trivial(Implies(NonZero(named("X", x)), NonZero(named("Y", x))))
    assert not is_trivial(Implies(NonZero(named("X", x)), NonZero(named("X", y))))


# What is said ---------------------------------------------------------------------------------------------


def test_unfolding_gives_the_term_as_written_without_names() -> None:
    built: list[tuple[Callable[[Callable[[Term], Term]], Any], str]] = [
        (lambda f: A + f(B + A), "a sum in a sum"),
        (lambda f: A * f(B * A), "a product in a product"),
        (lambda f: f(k[t].T * v[t]) * x, "a scalar product"),
        (lambda f: Sum(f(v[j]) * k[j].T, j, 1, t), "under a binder"),
        (lambda f: ForAll(Equation(f(a[t]), 0), t, 1), "under a quantifier"),
        (lambda f: Block([A, f(B)], [f(Zero(d, d)), A]), "in a block"),
        (lambda f: recurrence("G", f(A), lambda t, g: f(g) + f(H[t]))[t], "in a recursion"),
        (lambda f: f(f(A) + B), "in a name"),
    ]
    for make, what in built:
        with_names, without = make(labelled), make(lambda body: body)
        assert unnamed(with_names) == without, what
        assert not any(isinstance(node, Named) for node in walk(unnamed(with_names)))
        assert unnamed(without) == without


def test_a_label_binds_nothing_and_frees_nothing() -> None:
    assert free(labelled(a[t])) == free(a[t]) == {t}
    moved = substitute(named("X", a[t] * A, t), {t: s + 1})
    assert moved == named("X", a[s + 1] * A, s + 1)
    inner = Sum(named("X", a[j] * a[t], j, t), j, 1, T)
    renamed = substitute(inner, {t: j})
    assert canonical(renamed) == canonical(Sum(a[n] * a[j], n, 1, T))
    assert labelled(A * k[t]).shape == (d, 1)


def test_a_label_must_depend_on_what_it_shows() -> None:
    with pytest.raises(BoundError, match="X does not depend on s"):
        named("X", a[t], s)


def test_a_label_does_not_make_a_norm_complex() -> None:
    assert unnamed(norm2(labelled(v[t]))) == norm2(v[t])


def test_fingerprints_do_not_see_labels() -> None:
    bare = Statement(Equation(H[t], total), le(0, t), (Assumption("p", NonZero(x), solve={x: y}),))
    dressed = Statement(
        Equation(labelled(H[t]), labelled(total)), le(0, t), (Assumption("p", NonZero(labelled(x)), solve={x: labelled(y)}),)
    )
    assert plain(dressed) == bare and plain(bare) == bare
    assert fingerprint(dressed, dressed, [dressed]) == fingerprint(bare, bare, [bare])


# What is proved -------------------------------------------------------------------------------------------

f: Callable[[Term], Term] = labelled
IMPOSTOR = type("_Impostor", (Named,), {})

PROVED: dict[str, tuple[Statement, Script]] = {
    "induction": (
        Statement(Equation(f(H[t]), f(total)), le(0, t)),
        Induction(t, step=Chain((Link(f(f(H[t]) + v[t + 1] * k[t + 1].T)),), (Hypothesis(),))),
    ),
    "unfolding": (Statement(Equation(f(H[t]), f(H[t - 1]) + v[t] * k[t].T), le(1, t)), Direct((Unfold(H[t]),))),
    "rows": (
        Statement(Equation(f(Stack(f(v[i].T * 2), i, 1, T)), f(Stack(v[i].T, i, 1, T)) + f(Stack(v[i].T, i, 1, T))), le(0, T)),
        Rowwise(t, Direct()),
    ),
    "a row": (Statement(Equation(Row(f(Stack(v[i].T, i, 1, T)), t), f(v[t].T)), le(1, t) & le(t, T)), Direct()),
    "assumption": (
        Statement(Equation(f(x) * y, 2 * y), assumptions=(Assumption("two", Equation(x, f(Num(2))), solve={x: f(Num(2))}),)),
        Direct((Given("two"),)),
    ),
    "blocks": (Statement(Equation(f(Block([f(A), B])), Block([2 * A * HALF, f(B) * 1]))), Blockwise()),
    "sizes": (Statement(Equation(f(A * f(B)), A * B * 1)), Sizes({d: (1, 2)})),
    "inverse": (
        Statement(
            Equation(f(Inverse(A)), f(B)),
            assumptions=(Assumption("A", Invertible(f(A))), Assumption("AB", Equation(A * B, f(Eye(d))))),
        ),
        UniqueInverse((Given("AB"),)),
    ),
    "sign": (Statement(LessEqual(0, f(x**2))), Sign()),
    "existence": (Statement(NonZero(f(x) * y), assumptions=(Assumption("x", NonZero(f(x))), Assumption("y", NonZero(y)))), Exists()),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_every_method_reads_the_body(name: str) -> None:
    said, script = PROVED[name]
    dressed, bare = prove(said, script, nothing), prove(plain(said), script, nothing)
    for found in ("method", "used", "lemmas", "assumed", "scope"):
        assert getattr(dressed, found) == getattr(bare, found)
    assert [(o.method, o.by) for o in dressed.obligations] == [(o.method, o.by) for o in bare.obligations]


def test_a_lemma_is_used_for_what_it_says() -> None:
    lemma = Statement(Equation(f(H[t]), f(total)), le(0, t))
    library: Callable[[str], Statement] = lambda claim: lemma  # noqa: E731
    said = Statement(Equation(H[t] * A, f(total) * A), le(0, t))
    assert prove(said, Direct((Lemma("lemma"),)), library).lemmas == {"lemma"}
    root = Statement(Equation(f(x * f(x)), 2))
    instance = Lemma("root", families={"x": ((), f(a[t]))})
    assert prove(Statement(Equation(a[t] ** 2 + 1, 3)), Direct((instance,)), lambda claim: root).lemmas == {"root"}


def test_a_subclass_is_no_name() -> None:
    fake = IMPOSTOR("X", (), A)
    assert unnamed(fake + B) == fake + B
    with pytest.raises(Unproved, match="no node of the language"):
        prove(Statement(Equation(fake, B)), Direct(), nothing)
    with pytest.raises(Unproved, match="no node of the language"):
        prove(Statement(Equation(Named("X", (fake,), A * B), B * A)), Direct(), nothing)


# What is evaluated ----------------------------------------------------------------------------------------


def test_the_evaluator_sees_the_body_only() -> None:
    said = Statement(And(Equation(labelled(H[t]), labelled(total)), Equation(labelled(A) * 2, A + labelled(A))), le(0, t))
    dressed, bare = certify(said), certify(plain(said))
    assert dressed == bare and bare.holds is True and bare.system.startswith("GF")
    wrong = Statement(Equation(labelled(H[t]), labelled(total + v[t] * k[t].T)), le(1, t))
    assert refute(wrong) == refute(plain(wrong)) is not None


def test_the_oracle_runs_the_body() -> None:
    q = vectors("q", d)
    bare = Declaration("memory", {"q": q, "k": k, "v": v}, H[t] * q[t], t, H, None)
    dressed = Declaration("memory", {"q": q, "k": k, "v": v}, labelled(H[t]) * labelled(q[t]), t, H, None)
    data = {name: np.arange(6).reshape(3, 2) + m for m, name in enumerate("qkv")}
    one, two = (oracle(declared, data, length=3) for declared in (bare, dressed))
    assert (one[0] == two[0]).all() and (one[1] == two[1]).all() and one[0][1][0] != 0


# Recursions -----------------------------------------------------------------------------------------------


def test_a_recursion_captures_nothing_of_its_author() -> None:
    outer = recurrence("S", Num(0), lambda n, state: state + a[t])
    assert free(outer[5]) == {t}
    assert unnamed(substitute(outer[5], {t: 3})) == recurrence("S", Num(0), lambda n, state: state + a[3])[5]
    own = scalar("S'")
    assert own in free(recurrence("S", Num(0), lambda n, state: state + own)[5])


def test_recursions_in_recursions_keep_their_indices_apart() -> None:
    c = scalars("c")
    nested = recurrence("S", Num(0), lambda n, state: state + recurrence("R", Num(0), lambda m, inner: inner + c[n, m] * state)[n])
    written = Sum(c[1, j], j, 1, 1) * 0 + Sum(c[2, j], j, 1, 2) * nested[1]
    assert free(nested[t]) == {t}
    found = certify(Statement(Equation(nested[2], nested[1] + written)))
    assert found.holds is True
    wrong = Statement(Equation(nested[2], nested[1] + Sum(c[j, j], j, 1, 2)))
    assert certify(wrong).holds is False


def test_equal_recursions_are_equal_however_they_were_made() -> None:
    one = recurrence("H", Zero(d, d), lambda t, h: h + v[t] * k[t].T)
    assert one[t] == H[t] and canonical(one[t]) == canonical(H[t])
    assert Add(x, Mul(x, y)) == x + x * y and vector("w", d).shape == (d, 1)
