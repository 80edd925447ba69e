"""H3: two state-space models in the place of the sums of linear attention, Q ⊙ SSM_diag(SSM_shift(K) ⊙ V).

The operator (operator.py), its shift SSM (shift.py) and its diagonal SSM (diagonal.py), the layer as two convolutions and what it
is where the SSMs are identities or sums (layer.py), and recall with weights set by hand (recall.py).
"""

from . import diagonal, layer, recall, shift
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (*shift.CLAIMS, *diagonal.CLAIMS, *layer.CLAIMS, *recall.CLAIMS)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
