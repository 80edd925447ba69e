"""Gated linear attention: every channel of the keys, and every channel of the values, fades by a factor of its own.

The operator (operator.py), its forms (forms.py), and chunk after chunk (chunks.py).
"""

from . import chunks, forms
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *chunks.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
