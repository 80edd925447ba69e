"""Legendre polynomials by their three-term recurrence, and what their derivatives are made of, for every degree.

    m P_m = (2m - 1) x P_{m-1} - (m - 1) P_{m-2}        P_0 = 1

The members of the recursion are columns (P_m, P_{m-1}, P'_m, P'_{m-1}): the slopes P' obey the derivative of the recurrence,
and that they are the derivatives of P along an argument that moves is proved for each argument.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, Hypothesis, Induction, Lemma, Part, Script, Using
from ..kernel.terms import Apply, Block, Deriv, Ind, Num, Rec, Sum, Term, Var, indices, le, named, recurrence, scalar

HIPPO = "Gu, Dao, Ermon, Rudra, Ré, HiPPO: Recurrent Memory with Optimal Polynomial Projections, arXiv 2008.07669"
TRAIN = "Gu, Johnson, Timalsina, Rudra, Ré, How to Train Your HiPPO, arXiv 2206.12037"
LMU = "Voelker, Kajić, Eliasmith, Legendre Memory Units, NeurIPS 2019"
NOTE = "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)"
SZEGO = "Szegő, Orthogonal Polynomials, 4th ed."

n, k, N = indices("n k N")
x, t, tau, theta = map(scalar, ("x", "t", "tau", "theta"))
every_degree = le(0, n)
MINUS_ONE = Num(-1)


def _unit(i: int) -> Term:
    return Block(tuple(Num(int(i == j)) for j in range(4)))


def members(at: Any, argument: Term) -> Rec:
    """The column (P_n, P_{n-1}) over the column of their slopes, at an argument."""

    def times(factor: Term) -> Term:
        # a factor 1 is not written: instances of a lemma drop it too
        return factor if argument == Num(1) else factor * argument

    def step(m: Any, before: Term) -> Term:
        value, earlier, slope, earlier_slope = (_unit(i) * before for i in range(4))
        new = times(Ind(2 * m - 1)) * value - Ind(m - 1) * earlier
        new_slope = Ind(2 * m - 1) * value + times(Ind(2 * m - 1)) * slope - Ind(m - 1) * earlier_slope
        return Block((new / Ind(m),), (value,), (new_slope / Ind(m),), (slope,))

    return recurrence("p", Block((Num(1),), (Num(0),), (Num(0),), (Num(0),)), step)[at]


def legendre(at: Any, argument: Term = x) -> Term:
    """P_n at an argument."""
    return named("P", _unit(0) * members(at, argument), at, argument)


def before(at: Any, argument: Term = x) -> Term:
    """P_{n-1} at an argument, and 0 for n = 0."""
    return named("P_before", _unit(1) * members(at, argument), at, argument)


def slope(at: Any, argument: Term = x) -> Term:
    """The derivative of P_n at an argument."""
    return named("P'", _unit(2) * members(at, argument), at, argument)


def slope_before(at: Any, argument: Term = x) -> Term:
    """The derivative of P_{n-1} at an argument, and 0 for n = 0."""
    return named("P'_before", _unit(3) * members(at, argument), at, argument)


def sign(power: Any) -> Term:
    """(-1)^power."""
    return Num(-1) ** power


def u(time: Term) -> Term:
    """The input, a continuous function of time."""
    return Apply("u", (time,), 1, 1)


# any input, a straight line written apart: two coefficients reproduce it from a window
constant, incline, share = scalar("a"), scalar("b"), scalar("w")


def drive(time: Term) -> Term:
    """a + b time + w v(time), for any function v."""
    return named("u", constant + incline * time + share * Apply("v", (time,), 1, 1), time)


def norm2(at: Any) -> Term:
    """2n + 1: one over the integral of P_n(2s - 1)² over [0, 1]."""
    return Ind(2 * at + 1)


supposed = Direct((Hypothesis(),))


def by_induction(parts: int, *first: Script) -> Script:
    """All parts from all parts one degree below; the first ones have proofs of their own."""
    return Induction(n, base=Each((*first, *(Direct(),) * parts)), step=Each((*first, *(supposed,) * parts)))


def relations(factor: Any = n) -> Formula:
    """The derivatives of two neighbours by one another."""
    weight = Ind(factor)
    return And(
        Equation(slope_before(n), x * slope(n) - weight * legendre(n)),
        Equation(x**2 * slope(n), slope(n) + weight * (x * legendre(n) - before(n))),
    )


related = Statement(relations(), every_degree)

RELATED = Claim(
    id="hippo/legendre-relations",
    title="P'_{n-1} = x P'_n - n P_n and (x² - 1) P'_n = n (x P_n - P_{n-1}), for every n",
    statement=related,
    sources=(Source(SZEGO, "equations 4.7.27 and 4.7.28", "at λ = ½; P_{-1} is 0 here"), Source(HIPPO, "appendix B.1.1")),
    proof=by_induction(2),
    near_misses=(
        variant(related, "the next degree's factor", relations(n + 1)),
        variant(related, "the sign of P_n", relations(-n)),
        variant(related, "as for monic powers", Equation(slope(n), Ind(n) * before(n))),
    ),
)


def lower(last: Any = n - 1, weight: Any = norm2, alternating: bool = False, of: Any = legendre) -> Term:
    """The sum of (2k + 1) P_k below degree n, with or without alternating signs."""
    turned = sign(n - k) * weight(k) if alternating else weight(k)
    return Sum(turned * of(k), k, 0, last)


def expansions(weight: Any = norm2, last: Any = n - 1, parity: Term | None = None) -> Formula:
    """Multiples of P'_n in the P_k of lower degree."""
    both = Num(1) - sign(n - k) if parity is None else parity
    return And(
        Equation((1 + x) * slope(n), Ind(n) * legendre(n) + lower(last, weight)),
        Equation((x - 1) * slope(n), Ind(n) * legendre(n) + lower(last, weight, alternating=True)),
        Equation(2 * slope(n), Sum(both * weight(k) * legendre(k), k, 0, n - 1)),
    )


