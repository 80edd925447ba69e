"""First-order hold: the input runs along a line during the step.

x' = Ā x_0 + (Γ₁ - Γ₂) u_0 + Γ₂ u_1, with Γ₁ = ∫₀¹ e^{(1-r)ΔA} dr ΔB and Γ₂ = ∫₀¹ r e^{(1-r)ΔA} dr ΔB
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Hypothesis, Induction, Lemma, Link, Ode, Part, Using
from ..kernel.terms import (
    Block,
    Exp,
    Eye,
    Ind,
    Index,
    Integral,
    Num,
    Recurrence,
    Sum,
    Term,
    Zero,
    indices,
    le,
    matrix,
    named,
    recurrence,
    scalar,
    vector,
    vectors,
)
from .operators import FOH_OPERATOR, VAN_LOAN, A, B, N, delta, ends, identity, k, m, ramp, x0

FRANKLIN = "Franklin, Powell, Workman, Digital Control of Dynamic Systems"

# A line is a state of its own ---------------------------------------------------------------------

t, r = scalar("t"), scalar("r")


def since(weight: Term, at: Term = t) -> Term:
    """What a weighted input of the step up to a time makes, the time in steps."""
    return Integral(weight * Exp((at - r) * delta * A), r, 0, at) * (delta * B)


def flow(slope: Term) -> Term:
    """The blocks of e^{tM}, M that of the operator."""
    one, none = Eye(m), Zero(m, m)
    return Block(
        (Exp(t * delta * A), since(Num(1)), since(slope)),
        (Zero(m, N), one, t * one),
        (Zero(m, N), none, one),
    )


u0, v, tau = vector("u0", m), vector("v", m), scalar("tau")
start = Block((x0,), (u0,), (delta * v,))


def solved(span: Term, weight: Term = tau) -> Term:
    """The exact state after some time, from x_0, for the input u_0 + τ v; see state-space/solution."""
    line = u0 + weight * v
    return Exp(span * A) * x0 + Integral(Exp((span - tau) * A) * B * line, tau, 0, span)


def carried(state: Term) -> Term:
    """The state, the input and what it gains in a step, after t steps."""
    return Block((state,), (u0 + t * delta * v,), (delta * v,))


def rising(slope: Term, state: Term) -> Formula:
    """The exponential by its blocks, and by what it makes of a state and a line."""
    return And(Equation(Exp(t * ramp), flow(slope)), Equation(Exp(t * ramp) * start, carried(state)))


moving = solved(t * delta)
blocks = Statement(rising(r, moving))

BLOCKS = Claim(
    id="discretization/ramp-blocks",
    title="the exponential of t [[ΔA, ΔB, 0], [0, 0, I], [0, 0, 0]], and that it runs x' = A x + B u for an input on a line",
    statement=blocks,
    sources=(
        Source(VAN_LOAN, "theorem 1", "three blocks; no division by Δ: the slope is per step"),
        Source(FRANKLIN, "section 6.3.2", "the triangle hold"),
    ),
    proof=Each((Ode(t, matrix=ramp), Ode(t, matrix=ramp))),
    near_misses=(
        variant(blocks, "a line that falls", rising(t - r, moving)),
        variant(blocks, "a line that stays where it is", rising(Num(1), moving)),
        variant(blocks, "the slope taken per step, the time not", rising(r, solved(t * delta, tau * delta))),
    ),
)

# One step -----------------------------------------------------------------------------------------

now = Num(1)
gamma_1, gamma_2 = named("Gamma1", since(Num(1), now)), named("Gamma2", since(r, now))
top = Block((identity, Zero(N, m), Zero(N, m)))


def line(first: Term = gamma_1 - gamma_2, second: Term = gamma_2, end: Term = u0 + delta * v) -> Formula:
    """The operator by its blocks; and what it makes of a state and both ends of the line."""
    return And(
        Equation(FOH_OPERATOR.output, Block((Exp(delta * A), first, second))),
        Equation(FOH_OPERATOR.output * Block((x0,), (u0,), (end,)), solved(delta)),
    )


hold = Statement(line())
at_one = {"t": ((), now)}
block_row = Lemma("discretization/ramp-blocks", part=0, families=at_one)
whole_step = Lemma("discretization/ramp-blocks", part=1, families=at_one)

HOLD = Claim(
    id="discretization/first-order-hold",
    title="first-order hold is exact for an input that runs from u_0 along a line to u_1: x' = e^{ΔA} x_0 + (Γ₁ - Γ₂) u_0 + Γ₂ u_1",
    statement=hold,
    sources=(Source(FRANKLIN, "section 6.3.2", "for every A and every Δ"), Source("SciPy, scipy.signal.lsim", "interp=True")),
    proof=Each(
        (
            Chain(
                (Link(top * flow(r).subs({t: now}) * ends, (block_row,), "the exponential, block by block"),), note="its first block row"
            ),
            Direct((Using(whole_step, left=top),), "u_1 - u_0 is the slope"),
        )
    ),
    operator=FOH_OPERATOR,
    near_misses=(
        variant(hold, "the ends swapped", line(gamma_2, gamma_1 - gamma_2)),
        variant(hold, "the first input held", line(gamma_1, Zero(N, m))),
        variant(hold, "the slope is that of a step", line(end=u0 + v)),
    ),
)

# Sample after sample, and SciPy's system ----------------------------------------------------------

# The input runs from u_{k-1} to u_k in step k; SciPy keeps ξ_k = x_k - Γ₂ u_k, which needs only inputs up to k - 1.
i, j, p = indices("i j p")
slopes = vectors("s", m)
C, D = matrix("C", p, N), matrix("D", p, m)
A_bar = named("Abar", Exp(delta * A))


def sample(at: Index) -> Term:
    """The input at the end of a step."""
    return named("u", u0 + delta * Sum(slopes[i], i, 1, at), at)


def step_from(state: Term, at: Index, later: Index) -> Term:
    """A step of the operator, from one sample to a later one."""
    return FOH_OPERATOR.output * Block((state,), (sample(at),), (sample(later),))


run = recurrence("x", x0, lambda k, x: step_from(x, k - 1, k))


def scipy_state(write: Term) -> Recurrence:
    """The states of SciPy's system."""
    return recurrence("xi", x0 - gamma_2 * u0, lambda k, xi: A_bar * xi + write * sample(k - 1))


