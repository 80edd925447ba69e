"""Counted costs against an evaluation of the term, entry by entry, on numbers that count what is done to them."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import add, mul
from typing import Any

import pytest
from sympy import Basic, Integer, Symbol

from isoform.derivations import cost, registry
from isoform.derivations.attention.operators import masked
from isoform.derivations.evaluate.frame import Frame
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel import terms as tm
from isoform.derivations.kernel.terms import Diag, Exp, Hadamard, Num, Prod, Sum, Term, Where, free, indices, le, matrix, vectors


class Number:
    """A number of which only is known what was done to it."""

    def __init__(self, done: Counter[str]) -> None:
        self.done = done

    def after(self, operation: str) -> Number:
        """The result of an operation."""
        self.done[operation] += 1
        return Number(self.done)

    def nothing(self) -> Number:
        """A number to which nothing was done."""
        return Number(self.done)

    def __add__(self, other: Number) -> Number:
        return self.after("additions")

    def __mul__(self, other: Number) -> Number:
        return self.after("multiplications")

    def __truediv__(self, other: Number) -> Number:
        return self.after("divisions")


Matrix = list[list[Number]]


def entrywise(operation: Any, *matrices: Matrix) -> Matrix:
    return [list(map(operation, *rows)) for rows in zip(*matrices, strict=True)]


def times(a: Matrix, b: Matrix) -> Matrix:
    if isinstance(a[0][0], int):
        return [next((row for x, row in zip(chosen, b, strict=True) if x), [b[0][0].nothing()] * len(b[0])) for chosen in a]
    if isinstance(b[0][0], int):
        return transposed(times(transposed(b), transposed(a)))
    return [[reduce(add, map(mul, row, column)) for column in zip(*b, strict=True)] for row in a]


def scaled(a: Matrix, factors: Matrix) -> Matrix:
    """Column c times the c-th factor."""
    return [[x * f for x, (f,) in zip(row, factors, strict=True)] for row in a]


def transposed(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def choosing(x: Any) -> Any:
    """A block of 0 or I, by plain numbers: they are not counted."""
    return [[int(isinstance(x, tm.Eye) and r == c) for c in range(int(x.cols))] for r in range(int(x.rows))]


class Evaluation:
    """Evaluates terms without free indices, none twice, and counts the scalar operations that are done. Sizes are positive."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.known: dict[Basic, Matrix] = {}

    def of(self, x: Any) -> Matrix:
        """The entries of a term."""
        if x not in self.known:
            self.known[x] = self.compute(x)
        return self.known[x]

    def compute(self, x: Any) -> Matrix:
        match x:
            case tm.Named():
                return self.of(x.body)
            case tm.Where():
                return self.of(x.args[1 if all(e >= 0 for e in x.args[0].args) else 2])
            case tm.Stack():
                return [row for m in self.members(x) for row in m]
            case tm.Sum() if x.args[2] <= x.args[3]:
                return reduce(lambda a, b: entrywise(add, a, b), self.members(x))
            case tm.Add():
                return reduce(lambda a, b: entrywise(add, a, b), map(self.of, x.args))
            case tm.Hadamard():
                return entrywise(mul, *map(self.of, x.args))
            case tm.Mul():
                return self.product([f for f in x.args if f != Num(-1)])
            case tm.Transpose():
                return transposed(self.of(x.args[0]))
            case tm.Block():
                return [[e for part in row for e in part] for blocks in x.grid for row in zip(*map(choosing, blocks), strict=True)]
            case tm.Exp() | tm.Sqrt() | tm.Log():
                kind = {tm.Exp: "exponentials", tm.Sqrt: "square roots", tm.Log: "logarithms"}[type(x)]
                return [[self.of(x.args[0])[0][0].after(kind)]]
            case tm.Inverse():
                return [[self.of(x.args[0])[0][0].after("divisions")]]
            case tm.Apply():
                for a in x.arguments:
                    self.of(a)
                self.done[f"calls of {x.name}"] += 1
        return [[Number(self.done) for _ in range(int(x.cols))] for _ in range(int(x.rows))]

    def members(self, x: Any) -> list[Matrix]:
        body, i, lo, hi = x.args
        return [self.of(tm.put(body, {i: Integer(n)})) for n in range(int(lo), int(hi) + 1)]

    def product(self, factors: list[Any]) -> Matrix:
        """Matrices from left to right; then the scalars among themselves, and the matrix by their product; then the divisors."""
        numbers = [self.of(f)[0][0] for f in factors if f.is_scalar_term and not isinstance(f, tm.Inverse)]
        divisors = [self.of(f.args[0])[0][0] for f in factors if f.is_scalar_term and isinstance(f, tm.Inverse)]
        left: Matrix | None = None
        diagonal: Matrix | None = None
        for f in (f for f in factors if not f.is_scalar_term):
            if isinstance(f, Diag) and left is None:
                diagonal = self.of(f.args[0])
            elif isinstance(f, Diag) and left is not None:
                left = scaled(left, self.of(f.args[0]))
            elif diagonal is not None:
                left, diagonal = transposed(scaled(transposed(self.of(f)), diagonal)), None
            else:
                left = self.of(f) if left is None else times(left, self.of(f))
            if left is not None and len(left) == len(left[0]) == 1:
                numbers.append(left[0][0])
                left = None
        factor = reduce(mul, numbers) if numbers else Number(self.done)
        out = [[factor]] if left is None else [[x * factor for x in row] for row in left] if numbers else left
        return reduce(lambda rows, d: [[x / d for x in row] for row in rows], divisors, out)


