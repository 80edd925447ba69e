"""The formal derivative by a scalar variable. Theorems of analysis that it rests on are named in ``assumed``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import cast

from sympy import Symbol

from . import terms as tm
from .structure import firsts
from .terms import Term, free

Commute = Callable[[Term, Term], bool]
Slopes = Mapping[Term, Term]  # the derivatives of the states that a recursion's step is read for
DOT = "\u0307"  # reserved for the names of derivatives
NONE: Slopes = MappingProxyType({})


class NotDifferentiable(ValueError):
    """The derivative of a term is not covered by the rules."""


def derive(x: Term, s: tm.Var, commute: Commute, assumed: set[str], slopes: Slopes = NONE) -> Term:
    """The derivative of x by s. ``assumed`` collects the theorems used. Raises NotDifferentiable.

    ``slopes`` gives the derivatives of Vars that stand for functions of s.
    """
    moving = frozenset({s, *slopes})

    def varies(y: Term) -> bool:
        return bool(moving & free(y))

    def d(y: Term) -> Term:
        return derive(y, s, commute, assumed, slopes)

    if not varies(x):
        return tm.Zero(*x.shape)

    args = cast("tuple[Term, ...]", x.args)
    match x:
        case tm.Var():
            return slopes.get(x, tm.Num(1))
        case tm.Add():
            return tm.Add(*[d(a) for a in args])
        case tm.Mul():
            return _total([tm.Mul(*args[:n], d(a), *args[n + 1 :]) for n, a in enumerate(args) if varies(a)], x)
        case tm.Transpose() | tm.Conj() | tm.Trace() | tm.Diag():
            return cast(Term, x.func(d(args[0])))
        case tm.Block():
            return tm.Block(*[[d(b) for b in r] for r in x.grid])
        case tm.Hadamard():
            return tm.Hadamard(d(args[0]), args[1]) + tm.Hadamard(args[0], d(args[1]))
        case tm.Sum() | tm.Stack():
            return cast(Term, x.func(d(args[0]), *args[1:]))
        case tm.Where():
            return tm.Where(x.args[0], d(args[1]), d(args[2]))  # type: ignore[arg-type]
        case tm.Inverse():
            return -(x * d(args[0]) * x)
        case tm.Exp():
            return _derive_exp(x, d(args[0]), commute)
        case tm.Log():
            return d(args[0]) / args[0]
        case tm.Power():
            return _derive_power(x, d(args[0]), commute)
        case tm.Integral():
            return _derive_integral(x, moving, d, assumed)
        case tm.Apply():
            return _derive_apply(x, d)
        case tm.Rec():
            return _derive_rec(x, s, assumed, slopes)
        case tm.Row() | tm.Entry() | tm.Rows():
            return cast(Term, x.func(d(args[0]), *args[1:]))
    raise NotDifferentiable(f"no rule for the derivative of {type(x).__name__} by {s}: {x}")


def _total(parts: list[Term], like: Term) -> Term:
    return tm.Add(*parts) if parts else tm.Zero(*like.shape)


def _derive_exp(x: tm.Exp, inner: Term, commute: Commute) -> Term:
    exponent = cast(Term, x.args[0])
    if not commute(inner, exponent):
        raise NotDifferentiable(f"{exponent} does not commute with its derivative")
    return inner * x


def _derive_power(x: tm.Power, inner: Term, commute: Commute) -> Term:
    base, e = cast(Term, x.args[0]), x.args[1]
    if not commute(inner, base):
        raise NotDifferentiable(f"{base} does not commute with its derivative")
    if not (e.is_Integer and e >= 1):  # type: ignore[operator]
        raise NotDifferentiable(f"the derivative of a power needs a positive integer exponent, not {e}")
    return tm.Ind(e) * tm.Power(base, e - 1) * inner  # type: ignore[operator,arg-type]


def _derive_integral(x: tm.Integral, moving: frozenset[Term], d: Callable[[Term], Term], assumed: set[str]) -> Term:
    """The Leibniz rule: boundary terms and the integral of the partial derivative."""
    if moving & free(cast(tm.Var, x.args[1])):
        x = _rename(x, moving)
    body, tau, lo, hi = cast("tuple[Term, tm.Var, Term, Term]", x.args)
    assumed.add("leibniz-rule")
    parts: list[Term] = []
    if moving & free(hi):
        parts.append(d(hi) * tm.substitute(body, {tau: hi}))
    if moving & free(lo):
        parts.append(-(d(lo) * tm.substitute(body, {tau: lo})))
    if moving & free(body):
        parts.append(tm.Integral(d(body), tau, lo, hi))
    return _total(parts, x)


def _rename(x: tm.Integral, moving: frozenset[Term]) -> tm.Integral:
    body, tau, lo, hi = x.args
    new = tm.fresh(tau, free(body) | free(x) | moving)
    return tm.Integral(tm.substitute(body, {tau: new}), new, lo, hi)  # type: ignore[arg-type]


def _derive_apply(x: tm.Apply, d: Callable[[Term], Term]) -> Term:
    """The chain rule for a differentiable function of one scalar, whose derivative is named with a dot."""
    if len(x.arguments) != 1 or not x.arguments[0].is_scalar_term:
        raise NotDifferentiable(f"{x.name} is not a function of one scalar")
    if not _made_of_reals(x.arguments[0]):
        raise NotDifferentiable(f"{x.name} is a function of a real variable, and {x.arguments[0]} need not be real")
    return d(x.arguments[0]) * tm.Apply(f"{x.name}{DOT}", x.arguments, x.rows, x.cols, x.field)


def _made_of_reals(x: Term) -> bool:
    return all(n.field == "real" for n in tm.walk(x) if isinstance(n, (tm.Var, tm.Apply)))


def _derive_rec(x: tm.Rec, s: tm.Var, assumed: set[str], slopes: Slopes) -> Term:
    """The derivatives of a recursion's members are a recursion: that of the step, at the member before and along its derivative."""
    family, theorems = _slopes(x.moved(x.start), s, tuple(slopes.items()))
    assumed |= theorems
    return family[x.at]


@lru_cache(maxsize=256)
def _slopes(x: tm.Rec, s: tm.Var, slopes: tuple[tuple[Term, Term], ...]) -> tuple[tm.Recurrence, frozenset[str]]:
    """The family of the derivatives, and the theorems used; of indices nothing is known, so that it holds anywhere."""
    from .normal import Reader

    commute, assumed = Reader().commute, set[str]()
    bound = cast(tm.Var, x.args[3])
    kind = "real" if _made_of_reals(x) else "complex"
    around = free(x).union({s}, *[free(v) for pair in slopes for v in pair])

    def step(t: Symbol, slope: Term) -> Term:
        # a generic member and its derivative may be complex where something in the recursion is
        state, change = (cast(tm.Var, tm.fresh(tm.Var(f"{bound.name}_{n}", (), *bound.shape, kind), around)) for n in ("at", "by"))
        new = derive(x.step_at(t, state), s, commute, assumed, {**dict(slopes), state: change})
        return cast(Term, tm.substitute(new, {state: x.moved(t - 1), change: slope}))

    start = derive(x.init, s, commute, assumed, dict(slopes))
    if isinstance(start, tm.Zero):  # its rows keep their numbers
        start = tm.Num(0) * x.init
    if firsts(start) != firsts(x.init):
        raise NotDifferentiable(f"the derivative of {x.init} numbers its rows or columns differently")
    family = tm.recurrence(f"{x.name}{DOT}", start, step, start=x.start, field=bound.field)
    return family, frozenset(assumed)
