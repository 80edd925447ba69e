"""The kernel's own look at a counterexample: it refutes what is false, where it is false, and nothing else."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoform.derivations.evaluate import refute
from isoform.derivations.kernel import counterexample
from isoform.derivations.kernel.counterexample import refuted_by
from isoform.derivations.kernel.dense import Matrix, exponential, exponential_of
from isoform.derivations.kernel.enclosures import Number, below, ends, exact, hull, logarithm, precision, square_root
from isoform.derivations.kernel.formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Iff,
    Implies,
    Invertible,
    Less,
    LessEqual,
    NonZero,
    Statement,
)  # fmt: skip
from isoform.derivations.kernel.terms import (
    Apply,
    At,
    Block,
    Cond,
    Conj,
    Deriv,
    Diag,
    Entry,
    Exp,
    Expect,
    Eye,
    Hadamard,
    Ind,
    Integral,
    Inverse,
    Log,
    Mul,
    NegInf,
    Num,
    Power,
    Prod,
    Row,
    Rows,
    Sqrt,
    Stack,
    Sum,
    Trace,
    Where,
    Zero,
    entries,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrices,
    matrix,
    norm2,
    recurrence,
    scalar,
    scalars,
    vector,
    vectors,
)  # fmt: skip
from isoform.derivations.linear_attention import forms

T, t, i, j, n, m, d = indices("T t i j n m d")
x, y, s, r, D = scalar("x"), scalar("y"), scalar("s"), scalar("r"), scalar("D")
w, z = scalar("w", "complex"), scalar("z", "complex")
A, B = matrix("A", n, n), matrix("B", n, n)
b = vector("b", n)
g, u = scalars("g"), scalars("u")
q, k, v = vectors("q", d), vectors("k", d), vectors("v", m)
ALWAYS = Cond()
SMALL = Fraction(1, 10**9)

HALF = Fraction(1, 2)
H = recurrence("H", matrix("H0", m, d), lambda t, P: P * (Eye(d) - g[t] * k[t] * k[t].T) + g[t] * v[t] * k[t].T)
LINEAR = recurrence("F", vector("f0", n), lambda t, f: A * f + b * u[t])


def at(**values: Any) -> dict[tuple[str, tuple[int, ...]], Any]:
    """Values of atoms: a number, or rows; a mapping gives those of a family, by index."""
    out = {}
    for name, given_ in values.items():
        family = given_ if isinstance(given_, Mapping) else {(): given_}
        for key, value in family.items():
            rows = value if isinstance(value, list) else [[value]]
            out[name, key if isinstance(key, tuple) else (key,)] = tuple(tuple(row) for row in rows)
    return out


def look(conclusion: Formula, sizes: Mapping[str, int] | None = None, *assumptions: Formula, where: Cond = ALWAYS, **values: Any) -> str:
    named = tuple(Assumption(f"no. {n}", f) for n, f in enumerate(assumptions, 1))
    return refuted_by(Statement(conclusion, where, named), sizes or {}, at(**values))


class Drawn(dict[Any, Any]):
    """Values for atoms of the names above, drawn when first asked for."""

    def __init__(self, seed: int, sizes: Mapping[str, int]) -> None:
        self.rng = Random(seed)
        n, m, d = (sizes.get(s, 0) for s in "nmd")
        square, column = {"A": (n, n), "B": (n, n)}, {"b": (n, 1), "f0": (n, 1), "v": (m, 1), "q": (d, 1), "k": (d, 1)}
        self.shapes = {**square, **column, "H0": (m, d)}

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple) or key[0] not in {*self.shapes, *"xysrDguwz"}:
            return super().__contains__(key)
        rows, cols = self.shapes.get(key[0], (1, 1))
        if key not in self.keys():
            self[key] = tuple(tuple(self._number(key[0]) for _ in range(cols)) for _ in range(rows))
        return True

    def _number(self, name: str) -> Any:
        def part() -> Fraction:
            return Fraction(self.rng.randint(-4, 4), self.rng.choice((1, 2, 3)))

        if name in "wz":
            return (part(), part())
        return abs(part()) + 1 if name in "xysD" else part() / (4 if name in "AB" else 1)


SCORE = q[i].T * k[j]
SOFTMAX = entries(Exp(Where(le(j, i), SCORE, NegInf())) / Sum(Exp(q[i].T * k[t]), t, 1, i), i, (1, T), j, (1, T))
UNROLLED = matrix("H0", m, d) * Prod(Eye(d) - g[t] * k[t] * k[t].T, t, 1, T) + Sum(
    g[j] * v[j] * k[j].T * Prod(Eye(d) - g[t] * k[t] * k[t].T, t, j + 1, T), j, 1, T
)
TRUE: dict[str, Formula] = {
    "transposes": Equation((A * B).T, B.T * A.T),
    "delta rule": Equation(H[T], UNROLLED),
    "state space": Equation(LINEAR[T], Power(A, T) * vector("f0", n) + Sum(Power(A, T - j) * b * u[j], j, 1, T)),
    "rows": Equation(Stack(k[i].T, i, 1, T).T * Stack(q[i].T, i, 1, T), Sum(k[i] * q[i].T, i, 1, T)),
    "labels": Equation(Stack(Row(Stack(g[i] * k[i].T, i, 0, T), j + 1), j, 0, T - 1), Rows(Stack(g[i] * k[i].T, i, 0, T), 1, T)),
    "entry of a product": Equation(Sum(Entry(A * B, i, i), i, 1, n), Trace(B * A)),
    "blocks": Equation(Block([A, b], [b.T, Num(1)]).T, Block([A.T, b], [b.T, Num(1)])),
    "mask": Equation(Hadamard(entries(SCORE, i, (1, T), j, (1, T)), entries(indicator(equal(i, j)), i, (1, T), j, (1, T))),
                     entries(Where(equal(i, j), SCORE, Num(0)), i, (1, T), j, (1, T))),
    "diagonal": Equation(Diag(b) * A, Hadamard(b * Stack(Num(1), i, 1, n).T, A)),
    "zeroth power": Equation(Power(A - A, T - T), Eye(n)),
    "complex": Equation(w * Conj(w) * z.H, norm2(w) * Conj(z)),
    "adjoint": Equation((w * A).H, Conj(w) * A.T),
    "function": Equation(Apply("f", (x * y,), 1, 1), Apply("f", (y * x,), 1, 1)),
    "square": LessEqual(2 * x * y, x * x + y * y),
    "exponential": LessEqual(1 + s, Exp(s)),
    "either": Iff(Equation(s * r, 0), Implies(NonZero(s), Equation(r, 0))),
    "inverse": Implies(Invertible(A), Equation(Inverse(A) * A, Eye(n))),
    "softmax row": Equation(SOFTMAX * Stack(Num(1), i, 1, T), Stack(Num(1), i, 1, T)),
    "homomorphism": Equation(Exp(s + w), Exp(s) * Exp(w)),
    "matrix exponential": Equation(Exp(A) * Exp(-A), Eye(n)),
    "log": Equation(Log(x * y), Log(x) + Log(y)),
    "root": Equation(Sqrt(x * y) * Sqrt(x / y), x),
    "fundamental theorem": Equation(A * Integral(Exp(s * A), s, 0, D), Exp(D * A) - Eye(n)),
    "polynomial integral": Equation(Integral((s + r) * s, s, D, x), (x * x * x - D * D * D) / 3 + r * (x * x - D * D) / 2),
    "derivative": Equation(Deriv(Exp(s * A), s), A * Exp(s * A)),
    "product rule": Equation(Deriv(s * s * Log(1 + s * s), s), 2 * s * Log(1 + s * s) + s * s * 2 * s / (1 + s * s)),
    "root rule": Equation(Deriv(Sqrt(1 + s * s), s), s / Sqrt(1 + s * s)),
    "variation of constants": Equation(
        Deriv(Integral(Exp((D - s) * A) * b * s, s, 0, D), D), A * Integral(Exp((D - s) * A) * b * s, s, 0, D) + b * D
    ),
    "value of a derivative": Equation(At(Deriv(s * s * s, s), s, x), 3 * x * x),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_a_true_statement_is_refuted_nowhere(name: str) -> None:
    for seed in range(4):
        sizes = {"n": (seed + 2) % 4 if seed else 2, "m": seed, "d": (seed * 2) % 3, "T": (3, 0, 1, 2)[seed]}
        if "theorem" in name or "variation" in name:
            sizes["n"] = seed % 2
        values = Drawn(seed, sizes)
        for f in range(4):
            values[f"f#{f}", (2,)] = ((Fraction(f - 2, 3), Fraction(1 + f)),)
        reason = refuted_by(Statement(TRUE[name]), sizes, values)
        assert reason == "the conclusion holds at this point" or reason.startswith("undecided"), (seed, reason)


ENCLOSED = ("softmax row", "homomorphism", "matrix exponential", "log", "root", "fundamental theorem", "derivative", "product rule",
            "root rule", "variation of constants")  # fmt: skip


@pytest.mark.parametrize("name", ENCLOSED)
def test_sides_that_are_equal_overlap_and_a_small_shift_parts_them(name: str) -> None:
    sizes, given_ = {"n": 1 if "variation" in name else 2, "m": 1, "d": 2, "T": 2}, TRUE[name]
    assert isinstance(given_, Equation)
    assert refuted_by(Statement(given_), sizes, Drawn(5, sizes)) == "undecided at this point: the enclosures do not decide the conclusion"
    shift = SMALL * Stack(Stack(Num(1), i, 1, given_.lhs.cols).T, j, 1, given_.lhs.rows)
    assert refuted_by(Statement(Equation(given_.lhs, given_.rhs + shift)), sizes, Drawn(5, sizes)) == ""


EXACT = {
    "exp of 0": Equation(Exp(x - x), 1),
    "nilpotent": Equation(Exp(matrix("N", 2, 2)), Eye(2) + matrix("N", 2, 2)),
    "derivative at 0": Equation(At(Deriv(Deriv(Exp(s), s), s), s, 0), 1),
    "integral of a nilpotent": Equation(Integral(Exp(s * matrix("N", 2, 2)), s, 0, x), x * Eye(2) + x * x / 2 * matrix("N", 2, 2)),
    "square root": Equation(Sqrt(x * x / 4), x / 2),
    "log of 1": Equation(Log(x / x), 0),
    "nested": Equation(Integral(Integral(s * r, s, 0, r), r, 0, 1), Fraction(1, 8)),
}


@pytest.mark.parametrize("name", EXACT)
def test_what_is_rational_is_decided_exactly(name: str) -> None:
    f = EXACT[name]
    values: dict[str, Any] = {"x": Fraction(3, 7), "N": [[2, -4], [1, -2]]}
    assert look(f, **values) == "the conclusion holds at this point"
    shifted = f.rhs + Fraction(1, 10**60) * Stack(Stack(Num(1), i, 1, f.rhs.cols).T, j, 1, f.rhs.rows)
    assert look(Equation(f.lhs, shifted), **values) == ""


def test_a_false_statement_is_refuted_where_it_fails_and_only_there() -> None:
    f = Equation(A * B, B * A)
    up, down = [[0, 1], [0, 0]], [[0, 0], [1, 0]]
    assert look(f, {"n": 2}, A=up, B=down) == ""
    assert look(f, {"n": 2}, A=up, B=up) == "the conclusion holds at this point"
    assert look(f, {"n": 0}) == "the conclusion holds at this point"
    assert look(Less(x, x * x), x=HALF) == ""
    assert look(Less(x, x * x), x=1) == ""
    assert look(LessEqual(x, x * x), x=1) == "the conclusion holds at this point"
    assert look(LessEqual(Exp(x), 1 + x), x=SMALL) == ""
    assert look(NonZero(x - 1), x=1) == ""
    assert look(Invertible(A), {"n": 2}, A=[[1, 2], [2, 4]]) == ""
    assert look(Invertible(A), {"n": 2}, A=[[1, 2], [2, 5]]) == "the conclusion holds at this point"
    assert look(Invertible(A), {"n": 0}) == "the conclusion holds at this point"
    assert look(Equation(Exp(A + B), Exp(A) * Exp(B)), {"n": 2}, A=up, B=down) == ""


def test_complex_values() -> None:
    f = Equation(w * w, norm2(w))
    assert look(f, w=(0, 1)) == ""
    assert look(f, w=(2, 0)) == "the conclusion holds at this point"
    assert look(Equation(Exp(w).H, Exp(w)), w=(1, HALF)) == ""
    assert look(Equation(Conj(Exp(w)), Exp(Conj(w))), w=(1, HALF)).startswith("undecided")
    assert look(Less(norm2(1 + w), norm2(1 - w)), w=(1, 1)) == ""
    assert look(Less(norm2(Exp(w)), 1), w=(-1, 5)).startswith("the conclusion holds")
    assert look(Less(norm2(Exp(w)), 1), w=(HALF, 5)) == ""
    assert look(Less(w, 1), w=(0, 1)) == "an order between numbers that are not real"
    assert look(Equation(x, 1), x=(0, 1)) == "x is declared real, and its value is not"


def test_lengths_from_zero() -> None:
    late = recurrence("F", vector("f0", n), lambda t, f: A * f + b * u[t])
    f = Equation(late[T], Sum(Power(A, T - j) * b * u[j], j, 1, T))
    assert look(f, {"T": 0, "n": 1}, f0=1) == ""
    assert look(f, {"T": 0, "n": 1}, f0=0) == "the conclusion holds at this point"
    assert look(f, {"T": 2, "n": 1}, f0=1, A=2, b=1, u={1: 1, 2: 1}) == ""
    assert look(f, {"T": 2, "n": 0}, u={1: 1, 2: 1}) == "the conclusion holds at this point"
    assert look(f, {"T": -1, "n": 1}, f0=1) == "F at -1, before its start at 0"
    assert look(f, {"T": -1, "n": 1}, where=le(0, T), f0=1) == "the point is outside the index conditions"
    assert look(f, {"T": 0, "n": -1}, f0=1) == "the size n is -1"
    assert look(Equation(Prod(A, i, 1, T), Zero(n, n)), {"T": 0, "n": 1}) == ""
    empty = Equation(Stack(k[i].T, i, 1, T) * q[0], Stack(Num(0), i, 1, T))
    assert look(empty, {"T": 0, "d": 2}, q={0: [[1], [1]]}) == "the conclusion holds at this point"


def test_the_order_of_products_and_the_labels_of_rows() -> None:
    a, c = [[0, 1], [0, 0]], [[0, 0], [1, 0]]
    ordered = matrices("P", 2, 2)
    up, down = Prod(ordered[i], i, 1, 2), Prod(ordered[i], i, 1, 2, True)
    assert look(Equation(up, ordered[1] * ordered[2]), P={1: a, 2: c}) == "the conclusion holds at this point"
    assert look(Equation(down, ordered[1] * ordered[2]), P={1: a, 2: c}) == ""
    numbered = Stack(g[i], i, 0, 2)
    assert look(Equation(Entry(numbered, 1, 1), g[1]), g={0: 5, 1: 6, 2: 7}) == "the conclusion holds at this point"
    assert look(Equation(Entry(numbered, 1, 1), g[0]), g={0: 5, 1: 6, 2: 7}) == ""
    assert look(Equation(Entry(numbered, 3, 1), g[0]), g={0: 5, 1: 6, 2: 7}) == "row or column 3..3 of 0..2"
    scaled = Entry(numbered * x, 1, 1)
    product = Entry(numbered * Stack(g[j], j, 1, 2).T, 1, 2)
    assert look(Equation(scaled, 6 * x), g={0: 5, 1: 6, 2: 7}, x=2) == "the conclusion holds at this point"
    assert look(Equation(product, 42), g={0: 5, 1: 6, 2: 7}) == "the conclusion holds at this point"
    three = Mul(q[1].T, k[1], v[1])
    assert look(Equation(three, 11 * v[1]), {"d": 2, "m": 1}, q={1: [[1], [2]]}, k={1: [[3], [4]]}, v={1: 5}).startswith("the conclusion")
    swapped = [[0, 2], [1, 0]]
    assert look(Equation(Inverse(A), A / 2), {"n": 2}, A=swapped) == "the conclusion holds at this point"
    mixed = Entry(numbered + Stack(g[i], i, 1, 3), 1, 1)
    assert look(Equation(mixed, 0), g={0: 5, 1: 6, 2: 7, 3: 8}) == "rows or columns that are numbered in two ways"


def test_softmax() -> None:
    shifted = Sum(Exp(u[j] + x), j, 1, T)
    f = Equation(Exp(u[1] + x) / shifted, Exp(u[1]) / Sum(Exp(u[j]), j, 1, T))
    assert look(f, {"T": 2}, u={1: 1, 2: 2}, x=3).startswith("undecided")
    assert look(Equation(f.lhs, Exp(u[1] + x) / Sum(Exp(u[j]), j, 1, T)), {"T": 2}, u={1: 1, 2: 2}, x=SMALL) == ""
    masked = Exp(Where(lt(T, 1), u[1], NegInf()))
    assert look(Equation(masked, 0), {"T": 1}, u={1: 1}) == "the conclusion holds at this point"
    assert look(Equation(masked, 0), {"T": 0}, u={1: 1}) == ""
    assert "NegInf is not evaluated" in look(Equation(Num(0) * NegInf(), 0))


def test_a_near_miss_of_the_zero_order_hold() -> None:
    held = Inverse(A) * (Exp(D * A) - Eye(n)) * b
    integral = Integral(Exp(s * A), s, 0, D) * b
    values: dict[str, Any] = {"D": HALF, "A": [[1, 2], [-1, 0]], "b": [[1], [1]]}
    assert look(Equation(held, integral), {"n": 2}, Invertible(A), **values).startswith("undecided")
    assert look(Equation(held + SMALL * b, integral), {"n": 2}, Invertible(A), **values) == ""
    assert look(Equation(D * b, integral), {"n": 2}, **values) == ""
    assert look(Equation(D * b, integral), {"n": 2}, D=HALF, A=[[0, 0], [0, 0]], b=[[1], [1]]) == "the conclusion holds at this point"
    bilinear = Inverse(Eye(n) - D / 2 * A) * (Eye(n) + D / 2 * A)
    assert look(Equation(bilinear, Exp(D * A)), {"n": 2}, **values) == ""
    assert look(Equation(bilinear, bilinear), {"n": 1}, D=2, A=1) == "a division by 0"
    assert look(Equation(bilinear, bilinear), {"n": 2}, D=2, A=[[1, 0], [0, 3]]) == "the inverse of a singular matrix"


def test_assumptions_have_to_hold() -> None:
    f = Equation(x, y)
    assert look(f, {}, Less(x, y), x=1, y=2) == ""
    assert look(f, {}, Less(x, y), Less(y, x), x=1, y=2) == "the assumption no. 2 does not hold at this point"
    undecided = look(f, {}, Equation(Exp(x) * Exp(-x), 1), x=1, y=2)
    assert undecided == "undecided at this point: the enclosures do not decide the assumption no. 1"
    assert look(f, x=1) == "y has no value at this point"
    assert look(Equation(u[T], 0), {"T": 2}, u={1: 1}) == "u[2] has no value at this point"
    assert look(Equation(u[T], 0), {}, u={1: 1}) == "the index T has no value"
    assert look(Equation(b, b), {"n": 2}, b=[[1]]) == "the value of b is 1 x 1, not 2 x 1"


def test_a_model_of_an_assumption_gives_values_that_were_not_recorded() -> None:
    root = Assumption("root", Equation(x * x, y), {x: Sqrt(y)})
    assert refuted_by(Statement(Equation(x, y), Cond(), (root,)), {}, at(y=4)) == ""
    assert refuted_by(Statement(Equation(x, y), Cond(), (root,)), {}, at(y=1)) == "the conclusion holds at this point"
    assert refuted_by(Statement(Equation(x, y), Cond(), (root,)), {}, at(x=3, y=4)) == "the assumption root does not hold at this point"
    powers = Assumption("powers", ForAll(Equation(u[t + 1], 2 * u[t]), t, 0, T), {u[t]: Power(Num(2), t)})
    assert refuted_by(Statement(Less(u[T], 4), le(0, T), (powers,)), {"T": 2}, {}) == ""
    assert refuted_by(Statement(Less(u[T], 5), le(0, T), (powers,)), {"T": 2}, {}) == "the conclusion holds at this point"
    circle = Assumption("circle", Equation(x, y), {x: y, y: x})
    assert refuted_by(Statement(Equation(x, 0), Cond(), (circle,)), {}, {}).endswith("has no value at this point")


def test_functions_are_read_as_they_were_recorded() -> None:
    f = Equation(Apply("f", (x,), 1, 1), Apply("f", (y,), 1, 1))
    cubic: dict[str, Any] = {f"f#{i}": {2: [[1, 0]]} for i in range(1, 4)}
    assert look(f, {}, x=1, y=2, **cubic, **{"f#0": {2: [[0, 5]]}}) == ""
    assert look(f, {}, x=1, y=2, **cubic, **{"f#0": {2: [[-7, 5]]}}) == "the conclusion holds at this point"
    assert look(f, {}, x=1, y=2) == "f#0[2] has no value at this point"
    found = refute(Statement(f))
    assert found is not None and refuted_by(Statement(f), dict(found.sizes), dict(found.values)) == ""


def test_logic_has_three_values() -> None:
    true, false, unknown = Equation(x, x), Equation(x, x + 1), Equation(Exp(x) * Exp(-x), 1)
    holds, undecided = "the conclusion holds at this point", "undecided at this point: the enclosures do not decide the conclusion"
    table = {
        And(unknown, false): "", And(unknown, true): undecided, And(true, true): holds, And(): holds,
        Implies(false, unknown): holds, Implies(unknown, true): holds, Implies(unknown, false): undecided,
        Implies(true, false): "", Implies(true, unknown): undecided,
        Iff(true, false): "", Iff(false, true): "", Iff(false, false): holds, Iff(true, true): holds,
        Iff(unknown, unknown): undecided, Iff(false, unknown): undecided, Iff(unknown, true): undecided,
    }  # fmt: skip
    assert {str(f): look(f, x=1) for f in table} == {str(f): reason for f, reason in table.items()}
    wrong = Iff(Equation(x * y, 0), And(Equation(x, 0), Equation(y, 0)))
    assert look(wrong, x=0, y=1) == ""
    assert look(wrong, x=0, y=0) == look(wrong, x=1, y=1) == holds
    guarded = Implies(NonZero(x), Equation(1 / x, 1))
    assert look(guarded, x=0) == holds and look(guarded, x=2) == ""
    assert look(And(false, Equation(1 / (x - x), 1)), x=1) == ""


def test_families_of_statements() -> None:
    growing = ForAll(Less(u[j], u[j + 1]), j, 1, T)
    assert look(growing, {"T": 2}, u={1: 1, 2: 2, 3: 2}) == ""
    assert look(growing, {"T": 1}, u={1: 1, 2: 2}) == "the conclusion holds at this point"
    assert look(growing, {"T": 0}) == "the conclusion holds at this point"


def test_an_open_family_is_refuted_by_one_value_and_never_seen_to_hold() -> None:
    assert look(ForAll(Less(Ind(j), 3), j, 0)) == ""
    assert look(ForAll(LessEqual(0, Ind(j)), j, 0)).startswith("undecided")
    assert look(Implies(ForAll(LessEqual(0, Ind(j)), j, 0), Equation(x, 0)), x=1).startswith("undecided")


def test_an_open_assumption_reaches_as_far_as_the_record() -> None:
    constant = ForAll(Equation(u[j + 1], u[j]), j, 0)
    known = {n: int(n == 9) for n in (*range(7), 9)}
    assert look(Equation(u[9], u[0]), {}, constant, u=known) == "u[7] has no value at this point"
    assert look(Equation(u[9], u[0]), {}, constant, u={n: int(n == 9) for n in range(12)}).startswith("the assumption no. 1")
    solved = Assumption("constant", constant, {u[j]: x})
    assert refuted_by(Statement(Equation(u[9], 0), Cond(), (solved,)), {}, at(x=1)) == ""


def test_undefined_and_unsupported_terms_refute_nothing() -> None:
    assert look(Equation(Log(x), 0), x=-1) == "the logarithm of a number that is not positive"
    assert look(Equation(Sqrt(x), 0), x=-1) == "the square root of a negative number"
    assert look(Equation(Sqrt(Log(Exp(x)) - x), 1), x=1) == "undecided at this point: the enclosures do not decide the conclusion"
    assert look(Equation(1 / (Exp(x) * Exp(-x) - 1), 1), x=1).startswith("undecided")
    assert look(Equation(Integral(1 / s, s, -1, 1), 1)).startswith("undecided")
    assert "Expect is not evaluated here" in look(Equation(Expect(x, "x"), 0), x=1)


def test_integrals_of_other_kinds() -> None:
    turned = Equation(Integral(Exp(s), s, D, 0) + Integral(Exp(s), s, 0, D), 0)
    assert look(turned, D=1).startswith("undecided")
    assert look(Equation(turned.lhs, SMALL), D=1) == ""
    iterated = Integral(Integral(Exp(s * r), s, 0, r), r, 0, 1)
    plain = Integral(Where(le(0, T), (Exp(r * r) - 1) / r, Num(0)), r, HALF, 1)
    assert look(Equation(Integral(Integral(Exp(s * r), s, 0, r), r, HALF, 1), plain), {"T": 0}).startswith("undecided")
    assert look(Equation(iterated, Fraction(1, 2)), {}) == ""
    upper = Integral(Exp(s), s, 0, Log(x))
    assert look(Equation(upper, x - 1), x=3).startswith("undecided")
    assert look(Equation(upper, x - 1 + SMALL), x=3) == ""
    lower = Equation(Integral(Exp(s), s, Log(x), 0), 1 - x)
    assert look(lower, x=3).startswith("undecided")
    assert look(Equation(lower.lhs, lower.rhs + SMALL), x=3) == ""
    assert look(Equation(Deriv(Integral(Exp(s), s, D, 0), D), -Exp(D)), D=1).startswith("undecided")
    assert look(Equation(Deriv(Integral(Exp(s), s, D, 0), D), Exp(D)), D=1) == ""


rationals = st.fractions(min_value=Fraction(1, 1000), max_value=40, max_denominator=1000)


@settings(max_examples=60, deadline=None)
@given(rationals, st.booleans(), st.sampled_from((40, 80, 160)))
def test_enclosures_contain_the_true_value(q: Fraction, negative: bool, bits: int) -> None:
    with mpmath.workprec(400), precision(bits):
        true = mpmath.mpf(q.numerator) / q.denominator
        point = -q if negative else q
        for found, expected in (
            (exponential_of(exact(point)), mpmath.exp(-true if negative else true)),
            (logarithm(exact(q), exponential_of), mpmath.log(true)),
            (square_root(exact(q)), mpmath.sqrt(true)),
        ):
            assert isinstance(found, Number)
            lo, hi = (mpmath.mpf(e.numerator) / e.denominator for e in ends(found.re))
            slack = abs(expected) * mpmath.mpf(2) ** -380
            assert lo - slack <= expected <= hi + slack
            assert hi - lo <= mpmath.mpf(2) ** (20 - bits) * max(abs(expected), 1)


def test_the_remainder_of_an_exponential_is_enclosed() -> None:
    """exp [[0, a], [a, 0]] has sinh a off the diagonal: more than the a that a short Taylor sum leaves there."""
    a = Fraction(1, 2**20)
    with mpmath.workprec(400), precision(40):
        corner = exponential(Matrix(((exact(0), exact(a)), (exact(a), exact(0))), 2)).rows[0][1]
        lo, hi = (mpmath.mpf(e.numerator) / e.denominator for e in ends(corner.re))
        assert lo <= mpmath.sinh(mpmath.mpf(2) ** -20) <= hi


def test_an_order_between_enclosures() -> None:
    def between(lo: int, hi: int) -> Number:
        return Number(hull(Fraction(lo), Fraction(hi)))

    low, high, wide = between(0, 1), between(1, 2), between(0, 2)
    table = [(low, high, True, None), (low, high, False, True), (high, low, True, False), (high, low, False, None)]
    table += [(low, between(2, 3), True, True), (between(2, 3), low, False, False), (wide, low, True, None), (wide, low, False, None)]
    assert [below(a, b, strict) for a, b, strict, _ in table] == [expected for *_, expected in table]


def test_a_value_that_is_missing_is_never_guessed() -> None:
    for miss in forms.STATE.near_misses:
        found = refute(miss.statement)
        assert found is not None
        for gone, _ in found.values:
            kept = {key: rows for key, rows in found.values if key != gone}
            assert refuted_by(miss.statement, dict(found.sizes), kept).startswith(gone[0])


def test_nothing_is_shared_with_the_prover_or_the_other_engine() -> None:
    own = {"counterexample", "pointwise", "quadrature", "dense", "enclosures"}
    for name in own:
        tree = ast.parse((Path(counterexample.__file__).parent / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                used = {node.module} if node.module else {a.name for a in node.names}
                assert used <= own | {"terms", "formulas"}
            elif isinstance(node, (ast.ImportFrom, ast.Import)):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
                assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "sympy", "mpmath"}
                assert getattr(node, "level", 0) == 0
