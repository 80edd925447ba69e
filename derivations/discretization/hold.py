"""Zero-order hold: the input stays what it was at the start of the step, or of its end, for the whole step.

B̄ = ∫₀^Δ e^{sA} ds B = (ΔA)⁻¹ (e^{ΔA} - I) ΔB, the latter where A is invertible and Δ ≠ 0
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, NonZero, Statement
from ..kernel.scripts import Chain, Direct, Each, Exists, Hypothesis, Induction, Lemma, Link, Ode, Using
from ..kernel.terms import Block, Exp, Eye, Ind, Integral, Inverse, Sum, Term, Zero, index, le, named, recurrence, scalar, vector
from .operators import GU, MAMBA, NOTE, VAN_LOAN, ZOH_OPERATOR, A, B, N, delta, generator, held_integral, identity, k, m, s, u, x0


def moment(n: int) -> Term:
    """The integral of s^n e^{sA} over a step."""
    return Integral(s**n * Exp(s * A), s, 0, delta)


def moments(constant: Term) -> Formula:
    """A^{n+1} times the n-th moment, for n = 0, 1, 2."""
    return And(
        Equation(A * held_integral(), Exp(delta * A) - constant),
        Equation(A**2 * moment(1), (delta * A - identity) * Exp(delta * A) + constant),
        Equation(A**3 * moment(2), (delta**2 * A**2 - 2 * delta * A + 2 * identity) * Exp(delta * A) - 2 * constant),
    )


# The derivatives by Δ of the two sides are equal, and both sides vanish at Δ = 0.
integrated = Statement(moments(identity))

MOMENTS = Claim(
    id="discretization/exponential-moments",
    title="the integrals of e^{sA}, s e^{sA} and s² e^{sA} over a step, for every A",
    statement=integrated,
    sources=(Source(MAMBA, "equation 4", "its integral without dividing by A; the next two by parts"),),
    proof=Each((Ode(delta), Ode(delta), Ode(delta))),
    near_misses=(
        variant(integrated, "the identity is not subtracted", moments(Zero(N, N))),
        variant(integrated, "an integrand that stays put", Equation(A * held_integral(), delta * A * Exp(delta * A))),
    ),
)


def van_loan_blocks(lower_right: Term, exponent: Term) -> Term:
    """The blocks of the exponential of Δ [[A, B], [0, 0]]."""
    integral = Integral(Exp(exponent), s, 0, delta) * B
    return Block((Exp(delta * A), integral), (Zero(m, N), lower_right))


blocks = van_loan_blocks(Eye(m), s * A)
van_loan = Statement(Equation(Exp(delta * generator), blocks))

VAN_LOAN_CLAIM = Claim(
    id="discretization/van-loan",
    title="e^{ΔA} and the integral of e^{sA} B are blocks of one exponential, for singular A too",
    statement=van_loan,
    sources=(Source(VAN_LOAN, "theorem 1", "the case of two blocks, the lower one 0"),),
    proof=Ode(delta, matrix=generator, by=(Lemma("discretization/exponential-moments"),)),
    near_misses=(
        variant(van_loan, "the lower right block is lost", Equation(Exp(delta * generator), van_loan_blocks(Zero(m, m), s * A))),
        variant(van_loan, "propagated over the whole step", Equation(Exp(delta * generator), van_loan_blocks(Eye(m), delta * A))),
    ),
)


held, tau = vector("u", m), scalar("tau")


def one_step(control: Term) -> Term:
    """The exact state after a step Δ from x_0 with a constant input; see state-space/solution."""
    return Exp(delta * A) * x0 + Integral(Exp((delta - tau) * A) * B * control, tau, 0, delta)


zoh_A = named("Abar", Exp(delta * A))
zoh_B = named("Bbar", held_integral() * B)

held_step = Statement(
    And(
        Equation(one_step(held), zoh_A * x0 + zoh_B * held),
        Equation(ZOH_OPERATOR.output, Block((zoh_A, zoh_B))),
    )
)

HELD = Claim(
    id="discretization/zoh-general",
    title="zero-order hold for every A: B̄ is the integral of e^{sA} B over a step",
    statement=held_step,
    sources=(
        Source(MAMBA, "equation 4", "the integral in the place of (ΔA)⁻¹(e^{ΔA} - I) Δ, which needs A⁻¹"),
        Source(VAN_LOAN, "theorem 1"),
    ),
    proof=Each(
        (
            Direct(note="the held input leaves the integral; s = Δ - τ"),
            Chain(
                (Link(Block((identity, Zero(N, m))) * blocks, (Lemma("discretization/van-loan"),), "the exponential, block by block"),),
                note="its first block row",
            ),
        )
    ),
    operator=ZOH_OPERATOR,
    near_misses=(
        variant(held_step, "the input of a whole step at its end", Equation(one_step(held), zoh_A * x0 + delta * zoh_A * B * held)),
        variant(held_step, "B̄ = ΔB", Equation(one_step(held), zoh_A * x0 + delta * B * held)),
        variant(held_step, "B̄ without A", Equation(ZOH_OPERATOR.output, Block((zoh_A, delta * B)))),
    ),
)


def divided(x: Term) -> Term:
    """B̄ as the papers write it."""
    return Inverse(delta * A) * x * (delta * B)


def zoh_formula(gain: Term) -> Formula:
    """The formula exists, and makes an exact step."""
    return And(Invertible(delta * A), Equation(one_step(held), zoh_A * x0 + gain * held))


regular = Assumption("A is invertible", Invertible(A))
moving = Assumption("Δ ≠ 0", NonZero(delta))
zoh = Statement(zoh_formula(divided(Exp(delta * A) - identity)), assumptions=(regular, moving))

ZOH = Claim(
    id="discretization/zoh",
    title="zero-order hold: Ā = e^{ΔA}, B̄ = (ΔA)⁻¹ (e^{ΔA} - I) ΔB",
    statement=zoh,
    as_written=Statement(zoh.conclusion),
    as_written_at={A: Zero(N, N), delta: 1},
    expected="qualified",
    sources=(
        Source(MAMBA, "equation 4"),
        Source(
            NOTE,
            "discrete representation: Ā = e^{ΔA}, B̄ = (ΔA)⁻¹ (e^{ΔA} - I) · ΔB",
            "undefined for a singular A, where B̄ is not: see zoh-general",
        ),
    ),
    proof=Each(
        (
            Exists(),
            Chain(
                (Link(zoh_A * x0 + zoh_B * held, (Using(Lemma("discretization/zoh-general", part=0)),), "the input is held"),),
                (Using(Lemma("discretization/exponential-moments"), left=Inverse(A), right=B * held),),
                "A times the integral is e^{ΔA} - I; divide by A",
            ),
        )
    ),
    operator=ZOH_OPERATOR,
    near_misses=(
        variant(zoh, "a singular A", drop="A is invertible"),
        variant(zoh, "no step", drop="Δ ≠ 0"),
        variant(zoh, "the identity is not subtracted", zoh_formula(divided(Exp(delta * A)))),
        variant(zoh, "Δ once too often", zoh_formula(delta * divided(Exp(delta * A) - identity))),
    ),
)

# Inputs that are held on every step: the recurrence meets the solution at kΔ.
j = index("j")
first, second = scalar("a"), scalar("b")
zoh_run = recurrence("x", x0, lambda k, x: zoh_A * x + zoh_B * u[k])


def sampled(kernel: Term, last: object = k) -> Term:
    """The solution at kΔ for inputs u_1, u_2, ... held on steps 1, 2, ..."""
    step = Integral(kernel, tau, Ind(j - 1) * delta, Ind(j) * delta)
    return Exp(Ind(k) * delta * A) * x0 + Sum(step * B * u[j], j, 1, last)


def meets(exact: Term) -> Formula:
    """The recurrence at k is the solution at kΔ; two steps in a row are one step."""
    return And(
        Equation(zoh_run[k], exact),
        Equation(Exp((first + second) * A), Exp(second * A) * Exp(first * A)),
        Equation(held_integral(first + second), Exp(second * A) * held_integral(first) + held_integral(second)),
    )


exact = Statement(meets(sampled(Exp((Ind(k) * delta - tau) * A))), le(0, k))

EXACT = Claim(
    id="discretization/zoh-exact",
    title="for an input held on each step, zero-order hold gives x(kΔ) exactly, and steps add up",
    statement=exact,
    sources=(
        Source(MAMBA, "equation 4"),
        Source(GU, "equation 1", "the solution formula, its integral split at the steps"),
    ),
    proof=Each(
        (
            Induction(k, step=Direct((Hypothesis(),), "one more step: the older inputs are propagated by e^{ΔA}")),
            Direct(note="e^{(a+b)A} = e^{bA} e^{aA}"),
            Ode(first),
        )
    ),
    near_misses=(
        variant(exact, "the last step is left out", meets(sampled(Exp((Ind(k) * delta - tau) * A), k - 1))),
        variant(exact, "the kernel not reversed", meets(sampled(Exp(tau * A)))),
        variant(
            exact,
            "the second step's input propagated in the place of the first's",
            Equation(held_integral(first + second), Exp(first * A) * held_integral(first) + held_integral(second)),
        ),
    ),
)

CLAIMS = (MOMENTS, VAN_LOAN_CLAIM, HELD, ZOH, EXACT)
