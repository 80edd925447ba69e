"""When a transition makes nothing longer: exactly for which numbers, diagonal entries, rates; for products of these, a sufficient bound."""

from __future__ import annotations

from typing import cast

from ..claim import Claim, Source, variant
from ..delta_rule.operator import YANG
from ..kernel import terms as tm
from ..kernel.formulas import And, Equation, Formula, Implies, Less, LessEqual, NonZero, Statement
from ..kernel.scripts import Contradiction, Direct, Each, Given, Product, Script, Sign, Suppose
from ..kernel.terms import Cond, Conj, Num, Row, Term, le, norm2
from .contraction import contracting
from .correction import Correction, correction
from .linear import factors, times
from .side import DIAGONAL, IDENTITY, SCALAR, Side, any_number, entry_of
from .subject import Subject

NORMS = Source(YANG, "the paragraph on normalizing the keys", "there by eigenvalues, of one transition of the delta rule")
ONE = Num(1)


def stable(s: Subject) -> Claim | None:
    """The condition under which a transition makes no vector, or no entry, longer.

    Exact for one number, diagonal matrix or correction, sufficient for products of them. None where none is known here, as where
    states use each other, and where the transition is a given number, as 2.
    """
    run = s.run
    acting = [side for side in (run.left, run.right) if side.kind != IDENTITY]
    if len(acting) != 1:
        return None
    if acting[0].kind == SCALAR:
        number = cast(Term, acting[0].number)
        return None if isinstance(number, Num) else _number(s, number, acting[0].matrix)
    if acting[0].kind == DIAGONAL:
        return _diagonal(s, acting[0])
    if s.field != "real":
        return None
    found = correction(run)
    if found is not None and found.number is not None:
        return _corrected(s, found)
    return contracting(s, acting[0].matrix, acting[0] is run.left, NORMS)


def square(x: Term, field: str) -> Term:
    """|x|² of a number."""
    return Conj(x) * x if field == "complex" else x**2


def _complex(x: Term) -> bool:
    return any(isinstance(n, (tm.Var, tm.Apply)) and n.field == "complex" for n in tm.walk(x))


def _number(s: Subject, c: Term, matrix: Term) -> Claim:
    z = tm.vector(s.names.free("z"), matrix.rows, s.field)
    title = f"the transition makes no vector longer exactly where |{c}| is at most 1"
    if z.is_scalar_term:
        return _scaled(s, title, c, square(times(c, z), s.field), square(z, s.field), NonZero(z), Cond())
    return _scaled(s, title, c, norm2(times(c, z)), norm2(z), NonZero(norm2(z)), Cond())


def _diagonal(s: Subject, side: Side) -> Claim | None:
    i = s.names.index("i")
    entry = entry_of(cast(Term, side.diagonal), i)
    if entry is None:
        return None
    z = tm.vector(s.names.free("z"), side.matrix.rows, s.field)
    title = f"the transition makes no entry longer exactly where |{entry}| is at most 1"
    moved, before = (square(x, s.field) for x in (Row(side.matrix * z, i), Row(z, i)))
    return _scaled(s, title, entry, moved, before, NonZero(Row(z, i)), le(1, i) & le(i, side.matrix.rows))


def _scaled(s: Subject, title: str, c: Term, moved: Term, before: Term, some: Formula, where: Cond) -> Claim:
    """What is scaled by c is not longer exactly where |c|² <= 1; moved and before are squared lengths."""
    size = square(c, "complex" if _complex(c) else "real")
    small, shorter = LessEqual(size, 1), LessEqual(moved, before)
    scaled = Equation(moved, size * before)
    sound, sharp = Implies(small, shorter), Implies(And(some, shorter), small)
    statement = Statement(And(scaled, sound, sharp), le(1, s.run.t) & where)
    misses = [variant(statement, "the number, not its square", And(Equation(moved, c * before), sound, sharp))]
    misses += [variant(statement, "it makes nothing shorter", And(scaled, Implies(small, LessEqual(before, moved)), sharp))]
    if any_number(c):
        misses += [variant(statement, "numbers of any size", And(scaled, shorter, sharp))]
        misses += [variant(statement, "only numbers below 1", And(scaled, sound, Implies(And(some, shorter), Less(size, 1))))]
    proofs = (
        Direct(note="the number comes out"),
        Suppose(Sign((Product((ONE - size, before)),))),
        Suppose(Contradiction("premise 2", (Product((size - 1, before)),))),
    )
    return s.claim("stable", title, statement, Each(proofs), tuple(misses), NORMS)


