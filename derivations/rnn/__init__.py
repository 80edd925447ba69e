"""The general recurrence: a state, its reflection, what an input adds, and a read-out.

The recurrence and what holds of it for any functions (recurrence.py), and gates (gates.py).
"""

from . import gates, recurrence
from .recurrence import DECLARATION, DECLARATIONS

CLAIMS = (*recurrence.CLAIMS, *gates.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
