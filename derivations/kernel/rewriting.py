"""Proved equations as rewrite rules on canonical monomials.

A rule's left side is one monomial with coefficient 1 and without binders. It matches up to the values of its
parameters, and is used only where its conditions follow from what is known of the indices there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from sympy import Expr, Symbol

from . import terms as tm
from .affine import Affine, Guards, affine, implied, name, read
from .algebra import ONE, Atom, Mono, Poly, merge_scalars, opened, rebound, split_word, times
from .canonical import unit_of

Binding = dict[str, Affine]


@dataclass(frozen=True)
class Pattern:
    """A rule's left side, with its parameters' names and the index conditions under which it may be used."""

    label: str
    mono: Mono
    params: frozenset[str]
    where: Guards
    rhs: Callable[[Binding, Guards], Poly]

    @property
    def scalars(self) -> tuple[tuple[Atom, Affine], ...]:
        """Those first whose own indices tell the parameters: inside of others the places may not correspond."""
        return tuple(sorted(self.mono.scalars, key=lambda s: bool(s[0].args)))


def rewrite(p: Poly, patterns: tuple[Pattern, ...], facts: Guards, used: set[str]) -> Poly | None:
    """One rewriting of every monomial that matches a pattern, or None if none does."""
    out: Poly = []
    changed = False
    for m, c in p:
        new = next((r for q in patterns if (r := _apply(m, q, facts, used)) is not None), None)
        changed |= new is not None
        out += [(m, c)] if new is None else [(n, c * d) for n, d in new]
    return out if changed else None


def _apply(m: Mono, q: Pattern, facts: Guards, used: set[str]) -> Poly | None:
    # the right side is read anew: its own bound names must not meet those of m
    m = m.apart()
    known = facts | m.guards
    for binding, build in _matches(m, q):
        if binding.keys() == q.params and all(implied(known, g.subs(binding)) for g in q.where):
            used.add(q.label)
            return rebound(m, build(q.rhs(binding, known)))
    return None


Match = tuple[Binding, Callable[[Poly], Poly]]


def _matches(m: Mono, q: Pattern) -> Iterator[Match]:
    if q.mono.word:
        yield from _matches_word(m, q)
        return
    for binding, left in _match_scalars(q.scalars, m.scalars, {}, q.params):
        base = replace(opened(m), scalars=left)
        yield binding, lambda rhs, base=base: times(rhs, [(base, ONE)])  # type: ignore[misc]


def _matches_word(m: Mono, q: Pattern) -> Iterator[Match]:
    # a power that may be the zeroth or a negative one has no factor to spare
    powers = [(n, a) for n, (a, e) in enumerate(m.scalars) if a.kind == "word" and e.is_const and e.const > 0]
    places = [(-1, m.word)] + [(n, a.inner) for n, a in powers]
    size = len(q.mono.word)
    for place, word in places:
        for flip in (False, True):
            wanted = tuple(a.transpose() for a in reversed(q.mono.word)) if flip else q.mono.word
            for n in range(len(word) - size + 1):
                start = _match_all(wanted, word[n : n + size], q.params)
                if start is None:
                    continue
                scalars = m.scalars
                if place >= 0:
                    scalars = merge_scalars([*m.scalars, (m.scalars[place][0], affine({}, -1))])
                for binding, left in _match_scalars(q.scalars, scalars, start, q.params):
                    yield binding, _replacer(m, left, place, word[:n], word[n + size :], flip)


def _replacer(
    m: Mono, scalars: Any, place: int, before: tuple[Atom, ...], after: tuple[Atom, ...], flip: bool
) -> Callable[[Poly], Poly]:
    base = replace(opened(m), scalars=scalars, word=() if place < 0 else m.word)

    def build(rhs: Poly) -> Poly:
        middle = [(k.transpose(), c) for k, c in rhs] if flip else rhs
        inside = _sandwich(before, middle, after)
        return times([(base, ONE)], inside)

    return build


def _sandwich(before: tuple[Atom, ...], middle: Poly, after: tuple[Atom, ...]) -> Poly:
    return times(unit_of(before), times(middle, unit_of(after)))


def _match_scalars(
    wanted: tuple[tuple[Atom, Affine], ...], given: tuple[tuple[Atom, Affine], ...], start: Binding, params: frozenset[str]
) -> Iterator[tuple[Binding, tuple[tuple[Atom, Affine], ...]]]:
    if not wanted:
        yield start, given
        return
    (a, e), rest = wanted[0], wanted[1:]
    for b, k in given:
        if not _contains(k, e):
            continue
        binding = match_atom(a, b, start, params)
        if binding is not None:
            left = merge_scalars([*given, (b, -e)])
            yield from _match_scalars(rest, left, binding, params)


def _contains(k: Affine, e: Affine) -> bool:
    """Whether the power k is the power e times a power that always exists."""
    rest = k - e
    return rest.is_const and rest.const >= 0 and (not e.is_const or e.const > 0)


def _match_all(wanted: tuple[Atom, ...], given: tuple[Atom, ...], params: frozenset[str]) -> Binding | None:
    binding: Binding | None = {}
    for a, b in zip(wanted, given, strict=True):
        binding = match_atom(a, b, binding, params) if binding is not None else None
    return binding


def match_atom(pattern: Atom, a: Atom, start: Binding, params: frozenset[str]) -> Binding | None:
    """The values of the parameters that make the pattern this atom, or None."""
    if pattern.kind == "word" and a.kind == "word" and len(pattern.inner) == len(a.inner):
        flipped = tuple(x.transpose() for x in reversed(a.inner))
        for inner in (a.inner, flipped):
            found = _collect_inner(pattern.inner, inner, dict(start), params)
            if found is not None and scalar_key(pattern, found) == a.key:
                return found
        return None
    found = _collect(pattern, a, dict(start), params)
    if found is None or pattern.subs(found).key != a.key:
        return None
    return found


def scalar_key(pattern: Atom, found: Binding) -> str:
    scalars, _ = split_word(tuple(x.subs(found) for x in pattern.inner))
    return scalars[0][0].key if scalars else ""


def _collect_inner(
    pattern: tuple[Atom, ...], given: tuple[Atom, ...], found: Binding, params: frozenset[str]
) -> Binding | None:
    for x, y in zip(pattern, given, strict=True):
        if _collect(x, y, found, params) is None:
            return None
    return found


def _collect(pattern: Atom, a: Atom, found: Binding, params: frozenset[str]) -> Binding | None:
    """Read the parameters off the indices; whether the rest agrees is checked by the caller."""
    if (pattern.kind, pattern.head) != (a.kind, a.head) or len(pattern.index) != len(a.index):
        return None
    for e, given in zip(pattern.index, a.index, strict=True):
        _solve(e, given, found, params)
    if pattern.kind == "rec":
        _collect_term(pattern.data, a.data, found, params)
    if len(pattern.inner) == len(a.inner):
        _collect_inner(pattern.inner, a.inner, found, params)
    inside = dict(found)
    for u, v in zip(_inner_atoms(pattern), _inner_atoms(a), strict=False):
        _collect(u, v, inside, params)
    # what is bound inside is nothing out here
    found |= {p: e for p, e in inside.items() if not any(s[0] == "#" for s in e.names)}
    return found


def _inner_atoms(a: Atom) -> list[Atom]:
    return [x for n in a.args for m, _ in n.monos for x in [*[s for s, _ in m.scalars], *m.word]]


def _solve(e: Affine, given: Affine, found: Binding, params: frozenset[str]) -> None:
    open_names = sorted((e.names & params) - found.keys())
    if len(open_names) == 1 and abs(c := e.coefficient(open_names[0])) == 1 and open_names[0] not in e.placed:
        rest = (e - name(open_names[0]).scale(c)).subs(found)
        found[open_names[0]] = (given - rest).scale(c)


def _collect_term(pattern: Any, x: Any, found: Binding, params: frozenset[str]) -> None:
    if isinstance(pattern, Expr) and isinstance(x, Expr):
        if pattern.free_symbols and all(isinstance(s, Symbol) and s.is_integer for e in (pattern, x) for s in e.free_symbols):
            _solve(read(cast(Expr, pattern)), read(cast(Expr, x)), found, params)
        return
    if type(pattern) is type(x) and isinstance(pattern, (tm.Term, tm.Cond, tm.Tuple)):
        for a, b in zip(pattern.args, x.args, strict=False):
            _collect_term(a, b, found, params)
