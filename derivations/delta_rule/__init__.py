"""The delta rule: what a key finds in the memory is corrected towards its value, at rate β_t.

One write, seen from all sides (update.py), and what many writes make (sequence.py).
"""

from . import sequence, update
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*update.CLAIMS, *sequence.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
