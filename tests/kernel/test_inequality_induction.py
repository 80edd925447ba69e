"""Inductions on inequalities: the hypothesis is a known sign at its own index, under its own conditions, and nowhere else."""

from __future__ import annotations

from fractions import Fraction

import pytest

from isoform.derivations.kernel.formulas import And, Assumption, Equation, ForAll, Formula, Implies, Less, LessEqual, NonZero, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import (
    Cases,
    Direct,
    Each,
    Exists,
    ForEach,
    Hypothesis,
    Induction,
    Product,
    Script,
    Sign,
    Suppose,
    Unfold,
)
from isoform.derivations.kernel.terms import (
    Cond,
    Conj,
    Exp,
    Eye,
    Ind,
    Num,
    Sum,
    Term,
    Trace,
    equal,
    indices,
    le,
    matrix,
    norm2,
    recurrence,
    scalar,
    scalars,
    vectors,
)

s, t, j, n, N = indices("s t j n N")
d, e = indices("d e")
x, y, g = scalars("x"), scalars("y"), scalars("g")
a, b, c = scalar("a"), scalar("b"), scalar("c")
z = scalar("z", "complex")
ANY = le(0, t)
UP_TO_N = ANY & le(t, N)

S = recurrence("S", a, lambda t, S: S + x[t])
R = recurrence("R", b, lambda t, R: R + y[t])
F = recurrence("F", a, lambda t, F: g[t] * F)
growing = Assumption("growing", ForAll(LessEqual(0, x[s]), s, 1, N))
ordered = Assumption("ordered", ForAll(LessEqual(x[s], y[s]), s, 1, N))
start = Assumption("start", LessEqual(a, b))
strict_start = Assumption("start", Less(a, b))
positive = Assumption("positive", ForAll(LessEqual(0, g[s]), s, 1, N))


def proves(conclusion: Formula, script: Script, *assumptions: Assumption, where: Cond = UP_TO_N) -> bool:
    try:
        prove(Statement(conclusion, where, assumptions), script, lambda id: pytest.fail(id))
    except Unproved:
        return False
    return True


def gap(at: object) -> Term:
    return R[at] - S[at]


step = Sign((Product((gap(t),)), Product((y[t + 1] - x[t + 1],))))
below = LessEqual(S[t], R[t])


def test_sums_of_ordered_terms_are_ordered() -> None:
    assert proves(below, Induction(t, Sign(), step), start, ordered)


@pytest.mark.parametrize("dropped", [start, ordered])
def test_every_assumption_is_needed(dropped: Assumption) -> None:
    kept = [x for x in (start, ordered) if x is not dropped]
    assert not proves(below, Induction(t, Sign(), step), *kept)


def test_the_hypothesis_is_not_known_in_the_base_case() -> None:
    assert not proves(below, Induction(t, Sign((Product((R[0] - S[0],)),)), step), ordered)
    assert not proves(below, Induction(t, Sign((Product((b - a,)),)), step), ordered)


@pytest.mark.parametrize("at", [t + 1, t + 2, t - 1, N, 0, j])
def test_the_hypothesis_is_known_at_its_own_index_only(at: object) -> None:
    """A certificate with the gap of another time, even where the sum would come out."""
    claimed = Sign((Product((gap(at),)), Product((gap(t + 1) - gap(at),))))
    where = le(0, t) & le(t, N) & le(0, j) & le(j, N) & le(1, N)
    assert not proves(below, Induction(t, Sign(), claimed), start, where=where)


def test_the_goal_itself_is_no_fact() -> None:
    assert not proves(below, Induction(t, Sign(), Sign()), start)
    assert not proves(below, Induction(t, Sign(), Sign((Product((gap(t + 1),)),))), start)


def test_a_strict_conclusion_needs_a_strict_start() -> None:
    strictly = Less(S[t], R[t])
    assert proves(strictly, Induction(t, Sign(), step), strict_start, ordered)
    assert not proves(strictly, Induction(t, Sign(), step), start, ordered)
    # from S <= R alone, S < R does not follow in the step either
    both = And(below, strictly)
    each = Induction(t, Each((Sign(), Sign())), Each((step, Sign((Product((y[t + 1] - x[t + 1],)),)))))
    assert not proves(both, each, strict_start, ordered)


