"""Linear attention: a matrix of key-value products, read by a query.

The operator (operator.py), its forms (forms.py), its memory by columns and rows (columns.py), and features with a
normaliser (features.py).
"""

from . import columns, features, forms
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *columns.CLAIMS, *features.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
