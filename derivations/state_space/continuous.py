"""Linear state-space models in continuous time."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Lemma, Ode, Using
from ..kernel.terms import Apply, At, Deriv, Exp, Integral, Num, Term, matrix, scalar
from .operator import GU, NOTE, N, m, x0

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

CLAIMS = (VARIATION, SOLUTION)
