"""A state matrix that is diagonal plus low rank, through Woodbury's identity.

A = Λ - P Q*        (cI - A)⁻¹ = R - R P (I + Q* R P)⁻¹ Q* R        R = (cI - Λ)⁻¹
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, NonZero, Statement
from ..kernel.scripts import Cancels, Chain, Direct, Each, Exists, Lemma, Link, Part, UniqueInverse, Using
from ..kernel.terms import (
    Eye,
    Inverse,
    Term,
    named,
    scalar,
)
from .systems import (
    GU,
    HALF,
    A,
    B,
    C_tilde,
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
    one,
    pencil,
    r,
    two,
    z,
)

HAGER = "Hager, Updating the Inverse of a Matrix, SIAM Review 31 (1989)"

# The resolvent of A from that of Λ ----------------------------------------------------------------

c = scalar("c", "complex")


def of_diagonal(at: Term) -> Term:
    """The resolvent of Λ."""
    return named("R", Inverse(at * identity - Lambda))


def capacity(at: Term) -> Term:
    """The r x r matrix that is inverted in the place of the N x N one."""
    return Eye(r) + Q.H * of_diagonal(at) * P


def corrected(at: Term, sign: int = 1) -> Term:
    """Woodbury's identity: the resolvent of Λ and a correction of rank r."""
    resolvent = of_diagonal(at)
    return resolvent - sign * resolvent * P * Inverse(capacity(at)) * Q.H * resolvent


def off_diagonal(at: Term) -> Assumption:
    """The resolvent of Λ has a value."""
    return Assumption("no eigenvalue of Λ", Invertible(at * identity - Lambda))


def off_spectrum(at: Term) -> Assumption:
    """The resolvent of A has a value."""
    return Assumption("no eigenvalue of A", Invertible(at * identity - low_rank))


def small_inverse(at: Term) -> Exists:
    """The r x r matrix has an inverse, since A's resolvent exists."""
    whole = at * identity - low_rank
    return Exists(
        inverse=Eye(r) - Q.H * Inverse(whole) * P,
        by=(Using(Cancels(whole), left=-Q.H * of_diagonal(at), right=P),),
    )


def resolves(value: Term) -> Formula:
    """The small inverse exists, and the resolvent of A has this value."""
    return And(Invertible(c * identity - Lambda), Invertible(capacity(c)), Equation(Inverse(c * identity - low_rank), value))


resolved = Statement(resolves(corrected(c)), assumptions=(off_diagonal(c), off_spectrum(c)))

RESOLVENT = Claim(
    id="s4/low-rank-resolvent",
    title="Woodbury: the resolvent of Λ - P Q* is that of Λ and a correction of rank r; it exists where an r x r inverse does",
    statement=resolved,
    sources=(Source(GU, "appendix C.3, Woodbury's identity", "any rank r, any Λ"), Source(HAGER, "section 1")),
    proof=Each(
        (
            Exists(),
            small_inverse(c),
            UniqueInverse((Using(Cancels(capacity(c)), left=-P, right=Q.H * of_diagonal(c)),)),
        )
    ),
    near_misses=(
        variant(resolved, "c is an eigenvalue of Λ", drop="no eigenvalue of Λ"),
        variant(resolved, "c is an eigenvalue of A", drop="no eigenvalue of A"),
        variant(resolved, "the correction added", resolves(corrected(c, sign=-1))),
        variant(
            resolved,
            "to first order",
            resolves(of_diagonal(c) - of_diagonal(c) * P * Q.H * of_diagonal(c)),
        ),
    ),
)

# From the bilinear Ā to the resolvent of A --------------------------------------------------------

not_minus_one = Assumption("z ≠ -1", NonZero(one + z))
frequency = named("g", two / delta * ((one - z) / (one + z)))
half_step = HALF * delta * (one + z)
factor = two / (one + z)


def scaled(of: Term) -> Term:
    """gI - A times ½Δ(1+z), which has a value everywhere."""
    return (one - z) * identity - half_step * of


