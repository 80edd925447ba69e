"""From terms to their normal form.

``Reader`` turns a term into a guarded polynomial under facts about the indices. It records what it relied on:
conditions (an inverse exists, a logarithm's argument is positive), lemmas used as rewrite rules, and assumed
theorems of analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from sympy import Expr, Integer, Symbol

from . import terms as tm
from .affine import Affine, Guards, affine, feasible, implied, name, read, write
from .algebra import (
    ONE,
    Atom,
    Mono,
    Normal,
    Poly,
    apart,
    atoms_of,
    collected,
    cyclic,
    fresh_name,
    guard,
    merge_scalars,
    opened,
    rebound,
    scale,
    split_word,
    times,
)
from .calculus import DOT, derive
from .canonical import canonical, function_of, inclusion, matrix_power, normal, number, ordered_product, unit_of
from .columns import STACK
from .formulas import Statement
from .relied import Condition, Rule, Trace
from .rewriting import Pattern, rewrite
from .structure import OutOfRange, entry, firsts, ranged, ranged_columns, row, simplify_head
from .terms import Term

UNIT = affine({}, 1)


class Undecided(ValueError):
    """The normal form does not cover what was asked; no verdict follows."""


def conditions_of(c: tm.Cond) -> list[Affine]:
    return [read(cast(Expr, e)) for e in c.args]


def scope_of(statement: Statement) -> Guards:
    """What a statement says of its free indices: its conditions, and that sizes are >= 0."""
    return frozenset({*conditions_of(statement.where), *[name(s.name) for s in statement.sizes]})


@dataclass(frozen=True)
class Reader:
    """Reads terms into polynomials. ``facts`` hold of the free indices; ``rules`` rewrite on the way."""

    facts: Guards = frozenset()
    rules: tuple[Rule, ...] = ()
    trace: Trace = field(default_factory=Trace)

    def under(self, guards: Guards) -> Reader:
        return replace(self, facts=self.facts | guards)

    def normal(self, x: Term) -> Normal:
        return normal(self.read(x), self.facts)

    def need(self, kind: str, p: Poly | Normal, text: str) -> None:
        what = p if isinstance(p, Normal) else normal(p, self.facts)
        c = Condition(kind, what, self.facts, text)
        self.trace.conditions[f"{kind}{what.key}{sorted(self.facts)}"] = c

    def read(self, x: Term) -> Poly:
        """The polynomial of a term, canonical and rewritten by the rules. Raises Undecided."""
        if not feasible(self.facts):
            return []
        x = cast(Term, tm.unnamed(x))
        p = canonical(self._raw(x), self.facts)
        for _ in range(64):
            new = rewrite(p, self.patterns, self.facts, self.trace.rules) if self.rules else None
            if new is None:
                return p
            p = canonical(new, self.facts)
        raise Undecided("rewriting did not come to an end")

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(self._pattern(n, r) for n, r in enumerate(self.rules))

    def _pattern(self, n: int, r: Rule) -> Pattern:
        """A rule's left side is read under its own conditions, without any rule.

        Its parameters get names of their own: what is known of an index here says nothing of a parameter of that name.
        """
        own = {p: Symbol(fresh_name(), integer=True) for p in r.params}
        where = frozenset(g.subs({p.name: name(s.name) for p, s in own.items()}) for g in r.where)
        p = Reader(where | self.facts).read(tm.substitute(r.lhs, own))
        if len(p) != 1 or p[0][1] != 1 or p[0][0].binders or p[0][0].guards or p[0][0].exponent:
            raise Undecided(f"{r.label}: its left side {r.lhs} is not a single product")
        if not (p[0][0].word or r.lhs.is_scalar_term):
            raise Undecided(f"{r.label}: a multiple of the identity, which may be of size 0, says nothing of scalars")
        others = replace(self, rules=self.rules[:n] + self.rules[n + 1 :])

        def rhs(binding: dict[str, Affine], known: Guards) -> Poly:
            chosen = {p: write(binding[s.name]) for p, s in own.items()}
            return replace(others, facts=known).read(cast(Term, tm.substitute(r.rhs, chosen)))

        return Pattern(r.label, p[0][0], frozenset(s.name for s in own.values()), where, rhs)

    def _raw(self, x: Term) -> Poly:
        x = simplify_head(x, self.facts)
        method = getattr(self, f"_{type(x).__name__.lower()}", None)
        if method is None:
            raise Undecided(f"no normal form for {type(x).__name__}: {x}")
        return cast("Callable[[Any], Poly]", method)(x)

    # atoms ---------------------------------------------------------------------------------------

    def _one(self, a: Atom) -> Poly:
        return unit_of((a,))

    def _var(self, x: tm.Var) -> Poly:
        ixs = tuple(read(i) for i in x.indices)
        return self._one(Atom("var", x.name, ixs, shape=x.shape, real=x.field == "real"))

    def _num(self, x: tm.Num) -> Poly:
        q = Fraction(int(x.value.p), int(x.value.q))
        return [(Mono(), q)] if q else []

    def _ind(self, x: tm.Ind) -> Poly:
        return number(read(x.expr))

    def _stack(self, x: tm.Stack) -> Poly:
        body, i, lo, hi = x.args
        if x.rows == 1:
            return self._raw(cast(Term, tm.substitute(body, {i: lo})))
        # of several rows nothing is used here but that equal rows over one range make equal matrices
        real = all(y.field == "real" for y in tm.walk(x) if isinstance(y, (tm.Var, tm.Apply)))
        ixs = tuple(read(cast(Expr, e)) for e in (lo, hi))
        return self._one(Atom("apply", STACK, ixs, args=(self._argument(x),), shape=x.shape, real=real))

    def _zero(self, x: tm.Zero) -> Poly:
        return []

    def _eye(self, x: tm.Eye) -> Poly:
        return [(Mono(), ONE)]

    def _rec(self, x: tm.Rec) -> Poly:
        at, start = read(x.at), read(x.start)
        if self._at_start(x):
            return self._raw(x.init)
        if not implied(self.facts, at - start):
            raise Undecided(f"{x} is defined from {x.start} on, and {x.at} >= {x.start} is not known here")
        step = cast(Term, x.args[6])
        real = all(y.field == "real" for y in tm.walk(step) if isinstance(y, (tm.Var, tm.Apply)))
        real &= all(y.field == "real" for y in tm.walk(x.init) if isinstance(y, (tm.Var, tm.Apply)))
        return self._one(Atom("rec", x.name, (at,), data=x.moved(0), shape=x.shape, real=real))

    def _at_start(self, x: tm.Rec) -> bool:
        gap = read(x.at) - read(x.start)
        return implied(self.facts, gap) and implied(self.facts, -gap)

    def _apply(self, x: tm.Apply) -> Poly:
        args = tuple(self._argument(a) for a in x.arguments)
        # shapes and ranges of the arguments are part of what is applied
        spans = [e for a in x.arguments for e in (*a.shape, *(ranged(a) or ()))]
        ixs = tuple(read(e) for e in spans)
        # a real function of real arguments is real
        real = x.field == "real" and all(y.field == "real" for y in tm.walk(x) if isinstance(y, (tm.Var, tm.Apply)))
        return self._one(Atom("apply", x.name, ixs, args=args, shape=x.shape, real=real))

    def _argument(self, x: Term) -> Normal:
        span = ranged(x)
        if span is None:
            return self.normal(x)
        lo, hi = (read(e) for e in span)
        b = fresh_name()
        inside = self.under(frozenset({name(b) - lo, hi - name(b)}))
        p = inside.read(row(x, Symbol(b, integer=True), inside.facts))
        return normal(p, inside.facts, (b,))

    def _row(self, x: tm.Row) -> Poly:
        of = x.args[0]
        if isinstance(of, tm.Rec) and self._at_start(of):
            return self._raw(tm.Row(of.init, cast(Expr, x.args[1])))
        return self._element("row", cast(Term, x.args[0]), (read(cast(Expr, x.args[1])),), x.shape)

    def _entry(self, x: tm.Entry) -> Poly:
        of = x.args[0]
        if isinstance(of, tm.Rec) and self._at_start(of):
            return self._raw(tm.Entry(of.init, *cast("tuple[Expr, Expr]", x.args[1:])))
        ixs = (read(cast(Expr, x.args[1])), read(cast(Expr, x.args[2])))
        return self._element("entry", cast(Term, x.args[0]), ixs, (Integer(1), Integer(1)))

    def _element(self, kind: str, of: Term, ixs: tuple[Affine, ...], shape: tuple[Expr, Expr]) -> Poly:
        if isinstance(of, tm.Eye) and kind == "entry":
            same = frozenset({ixs[0] - ixs[1], ixs[1] - ixs[0]})
            return guard([(Mono(), ONE)], same)
        out: Poly = []
        for m, c in apart(self._elements_of(of)):
            if len(m.word) != 1:
                raise Undecided(f"no {kind} of the product {of}")
            if firsts(of) != _firsts_of_atom(m.word[0]):
                raise Undecided(f"{of} numbers its rows or columns differently than what it is")
            a = Atom(kind, index=ixs, inner=m.word, shape=shape, real=m.word[0].real)
            out += rebound(m, times([(replace(opened(m), word=()), c)], self._one(a)))
        return out

    def _elements_of(self, of: Term) -> Poly:
        """A matrix whose rows or entries are taken: rewritten where that makes a recursion of it, both numbered from 1."""
        return self.read(of) if self.rules and not _numbered(of) and self._becomes_recursion(of) else self._raw(of)

    def _becomes_recursion(self, of: Term) -> bool:
        try:
            new = replace(self, trace=Trace()).read(of)  # what this relies on is nothing that the proof relies on
        except Undecided:
            return False
        plain = all(len(m.word) == 1 and m.word[0].kind == "rec" and not _numbered(m.word[0].data) for m, _ in new)
        return bool(new) and plain

    # algebra -------------------------------------------------------------------------------------

    def _add(self, x: tm.Add) -> Poly:
        return [t for a in x.args for t in self._raw(cast(Term, a))]

    def _mul(self, x: tm.Mul) -> Poly:
        out: Poly = [(Mono(), ONE)]
        for a in x.args:
            p = self._raw(cast(Term, a))
            out = times(out, canonical(p, self.facts) if len(p) > 1 else p)
        return out

    def _transpose(self, x: tm.Transpose) -> Poly:
        return [(m.transpose(), c) for m, c in self._raw(cast(Term, x.args[0]))]

    def _conj(self, x: tm.Conj) -> Poly:
        return [(m.conjugate(), c) for m, c in self._raw(cast(Term, x.args[0]))]

    def _where(self, x: tm.Where) -> Poly:
        cond, a, b = cast("tuple[tm.Cond, Term, Term]", x.args)
        holds = conditions_of(cond)
        out = guard(self.under(frozenset(holds)).read(a), frozenset(holds))
        for n, g in enumerate(holds):
            fails = frozenset([*holds[:n], -g - 1])
            out = out + guard(self.under(fails).read(b), fails)
        return out

    def _sum(self, x: tm.Sum) -> Poly:
        b, body, span = self._scope(x)
        inside = self.under(span)
        return [
            (replace(m, binders=(b, *m.binders), guards=m.guards | span), c) for m, c in apart(inside.read(body))
        ]

    def _scope(self, x: Term) -> tuple[str, Term, Guards]:
        """A fresh name for a bound index, the body that uses it, and the range as guards."""
        body, i, lo, hi = cast("tuple[Term, Symbol, Expr, Expr]", x.args[:4])
        b = fresh_name()
        renamed = tm.substitute(body, {i: Symbol(b, integer=True)})
        return b, renamed, frozenset({name(b) - read(lo), read(hi) - name(b)})

    def _prod(self, x: tm.Prod) -> Poly:
        b, body, span = self._scope(x)
        lo, hi = (read(cast(Expr, e)) for e in x.args[2:4])
        p = self.under(span).read(body)
        # multiples of the identity have a number for their product, times the identity
        shape = x.shape if any(m.word for m, _ in p) else (Integer(1), Integer(1))
        return self._one(ordered_product(p, b, lo, hi, x.decreasing, shape, self.facts))

    def _power(self, x: tm.Power) -> Poly:
        base, e = cast(Term, x.args[0]), read(cast(Expr, x.args[1]))
        if e.is_const and 0 <= e.const <= 12:
            out: Poly = [(Mono(), ONE)]
            p = self.read(base)
            for _ in range(e.const):
                out = canonical(times(out, p), self.facts)
            return out
        if e.is_const and e.const < 0:
            return self._raw(tm.Inverse(tm.Power(base, -e.const)))
        p = self.read(base)
        kind = "nonzero" if base.is_scalar_term else "invertible"
        if not implied(self.facts, e):
            self.need(kind, p, str(base))
        return self._symbolic_power(p, e, base)

    def _symbolic_power(self, p: Poly, e: Affine, base: Term) -> Poly:
        if len(p) == 1 and not p[0][0].binders and not p[0][0].guards:
            m, c = p[0]
            plain = m.exponent is None and all(k.is_const for _, k in m.scalars)
            if plain and (not m.word or (len(m.word) == 1 and m.word[0].kind not in ("pow", "exp"))):
                scalars = [(a, e.scale(k.const)) for a, k in m.scalars]
                if c != 1:
                    scalars.append((Atom("num", data=c), e))
                word = matrix_power(m.word[0], e) if m.word else ()
                return [(Mono(scalars=merge_scalars(scalars), word=word), ONE)]
            if m.exponent is not None and not m.word and not m.scalars and c == 1:
                total = times(number(e), list(m.exponent.monos))
                return [(Mono(exponent=normal(total, self.facts)), ONE)]
            if len(m.word) == 1 and m.word[0].kind == "exp" and not m.scalars and m.exponent is None and c == 1:
                multiple = normal(times(number(e), list(m.word[0].args[0].monos)), self.facts)
                return unit_of((replace(m.word[0], args=(multiple,)),))
        opaque = Atom("base", args=(normal(p, self.facts),), shape=base.shape)
        if base.is_scalar_term:
            return [(Mono(scalars=((opaque, e),)), ONE)]
        return unit_of(matrix_power(opaque, e))

    def _inverse(self, x: tm.Inverse) -> Poly:
        of = cast(Term, x.args[0])
        p = self.read(of)
        scalar_term = of.is_scalar_term
        self.need("nonzero" if scalar_term else "invertible", p, str(of))
        if not p:
            raise Undecided(f"{of} is zero, and has no inverse")
        if len(p) == 1 and not p[0][0].binders and not p[0][0].guards:
            m, c = p[0]
            word = self._inverted_word(m.word)
            if word is not None:
                scalars = tuple((a, -e) for a, e in m.scalars)
                exponent = m.exponent.scale(Fraction(-1)) if m.exponent else None
                return times([(Mono(scalars=scalars, exponent=exponent), 1 / c)], unit_of(word))
        n = normal(p, self.facts)
        lead = n.monos[0][1]
        a = Atom("inv", args=(n.scale(1 / lead),), shape=of.shape)
        return scale(self._one(a), 1 / lead)

    def _inverted_word(self, word: tuple[Atom, ...]) -> tuple[Atom, ...] | None:
        out: list[Atom] = []
        for a in reversed(word):
            if a.shape[0] != a.shape[1]:
                return None
            if a.kind == "inv" or a.kind not in ("var", "rec", "apply", "pow", "exp"):
                return None
            if a.kind == "exp":
                out.append(replace(a, args=(a.args[0].scale(Fraction(-1)),)))
            else:
                base, e = (a.inner[0], a.index[0]) if a.kind == "pow" else (a, UNIT)
                out += matrix_power(base, -e)
        return tuple(out)

    def _hadamard(self, x: tm.Hadamard) -> Poly:
        a, b = cast("tuple[Term, Term]", x.args)
        if x.is_scalar_term:
            return times(self.read(a), self.read(b))
        out: Poly = []
        for m, c in apart(self.read(a)):
            for n, d in apart(self.read(b)):
                product = self._hadamard_monos(opened(m), opened(n), x)
                out += scale(rebound(m, rebound(n, product)), c * d)
        return out

    def _hadamard_monos(self, m: Mono, n: Mono, x: tm.Hadamard) -> Poly:
        """Rank-one times anything is a product with diagonal factors; columns multiply entrywise."""
        if x.rows == 1:
            turned = tm.Hadamard(cast(Term, x.args[0]).T, cast(Term, x.args[1]).T)
            return [(k.transpose(), c) for k, c in self._hadamard_monos(m.transpose(), n.transpose(), turned)]
        bare_m, bare_n = replace(m, word=()), replace(n, word=())
        if x.cols == 1:
            parts = sorted([*_columns(m.word), *_columns(n.word)], key=lambda a: a.key)
            a = Atom("had", inner=tuple(parts), shape=x.shape, real=all(q.real for q in parts))
            return times([(bare_m, ONE)], times([(bare_n, ONE)], self._one(a)))
        for bare, one, other in ((bare_m, m, n), (bare_n, n, m)):
            cut = [k for k, a in enumerate(one.word[:-1]) if a.shape[1] == 1]
            if cut:
                u, w = one.word[: cut[0] + 1], one.word[cut[0] + 1 :]
                left, right = self._diagonal(u), self._diagonal(tuple(a.transpose() for a in reversed(w)))
                return times([(bare, ONE)], times(left, times([(other, ONE)], right)))
        raise Undecided(f"an entrywise product of two matrices of which neither has rank one: {x}")

    def _block(self, x: tm.Block) -> Poly:
        """The blocks between the inclusions of their rows and the transposed inclusions of their columns."""
        rows = tuple(read(r[0].rows) for r in x.grid)
        cols = tuple(read(b.cols) for b in x.grid[0])
        out: Poly = []
        for n, r in enumerate(x.grid):
            for c, b in enumerate(r):
                # the one block of a partition is the whole
                left = (inclusion(rows, n),) if len(rows) > 1 else ()
                right = (inclusion(cols, c).transpose(),) if len(cols) > 1 else ()
                out += times(unit_of(left), times(self.read(b), unit_of(right)))
        return out

    def _diagonal(self, column: tuple[Atom, ...]) -> Poly:
        n = normal([(Mono(word=column), ONE)], self.facts)
        size = column[0].shape[0]
        return self._one(Atom("diag", args=(n,), shape=(size, size), real=all(a.real for a in column)))

    def _diag(self, x: tm.Diag) -> Poly:
        of = cast(Term, x.args[0])
        if of.is_scalar_term:
            return self._raw(of)
        out: Poly = []
        for m, c in apart(self.read(of)):
            out += rebound(m, times([(replace(opened(m), word=()), c)], self._diagonal(m.word)))
        return out

    def _trace(self, x: tm.Trace) -> Poly:
        of = cast(Term, x.args[0])
        out: Poly = []
        for m, c in apart(self.read(of)):
            if not m.word and not self._is_size(of.rows):
                raise Undecided(f"the trace of an identity of size {of.rows}, which is not known to be >= 0")
            out += rebound(m, times([(replace(opened(m), word=()), c)], _trace_of_word(m.word, of)))
        return out

    def _is_size(self, e: Expr) -> bool:
        """Whether a size is known to be >= 0; a negative one stands for an empty range."""
        return implied(self.facts, read(e))

    # analysis ------------------------------------------------------------------------------------

    def _exp(self, x: tm.Exp) -> Poly:
        of = simplify_head(cast(Term, x.args[0]), self.facts)
        if isinstance(of, tm.Rec) and self._at_start(of):
            of = simplify_head(of.init, self.facts)
        if isinstance(of, tm.NegInf):
            return []
        if isinstance(of, tm.Where):
            cond, a, b = cast("tuple[tm.Cond, Term, Term]", of.args)
            return self._where(tm.Where(cond, tm.Exp(a), tm.Exp(b)))
        if of.is_scalar_term and isinstance(of, tm.Add):
            out: Poly = [(Mono(), ONE)]
            for a in of.args:
                out = times(out, self._raw(tm.Exp(cast(Term, a))))
            return out
        p = self.read(of)
        if any(m.word for m, _ in p):
            return self._one(Atom("exp", args=(normal(p, self.facts),), shape=of.shape))
        # a number, or a multiple of the identity, whose exponential is one too
        return self._exp_of(p)

    def _exp_of(self, p: Poly) -> Poly:
        """exp(log a + r) = a exp(r)."""
        out: Poly = [(Mono(), ONE)]
        rest: Poly = []
        for m, c in p:
            alone = len(m.scalars) == 1 and m.scalars[0][0].kind == "log" and m.scalars[0][1] == UNIT
            bare = alone and not m.binders and not m.guards and m.exponent is None and not m.word
            if bare and c.denominator == 1:
                of = list(m.scalars[0][0].args[0].monos)
                for _ in range(abs(int(c))):
                    out = times(out, of if c > 0 else self._reciprocal(of))
            else:
                rest.append((m, c))
        return times(out, [(Mono(exponent=normal(rest, self.facts)), ONE)]) if rest else out

    def _reciprocal(self, p: Poly) -> Poly:
        n = normal(p, self.facts)
        if len(n.monos) == 1 and not n.monos[0][0].binders and not n.monos[0][0].guards:
            m, c = n.monos[0]
            exponent = m.exponent.scale(Fraction(-1)) if m.exponent else None
            return [(Mono(scalars=tuple((a, -e) for a, e in m.scalars), exponent=exponent), 1 / c)]
        return self._one(Atom("inv", args=(n,)))

    def _log(self, x: tm.Log) -> Poly:
        n = self.normal(cast(Term, x.args[0]))
        self.need("positive", n, str(x.args[0]))
        return self._one(Atom("log", args=(n,)))

    def _sqrt(self, x: tm.Sqrt) -> Poly:
        of = cast(Term, x.args[0])
        n = self.normal(of)
        if not self._squared(of):
            self.need("nonnegative", n, str(of))
        return self._one(Atom("sqrt", args=(n,)))

    def _squared(self, x: Term) -> bool:
        """Whether a number is written as a product of real ones, each as often as before it again."""
        factors = cast("tuple[Term, ...]", x.args) if isinstance(x, tm.Mul) else ()
        even = bool(factors) and all(f.is_scalar_term and factors.count(f) % 2 == 0 for f in factors)
        return even and all(map(self.real, factors))

    def _at(self, x: tm.At) -> Poly:
        body, s, value = cast("tuple[Term, tm.Var, Term]", x.args)
        if not self.real(value):
            raise Undecided(f"{s} is a real variable, and {value} is not known to be real")
        self.differentiates(body, {s: value})
        return self._raw(tm.substitute(self.without_derivatives(body), {s: value}))

    def real(self, x: Term) -> bool:
        """Whether a term is known to be real."""
        return not self.read(x - tm.Conj(x))

    def differentiates(self, x: Term, at: dict[tm.Var, Term]) -> None:
        """Note what the functions differentiated in a term need in order to have a value: rules speak of none around it."""
        if any(isinstance(a, tm.Deriv) for a in tm.walk(x)):
            replace(self, rules=()).read(cast(Term, tm.substitute(_functions(x), at)))

    def _deriv(self, x: tm.Deriv) -> Poly:
        self.differentiates(x, {})
        return self._raw(self.without_derivatives(x))

    def without_derivatives(self, x: Term) -> Term:
        """A term with its derivatives carried out."""
        if isinstance(x, tm.Deriv):
            inner = self.without_derivatives(cast(Term, x.args[0]))
            return derive(inner, cast(tm.Var, x.args[1]), self.commute, self.trace.assumed)
        if not any(isinstance(a, tm.Deriv) for a in tm.walk(x)):
            return x
        return cast(Term, x.func(*[self.without_derivatives(a) if isinstance(a, Term) else a for a in x.args]))

    def commute(self, a: Term, b: Term) -> bool:
        """Whether two terms are known to commute, whatever the rules say."""
        # what a rule says of the variable holds at one point, and a derivative looks around it
        return not replace(self, rules=()).read(a * b - b * a)

    def _integral(self, x: tm.Integral) -> Poly:
        from .integrals import read_integral

        return read_integral(self, x)

    def _expect(self, x: tm.Expect) -> Poly:
        """Linear; whatever names no random family comes out."""
        out: Poly = []
        for m, c in apart(self.read(cast(Term, x.args[0]))):
            out += scale(rebound(m, self._expect_mono(opened(m), x.random)), c)
        return out

    def _expect_mono(self, m: Mono, random: frozenset[str]) -> Poly:
        inside = tuple((a, e) for a, e in m.scalars if mentions(a, random))
        outside = tuple((a, e) for a, e in m.scalars if not mentions(a, random))
        hits = [n for n, a in enumerate(m.word) if mentions(a, random)]
        lo, hi = (hits[0], hits[-1] + 1) if hits else (len(m.word), len(m.word))
        exponent_inside = m.exponent is not None and any(
            mentions(a, random) for k, _ in m.exponent.monos for a in atoms_of(k)
        )
        core = Mono(scalars=inside, exponent=m.exponent if exponent_inside else None, word=m.word[lo:hi])
        left = replace(m, scalars=outside, exponent=None if exponent_inside else m.exponent, word=m.word[:lo])
        if core == Mono():
            return [(m, ONE)]
        shape = (core.word[0].shape[0], core.word[-1].shape[1]) if core.word else (Integer(1), Integer(1))
        head = repr(sorted(random))
        a = Atom("expect", head, args=(normal([(core, ONE)], self.facts),), shape=shape)
        return times([(left, ONE)], times(self._one(a), unit_of(m.word[hi:])))


def _functions(x: Term) -> Term:
    """A term with every derivative replaced by what it is a derivative of."""
    if isinstance(x, tm.Deriv):
        return _functions(cast(Term, x.args[0]))
    return cast(Term, x.func(*[_functions(a) if isinstance(a, tm.Term) else a for a in x.args]))


def _numbered(x: Term) -> bool:
    """Whether rows or columns of a term have numbers of their own."""
    return ranged(x) is not None or ranged_columns(x) is not None


def _firsts_of_atom(a: Atom) -> tuple[Affine, Affine]:
    """The numbers of an atom's first row and column: a recursion has those of its start wherever it is met, all others count from 1."""
    rows, cols = firsts(a.data) if a.kind == "rec" else (UNIT, UNIT)
    return (cols, rows) if a.transposed else (rows, cols)


