"""Claims that are true and say nothing, or whose near misses prove nothing, do not hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isoform.derivations.claim import Claim, NearMiss, Source, variant
from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import And, Assumption, Equation, ForAll, Formula, Iff, Implies, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import is_trivial
from isoform.derivations.kernel.scripts import Both, Direct, Given, Script, Using
from isoform.derivations.kernel.terms import Expect, Eye, Num, Sum, Zero, indices, le, lt, matrix, scalars, vectors
from isoform.derivations.verification import prove_claim, verify_claim

d, t, j = indices("d t j")
X, Y, Z = (matrix(n, d, d) for n in "XYZ")
a, x = scalars("a"), vectors("x", d)
distributes = Statement(Equation((X + Y) * Z, X * Z + Y * Z))
one, two = variant(distributes, "one", Equation((X + Y) * Z, X * Z)), variant(distributes, "two", Equation((X + Y) * Z, Y * Z))
DIRECT = Direct()
false = Statement(Equation(Num(0), Num(1)))


def claim(
    statement: Statement, *misses: NearMiss, proof: Script = DIRECT, expected: str = "proved", written: Statement | None = None
) -> Claim:
    return Claim("x/y", "a title", statement, (Source("someone", "somewhere"),), misses, proof, expected, written)


def assuming(conclusion: Formula, *formulas: Formula) -> Statement:
    return Statement(conclusion, assumptions=tuple(Assumption(f"h{n}", f) for n, f in enumerate(formulas)))


def test_the_claim_that_the_others_spoil_holds() -> None:
    assert verify_claim(claim(distributes, one, two)).holds


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (claim(distributes, one, one), "two near misses, this one has 1"),
        (claim(distributes, one, replace(one, name="again")), "two near misses, this one has 1"),
        (claim(distributes, one, NearMiss("0 = 1", false)), "near miss 0 = 1 is about something else"),
        (claim(distributes, one, two, expected="refuted", written=false), "the statement as written is about something else"),
    ],
)
def test_near_misses_are_different_and_about_the_claim(spoilt: Claim, why: str) -> None:
    found = verify_claim(spoilt)
    assert not found.holds
    assert why in found.reason


def test_a_claim_that_fails_where_a_near_miss_does_is_seen() -> None:
    wrong, twice, thrice = (Statement(Equation(X * Z, X * Z + n * X)) for n in (1, 2, 3))
    found = verify_claim(claim(wrong, NearMiss("twice", twice), two, written=thrice))
    assert "near miss not rejected: twice: the claim itself fails at d=1" in found.reason
    assert "no counterexample to the statement as written: the claim itself fails at" in found.reason


unreadable = Statement(Equation(X, Expect(a[1], "a") * Y))


@pytest.mark.parametrize(
    ("miss", "why"),
    [
        (NearMiss("not evaluated", unreadable), "the search for a counterexample failed: an expectation is not evaluated"),
        (replace(one, name="another size", at={"T": 2}), "it fixes 'T', which is not in the statement"),
    ],
)
def test_a_search_that_fails_is_a_near_miss_not_rejected(miss: NearMiss, why: str) -> None:
    found = verify_claim(claim(distributes, one, two, miss))
    assert not found.holds
    assert found.reason == f"near miss not rejected: {miss.name}: {why}"


def test_a_statement_as_written_that_cannot_be_evaluated_leaves_the_claim_unknown() -> None:
    found = verify_claim(claim(distributes, one, two, expected="refuted", written=unreadable))
    assert found.verdict == "unknown"
    assert found.reason.endswith("the search for a counterexample failed: an expectation is not evaluated")


def test_a_near_miss_that_drops_an_assumption_changes_nothing_else() -> None:
    equal = Assumption("h0", Equation(X, Y), solve={X: Y})
    s = Statement(Equation(X * Z, Y * Z + X - Y), assumptions=(equal,))
    by = Direct((Using(Given("h0"), right=Z), Using(Given("h0"), left=-1)))
    other = variant(s, "another conclusion", Equation(X * Z, X))
    assert verify_claim(claim(s, variant(s, "any X", drop="h0"), other, proof=by)).verdict == "proved"
    for fake in (variant(s, "and more", Equation(X, Z), drop="h0"), replace(other, drops="h0")):
        found = verify_claim(claim(s, fake, variant(s, "third", Equation(X, X + Z)), proof=by))
        assert "no near miss drops the assumption h0" in found.reason


@pytest.mark.parametrize(
    "statement",
    [
        assuming(Equation(X, Y), Equation(X, Y)),
        assuming(Equation(X, Y), Equation(Y, X)),
        assuming(And(Equation(X, Y), Equation(Y, Z)), And(Equation(Y, Z), Equation(X, Y))),
        Statement(Iff(Equation(X, Y), Equation(Y, X))),
        Statement(Implies(And(Equation(X, Y), Equation(Y, Z)), Equation(Y, Z))),
        assuming(ForAll(Equation(a[j], 0), j, 1, t), ForAll(Equation(a[j], 0), j, 1, t)),
    ],
)
def test_what_is_assumed_is_no_claim(statement: Statement) -> None:
    with pytest.raises(Unproved, match="trivial"):
        prove_claim(claim(statement, proof=Both(Direct(), Direct())))


@pytest.mark.parametrize(
    "formula",
    [
        Implies(And(Equation(X, Y), Equation(Y, Z)), Equation(X, Z)),
        Iff(Equation(X, Y), Equation(Y, Z)),
        And(Equation(X, X), Equation(X, Y)),
        Implies(Equation(a[j], 0), ForAll(Equation(a[j], 0), j, 1, t)),
    ],
)
def test_what_follows_is_not_trivial(formula: Formula) -> None:
    assert not is_trivial(formula)


nothing = Equation(Eye(d), Zero(d, d))
none_of_them = ForAll(Equation(a[j] - a[j], 1), j, 1, t)


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        (assuming(Equation(X, Y), nothing), "d = 0"),
        (replace(assuming(Equation(Sum(a[j], j, 1, t), 5 * Sum(a[j], j, 1, t)), none_of_them), where=le(0, t)), "t = 0"),
        (
            replace(
                assuming(
                    Equation(Sum(x[j], j, 1, t), Zero(d, 1)),
                    ForAll(Equation(x[j] - x[j], Sum(x[j], j, 1, t)), j, 1, t),
                    ForAll(nothing, j, 1, t),
                ),
                where=le(0, t),
            ),
            "d = 0 or t = 0",
        ),
    ],
)
def test_a_model_where_there_is_nothing_is_none(statement: Statement, where: str) -> None:
    found = certify(statement)
    assert found.holds is None
    assert where in found.reason


def test_a_statement_about_one_length_has_a_model() -> None:
    assert certify(Statement(Equation(Sum(x[j], j, 1, t), Zero(d, 1)), le(0, t) & lt(t, 1))).holds


def test_a_premise_that_holds_rarely_is_reached_under_every_seed() -> None:
    rare = Statement(Implies(And(Equation(a[1], 0), Equation(a[2], 0)), Equation(a[1] * X, a[2] * Y)))
    for seed in range(8):
        assert certify(rare, seed=seed).holds
    assert certify(Statement(Implies(Equation(a[1], a[1] + 1), Equation(X, Y)))).holds is None
