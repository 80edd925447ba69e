"""The delta rule: what a key finds in the memory is corrected towards its value, at rate β_t.

One write, seen from all sides (update.py), what many writes make (sequence.py), and chunk after chunk (chunks.py).
"""

from . import chunks, sequence, update
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*update.CLAIMS, *sequence.CLAIMS, *chunks.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
