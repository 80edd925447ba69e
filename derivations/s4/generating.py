"""The kernel by its values at roots of unity: truncated generating functions.

K̂(z) = Σ_{l<L} z^l C Ā^l B̄ = C̃ (I - z Ā)⁻¹ B̄        at z^L = 1, with C̃ = C (I - Ā^L)
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, Statement
from ..kernel.scripts import Cancels, Direct, Each, Exists, Given, Using
from ..kernel.terms import Inverse, Num, Sum, Term, le, named
from ..state_space.operator import Abar, Bbar, C
from .systems import GU, L, identity, l, two, z


def powers(last: Any = L - 1) -> Term:
    """The first powers of zĀ."""
    return Sum(z**l * Abar**l, l, 0, last)


to_L = Abar**L


def sums(last: Any = L - 1, sign: int = 1) -> Formula:
    """A geometric sum times I - zĀ, on either side."""
    factor, rest = identity - z * Abar, identity - sign * z**L * to_L
    return And(Equation(powers(last) * factor, rest), Equation(factor * powers(last), rest))


geometric = Statement(sums(), le(0, L))

GEOMETRIC = Claim(
    id="s4/geometric-sum",
    title="a geometric sum of matrices: (I + zĀ + … + (zĀ)^{L-1}) (I - zĀ) = I - z^L Ā^L, on either side",
    statement=geometric,
    sources=(Source(GU, "appendix C.3, the truncated generating function", "before the division by I - zĀ, which need not exist"),),
    proof=Each((Direct(note="all terms but the first and the last cancel"), Direct(note="all terms but the first and the last cancel"))),
    near_misses=(
        variant(geometric, "one power more", sums(last=L)),
        variant(geometric, "one power less", sums(last=L - 2)),
        variant(geometric, "the last power added", sums(sign=-1)),
    ),
)

# At z^L = 1. The model has z = -1 for even L, and z = 1 for odd ones.
node = Assumption("z^L = 1", Equation(z**L, 1), solve={z: Num(-1) ** (L + 1)})
not_periodic = Assumption("no eigenvalue of Ā is an L-th root of unity", Invertible(identity - to_L))
resolvent, truncation = Inverse(identity - z * Abar), Inverse(identity - to_L)
truncated_C = named("Ctilde", C * (identity - to_L))
K_hat = named("Khat", Sum(z**l * (C * Abar**l * Bbar), l, 0, L - 1), z)
some_taps = le(1, L)


def at_node(kernel: Term, value: Term) -> Formula:
    """I - zĀ has an inverse, and a sum over the kernel is a value of the resolvent."""
    return And(Invertible(identity - z * Abar), Equation(kernel, value))


generated = Statement(at_node(K_hat, truncated_C * resolvent * Bbar), some_taps, (node, not_periodic))
inverse_at_node = Exists(
    inverse=powers() * truncation,
    by=(Using(Given(node.name), left=-1, right=to_L * truncation),),
)

GENERATING = Claim(
    id="s4/generating-function",
    title="at an L-th root of unity, the generating function of L taps is C̃ (I - zĀ)⁻¹ B̄ with C̃ = C (I - Ā^L)",
    statement=generated,
    as_written=Statement(generated.conclusion, some_taps, (node,)),
    expected="qualified",
    sources=(
        Source(GU, "appendix C.3, the truncated generating function at the roots of unity", "that the inverse exists is not said there"),
    ),
    proof=Each(
        (
            inverse_at_node,
            Direct(
                (
                    Using(Cancels(identity - z * Abar), left=-C * powers(), right=Bbar),
                    Using(Given(node.name), left=-C * to_L * resolvent, right=Bbar),
                ),
                "the geometric sum, divided by I - zĀ",
            ),
        )
    ),
    near_misses=(
        variant(generated, "an eigenvalue of Ā is a root of unity", drop=not_periodic.name),
        variant(generated, "z is no root of unity", drop=node.name),
        variant(generated, "C in the place of C̃", at_node(K_hat, C * resolvent * Bbar)),
        variant(generated, "the truncation added", at_node(K_hat, C * (identity + to_L) * resolvent * Bbar)),
        variant(generated, "z in the place of 1/z", at_node(K_hat, truncated_C * Inverse(z * identity - Abar) * Bbar)),
    ),
)

# With C in the place of C̃ all later taps come back, L apart.


def aliased(fold: Term) -> Formula:
    """The resolvent with C itself is a sum over L taps of another kernel."""
    return at_node(C * resolvent * Bbar, Sum(z**l * (C * Abar**l * fold * Bbar), l, 0, L - 1))


folded = Statement(aliased(truncation), some_taps, (node, not_periodic))

ALIASED = Claim(
    id="s4/aliased-kernel",
    title="with C in the place of C̃ the taps are those of the kernel that wraps around: C Ā^l (I - Ā^L)⁻¹ B̄",
    statement=folded,
    sources=(Source(GU, "appendix C.3, the truncated generating function", "what its C̃ is there to prevent"),),
    proof=Each(
        (
            inverse_at_node,
            Direct(
                (
                    Using(Cancels(identity - z * Abar), left=C * truncation * powers(), right=Bbar),
                    Using(Given(node.name), left=C * to_L * truncation * resolvent, right=Bbar),
                ),
                "I = (I - Ā^L)⁻¹ (I - Ā^L), and the geometric sum",
            ),
        )
    ),
    near_misses=(
        variant(folded, "an eigenvalue of Ā is a root of unity", drop=not_periodic.name),
        variant(folded, "z is no root of unity", drop=node.name),
        variant(folded, "nothing wraps around", aliased(identity)),
        variant(folded, "what comes back once only", aliased(identity + to_L)),
    ),
)

# Twice as many taps: nothing is inverted.


def doubled(longer: Term, power: Term) -> Formula:
    """C̃ for 2L taps from that for L, and Ā^{2L} from Ā^L."""
    return And(Equation(C * (identity - Abar ** (2 * L)), longer), Equation(Abar ** (2 * L), power))


doubling = Statement(doubled(truncated_C + truncated_C * to_L, to_L * to_L), le(0, L))

DOUBLING = Claim(
    id="s4/truncation-doubling",
    title="C̃ for twice as many taps is C̃ + C̃ Ā^L",
    statement=doubling,
    sources=(Source(GU, "appendix C.3, C̃ = C (I - Ā^L)", "the released code doubles the length of a kernel in this way"),),
    proof=Each((Direct(note="(I - Ā^L)(I + Ā^L) = I - Ā^{2L}"), Direct())),
    near_misses=(
        variant(doubling, "C̃ as it was", doubled(truncated_C, to_L * to_L)),
        variant(doubling, "C̃ twice", doubled(two * truncated_C, to_L * to_L)),
        NearMiss("subtracted", Statement(doubled(truncated_C - truncated_C * to_L, to_L * to_L), le(0, L))),
    ),
)

CLAIMS = (GEOMETRIC, GENERATING, ALIASED, DOUBLING)
