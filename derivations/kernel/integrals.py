"""Integrals in normal form: linear, from 0, with everything constant taken out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from sympy import Integer

from . import terms as tm
from .affine import affine
from .algebra import ONE, Atom, Mono, Normal, Poly, apart, atoms_of, collected, fresh_name, opened, rebound, scale, times
from .canonical import normal, unit_of
from .terms import Term

if TYPE_CHECKING:
    from .normal import Reader


class NotIntegrable(ValueError):
    """An integral is not covered by the rules."""


def read_integral(r: Reader, x: tm.Integral) -> Poly:
    """The polynomial of an integral; the variable is shifted so that it starts at 0."""
    body, s, lo, hi = cast("tuple[Term, tm.Var, Term, Term]", x.args)
    if not (r.real(lo) and r.real(hi)):
        raise NotIntegrable(f"an integral over a real variable has real ends: {x}")
    tau = tm.scalar("τ" + fresh_name())
    r.differentiates(body, {s: tau + lo})
    # an end may speak of the variable of a derivative inside
    p = r.read(tm.substitute(r.without_derivatives(body), {s: tau + lo}))
    top = hi - lo
    if not r.read(top):
        return []
    out: Poly = []
    for m, c in apart(p):
        out += scale(_integrate(r, m, tau, top), c)
    return out


def _has(a: Atom, s: str) -> bool:
    from .normal import mentions

    return mentions(a, frozenset({s}))


def _normal_has(n: Normal | None, s: str) -> bool:
    return n is not None and any(_has(a, s) for m, _ in n.monos for a in atoms_of(m))


def _integrate(r: Reader, m: Mono, tau: tm.Var, top: Term) -> Poly:
    s = tau.name
    whole, m = m, opened(m)
    m = replace(m, word=tuple(b for a in m.word for b in _split_exp(a, s)))
    m = _constants_first(m, s)
    inside = tuple((a, e) for a, e in m.scalars if _has(a, s))
    outside = tuple((a, e) for a, e in m.scalars if not _has(a, s))
    exp_in, exp_out = _split_normal(m.exponent, s)
    hits = [n for n, a in enumerate(m.word) if _has(a, s)]
    lo, hi = (hits[0], hits[-1] + 1) if hits else (len(m.word), len(m.word))
    core = Mono(scalars=inside, exponent=exp_in, word=m.word[lo:hi])
    left = replace(m, scalars=outside, exponent=exp_out, word=m.word[:lo])
    middle = _core(r, core, tau, top)
    return rebound(whole, times([(left, ONE)], times(middle, unit_of(m.word[hi:]))))


def _split_normal(n: Normal | None, s: str) -> tuple[Normal | None, Normal | None]:
    if n is None:
        return None, None
    with_s = [(m, c) for m, c in n.monos if _normal_has(Normal(((m, c),)), s)]
    return collected(with_s), collected([x for x in n.monos if x not in with_s])


def _split_exp(a: Atom, s: str) -> list[Atom]:
    """exp(X + sY) = exp(X) exp(sY) for functions of one matrix."""
    if a.kind != "exp":
        return [a]
    from .canonical import base_of

    with_s, without = _split_normal(a.args[0], s)
    if with_s is None or without is None or base_of(a) is None:
        return [a]
    return [replace(a, args=(without,)), replace(a, args=(with_s,))]


def _constants_first(m: Mono, s: str) -> Mono:
    """Within a run of functions of one matrix, those without the variable go to the left."""
    from .canonical import base_of

    word = list(m.word)
    moved = True
    while moved:
        moved = False
        for n in range(len(word) - 1):
            x, y = word[n], word[n + 1]
            if base_of(x) is not None and base_of(x) == base_of(y) and _has(x, s) and not _has(y, s):
                word[n], word[n + 1], moved = y, x, True
    return replace(m, word=tuple(word))


def _core(r: Reader, core: Mono, tau: tm.Var, top: Term) -> Poly:
    """The integral of a monomial in which everything depends on the variable."""
    end = r.read(top)
    if not core.word and core.exponent is None:
        powers = dict(core.scalars)
        if all(a.kind == "var" for a in powers) and len(powers) <= 1:
            e = next(iter(powers.values())) if powers else affine({}, 0)
            if e.is_const and e.const >= 0:
                out: Poly = [(Mono(), Fraction(1, e.const + 1))]
                for _ in range(e.const + 1):
                    out = times(out, end)
                return out
    flipped = _reflected(core, tau.name)
    if flipped:
        return _reflect(r, core, tau, top)
    n = normal([(core, ONE)], r.facts)
    bound = f"τ#{_depth(n)}"
    renamed = _rename(n, tau.name, bound)
    shape = (core.word[0].shape[0], core.word[-1].shape[1]) if core.word else (Integer(1), Integer(1))
    real = all(a.real for a in core.word)
    a = Atom("integral", head=bound, args=(renamed, normal(end, r.facts)), shape=shape, real=real)
    return unit_of((a,))


def _exponents(core: Mono) -> list[tuple[Mono, Fraction]]:
    out = list(core.exponent.monos) if core.exponent else []
    return out + [x for a in core.word if a.kind == "exp" for x in a.args[0].monos]


def _reflected(core: Mono, s: str) -> bool:
    """Whether the integrand is made of exponentials linear in the variable, the first with a negative sign."""
    if core.scalars or any(a.kind != "exp" for a in core.word):
        return False
    parts = sorted(_exponents(core), key=lambda x: x[0].key)
    return bool(parts) and parts[0][1] < 0 and all(_linear(m, s) for m, _ in parts)


def _linear(m: Mono, s: str) -> bool:
    """Whether a monomial is the variable times what does not depend on it."""
    uses = [(a, e) for a, e in m.scalars if _has(a, s)]
    others = any(_has(a, s) for a in m.word) or _normal_has(m.exponent, s)
    return not others and len(uses) == 1 and uses[0][0].kind == "var" and uses[0][1] == affine({}, 1)


def _reflect(r: Reader, core: Mono, tau: tm.Var, top: Term) -> Poly:
    """The variable runs backwards: s -> top - s."""
    mirrored = tm.scalar("τ" + fresh_name())
    swapped = _substitute(r, core, tau.name, r.read(top - mirrored))
    out: Poly = []
    for m, c in swapped:
        out += scale(_integrate(r, m, mirrored, top), c)
    return out


def _substitute(r: Reader, core: Mono, s: str, value: Poly) -> Poly:
    """Put a polynomial for the variable into the exponents, linear in it, of a core made of exponentials."""

    def put(n: Normal) -> Normal:
        out: Poly = []
        for m, c in n.monos:
            rest = replace(m, scalars=tuple((a, e) for a, e in m.scalars if not _has(a, s)))
            out += times([(rest, c)], value)
        return normal(out, r.facts)

    word = tuple(replace(a, args=(put(a.args[0]),)) for a in core.word)
    exponent = put(core.exponent) if core.exponent else None
    return [(Mono(exponent=exponent, word=word), ONE)]


def _depth(n: Normal) -> int:
    """One more than the deepest nesting of integrals inside."""

    def of(a: Atom) -> int:
        inner = max([_depth(x) - 1 for x in a.args] + [of(b) for b in a.inner], default=0)
        return inner + 1 if a.kind == "integral" else inner

    atoms = [a for m, _ in n.monos for a in [*[s for s, _ in m.scalars], *m.word]]
    exponents = [_depth(m.exponent) - 1 for m, _ in n.monos if m.exponent]
    return max([of(a) for a in atoms] + exponents, default=0) + 1


def _rename(n: Normal, old: str, new: str) -> Normal:
    """Give the variable of integration a name that depends on its depth alone."""

    def atom(a: Atom) -> Atom:
        if a.kind == "var" and a.head == old:
            return replace(a, head=new)
        if a.kind == "rec" and _has(a, old):
            return replace(a, data=tm.substitute(a.data, {tm.scalar(old): tm.scalar(new)}))
        return replace(a, args=tuple(_rename(x, old, new) for x in a.args), inner=tuple(atom(b) for b in a.inner))

    def mono(m: Mono) -> Mono:
        from .algebra import merge_scalars

        exponent = _rename(m.exponent, old, new) if m.exponent else None
        scalars = merge_scalars([(atom(a), e) for a, e in m.scalars])
        return replace(m, scalars=scalars, exponent=exponent, word=tuple(atom(a) for a in m.word))

    return n.map(mono)


__all__ = ["read_integral"]
