"""Impulse invariance: the kernel is the continuous impulse response h(t) = C e^{tA} B, sampled and times Δ."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Part, Unfold
from ..kernel.terms import Exp, Ind, Index, Recurrence, Term, Zero, indices, le, matrix, named, recurrence
from .operators import IMPULSE_OPERATOR, MAMBA, A, B, N, delta, k, m, u, x0

SCIPY = "SciPy, scipy.signal.cont2discrete, method impulse"
OPPENHEIM = "Oppenheim and Schafer, Discrete-Time Signal Processing"

p, l = indices("p l")
C = matrix("C", p, N)
A_bar, B_bar = (named(name, part) for name, part in zip(("Abar", "Bbar"), IMPULSE_OPERATOR.output.grid[0], strict=True))
x = recurrence("x", x0, lambda k, x: A_bar * x + B_bar * u[k])


def response(steps: Index) -> Term:
    """The continuous impulse response after some steps."""
    return named("h", C * Exp(Ind(steps) * delta * A) * B, steps)


def textbook(write: Term) -> Recurrence:
    """SciPy's states: the one at k is there before u_k, the first one before u_1."""
    return recurrence("w", A_bar * x0, lambda k, w: A_bar * w + write * u[k - 1], start=1)


def invariant(w: Recurrence, feed: Term, kernel: Term) -> Formula:
    """The kernel, and the states and outputs of both systems."""
    return And(
        Equation(C * A_bar**l * B_bar, kernel),
        Equation(w[k], A_bar * x[k - 1]),
        Equation(C * w[k] + feed * u[k], C * x[k]),
    )


shifted, feed, kernel = textbook(A_bar * B_bar), C * B_bar, delta * response(l)
impulse = Statement(invariant(shifted, feed, kernel), le(1, k) & le(0, l))

IMPULSE = Claim(
    id="discretization/impulse-invariance",
    title="(e^{ΔA}, ΔB), read after the update, has the kernel Δ h(lΔ), and the outputs of SciPy's (e^{ΔA}, e^{ΔA} B Δ, C, C B Δ)",
    statement=impulse,
    sources=(
        Source(MAMBA, "its released code: B̄ = ΔB"),
        Source(SCIPY, "the textbook's index; D = 0"),
        Source(OPPENHEIM, "filter design by impulse invariance"),
    ),
    proof=Each(
        (
            Direct(note="e^{ΔA} to the l-th power"),
            Induction(k, Direct(note="before the first input"), Direct((Hypothesis(),), "one more step"), start=1),
            Direct((Part(2), Unfold(x[k])), "what is missing in the state is fed through"),
        )
    ),
    operator=IMPULSE_OPERATOR,
    near_misses=(
        variant(impulse, "the same pair in both indices", invariant(textbook(B_bar), feed, kernel)),
        variant(impulse, "nothing fed through", invariant(shifted, Zero(p, m), kernel)),
        variant(impulse, "the impulse response itself", invariant(shifted, feed, response(l)), at={N: 1, m: 1, p: 1, delta: 2}),
        variant(impulse, "one step late", invariant(shifted, feed, delta * response(l + 1))),
    ),
)

CLAIMS = (IMPULSE,)
