"""Each node's value against one made by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isoform.derivations.evaluate import Environment, Singular, Undefined, UnsupportedTerm, evaluate
from isoform.derivations.evaluate.systems import Gaussian, Prime, Rationals
from isoform.derivations.kernel.terms import (
    Apply,
    At,
    Block,
    Conj,
    Diag,
    Entry,
    Exp,
    Expect,
    Eye,
    Family,
    Hadamard,
    Ind,
    Inverse,
    NegInf,
    Num,
    Power,
    Prod,
    Rec,
    Row,
    Rows,
    Stack,
    Sum,
    Trace,
    Transpose,
    Var,
    Where,
    Zero,
    entries,
    equal,
    index,
    indices,
    le,
    matrices,
    matrix,
    recurrence,
    scalar,
    scalars,
    vector,
    vectors,
)  # fmt: skip

T, t, i, j, n, m, d = indices("T t i j n m d")
A = matrix("A", 2, 2)
M = {("A", ()): [[1, 2], [3, 5]]}
x = scalar("x")
a = scalars("a")
SEQUENCE = {("a", (s,)): s * s + 1 for s in range(-3, 12)}


def rows(value: Any) -> list[list[Fraction]]:
    return [[Fraction(int(v)) for v in r] for r in np.asarray(value).tolist()]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Num(Fraction(3, 7)), [[Fraction(3, 7)]]),
        (A + A, [[2, 4], [6, 10]]),
        (A - A.T, [[0, -1], [1, 0]]),
        (A * A, [[7, 12], [18, 31]]),
        (A * A.T, [[5, 13], [13, 34]]),
        (2 * A * x, [[6, 12], [18, 30]]),
        (Hadamard(A, A.T), [[1, 6], [6, 25]]),
        (Inverse(A), [[-5, 2], [3, -1]]),
        (Power(A, 0), [[1, 0], [0, 1]]),
        (Power(A, 3), [[43, 74], [111, 191]]),
        (Power(A, -2), [[31, -12], [-18, 7]]),
        (Trace(A), [[6]]),
        (Row(A, 2), [[3, 5]]),
        (Entry(A, 1, 2), [[2]]),
        (Rows(A, 2, 2), [[3, 5]]),
        (Row(Rows(A, 2, 2), 2), [[3, 5]]),
        (Block([A, A.T], [Zero(1, 2), Row(A, 1)]), [[1, 2, 1, 3], [3, 5, 2, 5], [0, 0, 1, 2]]),
        (Diag(Transpose(Row(A, 1))), [[1, 0], [0, 2]]),
        (Conj(A), [[1, 2], [3, 5]]),
        (At(x * x + 1, x, Num(5)), [[26]]),
        (x / 2, [[Fraction(3, 2)]]),
    ],
)
def test_matrix_nodes(valued: Any, term: Any, expected: Any) -> None:
    assert valued(term, {}, {**M, ("x", ()): 3}) == expected


def test_zero_to_the_zero(valued: Any) -> None:
    assert valued(Power(Num(0), n), {n: 0}) == [[1]]
    assert valued(Power(Num(0), n), {n: 1}) == [[0]]
    with pytest.raises(Singular):
        valued(Power(Num(0), n), {n: -1})


@pytest.mark.parametrize(("lo", "hi"), [(1, 5), (2, 1), (0, 0), (-2, 3), (4, 0)])
def test_ranges(valued: Any, lo: int, hi: int) -> None:
    given = [s * s + 1 for s in range(lo, hi + 1)]
    assert valued(Sum(a[i], i, lo, hi), {}, SEQUENCE) == [[sum(given)]]
    assert valued(Prod(a[i], i, lo, hi), {}, SEQUENCE) == [[int(np.prod(given, initial=1))]]
    assert valued(Stack(a[i], i, lo, hi), {}, SEQUENCE) == [[g] for g in given]


def test_ordered_products(valued: Any) -> None:
    P = matrices("P", 2, 2)
    given = {("P", (s,)): [[1, s], [s * s, 2]] for s in range(1, 5)}
    up, down = np.eye(2, dtype=int), np.eye(2, dtype=int)
    for s in range(1, 5):
        up, down = up @ np.array(given["P", (s,)]), np.array(given["P", (s,)]) @ down
    assert (up != down).any()
    assert valued(Prod(P[i], i, 1, 4), {}, given) == rows(up)
    assert valued(Prod(P[i], i, 1, 4, True), {}, given) == rows(down)


def test_an_empty_product_is_the_identity_and_an_empty_sum_is_zero(valued: Any) -> None:
    P = matrices("P", n, n)
    assert valued(Prod(P[i], i, 1, T), {T: 0, n: 2}) == [[1, 0], [0, 1]]
    assert valued(Sum(matrices("Q", n, m)[i], i, 1, T), {T: 0, n: 2, m: 1}) == [[0], [0]]


def test_scalar_factors_may_stand_anywhere(valued: Any) -> None:
    k, v = vector("k", n), vector("v", m)
    given = {("k", ()): [1, 2], ("v", ()): [3, 4, 5], ("x", ()): 2}
    index_ = {n: 2, m: 3}
    assert valued(v * x * k.T, index_, given) == [[6, 12], [8, 16], [10, 20]]
    assert valued(k.T * k * v, index_, given) == [[15], [20], [25]]
    assert valued(v * (k.T * k) * v.T, index_, given) == rows(5 * np.outer([3, 4, 5], [3, 4, 5]))
    assert valued(x * x * k.T * k * x, index_, given) == [[40]]


def test_sizes_may_be_zero(valued: Any) -> None:
    v, B = vector("v", n), matrix("B", n, n)
    assert valued(v.T * v, {n: 0}) == [[0]]
    assert valued(matrix("C", 2, n) * matrix("D", n, 2), {n: 0}) == [[0, 0], [0, 0]]
    assert valued(Trace(Inverse(B)), {n: 0}) == [[0]]
    assert valued(Block([B, Zero(n, 2)], [Zero(2, n), Eye(2)]), {n: 0}) == [[1, 0], [0, 1]]
    e = Environment(Rationals(), {n: 0, m: 3}, pool=lambda rng: 1)
    assert e.system.shape(evaluate(matrix("C", n, m).T, e)) == (3, 0)


def test_where_evaluates_only_the_branch_selected(valued: Any) -> None:
    guarded = Where(le(1, t), 1 / Ind(t), Num(7))
    assert valued(guarded, {t: 0}) == [[7]]
    assert valued(guarded, {t: 4}) == [[Fraction(1, 4)]]
    with pytest.raises(Singular):
        valued(Where(le(0, t), 1 / Ind(t), Num(7)), {t: 0})
    assert valued(Where(equal(t, 2) & le(0, t), Num(1), Num(0)), {t: 2}) == [[1]]


def test_the_logarithm_of_zero_stands_under_exp(valued: Any) -> None:
    masked = Exp(Where(le(j, i), Num(0), NegInf()))
    assert valued(masked, {i: 1, j: 2}) == [[0]]
    assert valued(masked, {i: 2, j: 2}) == [[1]]
    assert valued(Exp(NegInf())) == [[0]]
    assert valued(Exp(x + Where(le(1, t), NegInf(), Num(0))), {t: 1}, {("x", ()): 5}) == [[0]]
    with pytest.raises(UnsupportedTerm):
        valued(NegInf() + 1)


def test_a_stack_is_numbered_by_its_own_index(valued: Any) -> None:
    S = Stack(a[i], i, 3, 6)
    assert valued(Row(S, 4), {}, SEQUENCE) == [[17]]
    assert valued(Rows(S, 4, 5), {}, SEQUENCE) == [[17], [26]]
    assert valued(Row(Rows(S, 4, 5), 5), {}, SEQUENCE) == [[26]]
    assert valued(Entry(S.T, 1, 4), {}, SEQUENCE) == [[17]]
    for wrong in (Row(S, 1), Row(S, 7), Row(Rows(S, 4, 5), 6), Row(A, 0), Row(A, 3), Entry(A, 1, 3), Rows(A, 1, 3)):
        with pytest.raises(Undefined):
            valued(wrong, {}, {**SEQUENCE, **M})
    with pytest.raises(UnsupportedTerm):
        valued(Row(S + Stack(a[i], i, 1, 4), 3), {}, SEQUENCE)


def test_an_empty_prefix(valued: Any) -> None:
    X = matrix("X", T, 2)
    assert valued(Rows(X, 1, t), {T: 3, t: 0}, {("X", ()): [[1, 2], [3, 4], [5, 6]]}) == []


def test_entries(valued: Any) -> None:
    mask = entries(Where(le(j, i), a[i - j], Num(0)), i, (1, 3), j, (1, 3))
    assert valued(mask, {}, SEQUENCE) == [[1, 0, 0], [2, 1, 0], [5, 2, 1]]
    assert valued(Entry(mask, 3, 1), {}, SEQUENCE) == [[5]]


def test_recursion_against_a_loop(valued: Any) -> None:
    F = recurrence("F", x, lambda s, prev: prev * a[s] + Ind(s))
    expected = Fraction(3)
    for s in range(0, 8):
        assert valued(F[T], {T: s}, {**SEQUENCE, ("x", ()): 3}) == [[expected]]
        expected = expected * ((s + 1) ** 2 + 1) + s + 1
    with pytest.raises(Undefined):
        valued(F[T], {T: -1}, {**SEQUENCE, ("x", ()): 3})


def test_a_recursion_may_start_anywhere_and_run_long(valued: Any) -> None:
    F = recurrence("F", Num(1), lambda s, prev: prev + 1, start=m)
    assert valued(F[T], {T: 5000, m: 3}) == [[4998]]


def test_nested_recursions_capture_the_outer_state(valued: Any) -> None:
    inner = lambda s, prev: recurrence("G", prev, lambda r, p: p + prev + r_(r), start=0)[s]  # noqa: E731
    r_ = Ind
    F = recurrence("F", x, inner)
    expected = 2
    for s in range(1, 5):
        state = expected
        for r in range(1, s + 1):
            state = state + expected + r
        expected = state
    assert valued(F[4], {}, {("x", ()): 2}) == [[expected]]


def test_bound_indices_hide_free_ones_and_give_them_back(valued: Any) -> None:
    term = Sum(Ind(i) * Sum(Ind(i), i, 1, 3), i, 1, 2) + Ind(i)
    assert valued(term, {i: 100}) == [[18 + 100]]
    shifted = Sum(a[i + t], i, 1, 2).subs({t: i})
    assert valued(shifted, {i: 3}, SEQUENCE) == [[(16 + 1) + (25 + 1)]]


def test_bound_variables_hide_atoms(valued: Any) -> None:
    term = At(x * At(x + 1, x, x * x), x, Num(3)) + x
    assert valued(term, {}, {("x", ()): 50}) == [[3 * 10 + 50]]


def test_a_rebound_index_in_a_recursion_is_not_confused_with_the_atom(valued: Any) -> None:
    F = recurrence("F", Num(0), lambda s, prev: prev + Ind(s))
    assert valued(Sum(F[t], t, 0, 3) + Ind(t), {t: 7}) == [[0 + 1 + 3 + 6 + 7]]


def test_functions_are_functions(valued: Any) -> None:
    f = lambda y: Apply("f", (y,), 2, 1)  # noqa: E731
    e = Environment(Rationals(), {}, seed=1, pool=lambda rng: rng.randint(-3, 3))
    v, w = vector("v", 2), vector("w", 2)
    same, other = evaluate(f(v + w), e), evaluate(f(w), e)
    assert same == evaluate(f(w + v), e)
    assert same != other
    assert evaluate(Apply("g", (w,), 2, 1), e) != other


def test_a_family_member_depends_on_its_indices_alone() -> None:
    e = Environment(Rationals(), {t: 3}, seed=5, pool=lambda rng: rng.randint(0, 10**9))
    k = vectors("k", 2)
    assert evaluate(k[t + 1], e) == evaluate(Var("k", (4,), 2, 1), e)
    assert evaluate(k[t], e) != evaluate(k[t + 1], e)
    again = Environment(Rationals(), {t: 3}, seed=5, pool=lambda rng: rng.randint(0, 10**9))
    assert evaluate(k[t + 1], again) == evaluate(k[t + 1], e)


@pytest.mark.parametrize("base", [Rationals(), Prime()])
def test_complex_numbers(base: Any) -> None:
    z, Z = scalar("z", "complex"), matrix("Z", 2, 2, "complex")
    system = Gaussian(base)
    e = Environment(system, {}, values={("z", ()): (3, 4), ("Z", ()): [[(1, 1), 2], [0, (0, 1)]]})
    assert evaluate(z * Conj(z), e) == system.number(25)
    assert evaluate(z * z, e) == system.number((-7, 24))
    assert evaluate(1 / z, e) == system.number((Fraction(3, 25), Fraction(-4, 25)))
    assert evaluate(Z * Inverse(Z), e) == system.eye(2)
    assert evaluate(Z.H, e) == system.of(2, 2, [[(1, -1), 0], [2, (0, -1)]])
    assert evaluate(Z.H, e) != evaluate(Z.T, e)
    assert evaluate(Diag(Transpose(Row(Z, 1))), e) == system.of(2, 2, [[(1, 1), 0], [0, 2]])
    with pytest.raises(Singular):
        evaluate(Inverse(Hadamard(Z, Zero(2, 2))), e)


def test_what_cannot_be_evaluated_says_so(valued: Any) -> None:
    with pytest.raises(UnsupportedTerm):
        valued(Expect(x, "x"), {}, {("x", ()): 1})
    with pytest.raises(UnsupportedTerm):
        valued(Exp(x), {}, {("x", ()): 1})
    with pytest.raises(Undefined):
        valued(Family("unknown")[3])
    with pytest.raises(Undefined):
        valued(vector("v", n), {n: 2}, {("v", ()): [1, 2, 3]})
    with pytest.raises(Undefined):
        valued(Ind(index("nowhere")))


def test_recursion_is_built_from_its_own_arguments() -> None:
    F = recurrence("F", Num(1), lambda s, prev: prev * 2)[T]
    assert isinstance(F, Rec)
    e = Environment(Rationals(), {T: 10})
    assert evaluate(F, e) == Rationals().number(1024)
