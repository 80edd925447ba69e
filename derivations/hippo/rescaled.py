"""Change of time: windows as the unit interval, and HiPPO-LegS at another speed.

A substitution under an integral is proved by the derivative by its upper end; that P_n is the same at two spellings of one argument
is an induction on n.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, Induction, Lemma, Ode, Using
from ..kernel.terms import Exp, Integral, Num, Term, scalar
from .polynomials import (
    HIPPO,
    MINUS_ONE,
    TRAIN,
    drive,
    every_degree,
    legendre,
    members,
    n,
    sliding,
    started,
    stretched,
    supposed,
    t,
    tau,
    theta,
    u,
    wide,
)

r, speed, s = scalar("r"), scalar("alpha"), scalar("s")
moving = Assumption("α ≠ 0", NonZero(speed))
by_argument = Induction(n, base=Each((Exists(), Direct())), step=Each((Exists(), supposed)))

# The window [t - θ, t] as the unit interval --------------------------------------------------------

inside = t - theta + theta * r


def in_window(at: Term) -> Formula:
    """The polynomials at two spellings of one argument."""
    return And(NonZero(theta), Equation(members(n, sliding(at)), members(n, Num(2) * r + MINUS_ONE)))


window_spelled = Statement(in_window(inside), every_degree, (wide,))

WINDOW_ARGUMENTS = Claim(
    id="hippo/window-arguments",
    title="P_n and its slopes at 1 - 2(t - τ)/θ for τ = t - θ + θr are those at 2r - 1",
    statement=window_spelled,
    sources=(Source(HIPPO, "appendix D.1", "the window mapped to [-1, 1]"),),
    proof=by_argument,
    near_misses=(
        variant(window_spelled, "a window of length 0", drop="θ ≠ 0"),
        variant(window_spelled, "the window from its other end", in_window(t - theta * r)),
        variant(window_spelled, "the window not scaled", in_window(t - theta + r)),
    ),
)


def from_window(factor: Term) -> Formula:
    """The integral up to any upper end r, with its variable changed."""
    unit = Integral(factor * drive(t - theta + theta * s) * legendre(n, Num(2) * s + MINUS_ONE), s, 0, r)
    return And(NonZero(theta), Equation(unit, Integral(drive(tau) * legendre(n, sliding()), tau, t - theta, inside)))


window_changed = Statement(from_window(theta), every_degree, (wide,))

WINDOW = Claim(
    id="hippo/unit-window",
    title="the integral of u P_n over the window is θ times one over [0, 1]",
    statement=window_changed,
    sources=(Source(HIPPO, "appendix D.1", "used there without proof"),),
    proof=Each((Exists(), Ode(r, by=(Lemma("hippo/window-arguments", part=1),)))),
    near_misses=(
        variant(window_changed, "a window of length 0", drop="θ ≠ 0"),
        variant(window_changed, "without the factor θ", from_window(theta / theta)),
        variant(window_changed, "θ squared", from_window(theta**2)),
    ),
)

# HiPPO-LegS at another speed -----------------------------------------------------------------------


def later(at: Term) -> Term:
    """2τ/(αt) - 1."""
    return Num(2) * at / (speed * t) + MINUS_ONE


def in_past(at: Term) -> Formula:
    """The polynomials at two spellings of one argument."""
    return And(NonZero(speed * t), Equation(members(n, later(at)), members(n, stretched(r))))


past_spelled = Statement(in_past(speed * r), every_degree, (started, moving))

PAST_ARGUMENTS = Claim(
    id="hippo/past-arguments",
    title="P_n and its slopes at 2τ/(αt) - 1 for τ = αr are those at 2r/t - 1",
    statement=past_spelled,
    sources=(Source(HIPPO, "proposition 3 and appendix E", "the past mapped to [-1, 1]"),),
    proof=by_argument,
    near_misses=(
        variant(past_spelled, "at the start", drop="t ≠ 0"),
        variant(past_spelled, "time stands still", drop="α ≠ 0"),
        variant(past_spelled, "only one of the two at another speed", in_past(r)),
    ),
)


def from_past(faster: Term) -> Formula:
    """The integral up to any upper end r, with its variable changed."""
    own = Integral(speed * u(faster) * legendre(n, stretched()), tau, 0, r)
    return And(NonZero(speed * t), Equation(own, Integral(u(tau) * legendre(n, later(tau)), tau, 0, speed * r)))


past_changed = Statement(from_past(speed * tau), every_degree, (started, moving))

PAST = Claim(
    id="hippo/past-at-another-speed",
    title="the integral of u(ατ) P_n over the past, up to any end, is one of u over a past α times as long",
    statement=past_changed,
    sources=(Source(HIPPO, "proposition 3 and appendix E", "used there without proof"),),
    proof=Each((Exists(), Ode(r, by=(Lemma("hippo/past-arguments", part=1),)))),
    near_misses=(
        variant(past_changed, "at the start", drop="t ≠ 0"),
        variant(past_changed, "time stands still", drop="α ≠ 0"),
        variant(past_changed, "the input at its own speed", from_past(tau)),
    ),
)


def equivariant(faster: Term) -> Formula:
    """The moment of the input at another speed, at t, is the moment of the input at that speed times t."""
    own = Integral(u(faster) * legendre(n, stretched()), tau, 0, t) / t
    there = Integral(u(tau) * legendre(n, later(tau)), tau, 0, speed * t) / (speed * t)
    return And(NonZero(speed * t), Equation(own, there))


scaled = Statement(equivariant(speed * tau), every_degree, (started, moving))

TIMESCALE = Claim(
    id="hippo/timescale",
    title="HiPPO-LegS is timescale equivariant: the coefficients of τ ↦ u(ατ) at t are those of u at αt",
    statement=scaled,
    sources=(Source(HIPPO, "proposition 3", "there for α > 0; without the common factor √(2n+1)"),),
    proof=Each(
        (
            Exists(),
            Direct(
                (Using(Lemma("hippo/past-at-another-speed", part=1, at={n: n}, families={"r": ((), t)}), left=1 / (speed * t)),),
                "up to the end r = t",
            ),
        )
    ),
    near_misses=(
        variant(scaled, "at the start", drop="t ≠ 0"),
        variant(scaled, "time stands still", drop="α ≠ 0"),
        variant(scaled, "the input at its own speed", equivariant(tau)),
    ),
)

# In the logarithm of time, HiPPO-LegS is a convolution ------------------------------------------------

a, b, beta = scalar("a"), scalar("b"), scalar("beta")
e_a = Exp(a)


def logarithmic(at: Term) -> Term:
    """2e^{-(a-β)} - 1."""
    return Num(2) * Exp(at - a) + MINUS_ONE


def at_time(at: Term) -> Term:
    """2τ/e^a - 1."""
    return Num(2) * at / e_a + MINUS_ONE


log_spelled = Statement(Equation(members(n, at_time(Exp(b))), members(n, logarithmic(b))), every_degree)

LOG_ARGUMENTS = Claim(
    id="hippo/log-arguments",
    title="P_n and its slopes at 2e^b/e^a - 1 are those at 2e^{-(a-b)} - 1",
    statement=log_spelled,
    sources=(Source(HIPPO, "section 3", "the past in logarithmic time"),),
    proof=Induction(n, step=supposed),
    near_misses=(
        variant(log_spelled, "the age with the other sign", Equation(members(n, at_time(Exp(-b))), members(n, logarithmic(b)))),
        variant(log_spelled, "e^a squared", Equation(members(n, at_time(Exp(b) / e_a)), members(n, logarithmic(b)))),
    ),
)


def log_convolved(fading: Term) -> Formula:
    """The moment of the past since e^b, at the time e^a, as an integral over β = log τ."""
    moment = Integral(u(tau) * legendre(n, at_time(tau)), tau, Exp(b), e_a) / e_a
    return Equation(moment, Integral(u(Exp(beta)) * fading * legendre(n, logarithmic(beta)), beta, b, a))


log_changed = Statement(log_convolved(Exp(beta - a)), every_degree)

LOGARITHMIC = Claim(
    id="hippo/legs-log-convolution",
    title="in the logarithm of time HiPPO-LegS is a convolution: its kernel at the age σ = a - β is P_n(2e^{-σ} - 1) e^{-σ}",
    statement=log_changed,
    sources=(
        Source(TRAIN, "section 3", "LegS in logarithmic time is the time-invariant system without 1/t"),
        Source(HIPPO, "theorem 2", "in time itself no convolution: an impulse counts 1/t at every later t"),
    ),
    proof=Ode(b, start=a, by=(Lemma("hippo/log-arguments"),)),
    near_misses=(
        variant(log_changed, "no fading", log_convolved(Num(1))),
        variant(log_changed, "fading twice", log_convolved(Exp(Num(2) * beta - Num(2) * a))),
        variant(log_changed, "growing", log_convolved(Exp(a - beta))),
    ),
)

CLAIMS = (WINDOW_ARGUMENTS, WINDOW, PAST_ARGUMENTS, PAST, TIMESCALE, LOG_ARGUMENTS, LOGARITHMIC)
