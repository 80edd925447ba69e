"""Sums of guarded monomials: the data that the normal form is made of.

A monomial is ``sum over binders where guards hold: scalars * exp(exponent) * word``. Its word is a product of
atoms that do not commute; wherever an inner dimension is 1 the word falls apart, and pieces of shape 1 x 1
become scalars. A polynomial is a list of monomials with rational coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import count
from typing import Any

from sympy import Basic, Expr, Symbol
from sympy.core.symbol import Str

from . import terms as tm
from .affine import Affine, Guards, affine, name, write

_fresh = count()


def fresh_name() -> str:
    """An index name that occurs nowhere else."""
    return f"${next(_fresh)}"


class CaptureError(AssertionError):
    """A bound name was about to be captured: a bug in the kernel, never a verdict."""


@dataclass(frozen=True)
class Normal:
    """A canonical polynomial, possibly under bound names (a function of them); ``key`` decides equality."""

    monos: tuple[tuple[Mono, Fraction], ...]
    bound: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        body = "+".join(f"{c}*{m.key}" for m, c in self.monos)
        return f"\\{','.join(self.bound)}.({body})" if self.bound else f"({body})"

    @cached_property
    def height(self) -> int:
        inner = max((m.height for m, _ in self.monos), default=0)
        return inner + 1 if self.bound else inner

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset().union(*[m.names for m, _ in self.monos]) - set(self.bound)

    @cached_property
    def placed(self) -> frozenset[str]:
        """The names in the places of cuts."""
        return frozenset().union(*[m.placed for m, _ in self.monos])

    def map(self, f: Callable[[Mono], Mono]) -> Normal:
        return Normal(tuple(sorted(((f(m), c) for m, c in self.monos), key=lambda x: x[0].key)), self.bound)

    def scale(self, k: Fraction) -> Normal:
        return Normal(tuple((m, c * k) for m, c in self.monos), self.bound)

    def subs(self, m: Mapping[str, Affine]) -> Normal:
        """Replace free index names; bound ones are deeper, so their names cannot occur in the values."""
        live = {k: v for k, v in m.items() if k in self.names}
        if not live:
            return self
        incoming = frozenset().union(*[v.names for v in live.values()])
        if incoming & self.all_bound:
            raise CaptureError(f"the names {sorted(incoming & self.all_bound)} would be captured")
        # values can make monomials equal: these are added up, so that the result is canonical again
        merged = collected([(x.subs({k: v for k, v in live.items() if k in x.names}), c) for x, c in self.monos])
        return Normal(merged.monos if merged else (), self.bound)

    @cached_property
    def all_bound(self) -> frozenset[str]:
        return frozenset(self.bound).union(*[m.all_bound for m, _ in self.monos])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Normal) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Atom:
    """An indivisible factor.

    ``kind`` is one of var, apply, rec, row, entry, pow, inv, exp, prod, diag, had, integral, expect, trace, word,
    sqrt, log, ind, num, slot, inclusion. ``index`` are its affine arguments, ``args`` its canonical ones, ``inner`` the
    atoms it contains and ``data`` what its kind needs besides.
    """

    kind: str
    head: str = ""
    index: tuple[Affine, ...] = ()
    args: tuple[Normal, ...] = ()
    inner: tuple[Atom, ...] = ()
    data: Any = None
    shape: tuple[Any, Any] = (1, 1)
    transposed: bool = False
    conjugated: bool = False
    real: bool = True

    @cached_property
    def key(self) -> str:
        marks = "'" * self.transposed + "~" * self.conjugated + "°" * (not self.real)
        parts = [str(i) for i in self.index] + [a.key for a in self.args] + [a.key for a in self.inner]
        data = plain(self.data) if isinstance(self.data, Basic) else str(self.data or "")
        return f"{self.kind}:{self.head!r}{marks}[{';'.join(parts)}]{data}<{self.shape[0]},{self.shape[1]}>"

    @property
    def parts(self) -> list[Normal | Atom]:
        return [*self.args, *self.inner]

    @cached_property
    def skeleton(self) -> str:
        """The key without index values: what anchoring sorts by."""
        return f"{self.kind}:{self.head}{self.transposed:d}{self.conjugated:d}{len(self.index)}"

    @cached_property
    def names(self) -> frozenset[str]:
        out: set[str] = set()
        for part in (*self.index, *self.parts):
            out |= part.names
        if isinstance(self.data, Basic):
            out |= {s.name for s in tm.free(self.data) if isinstance(s, Symbol)}
        return frozenset(out) | _symbols(*self.shape)

    @cached_property
    def placed(self) -> frozenset[str]:
        """The names in the places of cuts."""
        written = [x for x in (self.data, *self.shape) if isinstance(x, Basic)]
        return frozenset().union(*[p.placed for p in (*self.index, *self.parts)], *map(_placed, written))

    @cached_property
    def height(self) -> int:
        return max([a.height for a in self.parts], default=0)

    @cached_property
    def all_bound(self) -> frozenset[str]:
        return frozenset().union(*[a.all_bound for a in self.parts])

    def subs(self, m: Mapping[str, Affine]) -> Atom:
        if not self.names & m.keys():
            return self
        data, shape = self.data, self.shape
        if isinstance(data, Basic) or _symbols(*shape) & m.keys():
            written = {Symbol(k, integer=True): write(v) for k, v in m.items()}
            data = tm.substitute(data, written) if isinstance(data, Basic) else data
            shape = tuple(tm.substitute(x, written) if isinstance(x, Expr) else x for x in shape)
        inner = tuple(a.subs(m) for a in self.inner)
        match self.kind:
            case "word":
                return scalar_word(inner)
            case "trace":
                inner = cyclic(inner)
            case "had":
                inner = tuple(sorted(inner, key=lambda a: a.key))
        return replace(
            self,
            index=tuple(i.subs(m) for i in self.index),
            args=tuple(a.subs(m) for a in self.args),
            inner=inner,
            data=data,
            shape=shape,
        )

    def transpose(self) -> Atom:
        swapped = (self.shape[1], self.shape[0])
        match self.kind:
            case "pow":
                return replace(self, inner=(self.inner[0].transpose(),))
            case "inv" | "exp" | "base":
                return replace(self, args=(self.args[0].map(Mono.transpose),))
            case "integral" | "expect":
                return replace(self, args=(self.args[0].map(Mono.transpose), *self.args[1:]), shape=swapped)
            case "prod":
                return replace(self, args=(self.args[0].map(Mono.transpose),), data=not self.data)
            case "diag":
                return self
            case "word":
                return self
        if self.shape == (1, 1):
            return self
        return replace(self, transposed=not self.transposed, shape=swapped)

    def conjugate(self) -> Atom:
        match self.kind:
            case "word":
                return scalar_word(tuple(a.conjugate() for a in self.inner))
            case "trace":
                return replace(self, inner=cyclic(tuple(a.conjugate() for a in self.inner)))
            case "pow" | "had" | "row" | "entry" | "column":
                return replace(self, inner=tuple(a.conjugate() for a in self.inner))
            case "inv" | "exp" | "base" | "prod" | "diag" | "expect":
                return replace(self, args=tuple(a.map(Mono.conjugate) for a in self.args))
            case "integral":
                return replace(self, args=(self.args[0].map(Mono.conjugate), *self.args[1:]))
        return self if self.real else replace(self, conjugated=not self.conjugated)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@cache
def _symbols(*shape: Any) -> frozenset[str]:
    return frozenset(s.name for e in shape if isinstance(e, Expr) for s in e.free_symbols if isinstance(s, Symbol))


@cache
def _placed(x: Basic) -> frozenset[str]:
    """The names of the symbols in the places of cuts of a term or an index expression."""
    return frozenset(s.name for y in tm.walk(x) if isinstance(y, tm.Cut) for s in y.free_symbols if isinstance(s, Symbol))


@cache
def plain(x: Basic) -> str:
    """A structural string of a term, for keys only."""
    if isinstance(x, Str):
        return repr(x.name)
    if not x.args or not isinstance(x, (tm.Term, tm.Cond, tm.Tuple)):
        return str(x)
    return f"{type(x).__name__}({','.join(plain(a) for a in x.args)})"


@dataclass(frozen=True)
class Mono:
    """One guarded monomial; see the module's docstring. ``scalars`` maps atoms to exponents, sorted by key."""

    binders: tuple[str, ...] = ()
    guards: Guards = frozenset()
    scalars: tuple[tuple[Atom, Affine], ...] = ()
    exponent: Normal | None = None
    word: tuple[Atom, ...] = ()

    @cached_property
    def body_key(self) -> str:
        s = "*".join(f"{a.key}^{e}" for a, e in self.scalars)
        x = f"e{self.exponent.key}" if self.exponent else ""
        return f"{s}{x}|{'.'.join(a.key for a in self.word)}"

    @cached_property
    def key(self) -> str:
        guards = ",".join(str(g) for g in sorted(self.guards))
        return f"{','.join(self.binders)}[{guards}]{self.body_key}"

    @cached_property
    def height(self) -> int:
        parts = [a.height for a, _ in self.scalars] + [a.height for a in self.word]
        inner = max(parts + ([self.exponent.height] if self.exponent else []), default=0)
        return inner + 1 if self.binders else inner

    @cached_property
    def body_names(self) -> frozenset[str]:
        out: set[str] = set()
        for a, e in self.scalars:
            out |= a.names | e.names
        for a in self.word:
            out |= a.names
        return frozenset(out | (self.exponent.names if self.exponent else set()))

    @cached_property
    def all_bound(self) -> frozenset[str]:
        parts = [a.all_bound for a, _ in self.scalars] + [a.all_bound for a in self.word]
        return frozenset(self.binders).union(*parts, self.exponent.all_bound if self.exponent else ())

    @cached_property
    def names(self) -> frozenset[str]:
        return (self.body_names.union(*[g.names for g in self.guards])) - set(self.binders)

    @cached_property
    def placed(self) -> frozenset[str]:
        """The names in the places of cuts, bound ones of this monomial included."""
        parts: list[Any] = [*self.guards, *[x for pair in self.scalars for x in pair], *self.word]
        return frozenset().union(*[p.placed for p in (*parts, *([self.exponent] if self.exponent else []))])

    def subs(self, m: Mapping[str, Affine]) -> Mono:
        """Replace index names, bound ones of this monomial included."""
        return Mono(
            tuple(b for b in self.binders if b not in m or m[b].terms == ((b, 1),)),
            frozenset(g.subs(m) for g in self.guards),
            merge_scalars([(a.subs(m), e.subs(m)) for a, e in self.scalars]),
            collected(self.exponent.subs(m).monos) if self.exponent else None,
            tuple(a.subs(m) for a in self.word),
        )

    def renamed(self, m: Mapping[str, str]) -> Mono:
        """Rename bound names."""
        out = self.subs({k: name(v) for k, v in m.items()})
        return replace(out, binders=tuple(m.get(b, b) for b in self.binders))

    def apart(self) -> Mono:
        """The same monomial with bound names that occur nowhere else."""
        return self.renamed({b: fresh_name() for b in self.binders}) if self.binders else self

    def transpose(self) -> Mono:
        return replace(self, word=tuple(a.transpose() for a in reversed(self.word)))

    def conjugate(self) -> Mono:
        return replace(
            self,
            scalars=merge_scalars([(a.conjugate(), e) for a, e in self.scalars]),
            exponent=self.exponent.map(Mono.conjugate) if self.exponent else None,
            word=tuple(a.conjugate() for a in self.word),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mono) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def atoms_of(m: Mono) -> list[Atom]:
    """The atoms that a monomial is made of, those of its exponents included."""
    inner = [a for n, _ in m.exponent.monos for a in atoms_of(n)] if m.exponent else []
    return [*[a for a, _ in m.scalars], *m.word, *inner]


