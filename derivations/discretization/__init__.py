"""From x' = A x + B u to x_{k+1} = Ā x_k + B̄ u_k, with the input held or interpolated over a step Δ.

    zero-order hold   Ā = e^{ΔA}                        B̄ = ∫₀^Δ e^{sA} ds B
    bilinear          Ā = (I - ½ΔA)⁻¹ (I + ½ΔA)         B̄ = (I - ½ΔA)⁻¹ ΔB
    Euler             Ā = I + ΔA                        B̄ = ΔB
    backward Euler    Ā = (I - ΔA)⁻¹                    B̄ = (I - ΔA)⁻¹ ΔB
    impulse           Ā = e^{ΔA}                        B̄ = ΔB

and first-order hold, where the input runs from one sample to the next along a line (first_order.py).

Source: Gu, Goel, Ré, "Efficiently Modeling Long Sequences with Structured State Spaces", arXiv 2111.00396, equation 3
(bilinear); Gu, Dao, "Mamba", arXiv 2312.00752, equation 4 (zero-order hold).

Where a formula divides, what it divides by is part of its statement: a conjunction says first that the inverse exists.
"""

from . import backward, bilinear, first_order, generalized, hold, impulse, rest
from .operators import DECLARATIONS

CLAIMS = (
    *hold.CLAIMS,
    *first_order.CLAIMS,
    *bilinear.CLAIMS,
    *generalized.CLAIMS,
    *impulse.CLAIMS,
    *backward.CLAIMS,
    *rest.CLAIMS,
)

__all__ = ["CLAIMS", "DECLARATIONS"]
