"""What a layer remembers of its keys and values: linear attention, and softmax attention beside it.

Exact recall and weights that never change (linear.py).
"""

from . import linear

CLAIMS = (*linear.CLAIMS,)

__all__ = ["CLAIMS"]
