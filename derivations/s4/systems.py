"""What the claims of this column share: a state matrix that is diagonal plus low rank, and the bilinear rule for it.

A = Λ - P Q*        Ā = (I - ½ΔA)⁻¹ (I + ½ΔA)        B̄ = (I - ½ΔA)⁻¹ ΔB
"""

from __future__ import annotations

from ..discretization.operators import HALF
from ..kernel.formulas import Assumption, Invertible, NonZero
from ..kernel.terms import Eye, Inverse, Num, Term, indices, matrix, named, scalar
from ..state_space.operator import GU, NOTE, N, m, p

DSS = "Gupta, Gu, Berant, Diagonal State Spaces are as Effective as Structured State Spaces, arXiv 2203.14343"
S4D = "Gu, Gupta, Goel, Ré, On the Parameterization and Initialization of Diagonal State Space Models, arXiv 2206.11893"

r, L, l, k, n = indices("r L l k n")
identity = Eye(N)
one, two = Num(1), Num(2)
delta, z = scalar("Delta"), scalar("z", "complex")
A, Lambda = matrix("A", N, N, "complex"), matrix("Lambda", N, N, "complex")
P, Q = matrix("P", N, r, "complex"), matrix("Q", N, r, "complex")
B, C_tilde = matrix("B", N, m, "complex"), matrix("Ctilde", p, N, "complex")

low_rank = named("A", Lambda - P * Q.H)


def pencil(of: Term) -> Term:
    """What the bilinear rule divides by."""
    return identity - HALF * delta * of


def bilinear_A(of: Term) -> Term:
    """Ā by the bilinear rule."""
    return named("Abar", Inverse(pencil(of)) * (identity + HALF * delta * of))


def bilinear_B(of: Term) -> Term:
    """B̄ by the bilinear rule."""
    return named("Bbar", Inverse(pencil(of)) * (delta * B))


def has_rule(of: Term) -> Assumption:
    """The bilinear rule has a value."""
    return Assumption("2/Δ is no eigenvalue of A", Invertible(pencil(of)))


moving = Assumption("Δ ≠ 0", NonZero(delta))

__all__ = [
    "DSS",
    "GU",
    "HALF",
    "NOTE",
    "S4D",
    "A",
    "B",
    "C_tilde",
    "L",
    "Lambda",
    "N",
    "P",
    "Q",
    "bilinear_A",
    "bilinear_B",
    "delta",
    "has_rule",
    "identity",
    "k",
    "l",
    "low_rank",
    "m",
    "moving",
    "n",
    "one",
    "p",
    "pencil",
    "r",
    "two",
    "z",
]
