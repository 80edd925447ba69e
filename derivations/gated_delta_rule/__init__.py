"""The gated delta rule: the memory fades first, then what a key finds in it is corrected towards its value.

The operator (operator.py), one write (update.py), what many writes make (sequence.py), and chunk after chunk (chunks.py).
"""

from . import chunks, sequence, update
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*update.CLAIMS, *sequence.CLAIMS, *chunks.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
