"""What the selective scan is where it does not select: the time-invariant system, a gate, a step of no length."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..discretization.operators import MAMBA
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Implies, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Unfold, Using
from ..kernel.terms import (
    Diag,
    Exp,
    Index,
    Num,
    Sum,
    Term,
    Where,
    indices,
    le,
    named,
    recurrence,
    scalar,
    substitute,
    vector,
)
from ..state_space.operator import k, m, p
from .operator import DECLARATION, H0, A, B, C, D, H, N, delta, t, u

l, r, s, L, T = indices("l r s L T")

# Nothing is selected: a time-invariant system -----------------------------------------------------------

step, drive, reading = scalar("d"), vector("b", N), vector("c", N)
Abar, Bbar = named("Abar", Exp(step * Diag(A))), named("Bbar", step * drive)
lti = recurrence("x", H0, lambda t, x: Abar * x + Bbar * u[t])


def always(name: str, family: object, value: Term) -> Assumption:
    """A family is constant."""
    member = family[r]  # type: ignore[index]
    return Assumption(name, ForAll(Equation(member, value), r, 1, T), solve={member: value})


constant = (always("Δ is constant", delta, step), always("B is constant", B, drive), always("C is constant", C, reading))


def constants_at(time: Index) -> tuple[Given, ...]:
    """Δ and B at a time."""
    return tuple(Given(a.name, {r: time}) for a in constant[:2])


def convolved(lead: Index = 0) -> Term:
    """The first L taps c Ā^l B̄ of the kernel, convolved with the inputs from the first on."""
    return Sum(Where(le(1, t - l), reading.T * Abar ** (l + lead) * Bbar * u[t - l], Num(0)), l, 0, L - 1)


def time_invariant(kernel: Term, start: Term) -> Formula:
    """The state is that of the system, and the output a convolution beside the start and D."""
    return And(Equation(H[t], lti[t]), Equation(DECLARATION.output, start + kernel + D * u[t]))


decayed = reading.T * Abar**t * H0
reduction = Statement(time_invariant(convolved(), decayed), le(1, t) & le(t, L) & le(t, T), constant)
system = {"Abar": ((), Abar), "Bbar": ((), Bbar), "C": ((), reading.T), "D": ((), D), "x0": ((), H0), "u": ((k,), u[k])}
response = Lemma("state-space/response", at={k: t, L: L, m: 1, p: 1}, families=system)

LTI = Claim(
    id="mamba/lti-reduction",
    title="constant Δ, B and C: the scan is the time-invariant system (e^{ΔA}, ΔB), and a convolution with the kernel C e^{lΔA} ΔB",
    statement=reduction,
    sources=(
        Source(MAMBA, "equations 2 and 3, and section 3.3: S4 is the case without selection", "with a start and with D"),
        Source(MAMBA, "section 2, linear time invariance", "selection is what leaves it"),
    ),
    proof=Each(
        (
            Induction(
                t,
                Direct((Unfold(H[1]), Unfold(lti[1]), *constants_at(1)), "one step"),
                Direct((Hypothesis(), *constants_at(t + 1)), "the same update"),
                start=1,
            ),
            Chain(
                (
                    Link(reading.T * H[t] + D * u[t], (Given(constant[2].name, {r: t}),), "the constant read-out"),
                    Link(reading.T * lti[t] + D * u[t], (Part(1),), "the state of the system"),
                ),
                (Using(response),),
                "its response",
            ),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(reduction, "Δ selects", drop="Δ is constant"),
        variant(reduction, "B selects", drop="B is constant"),
        variant(reduction, "C selects", drop="C is constant"),
        variant(reduction, "lags begin at 1", time_invariant(convolved(1), decayed)),
        variant(reduction, "the start is read before the first step", time_invariant(convolved(), reading.T * H0)),
    ),
)

# A step of no length ------------------------------------------------------------------------------------------

pad = Assumption("Δ_s = 0", Equation(delta[s], 0), solve={delta[s]: Num(0)})


def neutral(before: Index = s - 1) -> Formula:
    """The state is the one before the token, and its output reads that state."""
    return And(Equation(H[s], H[before]), Equation(substitute(DECLARATION.output, {t: s}), C[s].T * H[before] + D * u[s]))


padding = Statement(neutral(), le(1, s), (pad,))

NEUTRAL = Claim(
    id="mamba/neutral-step",
    title="a token with Δ = 0 changes nothing in the state, whatever else it holds: padding is neutral after softplus, not before",
    statement=padding,
    sources=(
        Source(
            MAMBA, "section 3.5.2: Δ → 0 ignores an input and keeps the state", "exactly 0; softplus never is, so a mask comes after it"
        ),
    ),
    proof=Each(
        (
            Direct((Unfold(H[s]), Given(pad.name)), "e⁰ is the identity, and nothing is written"),
            Direct((Unfold(H[s]), Given(pad.name)), "read without a step"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(padding, "any Δ", drop=pad.name),
        variant(padding, "the state two tokens before", neutral(s - 2)),
        variant(
            padding, "the output is that of the token before", Equation(C[s].T * H[s] + D * u[s], C[s - 1].T * H[s - 1] + D * u[s - 1])
        ),
        variant(padding, "u = 0 in the place of Δ = 0", Implies(Equation(u[s], 0), Equation(H[s], H[s - 1])), drop=pad.name),
    ),
)

CLAIMS = (LTI, NEUTRAL)