def off(of: Term, name: str) -> Assumption:
    """Where g exists it is no eigenvalue."""
    return Assumption(f"g is no eigenvalue of {name}", Invertible(scaled(of)))


def inverse_of(of: Term) -> Term:
    """The inverse of I - zĀ."""
    return Inverse(scaled(of)) * pencil(of)


def resolvent_of(of: Term) -> Term:
    """C̃ (I - zĀ)⁻¹ B̄ for a state matrix."""
    return C_tilde * Inverse(identity - z * bilinear_A(of)) * bilinear_B(of)


def at_frequency(of: Term) -> Exists:
    """The resolvent at g exists."""
    return Exists(inverse=half_step * Inverse(scaled(of)), by=(Using(Cancels(scaled(of))),))


def continuous(of: Term, at: Term = frequency, scale: Term = factor) -> Formula:
    """All that is divided by exists; the inverse of I - zĀ, and the discrete resolvent as a continuous one."""
    return And(
        NonZero(delta),
        NonZero(one + z),
        Invertible(pencil(of)),
        Invertible(scaled(of)),
        Equation((identity - z * bilinear_A(of)) * inverse_of(of), identity),
        Invertible(identity - z * bilinear_A(of)),
        Invertible(frequency * identity - of),
        Equation(resolvent_of(of), scale * (C_tilde * Inverse(at * identity - of) * B)),
    )


off_A = off(A, "A")
transformed = Statement(continuous(A), assumptions=(moving, not_minus_one, has_rule(A), off_A))

BILINEAR = Claim(
    id="s4/bilinear-resolvent",
    title="C̃ (I - zĀ)⁻¹ B̄ = 2/(1+z) C̃ (gI - A)⁻¹ B with g = (2/Δ)(1-z)/(1+z), for the bilinear Ā and B̄",
    statement=transformed,
    sources=(Source(GU, "appendix C.3, the resolvent of the bilinear Ā", "any A"),),
    proof=Each(
        (
            Exists(),
            Exists(),
            Exists(),
            Exists(),
            Direct(note="(I - ½ΔA)(I - zĀ) = (1-z)I - ½Δ(1+z)A"),
            Exists(inverse=inverse_of(A), by=(Using(Part(5)),)),
            at_frequency(A),
            Direct(note="both sides are rational functions of A between C̃ and B"),
        )
    ),
    near_misses=(
        variant(transformed, "no step", drop="Δ ≠ 0"),
        variant(transformed, "z = -1", drop="z ≠ -1"),
        variant(transformed, "2/Δ is an eigenvalue of A", drop=has_rule(A).name, at={m: 1}),
        variant(transformed, "g is an eigenvalue of A", drop=off_A.name, at={N: 1, A: 1, delta: 1, z: Fraction(1, 3)}),
        variant(transformed, "numerator and denominator of g swapped", continuous(A, two / delta * ((one + z) / (one - z)))),
        variant(transformed, "Δ as a factor", continuous(A, scale=delta * factor)),
    ),
)


def at_minus_one(value: Term) -> Formula:
    """At z = -1, where 2/(1+z) has no value, the resolvent of Ā does."""
    return And(
        Invertible(pencil(A)),
        Invertible(identity + bilinear_A(A)),
        Equation(C_tilde * Inverse(identity + bilinear_A(A)) * bilinear_B(A), value),
    )


limit = Statement(at_minus_one(HALF * delta * C_tilde * B), assumptions=(has_rule(A),))

MINUS_ONE = Claim(
    id="s4/node-minus-one",
    title="at z = -1, a node for every even L, the generating function is ½Δ C̃ B",
    statement=limit,
    sources=(Source(GU, "appendix C.3, the resolvent of the bilinear Ā", "its formula divides by 1 + z; this is its limit"),),
    proof=Each((Exists(), Exists(inverse=HALF * pencil(A)), Direct(note="(I - ½ΔA)(I + Ā) = 2I"))),
    near_misses=(
        variant(limit, "2/Δ is an eigenvalue of A", drop=has_rule(A).name, at={m: 1}),
        variant(limit, "Δ in the place of ½Δ", at_minus_one(delta * C_tilde * B)),
        variant(limit, "the resolvent left out", at_minus_one(C_tilde * bilinear_B(A))),
    ),
)

