"""Linear state-space models: in continuous time, as a recurrence, and as a convolution.

    x' = A x + B u                     x_k = Ā x_{k-1} + B̄ u_k
    y  = C x + D u                     y_k = C x_k + D u_k

Source: Gu, Goel, Ré, "Efficiently Modeling Long Sequences with Structured State Spaces", arXiv 2111.00396, equations
1-5. The state is read after the update, so y_1 already sees u_1. The textbook instead updates after the read-out,
x_{k+1} = Ā x_k + B̄ u_k with inputs from u_0 on: the same states, with every input one index earlier.

Every term is a polynomial or power series in the matrices without conjugates, so complex matrices obey the same
equations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .claim import Claim, NearMiss, Source, variant
from .kernel.formulas import And, Assumption, Declaration, Equation, Formula, Statement
from .kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Ode, Part, Using
from .kernel.terms import (
    Add,
    Apply,
    At,
    Deriv,
    Exp,
    Family,
    Integral,
    Num,
    Recurrence,
    Sum,
    Term,
    Where,
    Zero,
    indices,
    le,
    matrices,
    matrix,
    named,
    recurrence,
    scalar,
    vector,
    vectors,
)

GU = "Gu, Goel, Ré, Efficiently Modeling Long Sequences with Structured State Spaces, arXiv 2111.00396"
NOTE = "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)"
CODDINGTON = "Coddington and Levinson, Theory of Ordinary Differential Equations"

N, m, p = indices("N m p")
k, l, j, s, L = indices("k l j s L")
x0 = vector("x0", N)
C, D = matrix("C", p, N), matrix("D", p, m)

# Continuous time ---------------------------------------------------------------------------------

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

# Discrete time -----------------------------------------------------------------------------------

Abar, Bbar = matrix("Abar", N, N), matrix("Bbar", N, m)
u = vectors("u", m)

x = recurrence("x", x0, lambda k, x: Abar * x + Bbar * u[k])
textbook = recurrence("w", x0, lambda k, w: Abar * w + Bbar * u[k - 1])

DECLARATION = Declaration(
    operator="lti",
    inputs={"u": u, "Abar": Abar, "Bbar": Bbar, "C": C, "D": D},
    output=C * x[k] + D * u[k],
    t=k,
    state=x,
    initial_state=x0,
    domains=dict.fromkeys(("u", "Abar", "Bbar", "C", "D"), "real or complex"),
    source=f"{GU}, equation 3, with D apart",
)
DECLARATIONS = (DECLARATION,)
y = DECLARATION.output


def states(first: Any = 1, last: Any = k, shift: Any = 0, power: Any = k) -> Formula:
    """Both recurrences, unrolled over the inputs first..last."""
    seen = Sum(Abar ** (k - j - shift) * Bbar * u[j], j, first, last)
    earlier = Sum(Abar ** (k - 1 - j - shift) * Bbar * u[j], j, first - 1, last - 1)
    return And(
        Equation(x[k], Abar**power * x0 + seen),
        Equation(textbook[k], Abar**power * x0 + earlier),
    )


unrolled = Statement(states(), le(0, k))
step = Direct((Hypothesis(),), "one more step")

UNROLLED = Claim(
    id="state-space/unrolled",
    title="the state is the start and every input, each propagated by its own power of Ā",
    statement=unrolled,
    sources=(Source(GU, "section 2.4, the unrolled recurrence", "with a start; there x_{-1} = 0"),),
    proof=Induction(k, base=Each((Direct(), Direct())), step=Each((step, step))),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "one power less for the start", states(power=k + 1)),
        variant(unrolled, "the last input is left out", states(last=k - 1)),
        variant(unrolled, "one input too many", states(first=0)),
    ),
)


def tap(lag: Any) -> Term:
    """The kernel K̄_l = C Ā^l B̄."""
    return named("Kbar", C * Abar**lag * Bbar, lag)


def convolved(at: Any, family: Family = u, first: Any = 1, lead: Any = 0) -> Term:
    """The first L taps of the kernel convolved with a sequence that is 0 before its first member."""
    past = Where(le(first, at - l), tap(l + lead) * family[at - l], Zero(p, 1))
    return Sum(past, l, 0, L - 1)


def answers(*start: Term, lead: Any = 0) -> Formula:
    """The outputs at step k, D at lag 0: read after the update, and in the textbook's index without D."""
    return And(
        Equation(y, Add(*start, convolved(k, lead=lead), D * u[k])),
        Equation(C * textbook[k], Add(*start, convolved(k - 1, first=0, lead=lead))),
    )


enough_taps = le(1, k) & le(k, L)
propagated = C * Abar**k * x0
response = Statement(answers(propagated), enough_taps)

