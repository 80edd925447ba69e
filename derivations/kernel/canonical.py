"""Canonical form of guarded polynomials: every step here is an identity.

Pinned indices are substituted, ranges of constant length are written out, products of adjacent ranges are
joined, functions of one matrix are sorted, guards are reduced, and bound names are chosen by the body.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

from .affine import Affine, Guards, NotAffine, Place, affine, feasible, forced, implied, irredundant, name, relevant, write
from .algebra import (
    ONE,
    Atom,
    CaptureError,
    Mono,
    Normal,
    Poly,
    collected,
    fresh_name,
    guard,
    merge_scalars,
    opened,
    rebound,
    split_word,
    times,
)

SHORT = 8  # ranges of at most this constant length are written out


class TooLarge(ValueError):
    """An expression grew past what the normal form is meant for."""


def canonical(p: Poly, context: Guards, *, join: bool = True) -> Poly:
    """The canonical monomials of p, equal ones added up; p = 0 if the result is empty.

    ``join`` merges products over adjacent ranges. Raises TooLarge.
    """
    work, done, steps = list(p), [], 0
    while work:
        steps += 1
        if steps > 200_000:
            raise TooLarge("the normal form grew past 200000 monomials")
        m, c = work.pop()
        _places_stand_free(m, m.binders)
        nxt = _simplify(m, context, join)
        if nxt is None:
            for n, d in _settle(m, context):
                # a shifted index may stand as a number, to be written out
                again = _close_powers(n, context)
                if again is None:
                    done.append((n, c * d))
                else:
                    work += [(k, c * d * e) for k, e in again]
        else:
            work += [(n, c * d) for n, d in nxt]
    result = collected(done)
    return list(result.monos) if result else []


def _places_stand_free(m: Mono, bound: tuple[str, ...]) -> None:
    """An index is solved for, shifted and counted as if no cut moved with it: so none may."""
    moving = m.placed.intersection(bound)
    if moving:
        raise NotAffine(f"a bound index stands in the place of a cut: {m.key}")


def normal(p: Poly, context: Guards = frozenset(), bound: tuple[str, ...] = ()) -> Normal:
    """The canonical polynomial as a value, under bound names that are made canonical too."""
    q = canonical(p, context)
    if not bound:
        return Normal(tuple(q))
    for x, _ in q:
        _places_stand_free(x, bound)
    h = max((m.height for m, _ in q), default=0) + 1
    names = tuple(f"#{h}.{i}" for i in range(len(bound)))
    m = {b: name(n) for b, n in zip(bound, names, strict=True)}
    renamed = collected([(x.subs(m), c) for x, c in q])
    return Normal(renamed.monos if renamed else (), names)


def _simplify(m: Mono, context: Guards, join: bool) -> Poly | None:
    """One step of simplification, or None if there is none."""
    guards = frozenset(g for g in m.guards if not (g.is_const and g.const >= 0))
    if not feasible(relevant(context, frozenset().union(*[g.names for g in guards])) | guards):
        return []
    if guards != m.guards:
        return [(replace(m, guards=guards), ONE)]
    for b in m.binders:
        value = forced(guards, context, b)
        if value is not None:
            return [(m.subs({b: value}), ONE)]
    facts = context | guards
    pinned = _pinned(m, guards, facts)
    if pinned is not None:
        return [(pinned, ONE)]
    joins = (_join, _join_scalars) if join else ()
    for rule in (_write_out, _close_powers, _close_exponents, _include, _open_products, *joins, _sort_runs):
        found = rule(m, facts)
        if found is not None:
            return found
    return _count(m, context)


def _pinned(m: Mono, guards: Guards, facts: Guards) -> Mono | None:
    """Where guards make two free indices equal, the body speaks of one of them only."""
    for g in sorted(guards):
        symbols = {s: c for s, c in g.terms if not isinstance(s, Place)}
        free = sorted(s for s, c in symbols.items() if abs(c) == 1 and s not in m.binders and s in m.body_names)
        if len(g.names & set(m.binders)) or not free or free[-1] != max(symbols) or free[-1] in g.placed or not implied(facts, -g):
            continue
        v = free[-1]
        value = name(v) - g.scale(g.coefficient(v))
        return replace(m.subs({v: value}), guards=m.guards)
    return None


def _bounds(m: Mono, b: str) -> tuple[list[Affine], list[Affine]]:
    lows = [name(b) - g for g in m.guards if g.coefficient(b) == 1]
    highs = [g + name(b) for g in m.guards if g.coefficient(b) == -1]
    return sorted(lows), sorted(highs)


def _write_out(m: Mono, _: Guards) -> Poly | None:
    for b in m.binders:
        lows, highs = _bounds(m, b)
        for lo, hi in product(lows, highs):
            gap = hi - lo
            if gap.is_const and gap.const < SHORT:
                return [(m.subs({b: lo + k}), ONE) for k in range(gap.const + 1)]
    return None


def _count(m: Mono, context: Guards) -> Poly | None:
    """A sum whose body does not depend on the index is a multiple of it."""
    for b in m.binders:
        if b in m.body_names:
            continue
        lean = irredundant(m.guards, context)
        lows, highs = _bounds(replace(m, guards=lean), b)
        if len(lows) != 1 or len(highs) != 1 or any(abs(g.coefficient(b)) > 1 for g in lean):
            continue
        rest = frozenset(g for g in lean if not g.coefficient(b))
        if implied(context | rest, highs[0] - lows[0] + 1):
            if _partial(m):
                # 0 times a body without a value: the empty sum is 0 all the same
                rest |= {highs[0] - lows[0]}
            inner = replace(m, binders=tuple(x for x in m.binders if x != b), guards=rest)
            return rebound(inner, times(number(highs[0] - lows[0] + 1), [(opened(inner), ONE)]))
    return None


def _partial(m: Mono) -> bool:
    """Whether the body has a value only where something is not zero or is invertible."""
    exponents = [e for _, e in m.scalars] + [a.index[0] for a in m.word if a.kind == "pow"]
    atoms = [*m.word, *[a for a, _ in m.scalars], *[x for a, _ in m.scalars for x in a.inner]]
    return any(not (e.is_const and e.const >= 0) for e in exponents) or any(a.kind in ("inv", "pow") for a in atoms)


def number(a: Affine) -> Poly:
    """An index expression as a scalar polynomial."""
    out: Poly = [(Mono(scalars=((Atom("ind", index=(name(s),)), affine({}, 1)),)), Fraction(c)) for s, c in a.terms]
    return out + ([(Mono(), Fraction(a.const))] if a.const else [])


def _close_powers(m: Mono, _: Guards) -> Poly | None:
    """Roots, numbers, index values and matrix powers whose exponent or index became a number."""
    for place, word in _words(m):
        for n, a in enumerate(word):
            if a.kind == "pow" and a.index[0].is_const and a.index[0].const in (0, 1):
                closed = matrix_power(a.inner[0], a.index[0])
                return with_word(m, place, [unit_of(word[:n]), unit_of(closed), unit_of(word[n + 1 :])])
    for n, (a, e) in enumerate(m.scalars):
        rest = replace(opened(m), scalars=m.scalars[:n] + m.scalars[n + 1 :])
        if a.kind == "sqrt" and e.is_const and abs(e.const) >= 2:
            whole, left = divmod(abs(e.const), 2)
            if e.const > 0:
                squared: Poly = list(a.args[0].monos)
                out: Poly = [(replace(rest, scalars=merge_scalars([*rest.scalars, (a, affine({}, left))])), ONE)]
                for _k in range(whole):
                    out = times(out, squared)
                return rebound(m, out)
        if a.kind == "num" and e.is_const:
            return rebound(m, [(rest, Fraction(a.data) ** e.const)])
        if a.kind == "num" and a.data == -1 and (parity := affine({s: c % 2 for s, c in e.terms}, e.const % 2)) != e:
            return rebound(m, [(replace(rest, scalars=merge_scalars([*rest.scalars, (a, parity)])), ONE)])
        if a.kind == "ind" and not a.index[0].is_name and e.is_const and e.const > 0:
            out = [(rest, ONE)]
            for _k in range(e.const):
                out = times(out, number(a.index[0]))
            return rebound(m, out)
    return None


def _close_exponents(m: Mono, facts: Guards) -> Poly | None:
    """Exponents in which an index value became a composite one: (k + 1) x is k x + x."""
    if m.exponent and _composite(m.exponent):
        total = normal(list(m.exponent.monos), facts)
        return [(replace(m, exponent=total if total.monos else None), ONE)]
    for place, word in _words(m):
        for n, a in enumerate(word):
            if a.kind == "exp" and _composite(a.args[0]):
                total = normal(list(a.args[0].monos), facts)
                closed = unit_of((replace(a, args=(total,)),) if total.monos else ())
                return with_word(m, place, [unit_of(word[:n]), closed, unit_of(word[n + 1 :])])
    return None


def _composite(n: Normal) -> bool:
    """Whether some power of an index value, not of a bare index, stands in a polynomial."""
    powers = [(a, e) for m, _ in n.monos for a, e in m.scalars if a.kind == "ind" and e.is_const and e.const > 0]
    return any(not a.index[0].is_name for a, _ in powers)


def _words(m: Mono) -> list[tuple[int, tuple[Atom, ...]]]:
    """The word of a monomial (place -1) and those inside its scalar words (their place)."""
    out = [(-1, m.word)]
    out += [(n, a.inner) for n, (a, e) in enumerate(m.scalars) if a.kind == "word" and e.is_const and e.const > 0]
    return out


def with_word(m: Mono, place: int, parts: list[Poly]) -> Poly:
    """Replace the word at a place by a product of polynomials."""
    base = opened(m)
    if place < 0:
        base = replace(base, word=())
    else:
        base = replace(base, scalars=merge_scalars([*m.scalars, (m.scalars[place][0], affine({}, -1))]))
    return rebound(m, times([(base, ONE)], multiply(parts)))


def multiply(parts: list[Poly]) -> Poly:
    """The product of several polynomials."""
    out: Poly = [(Mono(), ONE)]
    for p in parts:
        out = times(out, p)
    return out


def with_scalar(m: Mono, a: Atom, parts: list[Poly]) -> Poly:
    """Replace one power of a scalar atom by a product of polynomials."""
    base = replace(opened(m), scalars=merge_scalars([*m.scalars, (a, affine({}, -1))]))
    return rebound(m, times([(base, ONE)], multiply(parts)))


def unit_of(word: tuple[Atom, ...]) -> Poly:
    scalars, rest = split_word(word)
    return [(Mono(scalars=merge_scalars(scalars), word=rest), ONE)]


def body_at(a: Atom, at: Affine) -> Poly:
    """The factor of an ordered product at an index."""
    body = a.args[0]
    return [(m.apart().subs({body.bound[0]: at}), c) for m, c in body.monos]


def _open_products(m: Mono, facts: Guards) -> Poly | None:
    """Empty products are the identity; those of constant length are written out."""
    for place, word in _words(m):
        for n, a in enumerate(word):
            if a.kind == "prod":
                factors = _factors(a, facts)
                if factors is not None:
                    return with_word(m, place, [unit_of(word[:n]), *factors, unit_of(word[n + 1 :])])
    for a, e in m.scalars:
        if a.kind == "prod" and e.is_const and e.const > 0:
            factors = _factors(a, facts)
            if factors is not None:
                return with_scalar(m, a, factors)
    return None


def inclusion(sizes: tuple[Affine, ...], n: int) -> Atom:
    """The columns of the identity that belong to block n of the given sizes."""
    total = Affine()
    for size in sizes:
        total = total + size
    return Atom("inclusion", index=sizes, data=n + 1, shape=(write(total), write(sizes[n])))


def _include(m: Mono, _: Guards) -> Poly | None:
    """Inclusions E_1, ..., E_n of one partition: E_iᵀ E_j is the identity or 0, and the sum of all E_i E_iᵀ is the identity."""
    for place, word in _words(m):
        for n, (x, y) in enumerate(pairwise(word)):
            if x.kind != "inclusion" or y.kind != "inclusion" or x.index != y.index or x.transposed == y.transposed:
                continue
            last = len(x.index)
            if x.transposed:
                new: Poly = [(Mono(), ONE)] if x.data == y.data else []
            elif x.data == y.data == last:
                others = [inclusion(x.index, i) for i in range(last - 1)]
                new = [(Mono(), ONE)] + [(k, -c) for e in others for k, c in unit_of((e, e.transpose()))]
            else:
                continue
            return with_word(m, place, [unit_of(word[:n]), new, unit_of(word[n + 2 :])])
    return None


def _factors(a: Atom, facts: Guards) -> list[Poly] | None:
    lo, hi = a.index
    gap = hi - lo
    if gap.is_const and gap.const < SHORT:
        out = [body_at(a, lo + k) for k in range(gap.const + 1)]
        return out[::-1] if a.data else out
    return [] if implied(facts, -gap - 1) else None


def _join(m: Mono, facts: Guards) -> Poly | None:
    """P[a..b] P[b+1..c] = P[a..c], where both parts are known to be proper or empty."""
    for place, word in _words(m):
        for n in range(len(word) - 1):
            left, right = word[n], word[n + 1]
            merged = _joined(left, right, facts)
            if merged is not None:
                return with_word(m, place, [unit_of(word[:n]), unit_of((merged,)), unit_of(word[n + 2 :])])
    return None


def _join_scalars(m: Mono, facts: Guards) -> Poly | None:
    prods = [(n, a) for n, (a, e) in enumerate(m.scalars) if a.kind == "prod" and e.is_const and e.const > 0]
    for _, a in prods:
        for _, b in prods:
            merged = _joined(a, b, facts) if a != b else None
            if merged is not None:
                one = affine({}, 1)
                return [(replace(m, scalars=merge_scalars([*m.scalars, (a, -one), (b, -one), (merged, one)])), ONE)]
    return None


def _joined(x: Atom, y: Atom, facts: Guards) -> Atom | None:
    if x.kind == "prod" and y.kind == "prod" and x.args == y.args and x.data == y.data:
        first, second = (y, x) if x.data else (x, y)
        (a, b), (b1, c) = first.index, second.index
        if b1 - b == affine({}, 1) and implied(facts, b - a + 1) and implied(facts, c - b):
            return replace(x, index=(a, c))
    if x.kind == "prod" and _single(x) and body_at(x, x.index[1] + 1 if not x.data else x.index[0] - 1) == unit_of((y,)):
        return _extended(x, facts, right=True)
    if y.kind == "prod" and _single(y) and body_at(y, y.index[0] - 1 if not y.data else y.index[1] + 1) == unit_of((x,)):
        return _extended(y, facts, right=False)
    return None


def _single(a: Atom) -> bool:
    monos = a.args[0].monos
    return len(monos) == 1 and monos[0][1] == 1 and len(monos[0][0].word) == 1


def _extended(a: Atom, facts: Guards, *, right: bool) -> Atom | None:
    lo, hi = a.index
    if not implied(facts, hi - lo + 1):
        return None
    return replace(a, index=(lo, hi + 1) if right != bool(a.data) else (lo - 1, hi))


def base_of(a: Atom) -> str | None:
    """The key of the square matrix that an atom is a function of; None if it is a function of none."""
    if a.kind in ("var", "rec", "apply", "diag") and a.shape[0] == a.shape[1] and a.shape != (1, 1):
        return a.key
    if a.kind == "pow":
        return base_of(a.inner[0])
    if a.kind in ("inv", "exp", "integral") and a.shape[0] == a.shape[1]:
        of = function_of(a.args[0])
        # a matrix that moves with the variable of integration is many matrices
        return a.key if a.kind == "integral" and of and repr(a.head) in of else of
    return None


def function_of(n: Normal) -> str | None:
    """The key of the one matrix that a polynomial is a function of."""
    # the members of a family under a sum are many matrices
    bases = {None if a.names & set(m.binders) else base_of(a) for m, _ in n.monos for a in m.word}
    return bases.pop() if len(bases) == 1 else None


ORDER = {"var": 0, "rec": 0, "apply": 0, "pow": 0, "exp": 1, "inv": 2, "integral": 3}


def _sort_runs(m: Mono, _: Guards) -> Poly | None:
    """Neighbours that are functions of one matrix, or diagonal, commute: sort and merge them."""
    for place, word in _words(m):
        for n in range(len(word) - 1):
            x, y = word[n], word[n + 1]
            both_diagonal = x.kind == y.kind == "diag"
            if not both_diagonal and (base_of(x) is None or base_of(x) != base_of(y)):
                continue
            new = None if both_diagonal else _merged(x, y)
            if new is None and (ORDER.get(x.kind, 9), x.key) > (ORDER.get(y.kind, 9), y.key):
                new = unit_of((y, x))
            if new is not None:
                return with_word(m, place, [unit_of(word[:n]), new, unit_of(word[n + 2 :])])
    return None


def _merged(x: Atom, y: Atom) -> Poly | None:
    if x.kind == y.kind == "exp":
        total = collected([*x.args[0].monos, *y.args[0].monos])
        return unit_of((replace(x, args=(total,)),)) if total else unit_of(())
    if {x.kind, y.kind} != {"pow", "diag"} and (ORDER.get(x.kind, 9) or ORDER.get(y.kind, 9)):
        return None
    e = _exponent(x) + _exponent(y)
    base = x.inner[0] if x.kind == "pow" else x
    return unit_of(matrix_power(base, e))


def _exponent(a: Atom) -> Affine:
    return a.index[0] if a.kind == "pow" else affine({}, 1)


def matrix_power(base: Atom, e: Affine) -> tuple[Atom, ...]:
    """A square atom to an affine power, as a word."""
    if e == Affine():
        return ()
    if e == affine({}, 1):
        return (base,)
    return (Atom("pow", index=(e,), inner=(base,), shape=base.shape, real=base.real),)


def _settle(m: Mono, context: Guards) -> Poly:
    """Reduce the guards and choose the bound names; symmetric bodies are averaged over their symmetries."""
    lean = irredundant(m.guards, context)
    m = replace(m, guards=lean)
    if not m.binders:
        return [(m, ONE)]
    h = max([a.height for a, _ in m.scalars] + [a.height for a in m.word] + [m.exponent.height if m.exponent else 0]) + 1
    best: str | None = None
    chosen: dict[str, Mono] = {}
    for candidate in _anchorings(m, h):
        if best is None or candidate.body_key < best:
            best, chosen = candidate.body_key, {}
        if candidate.body_key == best:
            chosen[candidate.key] = candidate
    return [(x, Fraction(1, len(chosen))) for _, x in sorted(chosen.items())]


def _anchorings(m: Mono, height: int) -> list[Mono]:
    """The monomial with its bound names in every order, each shifted so that its first occurrence is bare."""
    out = []
    for order in permutations(m.binders):
        names = {b: f"#{height}.{i}" for i, b in enumerate(order)}
        for shifts in product(*[_anchors(m, b) for b in order]):
            shifted = m
            for b, shift in zip(order, shifts, strict=True):
                if shift is not None:
                    shifted = shifted.subs({b: shift})
            if m.names & set(names.values()):
                raise CaptureError(f"the names {sorted(names.values())} are taken in {m.key}")
            canonical_names = shifted.renamed(names)
            out.append(replace(canonical_names, binders=tuple(names[b] for b in order)))
        if len(out) > 5_000:
            raise TooLarge("a sum over too many indices to find its canonical order")
    return out


def _anchors(m: Mono, b: str) -> list[Affine | None]:
    """Values of b, in terms of itself, that make an occurrence of it bare: b -> b + c or c - b."""
    found: dict[str, set[Affine]] = {}
    for a in [x for x, _ in m.scalars] + list(m.word):
        _occurrences(a, b, found)
    if not found and m.exponent is not None:
        for k, _ in m.exponent.monos:
            for a in [x for x, _ in k.scalars] + list(k.word):
                _occurrences(a, b, found)
    if not found:
        for a, e in m.scalars:
            found.setdefault("exponent" + a.skeleton, set()).add(e)
    for _, uses in sorted(found.items()):
        shifts: set[Affine] = set()
        for e in uses:
            c = e.coefficient(b)
            # e = c*b + r becomes bare for b := c*(b - r)
            if abs(c) == 1 and not _bound_names(e, b) | ((e.names - {b}) & set(m.binders)):
                shifts.add((name(b) - (e - name(b).scale(c))).scale(c))
        if shifts:
            return [*sorted(shifts)]
    return [None]


def ordered_product(p: Poly, b: str, lo: Affine, hi: Affine, down: bool, shape: tuple[Any, Any], facts: Guards) -> Atom:
    """The ordered product of p over b = lo..hi as an atom, its index shifted or reflected to a canonical one."""
    found: dict[str, set[Affine]] = {}
    for m, _ in p:
        for a in [x for x, _ in m.scalars] + list(m.word):
            _occurrences(a, b, found)
    real = all(a.real for m, _ in p for a in [*m.word, *[s for s, _ in m.scalars]])
    scalar = shape == (1, 1)
    bare = [{e for e in u if abs(e.coefficient(b)) == 1 and not _bound_names(e, b)} for _, u in sorted(found.items())]
    uses = next((u for u in bare if u), {name(b)})
    atoms = []
    for e in uses:
        c = e.coefficient(b)
        # the new index is e = c*b + r
        r = e - name(b).scale(c)
        body = normal([(m.subs({b: (name(b) - r).scale(c)}), k) for m, k in p], facts, (b,))
        ends = (lo + r, hi + r) if c == 1 else (r - hi, r - lo)
        turned = (down if c == 1 else not down) and not scalar
        atoms.append(Atom("prod", index=ends, args=(body,), data=turned, shape=shape, real=real))
    return min(atoms, key=lambda a: a.key)


def _bound_names(e: Affine, b: str) -> set[str]:
    """The names in e, besides b, that something inside binds."""
    return {s for s in e.names - {b} if s[0] == "#"}


def _occurrences(a: Atom, b: str, found: dict[str, set[Affine]]) -> None:
    first = "~" if a.kind == "ind" else ""  # an index as a number is the last choice
    for n, e in enumerate(a.index):
        if e.coefficient(b):
            found.setdefault(f"{first}{a.skeleton}.{n}", set()).add(e)
    for x in a.inner:
        _occurrences(x, b, found)
    for arg in a.args:
        for m, _ in arg.monos:
            for x in [s for s, _ in m.scalars] + list(m.word):
                _occurrences(x, b, found)


__all__ = ["canonical", "fresh_name", "guard", "normal", "number"]
