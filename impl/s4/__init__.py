"""Structured state spaces: x' = A x + B u with a diagonal A, or one that is diagonal plus low rank, discretised and run.

    S4     A = Λ - P P*, bilinear rule                 Gu et al. 2022 (arXiv:2111.00396), equations 3-6 and appendix C.3
    S4D    A = Λ, zero-order hold or bilinear rule     Gu et al. 2022 (arXiv:2206.11893), section 3

x_k = Ā x_{k-1} + B̄ u_k, y_k = Re(C x_k) + D u_k. Symbols: b batch, d channels, t time, n states of a channel. ``u`` is
(b, d, t) and real; ``Lambda``, ``P``, ``B``, ``C`` are (d, n), real or complex; ``D`` is (d) or None; ``delta`` is (d), real
and positive, or None for 1; the state is (b, d, n). The real parts of Λ are negative. All n states are stored: who keeps one
of each conjugate pair of a diagonal A gives twice its C. Sums and states are kept in the promoted dtype of all arguments,
float32 for 16-bit ones; ``y`` has the dtype of ``u``. A non-finite input changes its own and later outputs of its channel only.
"""

from __future__ import annotations

from . import diagonal, low_rank

FORMS = {
    "s4": (low_rank.recurrent, low_rank.convolution),
    "s4d": (diagonal.recurrent, diagonal.convolution, diagonal.associative_scan),
}
STEPS = {"s4": low_rank.step, "s4d": diagonal.step}

__all__ = ["FORMS", "STEPS", "diagonal", "low_rank"]
