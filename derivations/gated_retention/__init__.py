"""Gated retention: the memory fades by a factor of its own at every step.

The operator (operator.py) and its forms (forms.py).
"""

from . import forms
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS,)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
