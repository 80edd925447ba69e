"""Entrywise products, diagonal matrices, and sums over entries: what is equal is decided however it is written, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from isoform.derivations.evaluate import certify
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct, Hypothesis, Induction
from isoform.derivations.kernel.terms import (
    Cond,
    Conj,
    Diag,
    Exp,
    Eye,
    Hadamard,
    Index,
    Num,
    Prod,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    indices,
    le,
    matrix,
    norm2,
    recurrence,
    vector,
    vectors,
)
from isoform.derivations.registry import claim

n, m, i, j, r, t = indices("n m i j r t")
a, b, c = (vector(x, n) for x in "abc")
w, z = (vector(x, n, "complex") for x in "wz")
A, B = matrix("A", n, n), matrix("B", n, n)
C = matrix("C", m, n)
f, u = vectors("f", n), vectors("u", n)
h0 = vector("h0", n)


def stack(entry: Term) -> Term:
    return Stack(entry, i, 1, n)


def rest(x: Term) -> Term:
    """1 - x, entry by entry."""
    return stack(1 - Row(x, i))


def grown(x: Term) -> Term:
    """e^x, entry by entry."""
    return stack(Exp(Row(x, i)))


def total(entry: Term) -> Term:
    return Sum(entry, i, 1, n)


def fading(last: Index) -> Term:
    """The gates up to an index, the latest one leftmost."""
    return Prod(Diag(f[r]), r, 1, last, True)


h = recurrence("h", h0, lambda t, h: Hadamard(f[t], h) + Hadamard(rest(f[t]), u[t]))
g = recurrence("g", h0, lambda t, g: Diag(f[t]) * g + Diag(u[t]) * rest(f[t]))


def says(left: Term, right: Term, where: Cond | None = None) -> Statement:
    return Statement(Equation(left, right), where or Cond())


def proved(statement: Statement, script: Direct | Induction | None = None) -> bool:
    try:
        prove(statement, script or Direct(), lambda id: claim(id).statement)
    except Unproved:
        return False
    return True


TRUE_AND_FALSE: dict[str, tuple[Term, Term, Term]] = {
    "in front of a column": (Hadamard(a, b), Diag(a) * b, Diag(a) * a),
    "the other in front": (Hadamard(a, b), Diag(b) * a, Diag(b) * b),
    "a product behind": (Hadamard(a, A * b), Diag(a) * A * b, A * Diag(a) * b),
    "a product on the diagonal": (Hadamard(a, A * b), Diag(A * b) * a, Diag(A * a) * b),
    "three": (Hadamard(a, Hadamard(b, c)), Diag(c) * Diag(a) * b, Diag(c) * Diag(a) * c),
    "inside of a product": (A * Diag(a) * B * Hadamard(b, c), A * Diag(a) * B * Diag(c) * b, A * Diag(b) * B * Hadamard(a, c)),
    "on a diagonal": (Diag(Hadamard(a, b)), Diag(b) * Diag(a), Diag(b) * Diag(b)),
    "on a diagonal, twice": (Diag(Diag(a) * A * b), Diag(A * b) * Diag(a), Diag(A * a) * Diag(b)),
    "rows": (Hadamard(a.T, (A * b).T), (Diag(a) * A * b).T, (Diag(b) * A * a).T),
    "rows of a matrix": (Hadamard(a.T, b.T * A), b.T * A * Diag(a), b.T * Diag(a) * A),
    "a number of three": (c.T * Diag(a) * b, a.T * Hadamard(b, c), a.T * Hadamard(b, b)),
    "a number of products": (c.T * A * Diag(a) * b, Hadamard(a, A.T * c).T * b, Hadamard(a, A * c).T * b),
    "squares of numbers": ((c.T * Diag(a) * b) ** 2, (a.T * Diag(b) * c) ** 2, (a.T * Diag(b) * c) * (a.T * b)),
    "a sum": (a.T * b, total(Row(a, i) * Row(b, i)), Sum(Row(a, i) * Row(b, i), i, 2, n)),
    "a sum of three": (a.T * Diag(c) * b, total(Row(a, i) * Row(b, i) * Row(c, i)), total(Row(a, i) * Row(b, i)) * c.T * c),
    "a sum of products": (
        a.T * Diag(c) * A * b, total(Row(a, i) * Row(c, i) * (Row(A, i) * b)), total(Row(a, i) * Row(c, i) * (Row(A.T, i) * b)),
    ),
    "a square is no sum of squares": ((a.T * b) ** 2, total(Row(a, i) * Row(b, i)) * (b.T * a), total(Row(a, i) ** 2 * Row(b, i) ** 2)),
    "a length": (norm2(Diag(a) * b), total(Row(a, i) ** 2 * Row(b, i) ** 2), total(Row(a, i) * Row(b, i) ** 2)),
    "a length of what a correction leaves": (
        norm2(Diag(a) * (b - c * (c.T * b))),
        total(Row(a, i) ** 2 * (Row(b, i) - Row(c, i) * (c.T * b)) ** 2),
        total(Row(a, i) ** 2 * (Row(b, i) - Row(c, i) * (c.T * c)) ** 2),
    ),
    "conjugates": (Hadamard(Conj(w), z), Diag(z) * Conj(w), Diag(w) * Conj(z)),
    "numbers of conjugates": (w.H * Diag(a) * z, total(Row(a, i) * Row(Conj(w), i) * Row(z, i)), total(Row(a, i) * Row(w, i) * Row(z, i))),
    "a conjugate of a product": (Conj(Hadamard(w, z)), Diag(Conj(w)) * Conj(z), Diag(Conj(w)) * z),
    "a function on a diagonal": (Hadamard(rest(a), b), Diag(rest(a)) * b, Diag(rest(b)) * a),
    "functions on both": (Hadamard(rest(a), grown(b)), Diag(grown(b)) * rest(a), Diag(grown(a)) * rest(b)),
    "a function of a function": (
        Hadamard(stack(1 - Row(rest(a), i)), A * b), Diag(stack(1 - Row(rest(a), i))) * A * b, Diag(stack(1 - Row(a, i))) * A * b,
    ),
    "a function times a matrix": (
        (C * rest(a)) * (rest(a).T * Diag(b) * A), C * rest(a) * (Hadamard(rest(a), b).T * A), C * rest(a) * (Hadamard(rest(b), a).T * A),
    ),
    "an entry of a function": (
        rest(a).T * Diag(b) * c, total((1 - Row(a, i)) * Row(b, i) * Row(c, i)), total((1 - Row(b, i)) * Row(a, i) * Row(c, i)),
    ),
    "a conjugate of a function": (
        rest(w).H * z, total((1 - Row(Conj(w), i)) * Row(z, i)), total((1 - Row(w, i)) * Row(z, i)),
    ),
    "a function and a product": (
        rest(a).T * A * b, total((1 - Row(a, i)) * (Row(A, i) * b)), total((1 - Row(a, i)) * (Row(A.T, i) * b)),
    ),
    "two sums": ((a.T * b) * norm2(c), total(Row(a, i) * Row(b, i)) * total(Row(c, i) ** 2), total(Row(a, i) * Row(b, i) * Row(c, i) ** 2)),
    "through a matrix": (C * Hadamard(a, b), C * Diag(b) * a, Hadamard(C * a, C * b)),
    "a branch": (Hadamard(Where(le(1, m), a, b), c), Where(le(1, m), Diag(c) * a, Diag(b) * c), Where(le(1, m), Diag(c) * a, Diag(b) * b)),
    "under a sum": (Sum(Hadamard(f[j], u[j]), j, 1, t), Sum(Diag(u[r]) * f[r], r, 1, t), Sum(Diag(u[r]) * f[r + 1], r, 1, t)),
    "behind a product of diagonals": (
        Hadamard(f[t + 1], fading(t) * h0), fading(t + 1) * h0, fading(t) * Hadamard(f[1], h0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE_AND_FALSE)
def test_a_way_to_write_it_and_a_false_one(name: str) -> None:
    left, right, wrong = TRUE_AND_FALSE[name]
    where = le(1, t)
    for truth in (right, left):
        assert proved(says(left, truth, where)) or left == truth
    assert certify(says(left, right, where), seed=1).holds is True
    assert not proved(says(left, wrong, where))
    assert not proved(says(right, wrong, where))
    assert certify(says(left, wrong, where), seed=1).holds is False


def test_recursions_by_either() -> None:
    step = Direct((Hypothesis(),), "the same update")
    assert proved(says(h[t], g[t], le(0, t)), Induction(t, Direct(note="the same start"), step))
    wrong = recurrence("g", h0, lambda t, g: Diag(f[t]) * g + Diag(u[t]) * f[t])
    assert not proved(says(h[t], wrong[t], le(0, t)), Induction(t, Direct(note="the same start"), step))


def test_a_column_of_a_number_of_its_own_is_not_the_matrix() -> None:
    assert not proved(says(Diag(a), Eye(n)))
    assert not proved(says(Hadamard(a, b), a))


def test_a_product_whose_columns_may_have_one_entry() -> None:
    """Where n is 1 the branch is a number, and a is what is left of the product."""
    branch = Where(le(2, n), b, c)
    assert proved(says(Hadamard(A, a * branch.T), Hadamard(A, a * b.T), le(2, n)))
    for wrong in (b, c):
        assert not proved(says(Hadamard(A * B, a * branch.T), Hadamard(A * B, a * wrong.T), le(1, n)))


# whatever is written ------------------------------------------------------------------------------

PARTS: tuple[Callable[[], Term], ...] = (
    lambda: a, lambda: b, lambda: c, lambda: A * b, lambda: B * A * c, lambda: rest(a), lambda: rest(A * b), lambda: A.T * a,
)  # fmt: skip


class Draw:
    """Some columns, multiplied entry by entry, as a column or summed up, in ways that the seed chooses."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.parts = [self.rng.choice(PARTS)() for _ in range(self.rng.randint(2, 4))]
        self.number = self.rng.random() < 0.5

    def written(self, parts: list[Term]) -> Term:
        """One way to write it."""
        parts = self.rng.sample(parts, len(parts))
        if not self.number:
            return self.column(parts)
        if self.rng.random() < 0.4:
            entry = Num(1)
            for p in parts:
                entry = entry * Row(p, i)
            return total(entry)
        cut = self.rng.randint(1, len(parts) - 1)
        return self.column(parts[:cut]).T * self.column(parts[cut:])

    def column(self, parts: list[Term]) -> Term:
        if len(parts) == 1:
            return parts[0]
        cut = self.rng.randint(1, len(parts) - 1)
        x, y = self.column(parts[:cut]), self.column(parts[cut:])
        return self.rng.choice((lambda: Hadamard(x, y), lambda: Diag(x) * y, lambda: (x.T * Diag(y)).T))()

    def spoilt(self) -> list[Term]:
        """Other columns: one is another, is left out, or comes twice."""
        at = self.rng.randrange(len(self.parts))
        others = [*self.parts[:at], *self.parts[at + 1 :]]
        new = self.rng.choice([[self.rng.choice(PARTS)()], [self.parts[at]] * 2, [] if len(others) > 1 else [c]])
        return [*others, *new]


def test_any_ways_to_write_it_are_one() -> None:
    found = []
    for seed in range(60):
        draw = Draw(seed)
        left, right = draw.written(draw.parts), draw.written(draw.parts)
        if left != right:
            found.append(proved(says(left, right)))
    assert len(found) > 40
    assert sum(found) >= 0.9 * len(found)


def test_what_is_spoilt_is_accepted_only_where_it_holds() -> None:
    for seed in range(60):
        draw = Draw(seed)
        left, right = draw.written(draw.parts), draw.written(draw.spoilt())
        if left != right and proved(says(left, right)):
            assert certify(says(left, right), seed=seed).holds is True, f"seed {seed}: {left} = {right}"