RESPONSE = Claim(
    id="state-space/response",
    title="the output is the input convolved with the kernel C Ā^l B̄, plus C Ā^k x_0",
    statement=response,
    sources=(Source(GU, "equations 4 and 5", "with a start and with D; at least as many taps as steps"),),
    proof=Each(
        (
            Direct((Lemma("state-space/unrolled", part=0),), "the state, unrolled; l = k - j"),
            Direct((Lemma("state-space/unrolled", part=1),), "the state, unrolled; l = k - 1 - j"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(response, "the start is forgotten", answers()),
        variant(response, "the start is read before the first step", answers(C * x0)),
        variant(response, "lags begin at 1", answers(propagated, lead=1)),
    ),
)

# From the zero state, the output is the convolution with finitely many taps, if these are enough.
fresh_start = Assumption("x_0 = 0", Equation(x0, Zero(N, 1)), solve={x0: Zero(N, 1)})
as_written = Statement(answers(), enough_taps)
convolution = replace(as_written, assumptions=(fresh_start,))

too_few_taps = replace(convolution, where=le(1, k) & le(0, L))
circular = Sum(Where(le(1, k - l), tap(l) * u[k - l], tap(l) * u[k - l + L]), l, 0, L - 1)

# "y = x * K̄" with x the state: it has the right shapes where there are as many inputs as states.
drive = vectors("u", N)
states_in = recurrence("x", x0, lambda k, x: Abar * x + matrix("Bbar", N, N) * drive[k])
with_state = Sum(Where(le(1, k - l), C * Abar**l * matrix("Bbar", N, N) * states_in[k - l], Zero(p, 1)), l, 0, L - 1)

# A transition that changes with time: the taps at time k would need every transition since.
varying = matrices("Abar", N, N)
x_varying = recurrence("x", x0, lambda k, x: varying[k] * x + Bbar * u[k])
frozen = Sum(Where(le(1, k - l), C * varying[k] ** l * Bbar * u[k - l], Zero(p, 1)), l, 0, L - 1)


def from_response(part: int, answer: Term) -> Chain:
    """The response, and then that the zero state answers nothing."""
    lemma = Lemma("state-space/response", part=part - 1, at={k: k, L: L})
    return Chain((Link(answer, (Using(lemma),), "the response"),), (Given("x_0 = 0"),), "the zero state answers nothing")


CONVOLUTION = Claim(
    id="state-space/recurrence-is-convolution",
    title="from the zero state, the recurrence is a convolution with the kernel (C B̄, C Ā B̄, C Ā² B̄, ...)",
    statement=convolution,
    as_written=as_written,
    expected="qualified",
    sources=(
        Source(GU, "equations 4 and 5", "there x_{-1} = 0 and the kernel is as long as the input"),
        Source(NOTE, "convolutional representation: y = x * K̄, K̄ = (C B̄, C Ā B̄, ..., C Ā^{N-1} B̄)", "its x is the input, its N the length"),
    ),
    proof=Each((from_response(1, Add(propagated, convolved(k), D * u[k])), from_response(2, propagated + convolved(k - 1, first=0)))),
    operator=DECLARATION,
    near_misses=(
        variant(convolution, "a state at the start", drop="x_0 = 0"),
        variant(convolution, "lags begin at 1", answers(lead=1)),
        NearMiss("fewer taps than steps", too_few_taps),
        variant(convolution, "circular: old inputs wrap around", Equation(y, circular + D * u[k])),
        variant(convolution, "the state in the place of the input", Equation(C * states_in[k], with_state)),
        variant(convolution, "a transition that varies in time", Equation(C * x_varying[k], frozen)),
        variant(convolution, "the feedthrough is forgotten", Equation(y, convolved(k))),
    ),
)

# Split and resume --------------------------------------------------------------------------------


def resumed(start: Term, shift: Any = 0) -> Recurrence:
    """The same recurrence from the given state at index s on."""
    return recurrence("r", start, lambda k, r: Abar * r + Bbar * u[k - shift], start=s)


def continues(r: Recurrence) -> Formula:
    """A resumed run has the states and the outputs of the whole one."""
    return And(Equation(r[k], x[k]), Equation(C * r[k] + D * u[k], y))


split = Statement(continues(resumed(x[s])), le(0, s) & le(s, k))

SPLIT = Claim(
    id="state-space/split-resume",
    title="a run that is cut at s and resumed from its state is the whole run",
    statement=split,
    sources=(Source(GU, "section 2.3", "the recurrent view: all that a step needs of the past is its state"),),
    proof=Each((Induction(k, step=step, start=s), Direct((Part(1),), "the same state is read"))),
    operator=DECLARATION,
    near_misses=(
        NearMiss("resumed from the state one step earlier", Statement(continues(resumed(x[s - 1])), le(1, s) & le(s, k))),
        variant(split, "resumed from the start", continues(resumed(x0))),
        variant(split, "the inputs are read again from the first one", continues(resumed(x[s], shift=s))),
    ),
)

CLAIMS = (VARIATION, SOLUTION, UNROLLED, RESPONSE, CONVOLUTION, SPLIT)
