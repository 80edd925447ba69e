"""Retention: linear attention whose memory fades by a constant factor.

The operator and its forms (forms.py), chunk after chunk (chunks.py), queries and keys that are rotated by their position
(rotation.py), gates of rank one in the place of the factor (gates.py), and the norm after it (normalization.py).
"""

from . import chunks, forms, gates, normalization, rotation
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *chunks.CLAIMS, *rotation.CLAIMS, *gates.CLAIMS, *normalization.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
