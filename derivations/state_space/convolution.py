"""The recurrence as a convolution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Lemma, Link, Using
from ..kernel.terms import Add, Family, Sum, Term, Where, Zero, le, matrices, matrix, named, recurrence, vectors
from .operator import DECLARATION, GU, NOTE, Abar, Bbar, C, D, L, N, k, l, p, textbook, u, x0, y


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
    title="from the zero state, a time-invariant recurrence is the convolution of its inputs with (C B̄, C Ā B̄, C Ā² B̄, ...)",
    statement=convolution,
    as_written=as_written,
    expected="qualified",
    sources=(
        Source(
            GU,
            "equations 4 and 5",
            "right as it stands: x_{-1} = 0, a kernel as long as the input; read after the update, the first equation",
        ),
        Source(
            NOTE,
            "convolutional representation: y = x * K̄, K̄ = (C B̄, C Ā B̄, ..., C Ā^{N-1} B̄), wholly equivalent to the recurrence",
            "right where x is the input and not the state, N the number of steps, and x_0 = 0; inputs from u_0 on, the second equation",
        ),
        Source(
            "SciPy, scipy.signal.dlsim and dimpulse",
            "x_{k+1} = A x_k + B u_k, y_k = C x_k + D u_k",
            "read before the update: the second equation, and D u_k; the same kernel, one step later",
        ),
    ),
    proof=Each((from_response(1, Add(propagated, convolved(k), D * u[k])), from_response(2, propagated + convolved(k - 1, first=0)))),
    operator=DECLARATION,
    near_misses=(
        variant(convolution, "a state at the start", drop="x_0 = 0"),
        variant(convolution, "lags begin at 1", answers(lead=1)),
        NearMiss("fewer taps than steps", too_few_taps, at={L: 1, k: 2}),
        variant(convolution, "circular: old inputs wrap around", Equation(y, circular + D * u[k])),
        variant(convolution, "the state in the place of the input", Equation(C * states_in[k], with_state)),
        variant(convolution, "a transition that varies in time", Equation(C * x_varying[k], frozen)),
        variant(convolution, "the feedthrough is forgotten", Equation(y, convolved(k))),
    ),
)

CLAIMS = (RESPONSE, CONVOLUTION)
