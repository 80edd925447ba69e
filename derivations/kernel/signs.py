"""Signs and conditions: what makes a scalar non-negative, positive or non-zero, and a matrix invertible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from sympy import Expr, Symbol

from . import terms as tm
from .affine import Affine, Guards, affine, implied, name, read
from .algebra import Atom, Mono, Normal, atoms_of, fresh_name, scalar_word
from .canonical import normal
from .formulas import And, ForAll, Formula, Invertible, Less, LessEqual, NonZero
from .normal import Reader
from .relied import Condition
from .rewriting import match_atom

UNIT = affine({}, 1)


@dataclass(frozen=True)
class Fact:
    """A named assumption, read: ``kind`` is nonzero, invertible, nonneg or positive, of ``what``.

    It holds for all values of ``params`` that satisfy ``where``.
    """

    name: str
    kind: str
    what: Normal
    params: frozenset[str] = frozenset()
    where: Guards = frozenset()


def read_fact(label: str, formula: Formula, reader: Reader) -> list[Fact]:
    """The facts that an assumption states about signs and inverses."""
    match formula:
        case And():
            return [f for p in formula.args for f in read_fact(label, cast(Formula, p), reader)]
        case ForAll():
            body, i, lo, hi = cast("tuple[Formula, Symbol, Expr, tm.Tuple]", formula.args)
            # a name of its own: what is known of an index here says nothing of a parameter of that name
            own = Symbol(fresh_name(), integer=True)
            span = {read(own - lo), *[read(cast(Expr, e) - own) for e in hi.args]}
            inner = read_fact(label, tm.substitute(body, {i: own}), reader.under(frozenset(span)))
            return [replace(f, params=f.params | {own.name}, where=f.where | span) for f in inner]
        case NonZero() | Invertible():
            what, x = reader.normal(formula.args[0]), formula.args[0]  # type: ignore[arg-type]
            if x.is_scalar_term:  # type: ignore[attr-defined]
                return [Fact(label, "nonzero", what)]
            # a matrix may be of size 0: a multiple of the identity says nothing, nor does a matrix that is not 0
            says = isinstance(formula, Invertible) and any(m.word for m, _ in what.monos)
            return [Fact(label, "invertible", what)] if says else []
        case Less() | LessEqual():
            kind = "positive" if isinstance(formula, Less) else "nonneg"
            return [Fact(label, kind, reader.normal(formula.rhs - formula.lhs))]
    return []


@dataclass(frozen=True)
class Signs:
    """Decides signs from facts; every fact used is added to ``used``."""

    facts: tuple[Fact, ...]
    known: Guards
    used: set[str]

    def under(self, guards: Guards) -> Signs:
        return Signs(self.facts, self.known | guards, self.used)

    def holds(self, c: Condition) -> bool:
        """Whether a recorded condition follows."""
        here = Signs(self.facts, c.facts, self.used)
        match c.kind:
            case "nonzero":
                return here.nonzero(c.what)
            case "invertible":
                return here.invertible(c.what)
            case "positive":
                return here.positive(c.what)
            case "nonnegative":
                return here.nonneg(c.what)
        return False

    def _fact(self, n: Normal, kinds: tuple[str, ...], *, any_scale: bool = False) -> bool:
        for f in self.facts:
            if f.kind in kinds and any(_multiple(what, n, any_scale) for what in self._instances(f, n)):
                self.used.add(f.name)
                return True
        return False

    def _instances(self, f: Fact, n: Normal) -> list[Normal]:
        """What a fact says of the indices that occur in n, where its range is known to hold them."""
        if not f.params:
            return [f.what] if all(implied(self.known, g) for g in f.where) else []
        patterns = [a for m, _ in f.what.monos for a in _outer(m) if a.names & f.params]
        atoms = [a for m, _ in n.monos for a in _outer(m)]
        found = [match_atom(p, a, {}, f.params) for p in patterns for a in atoms]
        return [
            f.what.subs(b)
            for b in found
            if b is not None and b.keys() == f.params and all(implied(self.known, g.subs(b)) for g in f.where)
        ]

    def nonneg(self, n: Normal) -> bool:
        if self._fact(n, ("nonneg", "positive")):
            return True
        return all(c > 0 and self._mono(m, strict=False) for m, c in n.monos)

    def positive(self, n: Normal) -> bool:
        if self._fact(n, ("positive",)):
            return True
        if self._fact(n, ("nonneg",)) and self._fact(n, ("nonzero",), any_scale=True):
            return True
        if not all(c > 0 and self._mono(m, strict=False) for m, c in n.monos):
            return False
        return any(self._mono(m, strict=True) and self._inhabited(m) for m, _ in n.monos)

    def nonzero(self, n: Normal) -> bool:
        if self._fact(n, ("nonzero", "positive"), any_scale=True):
            return True
        if self.positive(n) or self.positive(n.scale(Fraction(-1))):
            return True
        if len(n.monos) != 1 or n.monos[0][0].binders or n.monos[0][0].guards or n.monos[0][0].word:
            return False
        return all(self._atom_nonzero(a, e) for a, e in n.monos[0][0].scalars)

    def _atom_nonzero(self, a: Atom, e: Affine) -> bool:
        if a.kind in ("inv", "num"):
            return True
        one = Normal(((Mono(scalars=((a, UNIT),)), Fraction(1)),))
        if a.kind == "prod":
            n = a.args[0]
            b = n.bound[0]
            inside = self.under(frozenset({name(b) - a.index[0], a.index[1] - name(b)}))
            return inside.nonzero(Normal(n.monos))
        if a.kind == "ind" and (implied(self.known, a.index[0] - 1) or implied(self.known, -a.index[0] - 1)):
            return True
        if a.kind == "base":
            return self.nonzero(a.args[0])
        return (
            self._fact(one, ("nonzero", "positive"), any_scale=True)
            or self._mono(Mono(scalars=((a, UNIT),)), strict=True)
        )

    def invertible(self, n: Normal) -> bool:
        if self._fact(n, ("invertible",), any_scale=True):
            return True
        if len(n.monos) != 1 or n.monos[0][0].binders or n.monos[0][0].guards:
            return False
        m = n.monos[0][0]
        if not all(self._atom_nonzero(a, e) for a, e in m.scalars):
            return False
        return all(self._atom_invertible(a) for a in m.word)

    def _atom_invertible(self, a: Atom) -> bool:
        if a.kind in ("exp", "inv"):
            return True
        if a.kind == "pow":
            return self._atom_invertible(a.inner[0])
        if a.kind == "base":
            return self.invertible(a.args[0])
        if a.shape[0] != a.shape[1]:
            return False
        both = [Normal(((Mono(word=(x,)), Fraction(1)),)) for x in (a, a.transpose())]
        return any(self._fact(n, ("invertible",), any_scale=True) for n in both)

    def _mono(self, m: Mono, *, strict: bool) -> bool:
        here = self.under(m.guards)
        if m.word or (m.exponent is not None and not _real_normal(m.exponent)):
            return False
        left = dict(m.scalars)
        for a, e in m.scalars:
            if a not in left:
                continue
            if not _is_real(a) and a.conjugate() != a and left.get(a.conjugate()) == e:
                if strict and not (here._atom_nonzero(a, e) or here._atom_nonzero(a.conjugate(), e)):
                    return False
                left.pop(a.conjugate())
            elif not here._power(a, e, strict):
                return False
            left.pop(a, None)
        return True

    def _power(self, a: Atom, e: Affine, strict: bool) -> bool:
        even = e.const % 2 == 0 and all(c % 2 == 0 for _, c in e.terms)
        if even and _is_real(a):
            return not strict or self._nonzero_fact(a)
        return self._atom(a, strict)

    def _nonzero_fact(self, a: Atom) -> bool:
        one = Normal(((Mono(scalars=((a, UNIT),)), Fraction(1)),))
        return self._fact(one, ("nonzero", "positive"), any_scale=True) or self._atom(a, True)

    def _atom(self, a: Atom, strict: bool) -> bool:
        one = Normal(((Mono(scalars=((a, UNIT),)), Fraction(1)),))
        if self._fact(one, ("positive",) if strict else ("positive", "nonneg")):
            return True
        match a.kind:
            case "num":
                return bool(a.data > 0)
            case "ind":
                return implied(self.known, a.index[0] - (1 if strict else 0))
            case "sqrt":
                return self.positive(a.args[0]) if strict else True
            case "inv" | "base":
                return self.positive(a.args[0]) if strict or a.kind == "inv" else self.nonneg(a.args[0])
            case "word":
                return self._square(a, strict)
            case "prod":
                n = a.args[0]
                b = n.bound[0]
                inside = self.under(frozenset({name(b) - a.index[0], a.index[1] - name(b)}))
                body = Normal(n.monos)
                return inside.positive(body) if strict else inside.nonneg(body)
        return False

    def _square(self, a: Atom, strict: bool) -> bool:
        """w* w is non-negative; positive where it is known not to be zero."""
        half = len(a.inner) // 2
        if len(a.inner) % 2:
            return False
        adjoint = tuple(x.transpose().conjugate() for x in reversed(a.inner[half:]))
        if adjoint != a.inner[:half] and scalar_word(adjoint + a.inner[half:]) != a:
            return False
        one = Normal(((Mono(scalars=((a, UNIT),)), Fraction(1)),))
        return not strict or self._fact(one, ("nonzero", "positive"), any_scale=True)

    def _inhabited(self, m: Mono) -> bool:
        """Whether the range of a sum is known not to be empty: some end of it satisfies every guard."""
        if not m.binders:
            return all(implied(self.known, g) for g in m.guards)
        b, rest = m.binders[0], m.binders[1:]
        ends = [name(b) - g.scale(g.coefficient(b)) for g in m.guards if abs(g.coefficient(b)) == 1]
        return any(
            self._inhabited(Mono(binders=rest, guards=frozenset(g.subs({b: v}) for g in m.guards))) for v in sorted(ends)
        )


def _is_real(a: Atom) -> bool:
    return a.real and all(_is_real(b) for b in a.inner) and all(_real_normal(n) for n in a.args)


def _real_normal(n: Normal) -> bool:
    return all(_is_real(a) for m, _ in n.monos for a in atoms_of(m))


def _outer(m: Mono) -> list[Atom]:
    """The atoms of a monomial and of its exponent."""
    above = [a for k, _ in m.exponent.monos for a in _outer(k)] if m.exponent else []
    return [*[s for s, _ in m.scalars], *m.word, *above]


def _multiple(a: Normal, b: Normal, any_scale: bool) -> bool:
    """Whether a is a rational multiple of b, a positive one unless any will do."""
    if len(a.monos) != len(b.monos) or not a.monos:
        return False
    k = a.monos[0][1] / b.monos[0][1]
    return (k > 0 or any_scale) and a == b.scale(k)


__all__ = ["Fact", "Signs", "normal", "read_fact"]
