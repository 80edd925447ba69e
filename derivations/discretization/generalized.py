"""The generalised bilinear rule with parameter α, and how SciPy's system is related to the one that keeps C and D.

    Ā = (I - αΔA)⁻¹ (I + (1-α)ΔA)        B̄ = (I - αΔA)⁻¹ ΔB

α = 0 is Euler's rule, α = ½ the bilinear one, α = 1 backward Euler.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists
from ..kernel.terms import Inverse, Num, Term, index, matrix, named, scalar
from .operators import GU, LSSL, A, B, N, delta, identity, m

ZHANG = "Zhang, Chen, Chen, Digital Redesign via the Generalized Bilinear Transformation, Int. J. Control 82 (2009)"

p = index("p")
one = Num(1)
alpha, zeta = scalar("alpha"), scalar("z", "complex")
C, D = matrix("C", p, N), matrix("D", p, m)
pencil = identity - alpha * delta * A
gbt_A = named("Abar", Inverse(pencil) * (identity + (one - alpha) * delta * A))
gbt_B = named("Bbar", Inverse(pencil) * (delta * B))
resolvent = Inverse(zeta * identity - gbt_A)
ml_response = C * (zeta * resolvent) * gbt_B
scipy_C, scipy_D = C * Inverse(pencil), D + alpha * C * gbt_B
scipy_response = scipy_C * resolvent * gbt_B + scipy_D

no_eigenvalue = Assumption("Ā exists, and z is no eigenvalue of it", And(Invertible(pencil), Invertible(zeta * identity - gbt_A)))
nonzero = Assumption("z ≠ 0", NonZero(zeta))


def related(adapter: Term) -> Formula:
    """All that is divided by exists, and the transfer functions differ by the adapter."""
    return And(
        NonZero(zeta),
        Invertible(pencil),
        Invertible(zeta * identity - gbt_A),
        Equation(scipy_response - D, adapter * ml_response),
    )


gbt = Statement(related(alpha + (one - alpha) / zeta), assumptions=(nonzero, no_eigenvalue))

GBT = Claim(
    id="discretization/gbt-vs-scipy",
    title="SciPy's generalised bilinear system is (α + (1-α)/z) times the one that keeps C and D, up to D",
    statement=gbt,
    sources=(
        Source("SciPy, scipy.signal.cont2discrete, method gbt", "C (I - αΔA)⁻¹ and D + αC B̄, textbook index"),
        Source(LSSL, "equation 3", "the generalised bilinear rule"),
        Source(ZHANG, "section 2", "as SciPy cites it"),
        Source(GU, "equation 3", "keeps C, reads after the update: at α = ½ not Tustin's system"),
    ),
    proof=Each((Exists(), Exists(), Exists(), Direct(note="both sides are rational functions of A between C and B"))),
    near_misses=(
        variant(gbt, "the delay on the wrong side", related(alpha + (one - alpha) * zeta)),
        variant(gbt, "α and 1 - α swapped", related(one - alpha + alpha / zeta)),
        variant(gbt, "no adapter", related(one)),
        variant(gbt, "z = 0", drop="z ≠ 0"),
        variant(gbt, "1 is an eigenvalue of αΔA", drop=no_eigenvalue.name, at={A: 1, N: 1, alpha: 1, delta: 1, zeta: 2}),
        variant(gbt, "z is an eigenvalue of Ā", drop=no_eigenvalue.name, at={A: 1, N: 1, alpha: 0, delta: 1, zeta: 2}),
    ),
)

CLAIMS = (GBT,)
