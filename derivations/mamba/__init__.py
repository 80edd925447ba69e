"""Mamba: a selective scan behind a causal convolution, with a gate.

The operators (operator.py).
"""

from .operator import DECLARATION, DECLARATIONS

CLAIMS = ()

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
