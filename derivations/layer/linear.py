"""A term as a sum of products L X R, each with one of some atoms X in it, and of what has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import cast

from sympy import Basic, Rational

from ..evaluate.labels import groups
from ..kernel import terms as tm
from ..kernel.terms import Eye, Num, Term


@dataclass(frozen=True)
class Product:
    """scale · left · X · right, with X = ``of``; scale is a scalar term. ``turned`` has the transpose of X in its place."""

    of: Term
    scale: Term
    left: Term
    right: Term
    turned: bool = False

    @property
    def term(self) -> Term:
        """The product written out."""
        return times(self.scale, self.left, self.of.T if self.turned else self.of, self.right)

    @property
    def vanishes(self) -> bool:
        """Whether it is 0, as it is written."""
        return any(isinstance(x, tm.Zero) or x == Num(0) for x in (self.scale, self.left, self.right))


@dataclass(frozen=True)
class Linear:
    """The sum of some products, and of a ``rest`` without atoms; None is 0."""

    products: tuple[Product, ...]
    rest: Term | None


class NotLinear(ValueError):
    """``term`` is no polynomial of degree one in the atoms, as it is written."""

    def __init__(self, term: Term, why: str) -> None:
        super().__init__(why)
        self.term, self.why = term, why


class NoProduct(ValueError):
    """``term`` is not written as products L X R; it may well be linear."""

    def __init__(self, term: Term, why: str) -> None:
        super().__init__(why)
        self.term, self.why = term, why


def one(n: tm.Index) -> Term:
    """The identity of a size; the number 1 for size 1."""
    return Num(1) if n == 1 else Eye(n)


def is_one(x: Basic) -> bool:
    """Whether a term is the number 1 or an identity, as it is written."""
    return x == Num(1) or isinstance(x, Eye)


def times(*terms: Term) -> Term:
    """The product: one number in front, and no factors 1 and I that its shape does not need."""
    shape = tm.Mul(*terms).shape
    flat = [y for x in terms for y in factors(x)]
    number = prod((y.value for y in flat if isinstance(y, Num)), start=Rational(1))
    kept: list[Term] = [] if number == 1 else [Num(number)]
    kept += [y for y in flat if not isinstance(y, (Num, Eye))]
    if not kept or tm.Mul(*kept).shape != shape:
        kept.append(one(shape[0]))
    return kept[0] if len(kept) == 1 else tm.Mul(*kept)


def factors(x: Term) -> list[Term]:
    """The factors of a term; those of a number are numbers."""
    if not isinstance(x, tm.Mul):
        return [x]
    if not x.is_scalar_term:
        return [y for f in cast("tuple[Term, ...]", x.args) for y in (factors(f) if f.is_scalar_term else [f])]
    chains = [tm.Mul(*g) for g in groups(x)]
    return [y for f in cast("tuple[Term, ...]", x.args) if f.is_scalar_term for y in factors(f)] + cast("list[Term]", chains)


def plus(parts: Iterable[Term]) -> Term | None:
    """The sum of some terms; None of none."""
    found = tuple(parts)
    return None if not found else found[0] if len(found) == 1 else tm.Add(*found)


def place(sizes: Sequence[tm.Index], at: int) -> Term:
    """A column of blocks of the given heights: I at one place, 0 elsewhere."""
    if len(sizes) == 1:
        return one(sizes[0])
    return tm.Block(*[(one(n) if i == at else tm.Zero(n, sizes[at]),) for i, n in enumerate(sizes)])


def linear(x: Term, atoms: frozenset[Term]) -> Linear:
    """Read a term as linear in some Vars without indices. Raises NotLinear, NoProduct."""
    return _read(cast(Term, tm.unnamed(x)), atoms)


def _holds(x: Basic, atoms: frozenset[Term]) -> bool:
    return bool(tm.free(x) & atoms)


def _read(x: Term, atoms: frozenset[Term]) -> Linear:
    if not _holds(x, atoms):
        return Linear((), x)
    if x in atoms:
        return Linear((Product(x, Num(1), one(x.rows), one(x.cols)),), None)
    for kind, read in _READERS.items():
        if isinstance(x, kind):
            return _straight(x, read(x, atoms))
    raise NotLinear(x, f"{_NOUNS.get(type(x), 'a function')} of the state")


def _straight(x: Term, found: Linear) -> Linear:
    """A number is its own transpose."""
    if not x.is_scalar_term:
        return found
    turn = [_turned(p) if p.turned else p for p in found.products]
    return Linear(tuple(turn), found.rest)


def _turned(p: Product) -> Product:
    return replace(p, left=transposed(p.right), right=transposed(p.left), turned=not p.turned)


def transposed(x: Term) -> Term:
    """The transpose, put as far inside as possible."""
    if x.is_scalar_term or isinstance(x, (Eye, tm.Diag)):
        return x
    if isinstance(x, tm.Transpose):
        return cast(Term, x.args[0])
    if isinstance(x, tm.Mul):
        return tm.Mul(*[transposed(cast(Term, f)) for f in reversed(x.args)])
    return x.T


def _add(x: Term, atoms: frozenset[Term]) -> Linear:
    parts = [_read(cast(Term, a), atoms) for a in x.args]
    return Linear(tuple(p for q in parts for p in q.products), plus(q.rest for q in parts if q.rest is not None))


def _read_transpose(x: Term, atoms: frozenset[Term]) -> Linear:
    inner = _read(cast(Term, x.args[0]), atoms)
    return Linear(tuple(map(_turned, inner.products)), None if inner.rest is None else inner.rest.T)


def _mul(x: Term, atoms: frozenset[Term]) -> Linear:
    holding = [f for f in cast("tuple[Term, ...]", x.args) if _holds(f, atoms)]
    if len(holding) > 1:
        raise NotLinear(x, "a product of factors that both depend on the state")
    held = holding[0]
    inner = _read(held, atoms)
    if held.is_scalar_term:
        others = list(cast("tuple[Term, ...]", x.args))
        others.remove(held)
        return _scaled(inner, others, x)
    chains = groups(cast(tm.Mul, x))
    scalars = [f for f in cast("tuple[Term, ...]", x.args) if f.is_scalar_term]
    where = next(n for n, g in enumerate(chains) if held in g)
    others = [*scalars, *[times(*g) for n, g in enumerate(chains) if n != where]]
    at = chains[where].index(held)
    before, after = chains[where][:at], chains[where][at + 1 :]
    around = Linear(
        tuple(replace(p, left=times(*before, p.left), right=times(p.right, *after)) for p in inner.products),
        None if inner.rest is None else times(*before, inner.rest, *after),
    )
    return _scaled(_straight(times(*chains[where]), around), others, x)


def _scaled(inner: Linear, others: list[Term], x: Term) -> Linear:
    """A linear term times other factors: numbers, and one matrix where the linear term is a number."""
    scale = times(*[f for f in others if f.is_scalar_term], Num(1))
    matrices = [f for f in others if not f.is_scalar_term]
    if not matrices:
        products = [replace(p, scale=times(scale, p.scale)) for p in inner.products]
    else:
        column, row = _cut(tm.Mul(*matrices), x)
        products = [replace(p, scale=times(scale, p.scale), left=times(column, p.left), right=times(p.right, row)) for p in inner.products]
    return Linear(tuple(products), None if inner.rest is None else times(*others, inner.rest))


def _cut(matrix: Term, x: Term) -> tuple[Term, Term]:
    """A column and a row whose product is the matrix. Raises NoProduct where it is not written so."""
    found = column_and_row(matrix)
    if found is None:
        raise NoProduct(x, "a number that depends on the state times a matrix that is no column times a row")
    return found


def column_and_row(matrix: Term) -> tuple[Term, Term] | None:
    """A column and a row whose product is the matrix, if it is written so."""
    factors = [cast(Term, f) for f in (matrix.args if isinstance(matrix, tm.Mul) else (matrix,)) if not cast(Term, f).is_scalar_term]
    for n in range(len(factors) + 1):
        column, row = (tm.Mul(Num(1), *part) for part in (factors[:n], factors[n:]))
        if column.cols == 1 and row.rows == 1:
            return times(Num(1), *factors[:n]), times(Num(1), *factors[n:])
    return None


def _hadamard(x: Term, atoms: frozenset[Term]) -> Linear:
    a, b = cast("tuple[Term, Term]", x.args)
    if _holds(a, atoms) and _holds(b, atoms):
        raise NotLinear(x, "an entrywise product of factors that both depend on the state")
    weights, held = (b, a) if _holds(a, atoms) else (a, b)
    inner = _read(held, atoms)
    if x.cols == 1:
        products = [replace(p, left=times(tm.Diag(weights), p.left)) for p in inner.products]
    elif x.rows == 1:
        products = [replace(p, right=times(p.right, tm.Diag(transposed(weights)))) for p in inner.products]
    else:
        cut = column_and_row(weights)
        if cut is None:
            raise NoProduct(x, "an entrywise product with a matrix that is no column times a row")
        scale = times(Num(1), *[f for f in factors(weights) if f.is_scalar_term])
        left, right = tm.Diag(cut[0]), tm.Diag(transposed(cut[1]))
        products = [
            replace(p, scale=times(scale, p.scale), left=times(left, p.left), right=times(p.right, right)) for p in inner.products
        ]
    return Linear(tuple(products), None if inner.rest is None else tm.Hadamard(weights, inner.rest))


def _where(x: Term, atoms: frozenset[Term]) -> Linear:
    cond, a, b = cast("tuple[tm.Cond, Term, Term]", x.args)
    inside, outside = tm.Where(cond, Num(1), Num(0)), tm.Where(cond, Num(0), Num(1))
    return _add(tm.Add(times(inside, a), times(outside, b)), atoms)


def _block(x: Term, atoms: frozenset[Term]) -> Linear:
    """Each block that depends on an atom, brought to its place by a column and a row of blocks 0 and I."""
    grid = cast(tm.Block, x).grid
    heights, widths = [r[0].rows for r in grid], [b.cols for b in grid[0]]
    placed = [
        times(place(heights, r), b, transposed(place(widths, c)))
        for r, row in enumerate(grid)
        for c, b in enumerate(row)
        if _holds(b, atoms)
    ]
    others = [[tm.Zero(b.rows, b.cols) if _holds(b, atoms) else b for b in row] for row in grid]
    return _add(tm.Add(*placed, tm.Block(*others)), atoms)


def _inside(x: Term, atoms: frozenset[Term]) -> Linear:
    """What is linear in its parts, but no product. Raises NotLinear where a part is not linear, NoProduct else."""
    for part in (a for a in x.args if isinstance(a, Term) and _holds(a, atoms) and not isinstance(x, tm.Rec)):
        with suppress(NoProduct):
            _read(part, atoms)
    raise NoProduct(x, f"the state stands inside {_NOUNS[type(x)]}")


_NOUNS: dict[type, str] = {
    tm.Sum: "a sum over an index",
    tm.Stack: "a matrix given by its rows",
    tm.Row: "one of its rows",
    tm.Rows: "some of its rows",
    tm.Entry: "one of its entries",
    tm.Diag: "a diagonal matrix",
    tm.Trace: "a trace",
    tm.Rec: "a recursion",
    tm.Conj: "a conjugate",
    tm.Exp: "an exponential",
    tm.Log: "a logarithm",
    tm.Sqrt: "a square root",
    tm.Inverse: "an inverse",
    tm.Power: "a power",
}
_INSIDE = (tm.Sum, tm.Stack, tm.Row, tm.Rows, tm.Entry, tm.Diag, tm.Trace, tm.Rec, tm.Conj)
_READERS: dict[type, Callable[[Term, frozenset[Term]], Linear]] = {
    tm.Add: _add,
    tm.Mul: _mul,
    tm.Transpose: _read_transpose,
    tm.Hadamard: _hadamard,
    tm.Where: _where,
    tm.Block: _block,
    **dict.fromkeys(_INSIDE, _inside),
}