Poly = list[tuple[Mono, Fraction]]
ONE = Fraction(1)


def unit() -> Poly:
    return [(Mono(), ONE)]


def merge_scalars(pairs: Iterable[tuple[Atom, Affine]]) -> tuple[tuple[Atom, Affine], ...]:
    out: dict[str, tuple[Atom, Affine]] = {}
    for a, e in pairs:
        out[a.key] = (a, out[a.key][1] + e) if a.key in out else (a, e)
    return tuple((a, e) for _, (a, e) in sorted(out.items()) if e != Affine())


def scalar_word(word: tuple[Atom, ...]) -> Atom:
    """A 1 x 1 product as one commuting atom, the same for a word and its transpose."""
    if len(word) == 1:
        return word[0]
    flipped = tuple(a.transpose() for a in reversed(word))
    chosen = min(word, flipped, key=lambda w: [a.key for a in w])
    return Atom("word", inner=chosen)


def cyclic(word: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """The first of all turns of a word under a trace and of its transpose."""
    flipped = tuple(a.transpose() for a in reversed(word))
    return min((w[k:] + w[:k] for w in (word, flipped) for k in range(len(w))), key=lambda w: [a.key for a in w])


def split_word(atoms: tuple[Atom, ...]) -> tuple[tuple[tuple[Atom, Affine], ...], tuple[Atom, ...]]:
    """Cut a word where an inner dimension is 1; the 1 x 1 pieces become scalars."""
    pieces: list[list[Atom]] = []
    for a in atoms:
        if pieces and pieces[-1][-1].shape[1] != 1:
            pieces[-1].append(a)
        else:
            pieces.append([a])
    scalars: list[tuple[Atom, Affine]] = []
    word: list[Atom] = []
    for p in pieces:
        if p[0].shape[0] == 1 and p[-1].shape[1] == 1:
            scalars.append((scalar_word(tuple(p)), affine({}, 1)))
        else:
            word += p
    return tuple(scalars), tuple(word)


def times(p: Poly, q: Poly) -> Poly:
    """The product; the binders of the factors are kept apart."""
    return [(_times(m, n), c * d) for m, c in p for n, d in q]


def _times(m: Mono, n: Mono) -> Mono:
    m, n = m.apart(), n.apart()
    scalars, word = split_word(m.word + n.word)
    return Mono(
        m.binders + n.binders,
        m.guards | n.guards,
        merge_scalars([*m.scalars, *n.scalars, *scalars]),
        add_normals(m.exponent, n.exponent),
        word,
    )


def add_normals(a: Normal | None, b: Normal | None) -> Normal | None:
    if a is None or b is None:
        return a or b
    return collected([*a.monos, *b.monos])


def collected(p: Iterable[tuple[Mono, Fraction]]) -> Normal | None:
    """Canonical monomials added up; None for zero."""
    out: dict[str, tuple[Mono, Fraction]] = {}
    for m, c in p:
        out[m.key] = (m, out[m.key][1] + c) if m.key in out else (m, c)
    live = tuple(v for _, v in sorted(out.items()) if v[1])
    return Normal(live) if live else None


def scale(p: Poly, k: Fraction) -> Poly:
    return [(m, c * k) for m, c in p] if k else []


def guard(p: Poly, guards: Guards) -> Poly:
    return [(replace(m, guards=m.guards | guards), c) for m, c in p]


def apart(p: Poly) -> Poly:
    """The polynomial with bound names that occur nowhere else: what to do before opening its monomials."""
    return [(m.apart(), c) for m, c in p]


def opened(m: Mono) -> Mono:
    """The monomial without its binders and guards: what stands under them."""
    return replace(m, binders=(), guards=frozenset())


def rebound(m: Mono, p: Poly) -> Poly:
    """Put what stands under the binders of m back under them; names bound in p itself must be others."""
    if any(set(n.binders) & set(m.binders) for n, _ in p):
        p = [(n.apart(), c) for n, c in p]
    return [(replace(n, binders=m.binders + n.binders, guards=m.guards | n.guards), c) for n, c in p]
