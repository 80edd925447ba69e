"""What a measure that moves along makes of the coefficients: a convolution, and an equation of their own where the kernel has one.

Here the basis times the measure is a column of functions of the age s = t - τ, of any size N; the measure lives on ages 0..θ.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Given, Ode
from ..kernel.terms import Apply, Deriv, Exp, Integral, Num, Row, Sum, Term, Zero, index, le, matrix, named, scalar, vector
from .polynomials import NOTE, TRAIN, N, n, started, t, tau, theta

s, rate, drift = scalar("s"), scalar("rho"), scalar("r")
m = index("m")
A, w0 = matrix("A", N, N), vector("w0", N)


def u(time: Term) -> Term:
    """The input, a continuous function of time."""
    return Apply("u", (time,), 1, 1)


def p(age: Term) -> Term:
    """The basis times the measure at an age, for a measure of width 1."""
    return Apply("p", (age,), N, 1)


def w(age: Term) -> Term:
    """A column of functions of the age, with the derivatives that are spoken of."""
    return Apply("w", (age,), N, 1)


# A convolution, if nothing but the place of the measure changes with time ----------------------------

scale = named("kappa", rate + drift * t, t)


def kernel(age: Term) -> Term:
    """K(s), a column: for each degree its own function."""
    return rate * p(rate * age)


def projected(window: Term = theta) -> Term:
    """The coefficients with respect to the measure at time t: ages are counted in units of 1/κ(t)."""
    return Integral(scale * p(scale * (t - tau)) * u(tau), tau, t - window, t)


def convolved(of: Term) -> Formula:
    """The coefficients are the kernel's convolution with the input."""
    return Equation(projected(), Integral(of * u(t - s), s, 0, theta))


fixed = Assumption("measure and basis only move along: κ does not change", Equation(drift, 0), solve={drift: Num(0)})
translated = Statement(convolved(kernel(s)), le(1, N), (fixed,))
as_one = Sum(Row(kernel(s), m), m, 1, N)
all_past = Integral(p((t - tau) / t) * u(tau) / t, tau, 0, t)  # LegS: κ = 1/t, and the window is [0, t]
widening: dict[Any, Any] = {N: 1, rate: 1, drift: 1, t: 1, theta: 1}

KERNEL = Claim(
    id="hippo/kernel",
    title="the coefficients are a convolution of the input with a column of kernels, one for each degree: the basis times the measure",
    statement=translated,
    as_written=Statement(translated.conclusion, translated.where),
    as_written_at=widening,
    expected="qualified",
    sources=(
        Source(TRAIN, "section 3", "time-invariant orthogonal state-space models"),
        Source(NOTE, "x = K * u with K the sum of the P_n ω", "one function for all degrees there; LegS, whose κ is 1/t, is none"),
    ),
    proof=Ode(theta, by=(Given(fixed.name),)),
    near_misses=(
        variant(translated, "a measure whose width changes", drop=fixed.name, at=widening),
        variant(
            translated,
            "LegS, by the kernel that is right at t = 1",
            Equation(all_past, Integral(kernel(s) * u(t - s), s, 0, t)),
            add=(started,),
            at={N: 1, rate: 1, t: 2},
        ),
        variant(translated, "one kernel for all degrees", Equation(Row(projected(), n), Integral(as_one * u(t - s), s, 0, theta))),
        variant(translated, "the kernel not reversed", convolved(kernel(theta - s))),
        variant(translated, "the kernel without its height", convolved(p(rate * s)), at={N: 1, rate: 2, t: 0, theta: 1}),
    ),
)

# An equation of its own ------------------------------------------------------------------------------


def driven(kernel: Term) -> Term:
    """w * u."""
    return Integral(kernel * u(tau), tau, 0, t)


any_kernel = driven(w(t - tau))
ended = Integral(Exp((t - tau) * A) * w0 * u(tau), tau, t - theta, t)
own_kernel = driven(Exp((t - tau) * A) * w0)


def rest() -> Term:
    """What is left where w' is not A w."""
    return Integral((Deriv(w(t - tau), t) - A * w(t - tau)) * u(tau), tau, 0, t)


def closes(entering: Term, left: Term) -> Formula:
    """The derivative of w * u for any w, and for the w with w' = A w."""
    return And(
        Equation(Deriv(any_kernel, t), A * any_kernel + w(Num(0)) * u(t) + left),
        Equation(Deriv(own_kernel, t), A * own_kernel + entering * u(t)),
    )


closed = Statement(closes(w0, rest()))
no_rest = Zero(N, 1)
of_length_one = {N: 1, theta: 1}
CLOSED = Claim(
    id="hippo/closed-span",
    title="where w' = A w, that is w(s) = e^{sA} w(0), x = w * u obeys x' = A x + w(0) u; else up to w' - A w",
    statement=closed,
    sources=(
        Source(TRAIN, "section 3", "the basis e^{tA} B"),
        Source(NOTE, "ω' in the span of ω", "false for LegT, whose measure ends with a jump at the age θ"),
    ),
    proof=Each((Direct(note="the Leibniz rule"), Direct(note="A commutes with e^{sA}"))),
    near_misses=(
        variant(closed, "w' is not A w", closes(w0, no_rest)),
        variant(closed, "nothing enters", closes(Num(0) * w0, rest())),
        variant(
            closed,
            "the jump of LegT: what leaves at the age θ is left out",
            Equation(Deriv(ended, t), A * ended + w0 * u(t)),
            at=of_length_one,
        ),
    ),
)


def leaving(gone: Term) -> Formula:
    """The derivative of the convolution over a window."""
    return Equation(Deriv(ended, t), A * ended + w0 * u(t) - gone * u(t - theta))


jump = Statement(leaving(Exp(theta * A) * w0))

JUMP = Claim(
    id="hippo/jump",
    title="over a window of length θ the same x obeys x' = A x + w(0) u(t) - w(θ) u(t - θ): what leaves is not in the state",
    statement=jump,
    sources=(Source(TRAIN, "section 3", "LegT: a measure that ends with a jump"), Source(NOTE, "ω' in the span of ω")),
    near_misses=(
        variant(jump, "nothing leaves", leaving(Num(0) * w0), at=of_length_one),
        variant(jump, "what leaves is as it entered", leaving(w0)),
    ),
)

CLAIMS = (KERNEL, CLOSED, JUMP)
