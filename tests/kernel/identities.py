"""Random identities for the soundness campaign: true ones by chains of sound moves, false ones by one small change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import cast

from sympy import Expr, Integer, Symbol

from isoform.derivations.kernel.terms import (
    Add,
    Cond,
    Diag,
    Eye,
    Hadamard,
    Ind,
    Mul,
    Num,
    Power,
    Prod,
    Rec,
    Sum,
    Term,
    Transpose,
    Var,
    Where,
    Zero,
    free,
    index,
    indices,
    le,
    matrices,
    recurrence,
    scalars,
    substitute,
    vectors,
)

m, n = indices("m n")
s, t = indices("s t")
WHERE = le(0, s) & le(s, t)

x, g = scalars("x"), scalars("g")
a, b = vectors("a", m), vectors("b", n)
A, B = matrices("A", m, m), matrices("B", m, n)
H0 = matrices("H0", m, n)()
H = recurrence("H", H0, lambda r, prev: A[r] * prev + a[r] * b[r].T)
SIZES = (Integer(1), m, n)

Scope = tuple[Symbol, ...]


class Draw:
    """One random identity; every choice comes from the seed."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.fresh = 0

    def bound(self) -> Symbol:
        self.fresh += 1
        return index(f"i{self.fresh}")

    def at(self, scope: Scope) -> Expr:
        """An index: a bound one, or a length, sometimes shifted."""
        i = self.rng.choice((*scope, *scope, s, t))
        return cast(Expr, i + self.rng.choice((0, 0, 0, 1)))

    def range(self, scope: Scope) -> tuple[Expr, Expr]:
        """A range that may be empty but never runs backwards by more than one."""
        ends = [(Integer(1), t), (Integer(1), s), (s + 1, t), (Integer(1), t + 1), (Integer(0), s)]
        ends += [(Integer(1), i) for i in scope] + [(i, t) for i in scope if self.rng.random() < 0.3]
        return cast("tuple[Expr, Expr]", self.rng.choice(ends))

    def term(self, rows: Expr, cols: Expr, depth: int, scope: Scope = ()) -> Term:
        """A term of the given shape."""
        makers: list[Callable[[], Term]] = [lambda: self.atom(rows, cols, scope)]
        if depth > 0:
            makers += [
                lambda: self.sum_of_two(rows, cols, depth, scope),
                lambda: self.product(rows, cols, depth, scope),
                lambda: self.product(rows, cols, depth, scope),
                lambda: self.ranged(rows, cols, depth, scope),
                lambda: self.ranged(rows, cols, depth, scope),
                lambda: Transpose(self.term(cols, rows, depth - 1, scope)),
                lambda: self.masked(rows, cols, depth, scope),
                lambda: Mul(self.term(Integer(1), Integer(1), depth - 1, scope), self.term(rows, cols, depth - 1, scope)),
            ]
            if rows == cols and rows != 1:
                makers += [lambda: self.ordered(rows, depth, scope)] * 2
            if rows == m and cols == n:
                makers += [lambda: H[self.rng.choice((t, s))], lambda: self.gated(depth, scope)]
            if rows == cols == 1:
                makers += [lambda: Power(x[self.at(scope)], self.rng.choice((t, s, t - s, Integer(2))))]
        return self.rng.choice(makers)()

    def atom(self, rows: Expr, cols: Expr, scope: Scope) -> Term:
        i = self.at(scope)
        if (rows, cols) == (1, 1):
            return self.rng.choice((x[i], x[i], g[i], Num(self.rng.choice((-1, 2, 3))), Ind(t), a[i].T * a[self.at(scope)]))
        if rows == cols:
            return A[i] if rows == m and self.rng.random() < 0.6 else self.rank_one(rows, cols, scope)
        if (rows, cols) == (m, n):
            return self.rng.choice((B[i], self.rank_one(rows, cols, scope)))
        if cols == 1:
            return (a if rows == m else b)[i]
        if rows == 1:
            return (a if cols == m else b)[i].T
        return Transpose(self.atom(cols, rows, scope))

    def rank_one(self, rows: Expr, cols: Expr, scope: Scope) -> Term:
        column, row = (a if rows == m else b), (a if cols == m else b)
        return column[self.at(scope)] * row[self.at(scope)].T

    def sum_of_two(self, rows: Expr, cols: Expr, depth: int, scope: Scope) -> Term:
        return Add(self.term(rows, cols, depth - 1, scope), self.term(rows, cols, depth - 1, scope))

    def product(self, rows: Expr, cols: Expr, depth: int, scope: Scope) -> Term:
        inner = self.rng.choice(SIZES)
        return Mul(self.term(rows, inner, depth - 1, scope), self.term(inner, cols, depth - 1, scope))

    def ranged(self, rows: Expr, cols: Expr, depth: int, scope: Scope) -> Term:
        i = self.bound()
        lo, hi = self.range(scope)
        return Sum(self.term(rows, cols, depth - 1, (*scope, i)), i, lo, hi)

    def ordered(self, size: Expr, depth: int, scope: Scope) -> Term:
        i = self.bound()
        lo, hi = self.range(scope)
        scaled = x[i] * self.rank_one(size, size, (i,))
        body: Term = A[i] if size == m and self.rng.random() < 0.5 else Eye(size) - scaled
        return Prod(body, i, lo, hi, self.rng.random() < 0.3)

    def masked(self, rows: Expr, cols: Expr, depth: int, scope: Scope) -> Term:
        cond = self.condition(scope)
        return Where(cond, self.term(rows, cols, depth - 1, scope), Zero(rows, cols))

    def condition(self, scope: Scope) -> Cond:
        p, q = self.rng.choice((*scope, s)), self.rng.choice((*scope, t, s))
        return le(p, q + self.rng.choice((-1, 0, 0)))

    def gated(self, depth: int, scope: Scope) -> Term:
        inner = self.term(m, n, depth - 1, scope)
        gate = a[self.at(scope)] * b[self.at(scope)].T
        return Hadamard(gate, inner) if self.rng.random() < 0.5 else Diag(a[self.at(scope)]) * inner

    # moves that keep the value ---------------------------------------------------------------------

    def moved(self, term: Term, moves: int) -> Term:
        for _ in range(moves):
            spots = [(p, y) for p, y in subterms(term) if self.moves(y)]
            if not spots:
                return term
            path, y = self.rng.choice(spots)
            term = put_at(term, path, self.rng.choice(self.moves(y)))
        return term

    def moves(self, y: Term) -> list[Term]:
        """Terms equal to y."""
        out: list[Term] = []
        match y:
            case Sum():
                out += self.sum_moves(y)
            case Prod():
                out += self.prod_moves(y)
            case Add():
                parts = list(y.args)
                self.rng.shuffle(parts)
                out.append(Add(*cast("list[Term]", parts)))
            case Mul():
                out += self.mul_moves(y)
            case Transpose():
                out += transpose_moves(cast(Term, y.args[0]))
            case Rec() if y.at == t + 1:
                out.append(y.step_at(t + 1, H[t]))
            case Where():
                cond, p, q = cast("tuple[Cond, Term, Term]", y.args)
                e = cast(Expr, cond.args[0])
                out.append(Where(Cond(-e - 1), q, p))
        out.append(Transpose(Transpose(y)))
        return out

    def sum_moves(self, y: Sum) -> list[Term]:
        body, i, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", y.args)

        def f(at: Expr) -> Term:
            return cast(Term, substitute(body, {i: at}))

        j = self.bound()
        c = self.rng.choice((1, -2))
        out: list[Term] = [
            Sum(f(j + c), j, lo - c, hi - c),
            Sum(f(lo + hi - j), j, lo, hi),
            Where(le(lo, hi), Add(Sum(body, i, lo, hi - 1), f(hi)), Zero(*y.shape)),
            Where(le(lo, hi), Add(f(lo), Sum(body, i, lo + 1, hi)), Zero(*y.shape)),
        ]
        if (lo, hi) == (1, t):
            out.append(Add(Sum(body, i, 1, s), Sum(body, i, s + 1, t)))
        if hi == t + 1 and lo in (0, 1):
            out.append(Add(Sum(body, i, lo, t), f(t + 1)))
        if isinstance(body, Add):
            out.append(Add(*[Sum(cast(Term, p), i, lo, hi) for p in body.args]))
        if isinstance(body, Sum) and i not in free(body.args[2]) | free(body.args[3]):
            inner, k, lo2, hi2 = cast("tuple[Term, Symbol, Expr, Expr]", body.args)
            if k not in free(lo) | free(hi):
                out.append(Sum(Sum(inner, i, lo, hi), k, lo2, hi2))
        return out

    def prod_moves(self, y: Prod) -> list[Term]:
        body, i, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", y.args[:4])
        down = y.decreasing

        def f(at: Expr) -> Term:
            return cast(Term, substitute(body, {i: at}))

        def times(first: Term, second: Term) -> Term:
            return Mul(second, first) if down else Mul(first, second)

        j = self.bound()
        out: list[Term] = [
            Prod(f(j + 1), j, lo - 1, hi - 1, down),
            Prod(f(lo + hi - j), j, lo, hi, not down),
            Where(le(lo, hi), times(Prod(body, i, lo, hi - 1, down), f(hi)), Eye(y.rows)),
            Where(le(lo, hi), times(f(lo), Prod(body, i, lo + 1, hi, down)), Eye(y.rows)),
        ]
        if (lo, hi) == (1, t):
            out.append(times(Prod(body, i, 1, s, down), Prod(body, i, s + 1, t, down)))
        return out

    def mul_moves(self, y: Mul) -> list[Term]:
        parts = cast("list[Term]", list(y.args))
        out: list[Term] = []
        small = [p for p in parts if p.is_scalar_term]
        if small and len(parts) > 1 and not y.is_scalar_term:
            big = [p for p in parts if not p.is_scalar_term]
            out.append(Mul(*big, *small))
        if len(parts) == 2 and isinstance(parts[0], Add):
            out.append(Add(*[Mul(cast(Term, p), parts[1]) for p in parts[0].args]))
        if len(parts) == 2 and isinstance(parts[1], Add):
            out.append(Add(*[Mul(parts[0], cast(Term, p)) for p in parts[1].args]))
        if len(parts) == 2 and isinstance(parts[1], Sum) and parts[1].args[1] not in free(parts[0]):
            body, i, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", parts[1].args)
            out.append(Sum(Mul(parts[0], body), i, lo, hi))
        return out

    # changes that usually do not ---------------------------------------------------------------------

    def spoiled(self, term: Term) -> Term:
        """One small change: an index, a bound, a sign, a coefficient, or the order of two factors."""
        spots = [(p, y) for p, y in subterms(term) if list(self.changes(y))]
        if not spots:
            return Mul(Num(2), term)
        path, y = self.rng.choice(spots)
        return put_at(term, path, self.rng.choice(list(self.changes(y))))

    def changes(self, y: Term) -> Iterator[Term]:
        match y:
            case Var() if y.indices:
                shifted = (y.indices[0] + self.rng.choice((1, -1)), *y.indices[1:])
                yield Var(y.name, shifted, y.rows, y.cols, y.field)
            case Sum() | Prod():
                body, i, lo, hi, *rest = y.args
                yield cast(Term, y.func(body, i, lo + 1, hi, *rest))
                yield cast(Term, y.func(body, i, lo, hi - 1, *rest))
            case Num():
                yield Num(y.value + 1)
            case Add():
                yield Add(*[Mul(Num(-1), cast(Term, p)) if k == 0 else cast(Term, p) for k, p in enumerate(y.args)])
            case Mul() if len(y.args) == 2 and y.args[0].shape == y.args[1].shape and y.args[0].rows == y.args[0].cols:  # type: ignore[attr-defined]
                yield Mul(*cast("list[Term]", list(reversed(y.args))))
            case Where():
                cond, p, q = cast("tuple[Cond, Term, Term]", y.args)
                yield Where(Cond(cast(Expr, cond.args[0]) - 1), p, q)
            case Power():
                yield Power(cast(Term, y.args[0]), cast(Expr, y.args[1]) + 1)