# Both together ------------------------------------------------------------------------------------


def between(x: Term, y: Term) -> Term:
    """The resolvent of Λ at g between two matrices."""
    return x * of_diagonal(frequency) * y


k_00, k_01 = named("k00", between(C_tilde, B)), named("k01", between(C_tilde, P))
k_10, k_11 = named("k10", between(Q.H, B)), named("k11", between(Q.H, P))
small = Eye(r) + k_11


def structured(value: Term, scale: Term = factor) -> Formula:
    """All that is divided by exists, and C̃ (I - zĀ)⁻¹ B̄ has this value."""
    return And(
        NonZero(delta),
        NonZero(one + z),
        Invertible(pencil(low_rank)),
        Invertible(identity - z * bilinear_A(low_rank)),
        Invertible(frequency * identity - Lambda),
        Invertible(frequency * identity - low_rank),
        Invertible(small),
        Equation(resolvent_of(low_rank), scale * value),
    )


four = k_00 - k_01 * Inverse(small) * k_10
off_both = (off(Lambda, "Λ"), off(low_rank, "A"))
woodbury = Statement(structured(four), assumptions=(moving, not_minus_one, has_rule(low_rank), *off_both))
low_rank_A = {"A": ((), low_rank)}

WOODBURY = Claim(
    id="s4/woodbury",
    title="for A = Λ - P Q*, bilinear: C̃ (I - zĀ)⁻¹ B̄ = 2/(1+z) [k00 - k01 (I + k11)⁻¹ k10], the resolvent of Λ at g alone",
    statement=woodbury,
    as_written=Statement(woodbury.conclusion, assumptions=(moving,)),
    as_written_at={z: -1, r: 1, P: 1, Q: 1},
    expected="qualified",
    sources=(Source(GU, "appendix C.3 and algorithm 1", "there r = 1, and z = -1 is a node for every even L: see s4/node-minus-one"),),
    proof=Each(
        (
            Exists(),
            Exists(),
            Exists(),
            Exists(inverse=inverse_of(low_rank), by=(Using(Lemma("s4/bilinear-resolvent", part=4, families=low_rank_A)),)),
            at_frequency(Lambda),
            at_frequency(low_rank),
            small_inverse(frequency),
            Chain(
                (
                    Link(
                        factor * (C_tilde * Inverse(frequency * identity - low_rank) * B),
                        (Using(Lemma("s4/bilinear-resolvent", part=7, families=low_rank_A)),),
                        "the resolvent of Ā by that of A",
                    ),
                ),
                (Using(Lemma("s4/low-rank-resolvent", part=2, families={"c": ((), frequency)}), left=factor * C_tilde, right=B),),
                "Woodbury's identity at g",
            ),
        )
    ),
    near_misses=(
        variant(woodbury, "no step", drop="Δ ≠ 0"),
        variant(woodbury, "z = -1", drop="z ≠ -1"),
        variant(woodbury, "2/Δ is an eigenvalue of A", drop=has_rule(low_rank).name),
        variant(woodbury, "g is an eigenvalue of Λ", drop="g is no eigenvalue of Λ"),
        variant(woodbury, "g is an eigenvalue of A", drop="g is no eigenvalue of A"),
        variant(woodbury, "A = Λ + P Q*", structured(k_00 + k_01 * Inverse(small) * k_10)),
        variant(woodbury, "the correction without its inverse", structured(k_00 - k_01 * k_10)),
        variant(woodbury, "the factor 2/(1+z) left out", structured(four, one), at={r: 1}),
    ),
)

CLAIMS = (RESOLVENT, BILINEAR, MINUS_ONE, WOODBURY)
