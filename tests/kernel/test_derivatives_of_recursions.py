"""Derivatives and integrals of members of recursions: each truth is proved, and the second engine refutes its false sibling."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import And, Assumption, Equation, NonZero, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Integrands, Ode, Rowwise, Script, Unfold, Using
from isoform.derivations.kernel.terms import (
    Deriv,
    Exp,
    Ind,
    Integral,
    Num,
    Rec,
    Row,
    Stack,
    Term,
    Where,
    index,
    le,
    matrix,
    recurrence,
    scalar,
    scalars,
)

from .attacks import REFUSALS, prover


def scaled_from(start: Term) -> Term:
    """s² times a start."""
    return recurrence("g", start, lambda j, g: s * g)[2]


n, d = index("n"), index("d")
s, x, y = map(scalar, ("s", "x", "y"))
a = scalars("a")
M = matrix("M", d, d)
later = le(0, n)
powers = recurrence("p", Num(1), lambda t, p: s * p)
from_s = recurrence("p", s * s, lambda t, p: s * p)
at_x = recurrence("p", Num(1), lambda t, p: x * p)
at_one = recurrence("p", Num(1), lambda t, p: 1 * p)
even_powers = recurrence("p", Num(1), lambda t, p: x * x * p)
squares = recurrence("q", s, lambda t, q: q * q)
steps = recurrence("r", Num(0), lambda t, r: r + Ind(t) * s * s)
nested = recurrence("w", Num(0), lambda t, w: s * w + powers[t])
through = recurrence("v", s, lambda t, v: scaled_from(v) + a[t])
growing = recurrence("E", Num(1) * scalar("e0"), lambda t, e: Exp(s * Ind(t)) * e)
areas = recurrence("I", s, lambda t, i: Integral(x * i * s, x, 0, s))
held = Assumption("s ≠ 0", NonZero(s))
inductive, by_hypothesis = Induction(n), Direct((Hypothesis(),))


@dataclass(frozen=True)
class Attack:
    """A true statement with its proof, and a false sibling that the same script must not prove."""

    true: Statement
    false: Statement
    script: Script


def about(left: Term, right: Term, wrong: Term, script: Script, *given: Assumption) -> Attack:
    return Attack(Statement(Equation(left, right), later, given), Statement(Equation(left, wrong), later, given), script)


def certified(left: Term) -> Induction:
    return Induction(n, step=Direct((Using(Hypothesis(), left=left),)))


def unfolded(*members: Rec) -> Direct:
    return Direct(tuple(map(Unfold, members)))


ATTACKS = {
    "the slope of a power": about(s * Deriv(powers[n], s), Ind(n) * powers[n], Ind(n + 1) * powers[n], certified(s)),
    "the initial value has a slope too": about(
        Deriv(from_s[n], s), Ind(n + 2) * s**-1 * from_s[n], Ind(n) * s**-1 * from_s[n], inductive, held
    ),
    "a square moves by both factors": about(
        Deriv(squares[n + 1], s),
        2 * squares[n] * Deriv(squares[n], s),
        squares[n] * Deriv(squares[n], s),
        unfolded(squares[n + 1]),
    ),
    "the index is a constant": about(Deriv(steps[n], s), 2 * steps[n] * s**-1, steps[n] * s**-1, inductive, held),
    "a recursion inside the step": about(
        Deriv(nested[n + 1], s),
        nested[n] + s * Deriv(nested[n], s) + Deriv(powers[n + 1], s),
        nested[n] + s * Deriv(nested[n], s),
        unfolded(nested[n + 1]),
    ),
    "a recursion that starts from the state before": about(
        Deriv(through[n + 1], s), Deriv(scaled_from(through[n]), s), s * s * Deriv(through[n], s), unfolded(through[n + 1])
    ),
    "a derivative of a derivative": about(
        Deriv(Deriv(powers[n + 1], s), s),
        2 * Deriv(powers[n], s) + s * Deriv(Deriv(powers[n], s), s),
        Deriv(powers[n], s) + s * Deriv(Deriv(powers[n], s), s),
        unfolded(powers[n + 1]),
    ),
    "an exponential of the index": about(
        Deriv(growing[n + 1], s),
        Ind(n + 1) * growing[n + 1] + Exp(s * Ind(n + 1)) * Deriv(growing[n], s),
        Ind(n) * growing[n + 1] + Exp(s * Ind(n + 1)) * Deriv(growing[n], s),
        unfolded(growing[n + 1]),
    ),
    "the ends of an integral move": about(
        Deriv(areas[n + 1], s),
        s * areas[n] * s + Integral(x, x, 0, s) * (areas[n] + s * Deriv(areas[n], s)),
        Integral(x, x, 0, s) * (areas[n] + s * Deriv(areas[n], s)),
        unfolded(areas[n + 1]),
    ),
    "a chain through an argument": about(
        x * Deriv(even_powers[n], x), 2 * Ind(n) * even_powers[n], Ind(n) * even_powers[n], certified(x * x)
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_derivatives_of_recursions(name: str) -> None:
    attack = ATTACKS[name]
    assert certify(attack.true, draws=12).holds is True
    assert certify(attack.false, draws=12).holds is False
    attempt = prover({})
    try:
        assert attempt(attack.true, attack.script).scope == "all sizes"
    except Unproved as e:
        pytest.fail(str(e)[:900])
    with pytest.raises(REFUSALS):
        attempt(attack.false, attack.script)


def test_what_has_no_derivative_has_none_as_a_member_either() -> None:
    """exp of a matrix that does not commute with its derivative; the state before is any matrix."""
    wild = recurrence("X", s * M + s * s * M.T, lambda t, X: Exp(X))
    with pytest.raises(REFUSALS):
        prover({})(Statement(Equation(Deriv(wild[n + 1], s), Deriv(wild[n], s) * wild[n + 1]), later), Direct((Unfold(wild[n + 1]),)))
    tame = recurrence("X", s * M, lambda t, X: s * M * X)
    assert prover({})(Statement(Equation(Deriv(tame[n + 1], s), M * tame[n] + s * M * Deriv(tame[n], s)), later), unfolded(tame[n + 1]))


def test_a_state_before_may_be_complex() -> None:
    """exp(s (conj X - X)) of a matrix is differentiated only where it commutes, which a real field of the bound state would promise."""
    C = matrix("C", d, d, "complex")
    odd = recurrence("X", s * C, lambda t, X: Exp(X.H - X))
    with pytest.raises(REFUSALS):
        prover({})(Statement(Equation(Deriv(odd[n + 1], s), 0 * M), later), unfolded(odd[n + 1]))


def test_a_derivative_is_unfolded_only_where_there_is_a_member_before() -> None:
    start = recurrence("p", s, lambda t, p: s * s * s)
    true = Statement(Equation(Deriv(start[n], s), Where(le(1, n), 3 * s * s, Num(1))), later)
    attempt = prover({})
    with pytest.raises(REFUSALS):
        attempt(Statement(Equation(Deriv(start[n], s), 3 * s * s), later), unfolded(start[n]))
    assert certify(true).holds is True
    assert attempt(Statement(Equation(Deriv(start[n], s), 3 * s * s), le(1, n)), unfolded(start[n]))


# integrals ---------------------------------------------------------------------------------------


def integral_of(p: Term) -> Term:
    return Integral(p, s, 0, 1)


def test_an_integral_of_members_is_linear() -> None:
    attempt = prover({})
    true = Statement(Equation(integral_of(2 * powers[n] + 1), 2 * integral_of(powers[n]) + 1), later)
    false = Statement(Equation(integral_of(2 * powers[n] + 1), 2 * integral_of(powers[n + 1]) + 1), later)
    assert attempt(true, Direct())
    assert certify(false).holds is False
    with pytest.raises(REFUSALS):
        attempt(false, Direct())


def test_members_at_different_variables_differ() -> None:
    """∫ds p(s) ∫dx q(x) against ∫ds p(s) q(s)."""
    twice = Integral(Integral(powers[n] * at_x[n], x, 0, 1), s, 0, 1)
    attempt = prover({})
    assert attempt(Statement(Equation(twice, integral_of(powers[n]) * Integral(at_x[n], x, 0, 1)), later), Direct())
    assert attempt(Statement(Equation(integral_of(powers[n]), Integral(at_x[n], x, 0, 1)), later), Direct())
    for wrong in (integral_of(powers[n] * powers[n]), Integral(powers[n] * at_x[n], x, 0, 1)):
        assert certify(Statement(Equation(twice, wrong), later)).holds is False
        with pytest.raises(REFUSALS):
            attempt(Statement(Equation(twice, wrong), later), Direct())


equal_integrals = Equation(integral_of(powers[n + 1] * y), integral_of(s * powers[n] * y))


def test_equal_integrands_have_equal_integrals() -> None:
    attempt = prover({})
    assert attempt(Statement(equal_integrals, later), Integrands(x, unfolded(at_x[n + 1])))
    for false in (
        Equation(integral_of(s * y), Integral(s * y, s, 0, 2)),
        Equation(integral_of(s * y), Integral(s * y, s, 1, 0)),
        Equation(integral_of(s * y), integral_of(y)),
        Equation(s * y, y),
    ):
        with pytest.raises(REFUSALS):
            attempt(Statement(false), Integrands(x))


@pytest.mark.parametrize("where", ["assumption", "formula", "earlier part", "hypothesis"])
def test_a_generic_variable_is_spoken_of_nowhere(where: str) -> None:
    """From x = 1 it does not follow that the integrals of s y and of y are equal."""
    attempt, one = prover({}), Equation(x, 1)
    false = Equation(integral_of(s * y), integral_of(y))
    statement, script = {
        "assumption": (Statement(false, assumptions=(Assumption("one", one),)), Integrands(x, Direct((Given("one"),)))),
        "formula": (Statement(Equation(integral_of(s * x), integral_of(x * x))), Integrands(x)),
        "earlier part": (Statement(And(Equation(x, 1), false)), Each((Direct(), Integrands(x)))),
        "hypothesis": (
            Statement(And(false, one), later),
            Induction(n, base=Each((Integrands(x), Direct())), step=Each((Integrands(x, by_hypothesis), by_hypothesis))),
        ),
    }[where]
    assert certify(statement if where != "assumption" else Statement(false)).holds is False
    with pytest.raises(REFUSALS):
        attempt(statement, script)  # type: ignore[arg-type]


def test_a_hypothesis_about_the_generic_variable_is_refused_by_name() -> None:
    """In a step that starts from the hypothesis x a_n = a_n, nothing follows for every x."""
    false = Equation(integral_of(s * a[n]), integral_of(a[n]))
    given = Assumption("base", Equation(a[0], 0))
    step = Each((Integrands(x, by_hypothesis), by_hypothesis))
    statement = Statement(And(false, Equation(x * a[n], a[n])), later, (given,))
    with pytest.raises(Unproved, match="not generic"):
        prover({})(statement, Induction(n, base=Each((Direct((Given("base"),)), Direct((Given("base"),)))), step=step))


def test_an_equation_by_its_derivative_works_with_members() -> None:
    """The integral of a derivative, by the derivative of the integral."""
    at_y = recurrence("p", Num(1), lambda t, p: y * p)
    total = Integral(Deriv(powers[n + 1], s), s, 1, y)
    true = Statement(Equation(total, at_y[n + 1] - at_one[n + 1]), later)
    false = Statement(Equation(total, at_y[n + 1]), later)
    assert certify(true, draws=8).holds is True
    assert certify(false, draws=8).holds is False
    by_y = Ode(y, start=1)
    assert prover({})(true, by_y).assumed == {"zero-derivative", "leibniz-rule"}
    with pytest.raises(REFUSALS):
        prover({})(false, by_y)


def test_a_row_of_a_derivative_is_the_derivative_of_that_row() -> None:
    """Rows are numbered as the matrix that moves numbers them."""
    i, T = index("i"), index("T")

    def rows(of: Term, first: int = 0) -> Stack:
        return Stack(of, i, first, T + first)

    attempt, moving = prover({}), Deriv(rows(a[i] * s * s), s)
    assert attempt(Statement(Equation(moving, rows(2 * a[i] * s)), le(0, T)), Rowwise(n))
    assert attempt(Statement(Equation(Row(moving, 0), 2 * a[0] * s), le(0, T)), Direct())
    for false in (Equation(moving, rows(2 * a[i] * s, 1)), Equation(moving, rows(a[i] * s)), Equation(Row(moving, 1), 2 * a[0] * s)):
        assert certify(Statement(false, le(1, T)), draws=8).holds is False
        with pytest.raises(REFUSALS):
            attempt(Statement(false, le(1, T)), Rowwise(n) if false.lhs == moving else Direct())


def test_an_end_may_speak_of_the_variable_of_a_derivative_inside() -> None:
    """∫ from s to s + 1 of x ds²/ds dx, and not of the derivative of an integral whose ends move."""
    inner = Integral(Deriv(x * s * s, s), x, s, s + 1)
    attempt = prover({})
    true, false = Equation(inner, 2 * s * s + s), Equation(inner, 3 * s * s + s)
    assert certify(Statement(true)).holds is True
    assert certify(Statement(false)).holds is False
    assert attempt(Statement(true), Direct())
    with pytest.raises(REFUSALS):
        attempt(Statement(false), Direct())
