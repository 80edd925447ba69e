"""The gated delta rule: the memory fades first, then what a key finds in it is corrected towards its value.

The operator (operator.py), one write (update.py), and what many writes make (sequence.py).
"""

from . import sequence, update
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*update.CLAIMS, *sequence.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
