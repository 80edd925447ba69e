"""One step of the recurrence without a dense matrix: products with Λ, P and Q, and one inverse of size r.

x_k = Ā x_{k-1} + B̄ u_k = A₁ (A₀ x_{k-1} + 2 B u_k)

A₀ = (2/Δ)I + Λ - P Q*        A₁ = D - D P (I + Q* D P)⁻¹ Q* D        D = ((2/Δ)I - Λ)⁻¹
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, NonZero, Statement
from ..kernel.scripts import Cancels, Chain, Direct, Each, Exists, Lemma, Link, Part, UniqueInverse, Using
from ..kernel.terms import Inverse, Term, named, vector
from .low_rank import capacity, corrected, small_inverse
from .systems import (
    GU,
    HALF,
    B,
    Lambda,
    N,
    P,
    Q,
    bilinear_A,
    bilinear_B,
    delta,
    has_rule,
    identity,
    low_rank,
    m,
    moving,
    pencil,
    two,
)

rate = two / delta
forward = named("A0", rate * identity + Lambda - P * Q.H)
backward = named("A1", corrected(rate))
whole = rate * identity - low_rank
x, u = vector("x", N, "complex"), vector("u", m, "complex")


def stepped(back: Term = backward, ahead: Term = forward, write: Term = two * B) -> Formula:
    """All that is divided by exists; what the bilinear rule divides by is inverted, and a step is one with A₀ and A₁."""
    return And(
        NonZero(delta),
        Invertible(pencil(low_rank)),
        Invertible(rate * identity - Lambda),
        Invertible(rate * identity - low_rank),
        Invertible(capacity(rate)),
        Equation(Inverse(pencil(low_rank)), rate * Inverse(whole)),
        Equation(Inverse(pencil(low_rank)), rate * back),
        Equation(bilinear_A(low_rank) * x + bilinear_B(low_rank) * u, back * (ahead * x + write * u)),
    )


off_diagonal = Assumption("2/Δ is no eigenvalue of Λ", Invertible(pencil(Lambda)))
step = Statement(stepped(), assumptions=(moving, off_diagonal, has_rule(low_rank)))
woodbury = Using(Lemma("s4/low-rank-resolvent", part=2, families={"c": ((), rate)}), left=rate)


def at_rate(of: Term) -> Exists:
    """The resolvent at 2/Δ exists."""
    return Exists(inverse=HALF * delta * Inverse(pencil(of)), by=(Using(Cancels(pencil(of))),))


STEP = Claim(
    id="s4/dplr-step",
    title="for A = Λ - P Q*, the step A₁ (A₀ x + 2 B u), which needs no dense matrix, is the bilinear step Ā x + B̄ u",
    statement=step,
    sources=(Source(GU, "appendix C.2, the recurrent view", "O(N) operations for r = 1 and a diagonal Λ; any rank r here"),),
    proof=Each(
        (
            Exists(),
            Exists(),
            at_rate(Lambda),
            at_rate(low_rank),
            small_inverse(rate),
            UniqueInverse((Using(Cancels(whole)),)),
            Chain((Link(rate * Inverse(whole), (Using(Part(6)),), "I - ½ΔA = ½Δ((2/Δ)I - A)"),), (woodbury,), "Woodbury's identity at 2/Δ"),
            Direct(
                (Using(Part(7), right=(identity + HALF * delta * low_rank) * x + delta * B * u),),
                "times I + ½ΔA = ½Δ A₀ and times ΔB",
            ),
        )
    ),
    near_misses=(
        variant(step, "no step", drop="Δ ≠ 0"),
        variant(step, "2/Δ is an eigenvalue of Λ", drop=off_diagonal.name),
        variant(step, "2/Δ is an eigenvalue of A", drop=has_rule(low_rank).name),
        variant(step, "the correction added", stepped(back=corrected(rate, sign=-1))),
        variant(step, "A₀ without the low rank", stepped(ahead=rate * identity + Lambda)),
        variant(step, "B̄ without its factor 2", stepped(write=B)),
    ),
)

CLAIMS = (STEP,)
