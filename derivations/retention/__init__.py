"""Retention: linear attention whose memory fades by a constant factor.

The operator and its forms (forms.py), chunk after chunk (chunks.py), queries and keys that are rotated by their position
(rotation.py), and gates of rank one in the place of the factor (gates.py).
"""

from . import chunks, forms, gates, rotation
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *chunks.CLAIMS, *rotation.CLAIMS, *gates.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
