"""Columns and their entries: one form for all the ways in which a ⊙ b = b ⊙ a = diag(a) b and aᵀ b = Σ a_i b_i are written.

A reader keeps a ⊙ b as an atom, diag(a) b and aᵀ b as words. ``spread`` writes every entrywise product as a word, so that diagonal
matrices meet; ``gathered`` writes every column behind diagonal matrices as an entrywise product; ``numbered`` writes products of a row
and a column as sums over their entries. All are used on what is left of a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import cast

from sympy import Integer

from .affine import Affine, Guards, affine, name, read
from .algebra import ONE, Atom, Mono, Poly, fresh_name, merge_scalars, opened, rebound, split_word
from .canonical import body_at, canonical, multiply, normal, unit_of
from .terms import PRIME

Word = tuple[Atom, ...]
STACK = f"stack{PRIME}"
"""The head of a matrix that is given by its rows."""
MOST = 5  # sums in a monomial whose orders are still compared
UNIT = affine({}, 1)


def entrywise(p: Poly) -> bool:
    """Whether a polynomial has entrywise products, diagonal matrices that could make one, or sums over entries."""
    words = [w for m, _ in p for w in (m.word, *[a.inner for a, _ in m.scalars if a.kind == "word"])]
    entries = any(m.binders and a.kind == "row" for m, _ in p for a, _ in m.scalars)
    return entries or any(a.kind in ("diag", "had") for w in words for a in w)


def spread(p: Poly, facts: Guards) -> Poly:
    """Every a ⊙ b as diag(a) b, and every diag(a ⊙ b) as diag(a) diag(b)."""
    return [(_rewritten(m, _spreading(facts | m.guards)), c) for m, c in p]


def gathered(p: Poly) -> Poly:
    """Every diag(a) b at the end of a word, and every aᵀ diag(b) at its beginning, as an entrywise product."""
    return [(_rewritten(m, _gathered), c) for m, c in p]


def numbered(p: Poly, facts: Guards) -> Poly:
    """Every aᵀ b as a sum over the entries, in monomials where this makes few sums."""
    return [(n, c * d) for m, c in p for n, d in _by_entries(m, facts)]


def _rewritten(m: Mono, f: Callable[[Word], Word]) -> Mono:
    """A monomial with other words of the same values."""
    scalars: list[tuple[Atom, Affine]] = []
    for a, e in m.scalars:
        scalars += [(x, e) for x, _ in split_word(f(a.inner))[0]] if a.kind == "word" else [(a, e)]
    more, word = split_word(f(m.word)) if m.word else ((), ())
    return replace(m, scalars=merge_scalars([*scalars, *more]), word=word)


# as words ----------------------------------------------------------------------------------------


def _spreading(facts: Guards) -> Callable[[Word], Word]:
    def diagonal(column: Word) -> Atom:
        n, size = normal([(Mono(word=column), ONE)], facts), column[0].shape[0]
        return Atom("diag", args=(n,), shape=(size, size), real=all(a.real for a in column))

    def spread_atom(a: Atom) -> Word:
        inner = _on_diagonal(a)
        if inner is not None:
            return tuple(map(diagonal, factors(inner)))
        if a.kind != "had":
            return (a,)
        *others, last = sorted((w for x in a.inner for w in factors(_opened(x))), key=_late)
        return _turned((*map(diagonal, others), *last)) if a.transposed else (*map(diagonal, others), *last)

    def spread_word(word: Word) -> Word:
        return tuple(b for a in word for b in spread_atom(a))

    return spread_word


def _late(column: Word) -> tuple[bool, bool, list[str]]:
    """What diagonal matrices stand in front of: products first of all, and members of recursions."""
    return len(column) > 1, column[-1].kind == "rec", [a.key for a in column]


# as entrywise products ---------------------------------------------------------------------------


def _gathered(word: Word) -> Word:
    """Each part of a word between numbers of rows or columns that are 1."""
    cuts = [0, *[k for k in range(1, len(word)) if word[k].shape[0] == 1], len(word)]
    return tuple(a for lo, hi in pairwise(cuts) for a in _gathered_part(word[lo:hi]))


def _gathered_part(word: Word) -> Word:
    if word[-1].shape[1] == 1:
        word = _ending(word)
    if word[0].shape[0] == 1:
        word = _turned(_ending(_turned(word)))
    halves = _halves(word)
    if halves is None:
        return word
    first, *others = sorted((x for half in halves for x in factors(half)), key=_late)
    return (*_turned(first), *_product(others))


def _halves(word: Word) -> tuple[Word, Word] | None:
    """A number as a column, turned, times a column: between its two factors, or beside what is given by its entries at an end."""
    if word[0].shape[0] != 1 or word[-1].shape[1] != 1 or len(word) < 2:
        return None
    if len(word) == 2 or _given_by_entries(word[0]):
        return _turned(word[:1]), word[1:]
    return (_turned(word[:-1]), word[-1:]) if _given_by_entries(word[-1]) else None


def _given_by_entries(a: Atom) -> bool:
    return a.kind == "had" or (a.kind == "apply" and a.head == STACK)


def _ending(word: Word) -> Word:
    """A word that ends in a column, with the diagonal matrices in front of columns in them."""
    column: Word = ()
    for a in reversed(word):
        inner = _on_diagonal(a) if column else None
        column = (a, *column) if inner is None else _product([*factors(_ending(inner)), *factors(column)])
    return column


def _product(columns: list[Word]) -> Word:
    """Columns, multiplied entry by entry."""
    if len(columns) == 1:
        return columns[0]
    parts = sorted((_closed(c) for c in columns), key=lambda a: a.key)
    return (Atom("had", inner=tuple(parts), shape=parts[0].shape, real=all(a.real for a in parts)),)


# by entries --------------------------------------------------------------------------------------


def _by_entries(m: Mono, facts: Guards) -> Poly:
    taken = [(a, e) for a, e in m.scalars if a.kind == "word" and _halves(a.inner) and e.is_const and e.const > 0]
    if not taken or len(m.binders) + sum(e.const for _, e in taken) > MOST:
        return [(m, ONE)]
    sums = [_summed(a) or [(Mono(scalars=((a, UNIT),)), ONE)] for a, e in taken for _ in range(e.const)]
    rest = replace(opened(m), scalars=tuple(x for x in m.scalars if x not in taken))
    return canonical(rebound(m, multiply([[(rest, ONE)], *sums])), facts, join=False)


def _summed(a: Atom) -> Poly | None:
    """A row times a column as a sum over their entries, where both have some that are known."""
    b, halves = fresh_name(), cast("tuple[Word, Word]", _halves(a.inner))
    found = [_entry(_closed(x), name(b)) for x in halves]
    if None in found:
        return None
    span = frozenset({name(b) - 1, read(halves[0][0].shape[0]) - name(b)})
    return [(replace(m, binders=(b, *m.binders), guards=m.guards | span), c) for m, c in multiply(cast("list[Poly]", found))]


def _entry(a: Atom, i: Affine) -> Poly | None:
    """Entry i of a column."""
    if a.transposed and a.kind != "var":
        return None
    if a.kind == "had":
        parts = [_entry(x, i) for x in a.inner]
        return None if None in parts else multiply(cast("list[Poly]", parts))
    if a.kind == "column" and a.inner[0].kind == "var":
        first = Atom("row", index=(i,), inner=a.inner[:1], shape=(Integer(1), a.inner[0].shape[1]), real=a.inner[0].real)
        return unit_of((first, *a.inner[1:]))
    if a.kind == "var":
        return unit_of((Atom("row", index=(i,), inner=(a,), shape=(Integer(1), Integer(1)), real=a.real),))
    if a.kind == "apply" and a.head == STACK:
        found = body_at(a, i + a.index[0] - 1)
        return [(m.conjugate(), c) for m, c in found] if a.conjugated else found
    return None


# parts -------------------------------------------------------------------------------------------


def factors(column: Word) -> list[Word]:
    """The columns that a column is the entrywise product of, as it is written."""
    first = column[0]
    if len(column) == 1:
        return [w for a in first.inner for w in factors(_opened(a))] if first.kind == "had" and not first.transposed else [column]
    inner = _on_diagonal(first)
    return [column] if inner is None else [*factors(inner), *factors(column[1:])]


def _on_diagonal(a: Atom) -> Word | None:
    """The column on the diagonal of a diagonal matrix, where it is a product of matrices and nothing else."""
    if a.kind != "diag" or a.args[0].bound or len(a.args[0].monos) != 1:
        return None
    ((m, c),) = a.args[0].monos
    return m.word if c == 1 and m == Mono(word=m.word) else None


def _opened(a: Atom) -> Word:
    return a.inner if a.kind == "column" else (a,)


def _closed(column: Word) -> Atom:
    """A column as a factor of an entrywise product."""
    if len(column) == 1:
        return column[0]
    return Atom("column", inner=column, shape=(column[0].shape[0], column[-1].shape[1]), real=all(a.real for a in column))


def _turned(word: Word) -> Word:
    return tuple(a.transpose() for a in reversed(word))


__all__ = ["STACK", "entrywise", "gathered", "numbered", "spread"]
