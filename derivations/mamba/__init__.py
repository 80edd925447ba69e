"""Mamba: a selective scan behind a causal convolution, with a gate.

The operators (operator.py); the scan as a sum, as pairs, as a matrix and in chunks (scan.py); the two discretisations
(discretization.py); gates (gates.py); what the scan is where it does not select (special.py);
as attention (duality.py); Mamba-3's rule (trapezoid.py); and the whole block (block.py).
"""

from . import block, discretization, duality, gates, scan, special, trapezoid
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (
    *scan.CLAIMS,
    *discretization.CLAIMS,
    *gates.CLAIMS,
    *special.CLAIMS,
    *duality.CLAIMS,
    *trapezoid.CLAIMS,
    *block.CLAIMS,
)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
