"""Terms computed number by number, with a tally of every operation: what a count of them as a polynomial is held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import add, mul
from typing import Any

from sympy import Expr, Integer, Symbol

from isoform.derivations.evaluate.balls import Balls
from isoform.derivations.evaluate.environment import Environment, dyadic
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.kernel import terms as tm
from isoform.derivations.kernel.terms import Term

Rows = list[list[Any]]
GIVEN = (tm.Var, tm.Num, tm.Ind, tm.Zero, tm.Eye, tm.Rec)
OF_NUMBERS = {tm.Exp: ("exponentials", "exp"), tm.Sqrt: ("square roots", "sqrt"), tm.Log: ("logarithms", "log")}


class Tally:
    """Computes terms at sizes, in balls, each operation by itself; what was computed is looked up when it is met again.

    Indices that are bound are numbers here, so nothing is known of ranges; inputs and members of recursions are given.
    """

    def __init__(self, sizes: Mapping[Symbol, int], seed: int = 0) -> None:
        self.sizes = {s: Integer(n) for s, n in sizes.items()}
        self.environment = Environment(Balls(), dict(sizes), seed=seed, pool=dyadic)
        self.counts: Counter[str] = Counter()
        self._known: dict[Term, Rows] = {}

    def value(self, x: Term) -> Rows:
        """The rows of a term."""
        x = tm.unnamed(x)
        if x not in self._known:
            self._known[x] = self.given(x) if isinstance(x, GIVEN) else self._computed(x)
        return self._known[x]

    def given(self, x: Term) -> Rows:
        """The rows of a term by the second engine, which counts nothing."""
        found = evaluate(x, self.environment.frame())
        return [[found[i, j] for j in range(found.ncols())] for i in range(found.nrows())]

    def _number(self, e: Expr) -> int:
        return int(tm.index_expression(e).subs(self.sizes))

    def _one(self, kind: str, f: Any, *numbers: Any) -> Any:
        self.counts[kind] += 1
        return f(*numbers)

    def _entrywise(self, kind: str, f: Any, a: Rows, b: Rows) -> Rows:
        return [[self._one(kind, f, x, y) for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)]

    def _scaled(self, c: Any, a: Rows, kind: str = "multiplications") -> Rows:
        return [[self._one(kind, mul, c, x) for x in r] for r in a]

    def _computed(self, x: Term) -> Rows:
        match x:
            case tm.Add():
                first, *others = map(self.value, x.args)
                for other in others:
                    first = self._entrywise("additions", add, first, other)
                return first
            case tm.Hadamard():
                return self._entrywise("multiplications", mul, *map(self.value, x.args))
            case tm.Transpose():
                return [list(c) for c in zip(*self.value(x.args[0]), strict=True)]
            case tm.Conj():
                return [[z.conjugate() for z in r] for r in self.value(x.args[0])]
            case tm.Diag():
                column = self.value(x.args[0])
                return [[c[0] if i == j else 0 * c[0] for j in range(len(column))] for i, c in enumerate(column)]
            case tm.Stack():
                body, i, lo, hi = x.args
                return [self.value(tm.substitute(body, {i: n}))[0] for n in self._span(lo, hi)]
            case tm.Sum():
                body, i, lo, hi = x.args
                first, *others = [self.value(tm.substitute(body, {i: n})) for n in self._span(lo, hi)]
                for other in others:
                    first = self._entrywise("additions", add, first, other)
                return first
            case tm.Row():
                return [self.value(x.args[0])[self._number(x.args[1]) - 1]]
            case tm.Entry():
                return [[self.value(x.args[0])[self._number(x.args[1]) - 1][self._number(x.args[2]) - 1]]]
            case tm.Where():
                cond, a, b = x.args
                return self.value(a if all(self._number(e) >= 0 for e in cond.args) else b)
            case tm.Block():
                return [[a for r in line for a in r] for blocks in x.grid for line in zip(*map(self.value, blocks), strict=True)]
            case tm.Inverse() if x.is_scalar_term:
                return [[self._one("divisions", lambda z: 1 / z, self.value(x.args[0])[0][0])]]
            case tm.Mul():
                return self._product(x)
        kind, name = OF_NUMBERS[type(x)]
        return [[self._one(kind, lambda z: getattr(z, name)(), self.value(x.args[0])[0][0])]]

    def _span(self, lo: Expr, hi: Expr) -> list[Integer]:
        return [Integer(n) for n in range(self._number(lo), self._number(hi) + 1)]

    def _product(self, x: tm.Mul) -> Rows:
        """Matrices from left to right, a 1 x 1 product being a number; then the numbers; the matrix by their product; quotients last."""
        numbers: list[Any] = []
        quotients: list[Any] = []
        matrices: list[tuple[Term, Rows]] = []
        sign = 1
        for f in x.args:
            if f == tm.Num(-1):
                sign = -sign
            elif isinstance(f, tm.Inverse) and f.is_scalar_term:
                quotients.append(self.value(f.args[0])[0][0])
            elif f.is_scalar_term:
                numbers.append(self.value(f)[0][0])
            elif matrices and not (matrices[-1][0].is_scalar_term):
                left, rows = matrices[-1]
                matrices[-1] = (left * f, self._times(left, rows, f))
            else:
                matrices.append((f, self.value(f)))
        numbers += [rows[0][0] for left, rows in matrices if left.is_scalar_term]
        whole = [rows for left, rows in matrices if not left.is_scalar_term]
        number = None
        for c in numbers:
            number = c if number is None else self._one("multiplications", mul, number, c)
        out = whole[0] if whole else None
        if out is None:
            out = [[1 + 0 * quotients[0] if number is None else number]]
        elif number is not None:
            out = self._scaled(number, out)
        for q in quotients:
            out = [[self._one("divisions", lambda a, b: a / b, a, q) for a in r] for r in out]
        return [[sign * a for a in r] for r in out]

    def _times(self, left: Term, rows: Rows, f: Term) -> Rows:
        other = self.value(f)
        if _chooses(left) or _chooses(f):
            return [[sum((a * b for a, b in zip(r, c, strict=True)), 0 * r[0]) for c in zip(*other, strict=True)] for r in rows]
        if isinstance(f, tm.Diag):
            return [[self._one("multiplications", mul, a, other[j][j]) for j, a in enumerate(r)] for r in rows]
        if isinstance(left, tm.Diag):
            return [[self._one("multiplications", mul, rows[i][i], b) for b in r] for i, r in enumerate(other)]
        return [[self._dot(r, c) for c in zip(*other, strict=True)] for r in rows]

    def _dot(self, a: Any, b: Any) -> Any:
        first, *others = [self._one("multiplications", mul, x, y) for x, y in zip(a, b, strict=True)]
        for other in others:
            first = self._one("additions", add, first, other)
        return first


def _chooses(x: Term) -> bool:
    """Whether a matrix is made of blocks 0 and I."""
    x = x.args[0] if isinstance(x, tm.Transpose) else x
    return isinstance(x, tm.Block) and all(isinstance(b, (tm.Eye, tm.Zero)) or b in (tm.Num(0), tm.Num(1)) for r in x.grid for b in r)
