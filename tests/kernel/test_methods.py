"""Attacks on parts of conjunctions, existence, block matrices, powers and generic rows: the truth is proved, its neighbour is not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from isoform.derivations.kernel.formulas import And, Assumption, Equation, Formula, Invertible, Less, NonZero, Statement
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import (
    Direct,
    Each,
    Exists,
    ForEach,
    Given,
    Hypothesis,
    Induction,
    Ode,
    Part,
    Product,
    Rowwise,
    Script,
    Using,
)
from isoform.derivations.kernel.terms import (
    Block,
    Conj,
    Exp,
    Eye,
    Ind,
    Integral,
    Inverse,
    Stack,
    Sum,
    Term,
    Trace,
    Zero,
    indices,
    le,
    matrix,
    recurrence,
    scalar,
    scalars,
    vectors,
)

N, m, t, i, j, T = indices("N m t i j T")
A, B = matrix("A", N, N), matrix("B", N, m)
P, Q = matrix("P", N, N), matrix("Q", m, N)
identity = Eye(N)
a, b = scalar("a"), scalar("b")
z = scalar("z", "complex")
Z = matrix("Z", N, N, "complex")
x = scalars("x")


def proves(conclusion: Formula, script: Script, *assumptions: Assumption, where: object = None) -> bool:
    """Whether the script proves the formula."""
    statement = Statement(conclusion, le(0, t) if where is None else where, assumptions)  # type: ignore[arg-type]
    try:
        prove(statement, script, lambda id: pytest.fail(id))
    except ValueError:
        return False
    return True


# parts of a conjunction

left = Assumption("left", Less(z + Conj(z), 0))
away = (Product((1,)), Product((-(z + Conj(z)),)), Product((Conj(z) * z,)))  # |1 - z|^2

S = recurrence("S", a, lambda t, s: s + x[t])
R = recurrence("R", a, lambda t, s: x[t] + s)


def test_a_part_may_use_the_parts_before_it() -> None:
    both = And(Equation(S[t], R[t]), Equation(S[t] * b, R[t] * b))
    by_induction = Induction(t, step=Direct((Hypothesis(),)))
    assert proves(both, Each((by_induction, Direct((Part(1),)))))
    assert proves(both, Each((by_induction, Direct((Using(Part(1), right=b),)))))
    assert not proves(both, Each((by_induction, Direct())))


@pytest.mark.parametrize("number", [0, 1, 2, -1])
def test_a_part_may_not_use_itself_or_a_later_one(number: int) -> None:
    assert not proves(And(Equation(a, b), Equation(a, b)), Each((Direct((Part(number),)), Direct((Part(1),)))))


def test_there_is_no_part_outside_a_conjunction() -> None:
    assert not proves(Equation(a, b), Direct((Part(1),)))


def test_an_inner_conjunction_counts_its_own_parts() -> None:
    zero = Assumption("a = 0", Equation(a, 0))
    nested = And(Equation(a, 0), And(Equation(a + 0 * b, 0), Equation(b, 0)))
    assert not proves(nested, Each((Direct((Given("a = 0"),)), Each((Direct((Part(1),)), Direct((Given("a = 0"),)))))), zero)


def test_what_was_shown_of_an_index_is_gone_once_it_moves() -> None:
    """x_t = 0 at this one t: an induction on t must not find it at t = 0 or t + 1."""
    here = Assumption("now", Equation(x[T], 0))
    parts = And(Equation(x[T], 0), Equation(Sum(x[j], j, 1, t), 0))
    step = Direct((Hypothesis(), Part(1)))
    assert not proves(parts, Each((Direct((Given("now"),)), Induction(t, step=step))), here)
    assert not proves(parts, Each((Direct((Given("now"),)), ForEach(Direct((Part(1),))))), here)


def test_a_sign_that_was_shown_serves_later_parts() -> None:
    exists, one = NonZero(1 - z), Equation((1 - z) / (1 - z), 1)
    assert proves(And(exists, one), Each((Exists(away), Direct())), left)
    assert not proves(And(one, exists), Each((Direct(), Exists(away))), left)
    assert not proves(one, Direct(), left)


# existence


@pytest.mark.parametrize(
    ("conclusion", "holds"),
    [
        (NonZero(a * b), True),
        (NonZero(a * a), True),
        (NonZero(Exp(z)), True),
        (NonZero(2 * a / b), True),
        (NonZero(a + b), False),
        (NonZero(a - a * b), False),
        (NonZero(x[t]), False),
        (Invertible(a * A * P), True),
        (Invertible(Exp(Z)), True),
        (Invertible(Inverse(A) * A), True),
        (Invertible(A + P), False),
        (Invertible(B * B.T), False),
        (Invertible(x[t] * A), False),
        (Invertible(0 * A), False),
    ],
)
def test_products_of_known_factors_exist(conclusion: Formula, holds: bool) -> None:
    known = (NonZero(a), NonZero(b), Invertible(A), Invertible(P))
    assert proves(conclusion, Exists(), *[Assumption(str(n), f) for n, f in enumerate(known)]) == holds


def test_existence_needs_its_assumptions() -> None:
    assert not proves(NonZero(a), Exists())
    assert not proves(Invertible(A), Exists())
    assert not proves(Equation(a, a + 0 * b), Exists())


def test_a_number_is_not_zero_where_its_modulus_is_positive() -> None:
    assert proves(NonZero(1 - z), Exists(away), left)
    assert not proves(NonZero(1 - z), Exists(away))
    assert not proves(NonZero(1 + z), Exists(away), left)
    assert not proves(NonZero(1 - z), Exists(away[1:]), left)
    assert not proves(NonZero(a), Exists((Product((a, a)),)))
    assert not proves(NonZero(a), Exists((Product((a, a)), Product((a, -a), Fraction(-1)))))


def test_a_sign_says_nothing_of_an_inverse() -> None:
    assert not proves(Invertible(identity + A.T * A), Exists((Product((1,)),)))


# block matrices

zero = Zero(m, m)
generator = Block((A, B), (Zero(m, N), zero))


@pytest.mark.parametrize(
    ("block", "holds"),
    [
        (Block((A * A, A * B), (Zero(m, N), zero)), True),
        (Block((A * A, B), (Zero(m, N), zero)), False),
        (Block((A * A, A * B), (Q * A, zero)), False),
        (Block((A * A, A * B), (Zero(m, N), Eye(m))), False),
    ],
)
def test_blocks_multiply(block: Term, holds: bool) -> None:
    assert proves(Equation(generator * generator, block), Direct()) == holds


def test_blocks_have_their_places() -> None:
    whole = Block((identity, Zero(N, m)), (Zero(m, N), Eye(m)))
    assert proves(Equation(whole, Eye(N + m)), Direct())
    assert not proves(Equation(Block((identity, Zero(N, m)), (Zero(m, N), zero)), Eye(N + m)), Direct())
    assert proves(Equation(generator.T, Block((A.T, Zero(N, m)), (B.T, zero))), Direct())
    assert not proves(Equation(Block((A, Zero(N, N)), (Zero(N, N), P)), Block((P, Zero(N, N)), (Zero(N, N), A))), Direct())
    assert proves(Equation(Block((identity, Zero(N, m))) * generator, Block((A, B))), Direct())
    assert proves(Equation(Block((A,), (Q,)) * Block((A, B)), Block((A * A, A * B), (Q * A, Q * B))), Direct())
    assert proves(Equation(Block((A, B)) * Block((A,), (Q,)), A * A + B * Q), Direct())
    assert not proves(Equation(Block((A, B)) * Block((A,), (Q,)), A * A), Direct())


def test_partitions_of_one_size_are_not_one_partition() -> None:
    first, second = Block((identity, Zero(N, m))), Block((Zero(N, m), identity))
    assert proves(Equation(first * first.T, identity), Direct())
    assert proves(Equation(second * second.T, identity), Direct())
    assert not proves(Equation(first * second.T, identity), Direct())
    assert not proves(Equation(first * second.T, Zero(N, N)), Direct())


def test_the_trace_of_blocks() -> None:
    diagonal = Block((A, Zero(N, N)), (Zero(N, N), P))
    assert not proves(Equation(Trace(diagonal), Trace(A) - Trace(P)), Direct())


def test_the_exponential_of_a_nilpotent_block() -> None:
    nilpotent = Block((Zero(N, N), B), (Zero(m, N), zero))
    exponential = Block((identity, a * B), (Zero(m, N), Eye(m)))
    assert proves(Equation(Exp(a * nilpotent), exponential), Ode(a, matrix=nilpotent))
    assert not proves(Equation(Exp(a * nilpotent), Block((identity, B), (Zero(m, N), Eye(m)))), Ode(a, matrix=nilpotent))
    assert not proves(Equation(Exp(a * nilpotent), exponential), Ode(a, matrix=generator))


# powers and exponents


@pytest.mark.parametrize(
    ("left", "right", "holds"),
    [
        (Conj((1 + z) ** t), (1 + Conj(z)) ** t, True),
        (Conj((1 + z) ** t), (1 + z) ** t, False),
        (Conj((identity + Z) ** t), (identity + Conj(Z)) ** t, True),
        (Conj((identity + Z) ** t), (identity + Z) ** t, False),
        (((identity + Z) ** t).T, (identity + Z.T) ** t, True),
        (((identity + Z) ** t).T, (identity + Z) ** t, False),
    ],
)
def test_the_power_of_a_sum_is_turned_with_it(left: Term, right: Term, holds: bool) -> None:
    assert proves(Equation(left, right), Direct()) == holds


def test_powers_close_where_a_sum_is_peeled() -> None:
    v = vectors("v", N)
    weighted = recurrence("W", Zero(N, 1), lambda t, w: A * w + v[t])
    assert proves(Equation(weighted[t], Sum(A ** (t - j) * v[j], j, 1, t)), Induction(t))
    assert not proves(Equation(weighted[t], Sum(A ** (t - j + 1) * v[j], j, 1, t)), Induction(t))


def test_exponents_close_where_a_sum_is_peeled() -> None:
    v = vectors("v", N)
    weighted = recurrence("W", Zero(N, 1), lambda t, w: Exp(a * A) * w + v[t])
    assert proves(Equation(weighted[t], Sum(Exp(Ind(t - j) * a * A) * v[j], j, 1, t)), Induction(t))
    assert not proves(Equation(weighted[t], Sum(Exp(Ind(t - j + 1) * a * A) * v[j], j, 1, t)), Induction(t))
    decayed = recurrence("V", 0 * a, lambda t, w: Exp(a) * w + x[t])
    assert proves(Equation(decayed[t], Sum(Exp(Ind(t - j) * a) * x[j], j, 1, t)), Induction(t))
    assert not proves(Equation(decayed[t], Sum(Exp(Ind(t + j) * a) * x[j], j, 1, t)), Induction(t))


# generic rows and variables


def test_a_row_that_an_assumption_speaks_of_is_not_generic() -> None:
    v = vectors("v", N)
    one_row = Assumption("one row", Equation(v[i], Zero(N, 1)))
    all_rows = Equation(Stack(v[j].T, j, 1, T), Stack(0 * v[j].T, j, 1, T))
    assert not proves(all_rows, Rowwise(i, Direct((Given("one row"),))), one_row, where=le(0, T))


def test_an_integral_over_a_step_is_not_one_over_two() -> None:
    def integral(end: Term) -> Term:
        s = scalar("s")
        return Integral(Exp(s * A), s, 0, end)

    assert proves(Equation(integral(a + b), Exp(b * A) * integral(a) + integral(b)), Ode(a))
    assert not proves(Equation(integral(a + b), Exp(a * A) * integral(a) + integral(b)), Ode(a))
    assert not proves(Equation(integral(a + b), integral(a) + integral(b)), Ode(a))
