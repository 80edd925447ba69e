"""One write: the memory fades, then the error that is read from what is left of it is corrected."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..delta_rule.operator import H0, beta, d_k, d_v, k, t, v
from ..delta_rule.operator import H as DELTA
from ..delta_rule.update import E, corrected, gradient, inner, slope
from ..kernel.formulas import And, Equation, ForAll, Formula, Implies, Statement
from ..kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Lemma, Suppose, Unfold, Using
from ..kernel.terms import Prod, Term, indices, le, matrix, recurrence
from .operator import DECLARATION, YANG, H, gamma

GOOSE = "Peng et al., RWKV-7 Goose with Expressive Dynamic State Evolution, arXiv 2503.14456"

n, r, N = indices("n r N")
faded = gamma[t] * H[t - 1]


def error(state: Term) -> Term:
    """What a state recalls by k_t, less v_t."""
    return state * k[t] - v[t]


def write(state: Term = faded, read: Term = faded, size: Term = beta[t]) -> Formula:
    """A state after one correction of what is read, and as a step against the gradient."""
    return And(
        Equation(H[t], corrected(state, size, error(read), k[t])),
        Equation(slope(read, E), inner(gradient(read), E)),
        Equation(H[t], state - size * gradient(read)),
    )


update = Statement(write(), le(1, t))
at_faded = Lemma("delta-rule/gradient-step", part=0, at={t: t}, families={"X": ((), faded)})

UPDATE = Claim(
    id="gated-delta-rule/update",
    title="the memory fades, then takes one gradient step of size β on the error of what is left of it",
    statement=update,
    sources=(Source(YANG, "the gated delta rule as an online update", "there the fading is a weight decay"),),
    proof=Each(
        (
            Direct((Unfold(H[t]),), "the transition distributes over the faded memory"),
            Direct((Using(at_faded),), "the gradient of the recall error, at the faded memory"),
            Direct((Unfold(H[t]),), "the error is in the gradient"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(update, "the error is read before the memory fades", write(read=H[t - 1])),
        variant(update, "corrected, and nothing fades", write(state=H[t - 1], read=H[t - 1])),
        variant(update, "the correction fades too", write(size=gamma[t] * beta[t])),
    ),
)

# The other order ----------------------------------------------------------------------------------

X = matrix("X", d_v, d_k)


def reading_before(at: Term, state: Term) -> Term:
    """A state after one step whose error is read before the memory fades."""
    return gamma[at] * state - beta[at] * (state * k[at] - v[at]) * k[at].T


before = recurrence("C", H0, lambda t, C: reading_before(t, C))
gated = gamma[t] * X - beta[t] * (gamma[t] * X * k[t] - v[t]) * k[t].T
erased = (1 - gamma[t]) * beta[t] * X * k[t] * k[t].T
apart = Equation(reading_before(t, X), gated - erased)
no_fading = ForAll(Equation(gamma[r], 1), r, 1, N)
same = Equation(before[n], H[n])
agree = Implies(no_fading, same)
read_before = Statement(And(apart, agree), le(1, t) & le(0, n) & le(n, N))

READ_BEFORE = Claim(
    id="gated-delta-rule/undecayed-read",
    title="an error that is read before the memory fades is another rule: it erases more, by (1 - γ)βHkkᵀ; at γ = 1 they agree",
    statement=read_before,
    sources=(
        Source(YANG, "the gated delta rule", "the error is read from the faded memory"),
        Source(GOOSE, "the state evolution", "there it is read from the memory before it fades"),
    ),
    proof=Each(
        (
            Direct(note="both steps, from one memory"),
            Suppose(Induction(n, Direct(note="the same start"), Direct((Hypothesis(), Given("premise")), "nothing fades"))),
        )
    ),
    expected="refuted",
    as_written=Statement(same, le(0, n)),
    near_misses=(
        variant(read_before, "it erases less", And(Equation(reading_before(t, X), gated + erased), agree)),
        variant(read_before, "any fading", And(apart, same)),
    ),
)

# Special gates and rates --------------------------------------------------------------------------

no_write = ForAll(Equation(beta[r], 0), r, 1, N)
is_delta = Implies(no_fading, Equation(H[n], DELTA[n]))
only_fades = Equation(H[n], Prod(gamma[r], r, 1, n) * H0)
limits = Statement(And(is_delta, Implies(no_write, only_fades)), le(0, n) & le(n, N))


def stepwise(note: str) -> Suppose:
    """By induction, with what is supposed of every step."""
    return Suppose(Induction(n, Direct(note="the same start"), Direct((Hypothesis(), Given("premise")), note)))


LIMITS = Claim(
    id="gated-delta-rule/limits",
    title="gates 1 are the delta rule; at rate 0 the memory only fades",
    statement=limits,
    sources=(Source(YANG, "the gated delta rule", "α_t → 1 is the delta rule; β_t = 0 is not said there"),),
    proof=Each((stepwise("the same update"), stepwise("no write"))),
    operator=DECLARATION,
    near_misses=(
        variant(limits, "any gates are the delta rule", And(is_delta.args[1], limits.conclusion.args[1])),
        variant(limits, "any rate only fades", And(is_delta, only_fades)),
        variant(limits, "the last gate is left out", And(is_delta, Implies(no_write, Equation(H[n], Prod(gamma[r], r, 1, n - 1) * H0)))),
    ),
)

CLAIMS = (UPDATE, READ_BEFORE, LIMITS)