def transpose_moves(y: Term) -> list[Term]:
    match y:
        case Add():
            return [Add(*[Transpose(cast(Term, p)) for p in y.args])]
        case Mul() if not y.is_scalar_term and not any(cast(Term, p).is_scalar_term for p in y.args):
            return [Mul(*[Transpose(cast(Term, p)) for p in reversed(y.args)])]
        case Transpose():
            return [cast(Term, y.args[0])]
        case Sum():
            return [Sum(Transpose(y.body), *y.args[1:])]  # type: ignore[arg-type]
        case Prod():
            body, i, lo, hi, down = y.args
            return [Prod(Transpose(cast(Term, body)), i, lo, hi, not bool(down))]  # type: ignore[arg-type]
    return []


Path = tuple[int, ...]


def subterms(y: Term, path: Path = ()) -> Iterator[tuple[Path, Term]]:
    """Every subterm outside recursions, with the way to it."""
    yield path, y
    if isinstance(y, Rec):
        return
    for k, part in enumerate(y.args):
        if isinstance(part, Term):
            yield from subterms(part, (*path, k))


def put_at(y: Term, path: Path, new: Term) -> Term:
    """The term with another subterm at a place; the bound names above it stay as they are."""
    if not path:
        return new
    args = list(y.args)
    args[path[0]] = put_at(cast(Term, args[path[0]]), path[1:], new)
    return cast(Term, y.func(*args))


def identity(seed: int) -> tuple[Term, Term]:
    """Two equal terms, different as written."""
    d = Draw(seed)
    rows, cols = d.rng.choice(((m, n), (m, m), (m, Integer(1)), (Integer(1), Integer(1))))
    left = d.term(rows, cols, d.rng.choice((2, 3, 3)))
    if d.rng.random() < 0.3 and (rows, cols) == (m, n):
        left = Add(left, H[t + 1])
    return left, d.moved(left, d.rng.randint(1, 5))


def falsity(seed: int) -> tuple[Term, Term]:
    """A true identity with one small change, which need not make it false."""
    left, right = identity(seed)
    return left, Draw(seed + 10**9).spoiled(right)
