"""Linear attention: a matrix of key-value products, read by a query.

The operator (operator.py), its forms (forms.py), chunk after chunk (chunks.py), its memory by columns and rows
(columns.py), its gradients (gradients.py), and features with a normaliser (features.py; the operator of both is a column
of its own, normalized_linear_attention.py).
"""

from . import chunks, columns, features, forms, gradients
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*forms.CLAIMS, *chunks.CLAIMS, *columns.CLAIMS, *features.CLAIMS, *gradients.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