def test_a_factor_keeps_the_order_only_where_it_is_not_negative() -> None:
    falls = LessEqual(0, F[t])
    by = Sign((Product((g[t + 1], F[t])),))
    known = Assumption("start", LessEqual(0, a))
    assert proves(falls, Induction(t, Sign(), by), known, positive)
    assert not proves(falls, Induction(t, Sign(), by), known)
    negative = Assumption("negative", ForAll(LessEqual(g[s], 0), s, 1, N))
    assert not proves(falls, Induction(t, Sign(), by), known, negative)
    assert not proves(falls, Induction(t, Sign(), Sign((Product((-g[t + 1], -F[t])),))), known, negative)
    # one gate too few is known to be positive
    short = Assumption("positive", ForAll(LessEqual(0, g[s]), s, 1, N - 1))
    assert not proves(falls, Induction(t, Sign(), by), known, short)


def test_a_coefficient_below_0_turns_no_hypothesis_round() -> None:
    assert not proves(LessEqual(0, -F[t]), Induction(t, Sign(), Sign((Product((F[t],), Fraction(-1)),))), positive)


def test_the_conditions_of_the_goal_are_those_of_the_hypothesis() -> None:
    """For j < t the goal at t + 1 has j = t too, of which the hypothesis at t says nothing."""
    since = LessEqual(Sum(x[s], s, 1, j), Sum(x[s], s, 1, t))
    one = Sign((Product((Sum(x[s], s, 1, t) - Sum(x[s], s, 1, j),)), Product((x[t + 1],))))
    later = le(0, j) & le(j, t) & le(t, N)
    assert proves(since, Induction(t, Sign(), one, start=j), growing, where=later)
    assert not proves(since, Induction(t, Sign(), one, start=0), growing, where=later)
    assert not proves(LessEqual(S[t], R[j]), Induction(t, Sign(), Sign((Product((R[j] - S[t],)),)), start=j), start, where=later)


def test_a_hypothesis_under_a_condition_that_fails() -> None:
    """At t the hypothesis is about j < t; a step that shows j < t + 1 may not use it at j = t."""
    claim = LessEqual(0, x[j])
    where = le(1, j) & le(j, t - 1) & le(t, N)
    assert not proves(claim, Induction(t, Sign(), Sign(), start=1), where=where)
    assert not proves(claim, Induction(t, Sign(), Sign(), start=2), where=where)
    assert not proves(claim, Induction(t, strong=True, step=Sign()), where=where & le(0, t))


def test_two_predecessors() -> None:
    """x_{t+2} >= x_t gives x >= 0 from x_0 >= 0 and x_1 >= 0, and from nothing less."""
    leaps = Assumption("leaps", ForAll(LessEqual(x[s], x[s + 2]), s, 0, None))
    first, second = Assumption("first", LessEqual(0, x[0])), Assumption("second", LessEqual(0, x[1]))
    leap = Sign((Product((x[t],)), Product((x[t + 2] - x[t],))))
    claim = LessEqual(0, x[t])
    assert proves(claim, Induction(t, Sign(), leap, order=2), leaps, first, second, where=ANY)
    assert not proves(claim, Induction(t, Sign(), leap, order=2), leaps, first, where=ANY)
    assert not proves(claim, Induction(t, Sign(), leap, order=2), leaps, second, where=ANY)
    assert not proves(claim, Induction(t, Sign(), Sign((Product((x[t],)), Product((x[t + 1] - x[t],))))), leaps, first, where=ANY)
    # with one predecessor, the one before it is not supposed
    back = Sign((Product((x[t - 1],)), Product((x[t + 1] - x[t - 1],))))
    assert not proves(claim, Induction(t, Sign(), back), leaps, first, second, where=ANY)


