"""The general recurrence: a state, its reflection, what an input adds, and a read-out.

The recurrence and what holds of it for any functions (recurrence.py), gates (gates.py), and what it costs (costs.py).
"""

from . import costs, gates, recurrence
from .recurrence import DECLARATION, DECLARATIONS

CLAIMS = (*recurrence.CLAIMS, *gates.CLAIMS, *costs.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
