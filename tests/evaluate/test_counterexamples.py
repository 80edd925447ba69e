"""Counterexamples: exact or enclosed, plain to read, and evaluated again from what was recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from isoform.derivations.evaluate import UnsupportedTerm, recheck, refute
from isoform.derivations.evaluate.balls import Balls
from isoform.derivations.kernel.formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Iff,
    Implies,
    Less,
    LessEqual,
    NonZero,
    Statement,
)  # fmt: skip
from isoform.derivations.kernel.terms import (
    Apply,
    Block,
    Cond,
    Exp,
    Expect,
    Eye,
    Ind,
    Log,
    Num,
    Power,
    Prod,
    Sqrt,
    Sum,
    indices,
    le,
    matrix,
    norm2,
    recurrence,
    scalar,
    scalars,
    vector,
    vectors,
)  # fmt: skip

T, t, s, j, n, m, d = indices("T t s j n m d")
x, y, w = scalar("x"), scalar("y"), scalar("w", "complex")
A, B = matrix("A", n, n), matrix("B", n, n)
g = scalars("g")
k, v = vectors("k", d), vectors("v", m)
H = recurrence("H", matrix("H0", m, d), lambda r, P: P * (Eye(d) - k[r] * k[r].T) + v[r] * k[r].T)
REVERSED = Statement(
    Equation(
        H[T],
        matrix("H0", m, d) * Prod(Eye(d) - k[s] * k[s].T, s, 1, T, True)
        + Sum(v[j] * k[j].T * Prod(Eye(d) - k[s] * k[s].T, s, j + 1, T, True), j, 1, T),
    ),
    le(0, T),
)

FALSE = {
    "order": REVERSED,
    "commuting": Statement(Equation(A * B, B * A)),
    "bound": Statement(LessEqual(x, x * x)),
    "boundary": Statement(Less(x, x * x), Cond(), (Assumption("large", LessEqual(1, x)),)),
    "strict boundary": Statement(Less(0, x * x)),
    "complex": Statement(Equation(w * w, norm2(w))),
    "exp": Statement(Equation(Exp(A + B), Exp(A) * Exp(B))),
    "exp order": Statement(LessEqual(Exp(x), 1 + x)),
    "square root": Statement(Equation(Sqrt(x * x), x)),
    "for all": Statement(ForAll(Less(g[j], g[j + 1]), j, 1, T), le(1, T)),
    "logic": Statement(Iff(Equation(x * y, 0), And(Equation(x, 0), Equation(y, 0)))),
    "non-zero": Statement(NonZero(x * x - 1), Cond(), (Assumption("not one", NonZero(x - 1)),)),
    "function": Statement(Equation(Apply("f", (x,), 1, 1), Apply("f", (y,), 1, 1))),
}
TRUE = {
    "order": Statement(Equation((A * B).T, B.T * A.T)),
    "bound": Statement(LessEqual(2 * x, x * x + 1)),
    "exp": Statement(LessEqual(1 + x, Exp(x))),
    "no model": Statement(Equation(x, x + 1), Cond(), (Assumption("absurd", Less(x * x, 0)),)),
    "undecided": Statement(Less(Log(Num(6)) + 0 * x, Log(Num(2)) + Log(Num(3)))),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_statement_is_refuted(name: str) -> None:
    statement = FALSE[name]
    found = refute(statement)
    assert found is not None
    assert recheck(statement, found)
    assert "lhs = " in str(found) and "\n" not in str(found)
    assert json.loads(json.dumps(found.to_dict()))["system"] == found.system


@pytest.mark.parametrize("name", TRUE)
def test_a_true_statement_is_not(name: str) -> None:
    assert refute(TRUE[name], tries=300) is None


@pytest.mark.parametrize(
    ("name", "kind"), [("order", "exact"), ("complex", "exact"), ("logic", "exact"), ("exp", "enclosed"), ("square root", "enclosed")]
)
def test_a_counterexample_in_balls_is_not_called_exact(name: str, kind: str) -> None:
    found = refute(FALSE[name])
    assert found is not None and found.kind == kind


def test_a_counterexample_is_small_and_plain() -> None:
    found = refute(Statement(Equation(A * B, B * A)))
    assert found is not None
    assert found.sizes == (("n", 2),)
    numbers = [e for _, matrix_ in found.values for row in matrix_ for e in row]
    assert set(numbers) <= {0, 1}
    assert sum(numbers) == 2
    bound = refute(FALSE["bound"])
    assert bound is not None and bound.values == ((("x", ()), ((Fraction(1, 2),),)),)
    assert str(bound) == "x=1/2: lhs = 1/2, rhs = 1/4"


def test_a_plainer_number_may_leave_other_atoms_out() -> None:
    """With x = 0 the first part holds for any y, so that y is no longer asked for."""
    x, y = scalar("x"), scalar("y")
    found = refute(Statement(And(Implies(Less(0, x), Equation(y, 5)), Equation(x, 5))))
    assert found is not None
    assert found.values == ((("x", ()), ((0,),)),)


def test_a_counterexample_says_where_a_family_of_statements_fails() -> None:
    found = refute(FALSE["for all"])
    assert found is not None and found.where == "j=1"


def test_a_recheck_reads_the_recorded_values() -> None:
    found = refute(FALSE["bound"])
    assert found is not None
    tame = replace(found, values=((("x", ()), ((2,),)),))
    assert not recheck(FALSE["bound"], tame)
    assert not recheck(FALSE["bound"], replace(found, values=()))
    assert not recheck(REVERSED, found)
    assert not recheck(TRUE["bound"], found)


def test_a_recheck_demands_the_assumptions_and_the_ranges() -> None:
    statement = Statement(Equation(x, 1), Cond(), (Assumption("small", LessEqual(x, 2)),))
    found = refute(statement)
    assert found is not None and recheck(statement, found)
    assert not recheck(statement, replace(found, values=((("x", ()), ((3,),)),)))
    ranged = Statement(Equation(Ind(T), 0), le(0, T))
    longer = refute(ranged)
    assert longer is not None and longer.sizes == (("T", 1),) and recheck(ranged, longer)
    assert not recheck(ranged, replace(longer, sizes=(("T", -1),)))


def test_given_values_are_used_and_checked() -> None:
    harmonic = Statement(LessEqual(Sum(Prod(g[s], s, j + 1, T), j, 1, T), 2), le(0, T))
    found = refute(harmonic, at={"T": 8, g[s]: 1 - 1 / ((Ind(s) + 1) * (Ind(s) + 1))})
    assert found is not None
    assert dict(found.sizes) == {"T": 8}
    assert dict(found.values)["g", (2,)] == ((Fraction(8, 9),),)
    assert recheck(harmonic, found)
    assert refute(harmonic, at={T: 1, ("g", (1,)): 0}, tries=20) is None
    assert refute(FALSE["commuting"], at={n: 1}, tries=50) is None
    pinned = refute(FALSE["commuting"], at={n: 2, A: [[0, 5], [0, 0]]})
    assert pinned is not None and dict(pinned.values)["A", ()] == ((0, 5), (0, 0))
    with pytest.raises(KeyError):
        refute(harmonic, at={"length": 8})


def test_a_value_outside_an_assumption_is_no_counterexample() -> None:
    statement = Statement(LessEqual(0, x), Cond(), (Assumption("positive", Less(0, x)),))
    assert refute(statement, at={x: -1}, tries=5) is None


def test_a_solved_hypothesis_is_recorded_by_its_value() -> None:
    unit = Assumption("unit", Equation(norm2(vector("h", 2)), 1), {vector("h", 2): _unit()})
    statement = Statement(Equation(vector("h", 2).T * vector("e", 2), 1), Cond(), (unit,))
    found = refute(statement)
    assert found is not None and recheck(statement, found)
    (_, h), *_ = [item for item in found.values if item[0][0] == "h"]
    assert sum(e[0] * e[0] for e in h) == 1  # type: ignore[operator]


def _unit() -> Block:
    a = scalar("a")
    return Block([(1 - a * a) / (1 + a * a)], [2 * a / (1 + a * a)])


def test_a_solved_hypothesis_in_balls_is_recorded_by_its_fresh_atoms() -> None:
    root = Assumption("root", Equation(x * x, y * y + 1), {x: Sqrt(y * y + 1)})
    statement = Statement(Equation(x, y), Cond(), (root,))
    found = refute(statement)
    assert found is not None and recheck(statement, found)


def test_an_expectation_is_not_searched() -> None:
    with pytest.raises(UnsupportedTerm):
        refute(Statement(Equation(Expect(x, "x"), 0)))


def test_a_statement_that_is_nowhere_defined_has_no_counterexample() -> None:
    F = recurrence("F", Num(0), lambda r, p: p + 1)
    assert refute(Statement(Equation(F[T], 5), le(T, -1)), tries=50) is None


def test_a_power_off_by_one() -> None:
    statement = Statement(Equation(Power(x, T + 1), Power(x, T)), le(0, T))
    found = refute(statement)
    assert found is not None and dict(found.sizes) == {"T": 0}
    assert found.rhs == "1"


def test_values_that_do_not_fit_are_no_counterexample() -> None:
    assert refute(FALSE["commuting"], at={n: 3, A: [[0, 5], [0, 0]]}, tries=20) is None


@pytest.mark.parametrize("gap", [Fraction(1), Fraction(1, 2**80)])
def test_balls_are_of_full_precision_however_roughly_the_point_was_found(gap: Fraction) -> None:
    found = refute(Statement(Equation(Exp(x), Exp(x) + gap)))
    assert found is not None
    assert found.system == Balls().name
