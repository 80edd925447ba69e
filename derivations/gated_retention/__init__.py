"""Gated retention: the memory fades by a factor of its own at every step.

The operator (operator.py), its forms (forms.py), and what bounds the state (bounded.py).
"""

from . import bounded, forms
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *bounded.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
