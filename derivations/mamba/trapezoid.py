"""Mamba-3's discretisation: a step of the scan reads two inputs, by a rule that is between the two ends of the step.

    M_t = α_t M_{t-1} + β_t x_{t-1} B_{t-1}ᵀ + γ_t x_t B_tᵀ        α = e^{Δa}, β = (1 - λ) Δ e^{Δa}, γ = λ Δ

λ = ½ is the trapezoid rule for the integral of e^{(Δ-s)a} B x over the step, λ = 1 the rule of Mamba and Mamba-2. Here t starts at 1;
what was written before the first token is x_0 B_0ᵀ, 0 in a fresh start.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..discretization.operators import HALF
from ..kernel.formulas import And, Assumption, Equation, ForAll, Statement
from ..kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Lemma, Ode, Part, Rowwise, Using
from ..kernel.terms import (
    Exp,
    Hadamard,
    Index,
    Integral,
    Num,
    Prod,
    Recurrence,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    entries,
    equal,
    indices,
    le,
    matrix,
    recurrence,
    scalar,
    scalars,
    vectors,
)
from .operator import DAO, B, C, N, delta, t

LAHOTI = "Lahoti et al., Mamba-3: Improved Sequence Modeling using State Space Principles, arXiv 2603.15569"

d, i, j, l, r, s, L, T = indices("d i j l r s L T")
x = vectors("x", d)
M0 = matrix("M0", d, N)
rate, mix = scalars("a"), scalars("lambda")
ONE = Num(1)


def alpha(at: Index) -> Term:
    """What is left of the memory."""
    return Exp(delta[at] * rate[at])


def beta(at: Index) -> Term:
    """The weight of the input before."""
    return (ONE - mix[at]) * delta[at] * alpha(at)


def gamma(at: Index) -> Term:
    """The weight of the input."""
    return mix[at] * delta[at]


def token(at: Index) -> Term:
    """What a token writes."""
    return x[at] * B[at].T


def both(at: Index) -> Term:
    """What is written at a time: the token and the one before."""
    return beta(at) * token(at - 1) + gamma(at) * token(at)


M = recurrence("M", M0, lambda t, M: alpha(t) * M + beta(t) * token(t - 1) + gamma(t) * token(t))


def decay(first: Index, last: Index) -> Term:
    """What is left after the steps of a range."""
    return Prod(alpha(r), r, first, last)


def lower(first: Index = j + 1) -> Term:
    """D: what is left of write j at time i, and 0 for writes to come."""
    return entries(Where(le(j, i), decay(first, i), Num(0)), i, (1, L), j, (1, L))


def band(previous: Index = 1) -> Term:
    """The two bands: row i reads the inputs i and i - 1."""
    below = Where(equal(i, j + previous), beta(i), Num(0))
    return entries(Where(equal(i, j), gamma(i), below), i, (1, L), j, (1, L))


def rows(of: Term) -> Term:
    """A row for each of the times 1..L."""
    return Stack(of, i, 1, L)


fresh = Assumption("nothing before the first token", Equation(x[0].T, Zero(1, d)), solve={x[0]: Zero(d, 1)})


def unrolled(first: Index = j + 1, write: Term | None = None) -> Equation:
    """The memory is the start and the writes, each faded by the steps after it."""
    return Equation(M[t], decay(1, t) * M0 + Sum(decay(first, t) * (both(j) if write is None else write), j, 1, t))


states = Statement(unrolled(), le(0, t))


STATES = Claim(
    id="mamba/trapezoid-states",
    title="Mamba-3: the memory is the start and what is written at each step, two tokens at a time, faded by the steps after it",
    statement=states,
    sources=(Source(LAHOTI, "the exponential-trapezoidal recurrence", "with a start, and any token before the first"),),
    proof=Induction(t, step=Direct((Hypothesis(),), "one more step")),
    near_misses=(
        variant(states, "a write passes its own step", unrolled(j)),
        variant(states, "the token before fades twice", unrolled(write=alpha(j) * beta(j) * token(j - 1) + gamma(j) * token(j))),
        variant(states, "one token at a time", unrolled(write=gamma(j) * token(j))),
    ),
)

# Two bands ------------------------------------------------------------------------------------------------


def masked(mask: Term) -> Equation:
    """The outputs as a masked matrix product, beside the start."""
    product = Hadamard(rows(C[i].T) * rows(B[i].T).T, mask) * rows(x[i].T)
    return Equation(rows((M[i] * C[i]).T), product + rows(decay(1, i) * (M0 * C[i]).T))


nothing = Using(Given(fresh.name), left=decay(2, t) * beta(1) * (C[t].T * B[0]))
parallel = Statement(masked(lower() * band()), le(0, L), (fresh,))

PARALLEL = Claim(
    id="mamba/trapezoid",
    title="Mamba-3: Y = (C Bᵀ ⊙ D G) X, D the 1-semiseparable mask of the decays and G the two bands γ and β: a convolution of width 2 "
    "that depends on the data, and then the scan",
    statement=parallel,
    sources=(
        Source(LAHOTI, "the structured mask: a 1-semiseparable matrix times one with two bands", "with a start"),
        Source(DAO, "state space duality", "there G = diag(Δ)"),
    ),
    proof=Rowwise(t, Direct((Lemma("mamba/trapezoid-states"), nothing), "row t: each write is two tokens, the first but one")),
    near_misses=(
        variant(parallel, "a token before the first", drop=fresh.name),
        variant(parallel, "the bands first", masked(band() * lower())),
        variant(parallel, "the lower band alone", masked(lower() * entries(Where(equal(i, j + 1), beta(i), Num(0)), i, (1, L), j, (1, L)))),
        variant(parallel, "the upper band in its place", masked(lower() * band(-1))),
        variant(parallel, "a write passes its own step", masked(lower(j) * band())),
    ),
)

plain = recurrence("K", M0, lambda t, K: alpha(t) * K + delta[t] * token(t))
current = Assumption("λ = 1", ForAll(Equation(mix[r], 1), r, 1, T), solve={mix[r]: ONE})


def is_plain(step: Recurrence = plain) -> Equation:
    """The rule of Mamba-2."""
    return Equation(M[t], step[t])


limit = Statement(is_plain(), le(0, t) & le(t, T), (current,))

LIMIT = Claim(
    id="mamba/trapezoid-limit",
    title="λ = 1 is Mamba-2: B̄ = ΔB, the newest token alone",
    statement=limit,
    sources=(Source(LAHOTI, "Mamba-2 as the case λ = 1, the exponential Euler rule"),),
    proof=Induction(t, step=Direct((Hypothesis(), Given(current.name, {r: t + 1})), "β = 0 and γ = Δ")),
    near_misses=(
        variant(limit, "any λ", drop=current.name),
        variant(limit, "the token before", is_plain(recurrence("K", M0, lambda t, K: alpha(t) * K + delta[t] * token(t - 1)))),
        variant(limit, "not multiplied by Δ", is_plain(recurrence("K", M0, lambda t, K: alpha(t) * K + token(t)))),
    ),
)

# How good the rules are ---------------------------------------------------------------------------------------

# An input that goes from b to b + Δv over a step, one entry: x(Δ) = e^{Δa} (x(0) + the integral of e^{-sa} (b + sv)).
tau, step = scalar("s"), scalar("Delta")
a, b, v = scalar("a"), scalar("b"), scalar("v")
ended = Exp(-step * a)


def input_at(time: Term) -> Term:
    """k(s): the input, faded back to the start of the step."""
    return Exp(-time * a) * (b + time * v)


slope = Exp(-tau * a) * (v - a * (b + tau * v))
bend = Exp(-tau * a) * (a**2 * (b + tau * v) - 2 * a * v)


def integral(of: Term) -> Term:
    """The integral over the step."""
    return Integral(of, tau, 0, step)


def moment(n: int) -> Term:
    """The integral of s^n e^{-sa}."""
    return integral(tau**n * Exp(-tau * a))


def by_parts(n: int) -> Equation:
    """A moment by the one before."""
    return Equation(a * moment(n), n * moment(n - 1) - step**n * ended if n else ONE - ended)


def rule(weight: Term, rest: Term) -> Equation:
    """The integral by the two ends of the step, one of which has this weight, and what is missed."""
    return Equation(integral(input_at(tau)), step * ((ONE - weight) * input_at(Num(0)) + weight * input_at(step)) - rest)


def rules(first: Term, second: Term, weight: Term = HALF) -> And:
    """The end of the step alone; both ends alike."""
    return And(rule(ONE, first), *[by_parts(n) for n in range(4)], rule(weight, second))


missed = HALF * integral(tau * (step - tau) * bend)
quality = Statement(rules(integral(tau * slope), missed))
coefficients = (HALF * b * step, HALF * a * b * step - b, HALF * (a * v * step - a * b - v), -(HALF * a * v))
certificate = tuple(Using(Part(2 + n), left=x) for n, x in enumerate(coefficients))

QUALITY = Claim(
    id="mamba/trapezoid-rule",
    title="what a rule misses of an input that is linear over a step, faded to k: Mamba's, λ = 1, ∫ s k'(s) ds, of order Δ²; the trapezoid "
    "rule, λ = ½, ½ ∫ s (Δ-s) k''(s) ds, of order Δ³",
    statement=quality,
    sources=(
        Source(
            LAHOTI, "exponential Euler is of first order, the exponential-trapezoidal rule of second", "the whole remainders, one entry"
        ),
    ),
    proof=Each((Ode(step), *[Ode(step)] * 4, Direct(certificate, "the moments, by parts"))),
    near_misses=(
        variant(quality, "λ = 1 misses nothing", rules(Num(0) * a, missed)),
        variant(quality, "λ = ½ misses nothing", rules(integral(tau * slope), Num(0) * a)),
        variant(quality, "another weight", rules(integral(tau * slope), missed, ONE)),
        variant(quality, "twice as much", rules(integral(tau * slope), missed + missed)),
    ),
)

CLAIMS = (STATES, PARALLEL, LIMIT, QUALITY)