def _corrected(s: Subject, found: Correction) -> Claim:
    """c I - c β k kᵀ or c I - β k kᵀ has the eigenvalues c, at right angles to k, and e along k."""
    k, c = found.key, cast(Term, found.number)
    step = times(c, found.rate) if found.inside else found.rate
    names = s.names
    z, u = (tm.vector(names.free(x), k.rows) for x in ("z", "u"))
    along, key = c - step * norm2(k), NonZero(norm2(k))

    def moved(x: Term) -> Term:
        return times(c, x) - step * k * (k.T * x)

    def shorter(x: Term) -> Formula:
        return LessEqual(norm2(moved(x)), norm2(x))

    def within(x: Term) -> tuple[Formula, ...]:
        return LessEqual(Num(-1), x), LessEqual(x, 1)

    fades = c != ONE
    small = (*within(along), *within(c)) if fades else within(along)
    across = z - (k.T * z / norm2(k)) * k
    parts: tuple[Product, ...] = (Product((ONE - along, ONE + along, (k.T * z) ** 2, ONE / norm2(k))),)
    parts += (Product((ONE - c, ONE + c, norm2(across))),) if fades else ()
    own = Equation(moved(k), along * k)
    others = Implies(Equation(k.T * u, 0), Equation(moved(u), times(c, u)))
    sound = Implies(And(key, *small), shorter(z))
    sharp = Implies(And(key, shorter(k)), And(*within(along)))
    rest: tuple[Formula, ...] = ()
    scripts: tuple[Script, ...] = (
        Direct(note="k meets k"),
        Suppose(Direct((Given("premise"),), "u does not meet k")),
        Suppose(Sign(parts)),
        Suppose(Each(_beyond(along, norm2(k), "premise 2"))),
    )
    if fades:
        rest += (Implies(And(NonZero(norm2(u)), LessEqual(norm2(c * u), norm2(u))), And(*within(c))),)
        scripts += (Suppose(Each(_beyond(c, norm2(u), "premise 2"))),)

    def says(own: Formula = own, sound: Formula = sound, sharp: Formula = sharp) -> Formula:
        return And(own, others, sound, sharp, *rest)

    statement = Statement(says(), le(1, s.run.t))
    misses = [variant(statement, "the eigenvalue with the other sign", says(own=Equation(moved(k), (c + step * norm2(k)) * k)))]
    misses += [variant(statement, "the rate without the norm of the key", says(own=Equation(moved(k), (c - step) * k)))]
    misses += [variant(statement, "strictly shorter", says(sound=Implies(And(key, *small), Less(norm2(moved(z)), norm2(z)))))]
    if fades and _any(c):
        misses += [variant(statement, "gates of any size", says(sound=Implies(And(key, *within(along)), shorter(z))))]
    if _any(times(c, step)):
        misses += [variant(statement, "rates of any size", says(sound=Implies(And(key, *(within(c) if fades else ())), shorter(z))))]
        above = Implies(And(key, shorter(k)), Less(Num(-1), along))
        misses += [variant(statement, "only eigenvalues above -1", says(sharp=above))]
    title = f"the transition makes no vector longer exactly where its eigenvalue along the key, {along}, is between -1 and 1"
    if fades:
        title = (
            f"the transition makes no vector longer where its eigenvalues, {along} along the key and {c} at right angles to it, "
            "are between -1 and 1; beyond, it makes the key, or what is at right angles to it, longer"
        )
    return s.claim("stable", title, statement, Each(scripts), tuple(misses), NORMS)


def _any(x: Term) -> bool:
    """Whether a product is any number at all: each factor but constants is."""
    return all(any_number(f) for f in factors(x) if not isinstance(f, Num))


def _beyond(e: Term, length: Term, against: str) -> tuple[Script, ...]:
    """Below -1 and above 1 a number times a vector is longer."""
    below, above = -e - 1, e - 1
    return tuple(Contradiction(against, (Product((p, length, 2)), Product((p, p, length)))) for p in (below, above))
