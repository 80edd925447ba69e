"""What a term costs, derived from the term as it is written: operations, depth, and the numbers it holds.

Costs are terms in the sizes and indices, so that statements about them are proved for all of them. One convention:

* a product of p x q by q x r takes p·q·r multiplications and p·r·(q-1) additions, from left to right; a diagonal factor
  one multiplication an entry; scalar factors are multiplied first, then the matrix is scaled once;
* a sum of n terms takes n-1 additions an entry, dividing by a scalar one division an entry;
* a matrix of blocks 0 and I, at most one I in each row and column of blocks, chooses: a product with it is free;
* a sign is part of the addition that it belongs to; to choose, transpose, store or look up is free;
* nothing is computed twice: a subterm counts once for each value of the indices that it, the conditions above it, and the
  ranges of those depend on, wherever it stands; ranges are compared as they are written, so that a member which two
  different ranges reach counts twice;
* atoms and the members of recursions are given; a function that is not interpreted costs one call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias, cast

from sympy import Basic, Symbol

from .evaluate.labels import groups
from .kernel import terms as tm
from .kernel.formulas import Declaration
from .kernel.terms import Ind, Index, Num, Term

ADDITIONS, MULTIPLICATIONS, DIVISIONS, EXPONENTIALS = "additions", "multiplications", "divisions", "exponentials"
OF_NUMBERS = {tm.Exp: EXPONENTIALS, tm.Sqrt: "square roots", tm.Log: "logarithms"}
Count: TypeAlias = Mapping[str, Term]

GIVEN = (tm.Var, tm.Num, tm.Ind, tm.NegInf, tm.Zero, tm.Eye, tm.Rec)
FREE = (tm.Transpose, tm.Conj, tm.Row, tm.Entry, tm.Rows, tm.Stack, tm.Where, tm.Diag)


class Uncounted(TypeError):
    """The cost of a term is not known."""


@dataclass(frozen=True)
class _Range:
    """An index of a sum or a stack."""

    i: Symbol
    lo: Index
    hi: Index

    def total(self, each: Term) -> Term:
        return tm.Sum(each, self.i, self.lo, self.hi)


@dataclass(frozen=True)
class _Branch:
    """What is needed only where a condition holds, or only where it fails."""

    where: tm.Cond
    holds: bool

    def total(self, each: Term) -> Term:
        return tm.Where(self.where, *((each, Num(0)) if self.holds else (Num(0), each)))


_Context: TypeAlias = tuple[_Range | _Branch, ...]


def operations(*terms: Term) -> dict[str, Term]:
    """The operations that evaluating the terms together takes, by kind; a kind that does not occur is left out.

    Raises Uncounted for a node without a convention.
    """
    ledger = _Ledger()
    for x in terms:
        ledger.visit(cast(Term, tm.unnamed(x)), ())
    return {kind: reduce(tm.Add, parts) if len(parts) > 1 else parts[0] for kind, parts in ledger.counts.items()}


def step(declaration: Declaration) -> tuple[Term, ...]:
    """What an operator computes at time t: the update of each of its states, which are given, and the read-out."""
    state, t = declaration.state, declaration.t
    states = state if isinstance(state, tuple) else () if state is None else (state,)
    return (*(s.member.step_at(t, s[t - 1]) for s in states), declaration.output)


def numbers(*terms: Term) -> Term:
    """How many numbers the values of the terms hold."""
    return _total([_entries(x.rows, x.cols) for x in terms])


def depth(x: Term) -> Term:
    """The additions on the longest path from an atom to the value of a term, as it is written; functions are given.

    Raises Uncounted for a node other than a sum of terms, a function or a recursion, and where neither of two depths is
    known to be the larger.
    """
    return _depth(cast(Term, tm.unnamed(x)), {})


@dataclass
class _Ledger:
    counts: dict[str, list[Term]] = field(default_factory=dict)
    seen: set[tuple[Basic, _Context]] = field(default_factory=set)

    def visit(self, x: Term, context: _Context) -> None:
        """Count a term and what it is made of, each once a context."""
        context = _relevant(x, context)
        key = _renamed(x, context)
        if key in self.seen:
            return
        self.seen.add(key)
        for kind, each in _own(x):
            if each == Num(0):
                continue
            for c in reversed(context):
                each = c.total(each)
            self.counts.setdefault(kind, []).append(each)
        for part, more in _parts(x):
            self.visit(part, (*context, *more))


def _relevant(x: Term, context: _Context) -> _Context:
    """The conditions that a term stands under, and the ranges of the indices that it and those depend on."""
    kept: list[_Range | _Branch] = []
    needed = set(tm.free(x))
    for c in reversed(context):
        if isinstance(c, _Branch) or c.i in needed:
            kept.append(c)
            bounds = c.where.args if isinstance(c, _Branch) else (c.lo, c.hi)
            needed -= {c.i} if isinstance(c, _Range) else set()
            needed |= set().union(*[e.free_symbols for e in cast("tuple[Basic, ...]", bounds)])
    return tuple(reversed(kept))


def _renamed(x: Term, context: _Context) -> tuple[Basic, _Context]:
    """A term and its context, under bound names that are the same for the same ranges."""
    names: dict[Symbol, Symbol] = {}
    out: list[_Range | _Branch] = []
    for c in context:
        if isinstance(c, _Range):
            lo, hi = (tm.put(cast(Basic, e), names) for e in (c.lo, c.hi))
            names[c.i] = tm.index(f"{tm.PRIME}{len(names)}")
            out.append(_Range(names[c.i], cast(Index, lo), cast(Index, hi)))
        else:
            out.append(_Branch(tm.Cond(*[tm.put(e, names) for e in c.where.args]), c.holds))
    return tm.put(x, names), tuple(out)


def _parts(x: Term) -> list[tuple[Term, _Context]]:
    """The terms that a node is made of, each with what it adds to the context."""
    if isinstance(x, GIVEN):
        return []
    if isinstance(x, tm.Where):
        cond, a, b = cast("tuple[tm.Cond, Term, Term]", x.args)
        return [(a, (_Branch(cond, True),)), (b, (_Branch(cond, False),))]
    if isinstance(x, (tm.Sum, tm.Stack)):
        body, i, lo, hi = x.args
        return [(cast(Term, body), (_Range(cast(Symbol, i), cast(Index, lo), cast(Index, hi)),))]
    if isinstance(x, tm.Mul):
        return [(cast(Term, f.args[0]) if isinstance(f, tm.Inverse) and f.is_scalar_term else f, ()) for f in _factors(x)]
    if isinstance(x, tm.Apply):
        return [(a, ()) for a in x.arguments]
    return [(a, ()) for a in x.args if isinstance(a, Term)]


def _own(x: Term) -> list[tuple[str, Term]]:
    """What a node itself takes, once its parts are there."""
    size = _entries(x.rows, x.cols)
    if isinstance(x, (*GIVEN, *FREE)):
        return []
    if isinstance(x, tm.Add):
        return [(ADDITIONS, _product(Num(len(x.args) - 1), size))]
    if isinstance(x, tm.Sum):
        return [(ADDITIONS, _product(_one_less(cast(Index, x.args[3] - x.args[2] + 1)), size))]
    if isinstance(x, tm.Hadamard):
        return [(MULTIPLICATIONS, size)]
    if type(x) in OF_NUMBERS and x.is_scalar_term:
        return [(OF_NUMBERS[type(x)], Num(1))]
    if _chooses(x):
        return []
    if isinstance(x, tm.Inverse) and x.is_scalar_term:
        return [(DIVISIONS, Num(1))]
    if isinstance(x, tm.Apply):
        return [(f"calls of {x.name}", Num(1))]
    if isinstance(x, tm.Mul):
        return _own_product(x)
    raise Uncounted(f"no operations are counted for {type(x).__name__}: {x}")


def _chooses(x: Term) -> bool:
    """Whether a matrix, or what it is the transpose of, has blocks 0 and I, at most one I in each row and column of blocks."""
    x = cast(Term, x.args[0]) if isinstance(x, tm.Transpose) else x
    if not isinstance(x, tm.Block):
        return False
    ones = [[isinstance(b, tm.Eye) or b == Num(1) for b in row] for row in x.grid]
    others = [b for row in x.grid for b in row if not (isinstance(b, (tm.Eye, tm.Zero)) or b in (Num(0), Num(1)))]
    return not others and all(sum(line) <= 1 for line in (*ones, *zip(*ones, strict=True)))


def _factors(x: tm.Mul) -> list[Term]:
    """The factors of a product but for its sign."""
    return [f for f in cast("tuple[Term, ...]", x.args) if f != Num(-1)]


def _own_product(x: tm.Mul) -> list[tuple[str, Term]]:
    out: list[tuple[str, Term]] = []
    scalars = [f for f in _factors(x) if f.is_scalar_term]
    values, chains = [Num(1) for f in scalars if not isinstance(f, tm.Inverse)], groups(x)
    for left, *rest in chains:
        for f in rest:
            diagonal = isinstance(left, tm.Diag) or isinstance(f, tm.Diag)
            chosen = _chooses(left) or _chooses(f)
            left = tm.Mul(left, f)
            if chosen:
                continue
            size = _entries(left.rows, left.cols)
            if diagonal:
                out.append((MULTIPLICATIONS, size))
            else:
                out += [(MULTIPLICATIONS, _product(size, _size(f.rows))), (ADDITIONS, _product(size, _one_less(f.rows)))]
        values.append(_entries(left.rows, left.cols))
    size = _entries(x.rows, x.cols)
    # the scalars among themselves, then the one matrix by their product
    out += [(MULTIPLICATIONS, Num(1) if n < len(values) - 1 else size) for n in range(1, len(values))]
    return out + [(DIVISIONS, size) for f in scalars if isinstance(f, tm.Inverse)]


def _product(*factors: Term) -> Term:
    if Num(0) in factors:
        return Num(0)
    kept = [f for f in factors if f != Num(1)]
    return Num(1) if not kept else kept[0] if len(kept) == 1 else tm.Mul(*kept)


def _entries(rows: Index, cols: Index) -> Term:
    return _product(_size(rows), _size(cols))


def _size(n: Index) -> Term:
    """How many of them there are; an expression that is not a bare size may be negative, and then there are none."""
    e = tm.index_expression(n)
    if e.is_number:
        return Num(int(n))
    return Ind(n) if e.is_Symbol else tm.Where(tm.le(0, e), Ind(n), Num(0))


def _one_less(n: Index) -> Term:
    """max(n - 1, 0)."""
    less = tm.index_expression(n) - 1
    if less.is_number:
        return Num(max(int(less), 0))
    return tm.Where(tm.le(0, less), Ind(less), Num(0))


def _total(parts: list[Term]) -> Term:
    return reduce(tm.Add, parts) if parts else Num(0)


def _depth(x: Term, known: Mapping[Term, Term]) -> Term:
    if x in known:
        return known[x]
    if isinstance(x, tm.Rec):
        taken = frozenset(known) | tm.free(x)
        before = cast(Term, tm.fresh(tm.Var(x.name, (), x.rows, x.cols), taken))
        init = _depth(x.init, known)
        return tm.recurrence("D", init, lambda t, d: _depth(x.step_at(t, before), {**known, before: d}), start=x.start)[x.at]
    if isinstance(x, GIVEN):
        return Num(0)
    if isinstance(x, tm.Apply):
        return reduce(_larger, [_depth(a, known) for a in x.arguments], Num(0))
    if isinstance(x, tm.Add):
        first, *rest = [_depth(cast(Term, a), known) for a in x.args]
        return reduce(lambda d, e: _one_more(_larger(d, e)), rest, first)
    raise Uncounted(f"no depth is counted for {type(x).__name__}: {x}")


def _one_more(d: Term) -> Term:
    return Num(d.value + 1) if isinstance(d, Num) else d + 1


def _larger(a: Term, b: Term) -> Term:
    """The larger of two depths; no depth is below 0."""
    if a == b or b == Num(0):
        return a
    if a == Num(0):
        return b
    if isinstance(a, Num) and isinstance(b, Num):
        return a if a.value >= b.value else b
    raise Uncounted(f"neither of the depths {a} and {b} is known to be the larger")


__all__ = ["ADDITIONS", "DIVISIONS", "EXPONENTIALS", "MULTIPLICATIONS", "Uncounted", "depth", "numbers", "operations", "step"]
