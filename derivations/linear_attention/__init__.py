"""Linear attention: a matrix of key-value products, read by a query.

The operator (operator.py), its forms (forms.py), its memory by columns and rows (columns.py), its gradients (gradients.py),
and features with a normaliser (features.py).
"""

from . import columns, features, forms, gradients
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *columns.CLAIMS, *features.CLAIMS, *gradients.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
