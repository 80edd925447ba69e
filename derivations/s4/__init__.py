"""S4: a structured state matrix, its kernel by values at roots of unity, and the steps that it makes.

Normal plus low rank (normal.py); the truncated generating function (generating.py); Woodbury's identity and Cauchy sums
(low_rank.py, nodes.py, diagonal.py); the step of the recurrence (steps.py); the padded convolution (padding.py). The operator is that of
state-space models with constant matrices (state_space).

Source: Gu, Goel, Ré, "Efficiently Modeling Long Sequences with Structured State Spaces", arXiv 2111.00396, appendix C.
"""

from . import diagonal, generating, low_rank, nodes, normal, padding, steps

CLAIMS = (
    *normal.CLAIMS,
    *generating.CLAIMS,
    *low_rank.CLAIMS,
    *nodes.CLAIMS,
    *diagonal.CLAIMS,
    *steps.CLAIMS,
    *padding.CLAIMS,
)

__all__ = ["CLAIMS"]
