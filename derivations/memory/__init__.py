"""What a layer remembers of its keys and values: linear attention, and softmax attention beside it.

Exact recall and weights that never change (linear.py); the range of the logits in the place of the size of the keys
(softmax.py).
"""

from . import linear, softmax

CLAIMS = (*linear.CLAIMS, *softmax.CLAIMS)

__all__ = ["CLAIMS"]
