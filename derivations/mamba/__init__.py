"""Mamba: a selective scan behind a causal convolution, with a gate.

The operators (operator.py), and the scan as a sum, as pairs, as a matrix and in chunks (scan.py).
"""

from . import scan
from .operator import DECLARATION, DECLARATIONS

CLAIMS = scan.CLAIMS

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