expanded = Statement(expansions(), every_degree)
relation, other_relation = (Lemma("hippo/legendre-relations", part=p) for p in (0, 1))


def telescoped(left: int) -> Script:
    """One degree more: one term of the sum more."""
    return Induction(n, step=Direct((other_relation, relation, Using(Hypothesis(), left=left)), "(x² - 1) P'_n = n (x P_n - P_{n-1})"))


EXPANDED = Claim(
    id="hippo/legendre-expansions",
    title="(1 + x) P'_n = n P_n + Σ_{k<n} (2k + 1) P_k, and 2 P'_n is the sum of the 2 (2k + 1) P_k with n - k odd",
    statement=expanded,
    sources=(
        Source(HIPPO, "appendix B.1.1, equations 7 and 8", "the derivative, and (1 + x) times it"),
        Source(SZEGO, "section 4.7"),
    ),
    proof=Each(
        (
            telescoped(1),
            telescoped(-1),
            Direct((Using(Part(1)), Using(Part(2), left=-1)), "the difference of the two"),
        )
    ),
    near_misses=(
        variant(expanded, "the weight 2k - 1", expansions(lambda k: Ind(2 * k - 1))),
        variant(expanded, "degree n counted twice", expansions(last=n)),
        variant(expanded, "all degrees", Equation(2 * slope(n), 2 * lower())),
    ),
)


def along(argument: Term, by: Var, speed: Term, *ends: Formula) -> Formula:
    """The chain rule: slopes times the speed of the argument are derivatives; and more that is shown in the same induction."""
    return And(
        Equation(Deriv(legendre(n, argument), by), speed * slope(n, argument)),
        Equation(Deriv(before(n, argument), by), speed * slope_before(n, argument)),
        *ends,
    )


def at_end(argument: Term, value: Term) -> tuple[Formula, ...]:
    """P_n at an end of the interval; what an induction needs of P_{n-1} is 0 for n = 0."""
    return Equation(legendre(n, argument), value), Equation(Ind(n) * before(n, argument), Ind(n) * value * argument)


here = Statement(along(x, x, Num(1), *at_end(Num(1), Num(1)), *at_end(Num(-1), sign(n))), every_degree)

HERE = Claim(
    id="hippo/legendre-slopes",
    title="the slopes are the derivatives of the Legendre polynomials; P_n(1) = 1 and P_n(-1) = (-1)^n",
    statement=here,
    sources=(Source(SZEGO, "equations 4.5.1 and 4.7.3"),),
    proof=by_induction(6),
    near_misses=(
        variant(here, "twice the slope", along(x, x, Num(2))),
        variant(here, "P_n(-1) = 1", And(*at_end(Num(-1), Num(1)))),
        variant(here, "P_n is 1 at 0 too", And(*at_end(Num(0), Num(1)))),
    ),
)

# The arguments of the measures: all of the past [0, t], and the window [t - θ, t], each mapped to [-1, 1].
started = Assumption("t ≠ 0", NonZero(t))
wide = Assumption("θ ≠ 0", NonZero(theta))


def stretched(at: Term = tau) -> Term:
    """2τ/t - 1."""
    return Num(2) * at / t + MINUS_ONE


def sliding(at: Term = tau) -> Term:
    """1 - 2(t - τ)/θ."""
    return Num(1) - Num(2) * (t - at) / theta


def divided(by: Term, along: Formula) -> Formula:
    """What is divided by is not 0, and the chain rule."""
    return And(NonZero(by), *along.args)


to_now = at_end(stretched(t), Num(1))
stretching = Statement(divided(t, along(stretched(), t, Num(-2) * tau / t**2, *to_now)), every_degree, (started,))

STRETCHED = Claim(
    id="hippo/legendre-stretched",
    title="d/dt P_n(2τ/t - 1) = -(2τ/t²) P'_n(2τ/t - 1), and P_n is 1 at τ = t",
    statement=stretching,
    sources=(Source(HIPPO, "appendix D.3", "the scaled measure, with t in the basis too"),),
    proof=by_induction(4, Exists()),
    near_misses=(
        variant(stretching, "at the start", drop="t ≠ 0"),
        variant(stretching, "the argument grows", divided(t, along(stretched(), t, Num(2) * tau / t**2))),
        variant(stretching, "a factor t too many", divided(t, along(stretched(), t, Num(-2) * tau / t))),
    ),
)

edges = (*at_end(sliding(t), Num(1)), *at_end(sliding(t - theta), sign(n)))
shifting = Statement(divided(theta, along(sliding(), t, Num(-2) / theta, *edges)), every_degree, (wide,))

SLIDING = Claim(
    id="hippo/legendre-sliding",
    title="d/dt P_n(1 - 2(t - τ)/θ) = -(2/θ) P'_n(1 - 2(t - τ)/θ), and P_n is 1 at τ = t, (-1)^n at τ = t - θ",
    statement=shifting,
    sources=(Source(HIPPO, "appendix D.1", "the translated measure"),),
    proof=by_induction(6, Exists()),
    near_misses=(
        variant(shifting, "a window of length 0", drop="θ ≠ 0"),
        variant(shifting, "the argument grows", divided(theta, along(sliding(), t, Num(2) / theta))),
        variant(shifting, "the two ends exchanged", And(*at_end(sliding(t), sign(n)), *at_end(sliding(t - theta), Num(1)))),
    ),
)

CLAIMS = (RELATED, EXPANDED, HERE, STRETCHED, SLIDING)
