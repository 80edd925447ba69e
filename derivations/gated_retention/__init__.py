"""Gated retention: the memory fades by a factor of its own at every step.

The operator (operator.py), its forms (forms.py), chunk after chunk (chunks.py), what bounds the state (bounded.py), and its
mask as a semiseparable matrix (semiseparable.py).
"""

from . import bounded, chunks, forms, semiseparable
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *chunks.CLAIMS, *bounded.CLAIMS, *semiseparable.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
