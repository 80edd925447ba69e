"""Gated retention: the memory fades by a factor of its own at every step.

The operator (operator.py), its forms (forms.py), what bounds the state (bounded.py), and its mask as a semiseparable
matrix (semiseparable.py).
"""

from . import bounded, forms, semiseparable
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *bounded.CLAIMS, *semiseparable.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
