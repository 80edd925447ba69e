"""What rests in continuous time rests after a step of every rule but one: a constant input has the gain of x' = A x + B u."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, Statement
from ..kernel.scripts import Chain, Direct, Each, Exists, Given, Lemma, Link, Using
from ..kernel.terms import Block, Inverse, Term, Zero, scalar, vector
from .first_order import FRANKLIN
from .generalized import gbt_A, gbt_B, pencil
from .hold import zoh_A, zoh_B
from .operators import FOH_OPERATOR, GU, IMPULSE_OPERATOR, MAMBA, ZOH_OPERATOR, A, B, N, delta, held_integral, m

x, u = vector("x", N), vector("u", m)
rest = Assumption("A x + B u = 0", Equation(A * x + B * u, Zero(N, 1)), solve={x: -(Inverse(A) * B * u)})
exists = Assumption("1 is no eigenvalue of αΔA", Invertible(pencil))


def step(Abar: Term, Bbar: Term) -> Term:
    """The state after a step from x with the input u."""
    return Abar * x + Bbar * u


def stays(held: Term, start: Term = u) -> Formula:
    """A step leaves x where it is: zero-order hold, any generalised bilinear rule, first-order hold."""
    return And(
        Equation(held, x),
        Invertible(pencil),
        Equation(step(gbt_A, gbt_B), x),
        Equation(FOH_OPERATOR.output * Block((x,), (start,), (u,)), x),
    )


held = step(zoh_A, zoh_B)
steady = Statement(stays(held), assumptions=(rest, exists))
no_slope = {"x0": ((), x), "u0": ((), u), "v": ((), Zero(m, 1))}
on_a_line = Using(Lemma("discretization/first-order-hold", part=1, families=no_slope))
at_rest = (
    Using(Given(rest.name), left=held_integral()),
    Using(Lemma("discretization/exponential-moments", part=0), left=-1, right=x),
)

STEADY = Claim(
    id="discretization/steady-state",
    title="where A x + B u = 0, a step with the input u leaves x where it is: both holds and every generalised bilinear rule keep the "
    "gain for constant inputs",
    statement=steady,
    sources=(
        Source(MAMBA, "equation 4", "for every A"),
        Source(GU, "equation 3", "α = ½; α = 0 and 1 are Euler's rules"),
        Source(FRANKLIN, "section 6.3, holds"),
    ),
    proof=Each(
        (
            Direct(at_rest, "∫ e^{sA} ds A = e^{ΔA} - I"),
            Exists(),
            Direct((Using(Given(rest.name), left=delta * Inverse(pencil)),), "ΔB u = -ΔA x"),
            Chain((Link(held, (on_a_line,), "a line without slope"),), at_rest, "the input is held"),
        )
    ),
    operator=ZOH_OPERATOR,
    near_misses=(
        variant(steady, "any state", drop=rest.name),
        variant(steady, "1 is an eigenvalue of αΔA", drop=exists.name, at={N: 1, A: 1, scalar("alpha"): 1, delta: 1}),
        variant(steady, "impulse invariance", stays(step(*IMPULSE_OPERATOR.output.grid[0]))),
        variant(steady, "an input that rises to u", stays(held, Zero(m, 1))),
    ),
)

CLAIMS = (STEADY,)