N, d_k, d_v, t, j, i, T = indices("N d_k d_v t j i T")
q, k, v, a = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v), vectors("a", d_k)
H = matrix("H", d_v, d_k)
weight = Exp(q[t].T * k[j])
TOP, W = tm.Block((tm.Eye(d_k),), (tm.Zero(N, d_k),)), matrix("W", d_v, d_k + N)
TERMS: dict[str, tuple[Term, ...]] = {
    "masked attention, all rows": (masked(T),),
    "a scalar among matrices": ((q[t].T * k[t]) * H * k[t],),
    "two scalars and a matrix": ((q[t].T * k[t]) * (q[t].T * a[t]) * H,),
    "a scalar inside a product": (v[t] * k[t].T * q[t],),
    "diagonal factors": (H * Diag(a[t]), Diag(v[t]) * H, Diag(v[t]) * H * Diag(a[t])),
    "a diagonal factor between matrices": (H * Diag(a[t]) * H.T,),
    "differences": (H - v[t] * k[t].T - H,),
    "entry by entry": (Hadamard(H, v[t] * k[t].T),),
    "a sum with a condition": (Sum(Where(le(j, t - 1), weight * v[j], v[j]), j, 1, T),),
    "a sum of sums": (Sum(Sum(Exp(q[i].T * k[j]) * v[j], j, 1, i), i, 1, T),),
    "one sum over two names": (Sum(weight, j, 1, t) * Sum(Exp(q[t].T * k[i]), i, 1, t) * H,),
    "a shared subterm": (Sum(weight * v[j], j, 1, t) / Sum(weight, j, 1, t),),
    "blocks chosen": (W * TOP * k[t], H * TOP.T, TOP * k[t]),
    "roots and logarithms": (tm.Log(1 + tm.Sqrt(q[t].T * k[t])) * k[t],),
    "an empty sum": (Sum(weight * v[j], j, t + 1, t),),
}


def declared() -> dict[str, tuple[Term, ...]]:
    """What every declared operator computes at t, if there is a convention for it."""
    found = {}
    for name in registry.architectures():
        for d in registry.declarations(name):
            try:
                cost.operations(*cost.step(d))
            except cost.Uncounted:
                continue
            found[d.operator] = cost.step(d)
    return found


EVERY = TERMS | declared()