def test_a_strong_hypothesis_holds_below_and_not_at_the_index_itself() -> None:
    claim = LessEqual(0, S[t])
    known = Assumption("start", LessEqual(0, a))

    def cases(by: tuple[Product, ...]) -> Cases:
        return Cases(((equal(t, 0), Sign()), (le(1, t), Sign(by, (Unfold(S[t]),)))))

    from_before = (Product((S[t - 1],)), Product((x[t],)))
    assert proves(claim, Induction(t, strong=True, step=cases(from_before)), known, growing)
    assert not proves(claim, Induction(t, strong=True, step=cases(from_before)), growing)
    assert not proves(claim, Induction(t, strong=True, step=Sign((Product((S[t],)),))), known, growing)
    assert not proves(claim, Induction(t, strong=True, step=cases((Product((S[t - 2],)), Product((x[t - 1] + x[t],))))), known, growing)
    # at t = 1 the predecessor 0 lies before the start of the induction
    late = Induction(t, strong=True, start=1, step=Sign(from_before, (Unfold(S[t]),)))
    assert not proves(claim, late, growing, where=le(1, t) & le(t, N))


def test_quantified_hypotheses_hold_in_their_range() -> None:
    """x_s >= 0 for s <= t does not give x_{t+1} >= 0; with x growing it does."""
    family = ForAll(LessEqual(0, x[s]), s, 0, t)
    monotone = Assumption("monotone", ForAll(LessEqual(x[s - 1], x[s]), s, 1, N))
    known = Assumption("start", LessEqual(0, x[0]))
    assert not proves(family, Induction(t, ForEach(Sign()), ForEach(Sign())), known)
    head = Sign((Product((x[t],)), Product((x[t + 1] - x[t],))))
    last = LessEqual(0, x[t])
    assert proves(last, Induction(t, Sign(), head), known, monotone)
    assert not proves(last, Induction(t, Sign(), head), monotone)
    assert not proves(last, Induction(t, Sign(), head), known)


def test_a_quantified_index_is_not_an_index_of_the_goal() -> None:
    """The hypothesis speaks of all s in 1..t, under a bound s; the goal's own s lies outside."""
    family = ForAll(LessEqual(0, x[s]), s, 1, t)
    outside = And(family, LessEqual(0, x[n]))
    script = Induction(t, Each((ForEach(Sign()), Sign())), Each((ForEach(Sign()), Sign())))
    assert not proves(outside, script, where=le(0, t) & le(t, N) & le(t, n))


def test_an_outer_hypothesis_is_gone_in_an_inner_induction() -> None:
    inner = Induction(n, Sign(), Sign((Product((R[t] - S[t],)),)))
    assert not proves(And(below, LessEqual(0, gap(t))), Induction(t, Each((Sign(), Sign())), Each((step, inner))), start, ordered)


def test_a_premise_is_not_supposed_of_the_next_index() -> None:
    whole = Implies(LessEqual(0, x[t]), LessEqual(0, S[t]))
    assert not proves(whole, Induction(t, Suppose(Sign()), Suppose(Sign())), start)


def test_equations_beside_inequalities() -> None:
    both = And(Equation(S[t] * c, c * S[t]), Equation(S[t], a + Sum(x[s], s, 1, t)), LessEqual(a, S[t]))
    rise = Sign((Product((S[t] - a,)), Product((x[t + 1],))))
    assert proves(
        both, Induction(t, Each((Direct(), Direct(), Sign())), Each((Direct(), Direct((Hypothesis(),)), rise))), growing
    )
    assert not proves(
        both, Induction(t, Each((Direct(), Direct(), Sign())), Each((Direct(), Direct((Hypothesis(),)), rise)))
    )


def test_an_inequality_is_no_equation() -> None:
    assert not proves(below, Induction(t, Sign(), Sign(by=(Hypothesis(),))), start, ordered)
    assert not proves(Equation(S[t], S[t] + F[t] - F[t]), Induction(t, Direct(), Sign()), start)


def test_what_is_not_zero_stays_so_under_factors_that_are_not() -> None:
    nonzero = Assumption("gates", ForAll(NonZero(g[s]), s, 1, N))
    begin = Assumption("start", NonZero(a))
    assert proves(NonZero(F[t]), Induction(t, Exists(), Exists()), nonzero, begin)
    assert not proves(NonZero(F[t]), Induction(t, Exists(), Exists()), nonzero)
    assert not proves(NonZero(F[t]), Induction(t, Exists(), Exists()), begin)


