"""Deciding whether a guarded polynomial is zero.

``residue`` returns what is left after everything that provably cancels has cancelled: an empty residue proves
the polynomial zero, a non-empty one proves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from . import columns
from .affine import Affine, Guards, Place, affine, feasible, implied, name
from .algebra import Atom, Mono, Normal, Poly, add_normals, collected, guard, merge_scalars, opened, rebound, times
from .canonical import SHORT, TooLarge, base_of, body_at, canonical, normal, unit_of, with_scalar, with_word

Nonzero = Callable[[Normal, Guards], bool]


def residue(p: Poly, facts: Guards, nonzero: Nonzero) -> Poly:
    """What is left of p after all cancellation that is known; [] means that p = 0.

    ``nonzero`` decides whether a scalar is known not to be zero under given facts.
    """
    left = _residue(p, facts, nonzero)
    fixed = pins(facts) if left else {}
    left = _residue([(m.subs(fixed), c) for m, c in left], facts, nonzero) if fixed else left
    if not columns.entrywise(left):
        return left
    left = _residue(columns.spread(left, facts), facts, nonzero)
    left = cells(columns.gathered(left), facts, join=False)
    return cells(columns.numbered(left, facts), facts, join=False) if left else []


def pins(facts: Guards) -> dict[str, Affine]:
    """Indices that the facts fix, g >= 0 and -g >= 0, by others: what is equal may stand in their places."""
    out: dict[str, Affine] = {}
    for g in sorted(facts):
        gap = g.subs(out)
        found = [(s, c) for s, c in gap.terms if abs(c) == 1 and not isinstance(s, Place) and s not in gap.placed]
        if -g in facts and found:
            s, c = found[-1]
            value = name(s) - gap.scale(c)
            out = {**{k: v.subs({s: value}) for k, v in out.items()}, s: value}
    return out


def _residue(p: Poly, facts: Guards, nonzero: Nonzero) -> Poly:
    left = cells(canonical(p, facts), facts)
    if not left:
        return []
    if any(a.kind == "prod" for m, _ in left for a in _deep_atoms(m)):
        left = cells(aligned(left, facts), facts, join=False)
    for _ in range(4):
        cleared = without_denominators(left, facts, nonzero)
        if not left or cleared is None:
            break
        left = cells(cleared, facts, join=False)
    return cells([_constants_apart(m, c) for m, c in left], facts, join=False) if left else []


def _constants_apart(m: Mono, c: Fraction) -> tuple[Mono, Fraction]:
    """A number to a power e + n, n a constant, is its n-th power times its power e: the number is not 0."""
    scalars = []
    for a, e in m.scalars:
        if a.kind == "num":
            e, c = e - e.const, c * Fraction(a.data) ** e.const
        scalars.append((a, e))
    return replace(m, scalars=merge_scalars(scalars)), c


def _deep_atoms(m: Mono) -> list[Atom]:
    out = list(m.word)
    for a, _ in m.scalars:
        out += [a, *(a.inner if a.kind == "word" else ())]
    return out


# cells -------------------------------------------------------------------------------------------


def cells(p: Poly, facts: Guards, *, join: bool = True) -> Poly:
    """Cut the ranges of equal bodies into disjoint cells and add up the coefficients on each."""
    pool = p
    for _ in range(40):
        classes: dict[str, Poly] = defaultdict(list)
        for m, c in pool:
            classes[f"{len(m.binders)}{m.body_key}"].append((m, c))
        parts = [x for _, ms in sorted(classes.items()) for x in _cells_of(ms, facts)]
        new = canonical(parts, facts, join=join)
        if [(m.key, c) for m, c in new] == [(m.key, c) for m, c in pool]:
            return new
        pool = new
    raise TooLarge("the ranges of a sum did not settle into cells")


def _cells_of(ms: Poly, facts: Guards) -> Poly:
    if len(ms) == 1:
        return ms
    body = ms[0][0]
    out: Poly = []

    def visit(cell: Guards) -> None:
        if len(out) > 5_000:
            raise TooLarge("a sum falls into too many cells")
        known = facts | cell
        for g in sorted({g for m, _ in ms for g in m.guards}):
            if not implied(known, g) and not implied(known, -g - 1):
                for side in (g, -g - 1):
                    if feasible(known | {side}):
                        visit(cell | {side})
                return
        total = sum((c for m, c in ms if all(implied(known, g) for g in m.guards)), Fraction(0))
        if total:
            out.append((replace(body, guards=cell), total))

    visit(frozenset())
    return out


# ordered products --------------------------------------------------------------------------------


def aligned(p: Poly, facts: Guards) -> Poly:
    """Cut ordered products of one body at each other's ends, so that equal parts stand side by side."""
    for _ in range(60):
        p = canonical(p, facts, join=False)
        ends: dict[str, set[Affine]] = defaultdict(set)
        for m, _c in p:
            for a in _deep_atoms(m):
                if a.kind == "prod":
                    ends[_group(a)] |= {a.index[0], a.index[1] + 1}
        changed = False
        out: Poly = []
        for m, c in p:
            new = _cut_one(m, ends, facts)
            changed |= new is not None
            out += [(m, c)] if new is None else [(n, c * d) for n, d in new]
        if not changed:
            return p
        p = out
    raise TooLarge("ordered products could not be aligned")


