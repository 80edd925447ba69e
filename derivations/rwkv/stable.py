"""RWKV-4 under a running shift: nothing overflows, and nothing else changes. Shifting all keys changes nothing either."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Implies, Less, LessEqual, Statement
from ..kernel.scripts import Direct, Each, ForEach, Hypothesis, Induction, Lemma, Part, Product, Sign, Suppose, Using
from ..kernel.terms import Exp, Index, Num, Recurrence, Term, indices, le, recurrence, scalar, scalars
from .operators import RWKV, WKV, A, B, a0, b0, kappa, nu, t, u, w
from .wkv import at_least_0, output

s, T = indices("s T")
p, c, r = scalars("p"), scalar("c"), scalar("r")
Factor = Callable[[Index], Term]


def kept(at: Index) -> Term:
    """What is left of both sums, under the next shift."""
    return Exp(p[at - 1] + w - p[at])


def entering(at: Index) -> Term:
    """The weight of a token under its own shift."""
    return Exp(kappa[at] - p[at])


def shifted(rescale: Factor, weight: Factor) -> tuple[Recurrence, Recurrence]:
    """Numerator and denominator under a running shift p."""
    start = Exp(-p[0])
    return (
        recurrence("N", start * a0, lambda t, N: rescale(t) * N + weight(t) * nu[t]),
        recurrence("D", start * b0, lambda t, D: rescale(t) * D + weight(t)),
    )


def read(N: Recurrence, D: Recurrence, old: Term | None = None) -> And:
    """The next output, with both weights under one more shift r, and its denominator, which is positive."""
    old = Exp(p[t] - r) if old is None else old
    new = Exp(u + kappa[t + 1] - r)
    below = old * D[t] + new
    return And(Less(0, below), Equation((old * N[t] + new * nu[t + 1]) / below, output(t + 1)))


def stable_form(rescale: Factor = kept, weight: Factor = entering, old: Term | None = None) -> tuple[Formula, ...]:
    """The sums are the true ones times e^{-p}, and the quotient is the output."""
    N, D = shifted(rescale, weight)
    scale = Exp(-p[t])
    return Equation(N[t], scale * A[t]), Equation(D[t], scale * B[t]), *read(N, D, old).args


maximum = ForAll(And(LessEqual(p[s - 1] + w, p[s]), LessEqual(kappa[s], p[s])), s, 1, T)
at_most_1 = And(ForAll(LessEqual(kept(s), 1), s, 1, T), ForAll(LessEqual(entering(s), 1), s, 1, T))
read_maximum = And(LessEqual(p[t], r), LessEqual(u + kappa[t + 1], r))
read_at_most_1 = And(LessEqual(Exp(p[t] - r), 1), LessEqual(Exp(u + kappa[t + 1] - r), 1))
bounded = Implies(maximum, at_most_1), Implies(read_maximum, read_at_most_1)
stable = Statement(And(*stable_form(), *bounded), le(0, t) & le(0, T), (at_least_0,))
unrolled = Lemma("rwkv/wkv", part=1)
under = Induction(t, Direct(note="no token"), Direct((Using(Hypothesis(), left=Exp(p[t] + w - p[t + 1])),), "rescaled to the next shift"))


def below_1(exponential: Term, inverse: Term) -> Sign:
    """e^x is at most 1 where -x is at least 0: 1 - e^x = e^x (e^{-x} - 1)."""
    return Sign((Product((exponential, inverse - 1)),))


of_sums = ForEach(below_1(kept(s), Exp(p[s] - p[s - 1] - w))), ForEach(below_1(entering(s), Exp(p[s] - kappa[s])))
of_output = below_1(Exp(p[t] - r), Exp(r - p[t])), below_1(Exp(u + kappa[t + 1] - r), Exp(r - u - kappa[t + 1]))


STABLE = Claim(
    id="rwkv/wkv-stable",
    title="under any running shift p the sums are e^{-p_t} times the true ones, the output the same; under the maxima no weight exceeds 1",
    statement=stable,
    sources=(
        Source(RWKV, "the appendix on the RNN cell: the running maximum, against overflow", "the running maximum is one of the shifts"),
    ),
    proof=Each(
        (
            under,
            under,
            Sign(by=(Part(2), unrolled)),
            Direct((Part(1), Part(2), unrolled), "both shifts cancel in the quotient"),
            Suppose(Each(of_sums)),
            Suppose(Each(of_output)),
        )
    ),
    operator=WKV,
    near_misses=(
        variant(stable, "no rescale", And(*stable_form(lambda at: Exp(w)), *bounded)),
        variant(stable, "rescaled without the decay", And(*stable_form(lambda at: Exp(p[at - 1] - p[at])), *bounded)),
        variant(stable, "the new token under the old shift", And(*stable_form(weight=lambda at: Exp(kappa[at] - p[at - 1])), *bounded)),
        variant(stable, "the output decays the state", And(*stable_form(old=Exp(p[t] + w - r)), *bounded)),
        variant(stable, "any denominator at the start", drop="b_0 >= 0"),
        variant(stable, "any shift bounds the weights", And(*stable_form(), at_most_1, bounded[1])),
        variant(stable, "any shift bounds the output's weights", And(*stable_form(), bounded[0], read_at_most_1)),
    ),
)

# All keys shifted ---------------------------------------------------------------------------------


def moved(by: Term, start: Term) -> tuple[Recurrence, Recurrence]:
    """Both recurrences of the keys k + c, from a start that is scaled."""
    return (
        recurrence("a", start * a0, lambda t, a: Exp(w) * a + Exp(kappa[t] + by) * nu[t]),
        recurrence("b", start * b0, lambda t, b: Exp(w) * b + Exp(kappa[t] + by)),
    )


factor, own_moved = Exp(c), Exp(u + kappa[t + 1] + c)


def invariant(start: Term = factor, own: Term = own_moved) -> Formula:
    """Both sums are scaled, and the output stays."""
    a, b = moved(c, start)
    same = Equation((a[t] + own * nu[t + 1]) / (b[t] + own), output(t + 1))
    return And(Equation(a[t], factor * A[t]), Equation(b[t], factor * B[t]), Less(0, b[t] + own), same)


shift = Statement(invariant(), le(0, t), (at_least_0,))
scaled = Induction(t, Direct(note="the start, scaled"), Direct((Using(Hypothesis(), left=Exp(w)),), "one more token, scaled"))

SHIFT = Claim(
    id="rwkv/shift-invariant",
    title="k + c for k scales both sums by e^c and leaves the output",
    statement=shift,
    sources=(Source(RWKV, "the appendix on the RNN cell", "what makes the shift there right; a start is scaled with the rest"),),
    proof=Each((scaled, scaled, Sign(by=(Part(2), unrolled)), Direct((Part(1), Part(2), unrolled), "the factor cancels"))),
    operator=WKV,
    near_misses=(
        variant(shift, "the state at the start is not scaled", invariant(start=Num(1))),
        variant(shift, "any denominator at the start", drop="b_0 >= 0"),
        variant(shift, "the current token is not shifted", invariant(own=Exp(u + kappa[t + 1]))),
    ),
)

CLAIMS = (STABLE, SHIFT)
