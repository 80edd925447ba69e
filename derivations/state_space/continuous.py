"""Linear state-space models in continuous time."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Given, Lemma, Ode, Using
from ..kernel.terms import Apply, At, Deriv, Exp, Integral, Like, Num, Term, Zero, matrix, named, scalar
from .operator import GU, NOTE, C, D, N, m, x0

CODDINGTON = "Coddington and Levinson, Theory of Ordinary Differential Equations"

A, B = matrix("A", N, N), matrix("B", N, m)
t, tau = scalar("t"), scalar("tau")


def u_of(time: Term) -> Term:
    """The input, a continuous function of time."""
    return Apply("u", (time,), m, 1)


def y_of(time: Term) -> Term:
    """Any differentiable function of time with values in the state space."""
    return Apply("y", (time,), N, 1)


def solution(kernel: Term, start: Term) -> Term:
    """x(t): the start, propagated, plus every input, propagated from its time on."""
    return start + Integral(kernel * B * u_of(tau), tau, 0, t)


defect = Deriv(y_of(tau), tau) - A * y_of(tau)

# d/dt e^{-tA} y = e^{-tA} (y' - A y): the product with e^{-tA} turns the equation into an integral.
variation = Statement(Equation(Exp(-t * A) * y_of(t), y_of(Num(0)) + Integral(Exp(-tau * A) * defect, tau, 0, t)))

VARIATION = Claim(
    id="state-space/variation-of-constants",
    title="a function is determined by its start and by y' - A y",
    statement=variation,
    sources=(Source(CODDINGTON, "chapter 3, section 3", "variation of constants, for a system with constant coefficients"),),
    proof=Ode(t),
    near_misses=(
        variant(
            variation,
            "the growth of y itself",
            Equation(Exp(-t * A) * y_of(t), y_of(Num(0)) + Integral(Exp(-tau * A) * Deriv(y_of(tau), tau), tau, 0, t)),
        ),
        variant(
            variation,
            "the integrand not multiplied",
            Equation(Exp(-t * A) * y_of(t), y_of(Num(0)) + Integral(defect, tau, 0, t)),
        ),
    ),
)


def solves(x: Term) -> Formula:
    """X solves the equation from x0, and every function is that formula of its own start and defect."""
    from_defect = Exp(t * A) * y_of(Num(0)) + Integral(Exp((t - tau) * A) * defect, tau, 0, t)
    return And(Equation(Deriv(x, t), A * x + B * u_of(t)), Equation(At(x, t, 0), x0), Equation(y_of(t), from_defect))


propagator, propagated_start = Exp((t - tau) * A), Exp(t * A) * x0
solved = Statement(solves(solution(propagator, propagated_start)))

SOLUTION = Claim(
    id="state-space/solution",
    title="x(t) = e^{At} x(0) + the integral of e^{A(t-τ)} B u(τ) solves x' = A x + B u, and nothing else does",
    statement=solved,
    sources=(
        Source(GU, "equation 1", "D = 0; u continuous"),
        Source(NOTE, "continuous representation: 解得 x(t) = e^{At} x(0) + ∫₀ᵗ e^{A(t-τ)} B u(τ) dτ"),
        Source(CODDINGTON, "chapter 3, section 1", "uniqueness: a solution y has y' - A y = B u, so the formula is y"),
    ),
    proof=Each(
        (
            Direct(note="differentiate: the integral's upper end gives B u(t), its integrand A x(t)"),
            Direct(note="at t = 0 the integral is over nothing"),
            Direct((Using(Lemma("state-space/variation-of-constants"), left=Exp(t * A)),), "times e^{tA}"),
        )
    ),
    near_misses=(
        variant(solved, "the kernel not reversed", solves(solution(Exp(tau * A), propagated_start))),
        variant(solved, "the start not propagated", solves(solution(propagator, x0))),
        variant(solved, "propagated backwards", solves(solution(Exp((tau - t) * A), propagated_start))),
    ),
)

# Convolution -------------------------------------------------------------------------------------


def state_kernel(lag: Term) -> Term:
    """K(t) = e^{tA} B."""
    return named("K", Exp(lag * A) * B, lag)


def output_kernel(lag: Term) -> Term:
    """h(t) = C e^{tA} B."""
    return named("h", C * (Exp(lag * A) * B), lag)


def convolved(kernel: Term, since: Like = 0) -> Term:
    """A kernel at t - τ, convolved with the input from some time on."""
    return Integral(kernel * u_of(tau), tau, since, t)


def of_the_input(state: Term, answer: Term) -> Formula:
    """The solution and the output that is read from it."""
    x = solution(propagator, propagated_start)
    return And(Equation(x, state), Equation(C * x + D * u_of(t), answer))


zero_start = Assumption("x(0) = 0", Equation(x0, Zero(N, 1)), solve={x0: Zero(N, 1)})
state, answer = convolved(state_kernel(t - tau)), convolved(output_kernel(t - tau)) + D * u_of(t)
convolution = Statement(of_the_input(state, answer), assumptions=(zero_start,))

CONVOLUTION = Claim(
    id="state-space/continuous-convolution",
    title="from x(0) = 0 the state is K * u with K = e^{tA} B, and the output is (C K) * u + D u",
    statement=convolution,
    sources=(
        Source(NOTE, "continuous representation: x(0) = 0 gives x = K * u, K(t) = e^{At} B, y = C x"),
        Source(GU, "section 2.1", "x is the only solution, by state-space/solution"),
    ),
    proof=Each(
        (
            Direct((Given("x(0) = 0"),), "nothing is left of the start"),
            Direct((Given("x(0) = 0"),), "C does not depend on τ"),
        )
    ),
    near_misses=(
        variant(convolution, "a state at the start", drop="x(0) = 0"),
        variant(convolution, "the kernel not reversed", of_the_input(convolved(state_kernel(tau)), answer)),
        variant(convolution, "the input is added up as well", of_the_input(convolved(state_kernel(t - tau) + B), answer)),
        variant(convolution, "the feedthrough is remembered", of_the_input(state, convolved(output_kernel(t - tau) + D))),
        variant(convolution, "inputs before 0 count too", of_the_input(convolved(state_kernel(t - tau), -t), answer)),
    ),
)

CLAIMS = (VARIATION, SOLUTION, CONVOLUTION)
