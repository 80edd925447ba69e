"""What a layer remembers of its keys and values: linear attention, and softmax attention beside it.

Exact recall and weights that never change (linear.py); the range of the logits in the place of the size of the keys
(softmax.py); how many values a state holds (capacity.py), and what more keys than dimensions cost (interference.py).
"""

from . import capacity, interference, linear, softmax

CLAIMS = (*linear.CLAIMS, *softmax.CLAIMS, *capacity.CLAIMS, *interference.CLAIMS)

__all__ = ["CLAIMS"]