def sampled(slope: Term) -> Term:
    """The solution at kΔ: what every step adds, carried on to kΔ."""
    began = Ind(j - 1) * delta
    input_at = sample(j - 1) + (tau - began) * slope
    added = Integral(Exp((Ind(k) * delta - tau) * A) * B * input_at, tau, began, Ind(j) * delta)
    return Exp(Ind(k) * delta * A) * x0 + Sum(added, j, 1, k)


def samples(exact: Term, xi: Recurrence, feed: Term) -> Formula:
    """The run meets the solution at every kΔ, and SciPy's system has its outputs."""
    return And(
        Equation(run[k], exact),
        Equation(xi[k], run[k] - gamma_2 * sample(k)),
        Equation(C * xi[k] + feed * sample(k), C * run[k] + D * sample(k)),
    )


solution, shifted, feed = sampled(slopes[j]), scipy_state(gamma_1 - gamma_2 + A_bar * gamma_2), D + C * gamma_2
exact = Statement(samples(solution, shifted, feed), le(0, k))
on_line = sample(k) + tau * slopes[k + 1]
one_line = A_bar * run[k] + Integral(Exp((delta - tau) * A) * B * on_line, tau, 0, delta)
put = {"x0": ((), run[k]), "u0": ((), sample(k)), "v": ((), slopes[k + 1])}
between = Block((run[k],), (sample(k),), (sample(k + 1),))
by_blocks = Using(Lemma("discretization/first-order-hold", part=0), left=-1, right=between)

EXACT = Claim(
    id="discretization/foh-exact",
    title="for an input on a line in each step, first-order hold gives x(kΔ) exactly; SciPy's ξ_k = x_k - Γ₂ u_k has its outputs",
    statement=exact,
    sources=(
        Source(FRANKLIN, "section 6.3.2"),
        Source("SciPy, scipy.signal.cont2discrete, method foh", "(e^{ΔA}, Γ₁ - Γ₂ + e^{ΔA} Γ₂, C, D + C Γ₂), textbook index"),
    ),
    proof=Each(
        (
            Induction(
                k,
                Direct(note="the start"),
                Chain(
                    (
                        Link(step_from(run[k], k, k + 1), note="the operator's step"),
                        Link(one_line, (Using(Lemma("discretization/first-order-hold", part=1, families=put)),), "exact on a line"),
                    ),
                    (Hypothesis(),),
                    "one more step: what was added before is carried on",
                ),
            ),
            Induction(k, Direct(note="the start"), Direct((Hypothesis(), by_blocks), "u_k is read one step early")),
            Direct((Part(2),), "what is missing in the state is fed through"),
        )
    ),
    operator=FOH_OPERATOR,
    near_misses=(
        variant(exact, "the inputs held", samples(sampled(Zero(m, 1)), shifted, feed)),
        variant(exact, "the write not shifted", samples(solution, scipy_state(gamma_1), feed)),
        variant(exact, "C and D kept", samples(solution, shifted, D)),
    ),
)

CLAIMS = (BLOCKS, HOLD, EXACT)