def mentions(a: Atom, names: frozenset[str]) -> bool:
    """Whether an atom is or contains a member of the named families."""
    if a.kind in ("var", "apply", "rec") and a.head.rstrip(DOT) in names:
        return True
    if a.kind == "rec" and any(isinstance(v, (tm.Var, tm.Apply)) and v.name in names for v in tm.walk(a.data)):
        return True
    parts = [b for n in a.args for m, _ in n.monos for b in atoms_of(m)]
    return any(mentions(b, names) for b in [*a.inner, *parts])


def _columns(word: tuple[Atom, ...]) -> list[Atom]:
    """A column as a list of entrywise factors."""
    if len(word) == 1 and word[0].kind == "had":
        return list(word[0].inner)
    if len(word) == 1:
        return [word[0]]
    return [Atom("column", inner=word, shape=(word[0].shape[0], Integer(1)), real=all(a.real for a in word))]


def _trace_of_word(word: tuple[Atom, ...], of: Term) -> Poly:
    if not word:
        return number(read(of.rows))
    cut = [k for k, a in enumerate(word) if a.shape[1] == 1]
    if cut:
        scalars, _ = split_word(word[cut[0] + 1 :] + word[: cut[0] + 1])
        return [(Mono(scalars=merge_scalars(scalars)), ONE)]
    return [(Mono(scalars=((Atom("trace", inner=cyclic(word)), UNIT),)), ONE)]


__all__ = ["OutOfRange", "Reader", "Undecided", "collected", "entry", "function_of"]
