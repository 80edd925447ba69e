"""Linear attention: a matrix of key-value products, read by a query.

The operator (operator.py), its forms (forms.py), chunk after chunk (chunks.py), its memory by columns and rows
(columns.py), its gradients (gradients.py), and features with a normaliser (features.py, and the operator of both in
normalized.py).
"""

from . import chunks, columns, features, forms, gradients, normalized
from . import operator as plain
from .operator import DECLARATION

CLAIMS = (*forms.CLAIMS, *chunks.CLAIMS, *columns.CLAIMS, *features.CLAIMS, *gradients.CLAIMS, *normalized.CLAIMS)
DECLARATIONS = (*plain.DECLARATIONS, normalized.DECLARATION)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
