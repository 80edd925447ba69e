"""The generating function at every node, z = -1 among them: nothing is divided by 1 + z.

    C̃ (I - zĀ)⁻¹ B̄ = Δ C̃ ((1-z)I - wA)⁻¹ B        w = ½Δ(1+z)

At z = e^{-iθ}, 1 - z and 1 + z are 2i sin ½θ and 2 cos ½θ, both times e^{-iθ/2}.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Invertible, Statement
from ..kernel.scripts import Cancels, Chain, Direct, Each, Exists, Lemma, Link, Part, Using
from ..kernel.terms import Eye, Inverse, Term, named
from .low_rank import half_step, inverse_of, off, resolvent_of, scaled
from .systems import GU, A, B, C_tilde, Lambda, P, Q, bilinear_A, delta, has_rule, identity, low_rank, m, one, pencil, r, z

w = named("w", half_step)


def everywhere(scale: Term = delta, sign: int = 1) -> Formula:
    """The inverse of I - zĀ, and the discrete resolvent as a continuous one."""
    return And(
        Invertible(pencil(A)),
        Invertible(scaled(A)),
        Equation((identity - z * bilinear_A(A)) * inverse_of(A), identity),
        Invertible(identity - z * bilinear_A(A)),
        Equation(resolvent_of(A), scale * (C_tilde * Inverse((one - sign * z) * identity - half_step * A) * B)),
    )


off_A = off(A, "A")
at_nodes = Statement(everywhere(), assumptions=(has_rule(A), off_A))

NODES = Claim(
    id="s4/resolvent-at-nodes",
    title="C̃ (I - zĀ)⁻¹ B̄ = Δ C̃ ((1-z)I - ½Δ(1+z)A)⁻¹ B for every z, -1 included",
    statement=at_nodes,
    sources=(Source(GU, "appendix C.3, the resolvent of the bilinear Ā", "before numerator and denominator are divided by 1 + z"),),
    proof=Each(
        (
            Exists(),
            Exists(),
            Direct(note="(I - ½ΔA)(I - zĀ) = (1-z)I - ½Δ(1+z)A"),
            Exists(inverse=inverse_of(A), by=(Using(Part(3)),)),
            Direct(note="both sides are rational functions of A between C̃ and B"),
        )
    ),
    near_misses=(
        variant(at_nodes, "2/Δ is an eigenvalue of A", drop=has_rule(A).name, at={m: 1}),
        variant(at_nodes, "g is an eigenvalue of A", drop=off_A.name),
        variant(at_nodes, "½Δ for Δ", everywhere(half_step)),
        variant(at_nodes, "1 + z for 1 - z", everywhere(sign=-1)),
    ),
)

# Diagonal plus low rank ---------------------------------------------------------------------------

whole = (one - z) * identity - (w * Lambda - w * P * Q.H)
resolvent = named("R", Inverse(scaled(Lambda)))
k_00, k_01 = named("k00", C_tilde * resolvent * B), named("k01", C_tilde * resolvent * P)
k_10, k_11 = named("k10", Q.H * resolvent * B), named("k11", Q.H * resolvent * P)
small = Eye(r) + w * k_11
four = k_00 - w * k_01 * Inverse(small) * k_10


def structured(value: Term) -> Formula:
    """All that is divided by exists, and C̃ (I - zĀ)⁻¹ B̄ has this value."""
    return And(
        Invertible(pencil(low_rank)),
        Invertible(scaled(Lambda)),
        Invertible(whole),
        Invertible(identity - z * bilinear_A(low_rank)),
        Invertible(small),
        Equation(resolvent_of(low_rank), delta * value),
    )


woodbury = Statement(structured(four), assumptions=(has_rule(low_rank), off(Lambda, "Λ"), off(low_rank, "A")))
low_rank_A = {"A": ((), low_rank)}
at_z = {"c": ((), one - z), "Lambda": ((), w * Lambda), "P": ((), w * P)}

WOODBURY = Claim(
    id="s4/woodbury-at-nodes",
    title="for A = Λ - P Q*, at every z: C̃ (I - zĀ)⁻¹ B̄ = Δ [k00 - w k01 (I + w k11)⁻¹ k10], w = ½Δ(1+z), -1 included",
    statement=woodbury,
    sources=(Source(GU, "appendix C.3 and algorithm 1", "without dividing by 1 + z: four Cauchy sums with denominators 1 - z - wλ"),),
    proof=Each(
        (
            Exists(),
            Exists(),
            Exists(),
            Exists(inverse=inverse_of(low_rank), by=(Using(Lemma("s4/resolvent-at-nodes", part=2, families=low_rank_A)),)),
            Exists(
                inverse=Eye(r) - Q.H * Inverse(whole) * (w * P),
                by=(Using(Cancels(whole), left=-Q.H * resolvent, right=w * P),),
            ),
            Chain(
                (
                    Link(
                        delta * (C_tilde * Inverse(scaled(low_rank)) * B),
                        (Using(Lemma("s4/resolvent-at-nodes", part=4, families=low_rank_A)),),
                        "the resolvent of Ā by that of A",
                    ),
                ),
                (Using(Lemma("s4/low-rank-resolvent", part=2, families=at_z), left=delta * C_tilde, right=B),),
                "Woodbury's identity",
            ),
        )
    ),
    near_misses=(
        variant(woodbury, "2/Δ is an eigenvalue of A", drop=has_rule(low_rank).name),
        variant(woodbury, "g is an eigenvalue of Λ", drop="g is no eigenvalue of Λ"),
        variant(woodbury, "g is an eigenvalue of A", drop="g is no eigenvalue of A"),
        variant(woodbury, "w left out", structured(k_00 - k_01 * Inverse(small) * k_10)),
        variant(woodbury, "the correction without its inverse", structured(k_00 - w * k_01 * k_10)),
        variant(woodbury, "the correction added", structured(k_00 + w * k_01 * Inverse(small) * k_10)),
    ),
)

CLAIMS = (NODES, WOODBURY)