# squares that a certificate names as they stand

A, B = matrix("A", d, e), matrix("B", e, d)
C = matrix("C", d, d)
Z = matrix("Z", d, e, "complex")
k = vectors("k", d)


@pytest.mark.parametrize(
    ("square", "holds"),
    [
        ((a - b) ** 2, True),
        ((a - b) ** 3, False),
        ((a - b) * (a - b), True),
        ((a - b) * (b - a), False),
        ((a - b) * (a + b), False),
        ((a - z) ** 2, False),
        ((a - z) * (a - z), False),
        ((a - z) * (a - Conj(z)), True),
        (norm2(k[1] - k[2]), True),
        ((k[1] - k[2]).T * (k[1] + k[2]), False),
        ((k[1] - k[2]).T * (k[2] - k[1]), False),
        ((k[1] - k[2]).T * C * (k[1] - k[2]), False),
        (Trace((A - B.T).T * (A - B.T)), True),
        (Trace((A - B.T) * (A - B.T).T), True),
        (Trace((A - B.T) * (A.T + B)), False),
        (Trace((C - Eye(d)) * (C - Eye(d))), False),
        (Trace(C - Eye(d)), False),
        (Trace((A - Z).H * (A - Z)), True),
        (Trace((A - Z).T * (A - Z)), False),
        (Sum((x[s] - x[s + 1]) ** 2, s, 1, t), True),
        (Sum((x[s] - x[s + 1]) ** 2 * (x[s] - 1), s, 1, t), False),
        (Sum((x[s] - x[s + 1]) ** 2 * (y[s] - x[s]), s, 1, t), True),
        (Sum((x[s] - x[s + 1]) ** 2 * (y[s] - x[s]), s, 0, t), False),
        (Sum((x[s] - x[s + 1]) ** 2 * (y[s] - x[s]), s, 1, t + 1), False),
        (Sum(y[s] - x[s], s, 1, t), True),
        (Sum(x[s] - y[s], s, 1, t), False),
        ((a - b) ** 2 + (a - c) ** 2, True),
        ((a - b) ** 2 - (a - c) ** 2, False),
        (-((a - b) ** 2), False),
        ((a - b) ** 2 * Ind(t), True),
        ((a - b) ** 2 * Ind(t - 1), False),
        (Exp((a - b) ** 2) - 1, True),
        (Exp((a - b) ** 2) - 2, False),
        (Exp(-((a - b) ** 2)) - 1, False),
        (Exp(a - b) - 1, False),
        (Exp(z * z) - 1, False),
        (Exp((a - b) ** 2) - Exp(c), False),
        (1 - Exp((a - b) ** 2), False),
        (Sum(Exp(y[s] - x[s]) - 1, s, 1, t), True),
        (Sum(Exp(y[s] - x[s]) - 1, s, 0, t), False),
        (Ind(N - t), True),
        (Ind(t - N), False),
        (Sum(Ind(s - 1), s, 1, t), True),
        (Sum(Ind(s - 1), s, 0, t), False),
        ((a - b) ** 2 / (1 + a**2), True),
        ((a - b) ** 2 / (a**2 - 1), False),
        ((a - b) ** 2 / a**2, False),
        (Sum(Ind(s) * (a - b) ** 2, s, 0, t), True),
        (Sum(Ind(s) * (a - b) ** 2, s, -1, t), False),
    ],
)
def test_squares_as_they_are_written(square: Term, holds: bool) -> None:
    assert proves(LessEqual(0, square), Sign((Product((square,)),)), ordered) == holds


def test_a_square_is_not_known_to_be_positive() -> None:
    assert not proves(Less(0, (a - b) ** 2), Sign((Product(((a - b) ** 2,)),)))
    assert proves(Less(0, (a - b) ** 2 + 1), Sign((Product(((a - b) ** 2,)), Product((Num(1),)))))