def _group(a: Atom) -> str:
    return f"{a.args[0].key}{a.data}"


def _cut_one(m: Mono, ends: dict[str, set[Affine]], facts: Guards) -> Poly | None:
    spots = [(-1, n, a) for n, a in enumerate(m.word)]
    for place, (s, e) in enumerate(m.scalars):
        if s.kind == "word":
            spots += [(place, n, a) for n, a in enumerate(s.inner)]
        elif e.is_const and e.const > 0:
            spots.append((place, -1, s))
    for place, n, a in spots:
        if a.kind != "prod":
            continue
        parts = _cut(a, ends[_group(a)], facts | m.guards)
        if parts is None:
            continue
        out: Poly = []
        for guards, factors in parts:
            if n < 0:
                new = with_scalar(m, a, factors)
            else:
                word = m.word if place < 0 else m.scalars[place][0].inner
                new = with_word(m, place, [unit_of(word[:n]), *factors, unit_of(word[n + 1 :])])
            out += guard(new, guards)
        return out
    return None


Cases = list[tuple[Guards, list[Poly]]]


def _cut(a: Atom, ends: set[Affine], known: Guards) -> Cases | None:
    lo, end = a.index[0], a.index[1] + 1
    for c in sorted(ends):
        back, ahead = end - c, c - lo
        if back.is_const and 0 < back.const <= SHORT:
            return _peel(a, last=True)
        if ahead.is_const and 0 < ahead.const <= SHORT:
            return _peel(a, last=False)
    for c in sorted(ends):
        if any(s[0] in "#$" for s in c.names) or implied(known, lo - c) or implied(known, c - end):
            continue
        left, right = replace(a, index=(lo, c - 1)), replace(a, index=(c, end - 1))
        halves = [right, left] if a.data else [left, right]
        inside = frozenset({c - lo, end - c})
        cases: Cases = [(inside, [unit_of((h,)) for h in halves])]
        cases.append((frozenset({lo - c - 1}), [unit_of((a,))]))
        cases.append((frozenset({c - end - 1, c - lo}), [unit_of((a,))]))
        return [(g, f) for g, f in cases if feasible(known | g)]
    return None


def _peel(a: Atom, *, last: bool) -> Cases:
    """Take the last or the first index off a product, where it is not empty."""
    lo, hi = a.index
    rest = replace(a, index=(lo, hi - 1) if last else (lo + 1, hi))
    factor = body_at(a, hi if last else lo)
    pair = [unit_of((rest,)), factor]
    if last == bool(a.data):
        pair.reverse()
    return [(frozenset({hi - lo}), pair), (frozenset({lo - hi - 1}), [])]


# denominators ------------------------------------------------------------------------------------


def without_denominators(p: Poly, facts: Guards, nonzero: Nonzero) -> Poly | None:
    """The polynomial times denominators that are not zero wherever it has a monomial, or None."""
    p = slotted(p, facts)
    for _ in range(24):
        found = sorted({a.key: a for m, _ in p for a, e in m.scalars if _clearable(m, a, e)}.items())
        d = next((a for _, a in found if _lives_with(p, a, facts, nonzero)), None)
        if d is None:
            return p if _ >= 1 else None
        top = max([e.const for m, _ in p for a, e in m.scalars if a == d], default=0)
        out: Poly = []
        for m, c in p:
            e = next((e.const for a, e in m.scalars if a == d), 0)
            new: Poly = [(replace(opened(m), scalars=tuple(x for x in m.scalars if x[0] != d)), c)]
            for _k in range(max(top, 0) - e):
                new = times(new, list(d.args[0].monos))
            out += rebound(m, new)
        p = canonical(out, facts, join=False)
    return p