def symbols(terms: tuple[Term, ...]) -> list[Symbol]:
    return sorted({s for x in terms for s in free(x) if isinstance(s, Symbol)}, key=str)


def both(terms: tuple[Term, ...], seed: int) -> tuple[dict[str, int], dict[str, int]]:
    """The operations that are counted, and those that are done, at some sizes."""
    sizes = {s: Integer(2 + (seed * 3 + n * 2) % 5) for n, s in enumerate(symbols(terms))}
    evaluation = Evaluation()
    for x in terms:
        evaluation.of(tm.put(x, sizes))
    at = Frame(Rationals(), None, {s: int(n) for s, n in sizes.items()})  # type: ignore[arg-type]
    counted = {kind: int(Rationals().table(evaluate(x, at))[0][0]) for kind, x in cost.operations(*terms).items()}
    return {kind: n for kind, n in counted.items() if n}, dict(evaluation.done)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("seed", range(3))
def test_as_many_operations_are_counted_as_are_done(name: str, seed: int) -> None:
    counted, done = both(EVERY[name], seed)
    assert counted == done


@pytest.mark.parametrize("seed", range(3))
def test_what_two_ranges_reach_counts_twice(seed: int) -> None:
    counted, done = both((Sum(weight, j, 1, t) + Sum(weight, j, 1, t + 1),), seed)
    assert counted["exponentials"] == 2 * done["exponentials"] - 1


def test_the_operators_with_a_state_are_counted() -> None:
    assert {"rnn", "linear-attention", "retention", "gated-retention", "delta-rule", "attention", "lti"} <= set(declared())


def test_a_wrong_count_would_be_seen() -> None:
    evaluation = Evaluation()
    evaluation.of(tm.put(H * k[t], {d_v: Integer(3), d_k: Integer(4), t: Integer(1)}))
    assert evaluation.done == {"multiplications": 12, "additions": 9}


def test_what_has_no_convention_is_refused() -> None:
    square = matrix("A", d_k, d_k)
    twice = tm.Block((tm.Eye(d_k),), (tm.Eye(d_k),))
    for x in (twice, tm.Block((square,)), square**-1 * k[t], tm.Inverse(square) * k[t], Exp(square), Prod(square, j, 1, t)):
        with pytest.raises(cost.Uncounted, match="no operations are counted for"):
            cost.operations(x)
    with pytest.raises(cost.Uncounted, match="no depth is counted for"):
        cost.depth(Sum(v[j], j, 1, t))
    pair = tm.recurrence("P", v[t], lambda s, p: p + p)
    with pytest.raises(cost.Uncounted, match="known to be the larger"):
        cost.depth(pair[t] + tm.recurrence("Q", v[t], lambda s, p: p + v[t] + v[t])[t])


def test_depths_are_those_of_the_terms_as_written() -> None:
    assert cost.depth(v[t]) == Num(0)
    assert cost.depth((v[1] + v[2]) + (v[3] + v[4])) == Num(3)  # a sum of four terms is written from left to right
    assert cost.depth(tm.Apply("f", (v[1] + v[2],), d_v, 1) + v[3]) == Num(2)
    for name in ("S_", "S_1"):  # names like that of the state before
        stateless = tm.recurrence("S", v[0], lambda s, p, name=name: tm.vector(name, d_v) + v[s])
        assert cost.depth(stateless[t]).step_at(t, Num(7)) == Num(1)


def test_rows_that_are_not_there_cost_nothing() -> None:
    some = tm.Rows(matrix("X", d_v, d_k), j, t)
    (additions,) = cost.operations(some + some).values()
    none = evaluate(tm.put(additions, {j: Integer(5), t: Integer(2), d_k: Integer(3)}), Frame(Rationals(), None, {}))
    assert Rationals().table(none)[0][0] == 0


def test_numbers_are_entries() -> None:
    assert cost.numbers(H, v[t]) == tm.Ind(d_v) * tm.Ind(d_k) + tm.Ind(d_v)