def _lives_with(p: Poly, d: Atom, facts: Guards, nonzero: Nonzero) -> bool:
    """Whether no monomial can be there at index values where the denominator is zero: multiplying would hide it.

    A monomial with the denominator is where it was read, and there it is not zero.
    """
    own = [m for m, _ in p if any(a == d for a, _ in m.scalars)]
    wide = [m.guards for m in own if not m.binders]
    # the bound names of a monomial are not those inside the denominator
    others = [facts | m.apart().guards for m, _ in p if m not in own]
    return all(any(all(implied(f, g) for g in gs) for gs in wide) or nonzero(d.args[0], f) for f in others)


def _clearable(m: Mono, a: Atom, e: Affine) -> bool:
    bound = any(s in m.binders for s in a.names)
    return a.kind == "inv" and a.shape == (1, 1) and e.is_const and not bound


def slotted(p: Poly, facts: Guards) -> Poly:
    """Write functions of one matrix, at one place of otherwise equal words, as functions of one scalar.

    Sound because f -> L f(A) R is linear and functions of A commute: what vanishes as a rational function
    (in independent scalars for independent places) vanishes for A.
    """
    if not any(a.kind == "inv" and a.shape != (1, 1) for m, _ in p for a in _deep_atoms(m)):
        return p
    bases: dict[tuple[str, int], set[str]] = defaultdict(set)
    for m, _ in p:
        for _place, word in _all_words(m):
            stripped, runs = _runs(word)
            for gap, run in runs.items():
                bases[(stripped, gap)] |= {base_of(a) or "" for a in run}
    out: Poly = []
    for m, c in p:
        out.append((_slot_mono(m, bases, facts), c))
    return canonical(out, facts, join=False)


def _all_words(m: Mono) -> list[tuple[int, tuple[Atom, ...]]]:
    out = [(-1, m.word)]
    for n, (a, e) in enumerate(m.scalars):
        if a.kind == "word" and e == affine({}, 1):
            out.append((n, a.inner))
    return out


def _runs(word: tuple[Atom, ...]) -> tuple[str, dict[int, list[Atom]]]:
    """The word without its functions of matrices, and those by the gap in which they stand."""
    runs: dict[int, list[Atom]] = defaultdict(list)
    rest: list[str] = []
    for a in word:
        if base_of(a) is None or a.kind == "diag":
            rest.append(a.key)
        else:
            runs[len(rest)].append(a)
    return ".".join(rest), runs


def _slot_mono(m: Mono, bases: dict[tuple[str, int], set[str]], facts: Guards) -> Mono:
    scalars: list[tuple[Atom, Affine]] = []
    exponent = m.exponent
    word: tuple[Atom, ...] = ()
    for turn, (place, old) in enumerate(_all_words(m)):
        stripped, runs = _runs(old)
        # under a sum, the members of a family are many matrices
        ok = all(len(bases[(stripped, gap)]) <= 1 for gap in runs)
        ok = ok and not any(a.names & set(m.binders) for run in runs.values() for a in run)
        if ok:
            for gap, run in runs.items():
                for a in run:
                    # each word of a product has scalars of its own: (CAB)(CB) is not (CB)(CAB) squared away
                    s, x = _slot(a, f"{stripped}|{gap}|{turn if place >= 0 else '-'}", facts)
                    scalars += s
                    exponent = add_normals(exponent, x)
        kept = tuple(a for a in old if base_of(a) is None or a.kind == "diag") if ok else old
        if place < 0:
            word = kept
        else:
            scalars.append((Atom("skeleton", inner=kept), affine({}, 1)))
    words = {n for n, _ in _all_words(m)}
    scalars += [x for n, x in enumerate(m.scalars) if n not in words]
    return replace(m, scalars=merge_scalars(scalars), exponent=exponent, word=word)


def _slot(a: Atom, place: str, facts: Guards) -> tuple[list[tuple[Atom, Affine]], Normal | None]:
    """A function of a matrix as a function of the scalar that stands for it at a place."""
    if a.kind == "exp":
        return [], _slot_normal(a.args[0], place, facts)
    if a.kind == "inv":
        return [(Atom("inv", args=(_slot_normal(a.args[0], place, facts) or Normal(()),)), affine({}, 1))], None
    if a.kind == "pow" and a.inner[0].kind != "base":
        return [(Atom("slot", place + a.inner[0].key), a.index[0])], None
    return [(Atom("slot", place + a.key), affine({}, 1))], None


def _slot_normal(n: Normal, place: str, facts: Guards) -> Normal | None:
    out: Poly = []
    for m, c in n.monos:
        scalars, exponent = list(m.scalars), m.exponent
        for a in m.word:
            s, x = _slot(a, place, facts)
            scalars += s
            exponent = add_normals(exponent, x)
        out.append((replace(m, scalars=merge_scalars(scalars), exponent=exponent, word=()), c))
    return collected(normal(out, facts).monos)
