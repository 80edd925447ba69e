"""Linear state-space models: in continuous time, as a recurrence, and as a convolution.

    x' = A x + B u                     x_k = Ā x_{k-1} + B̄ u_k
    y  = C x + D u                     y_k = C x_k + D u_k

Source: Gu, Goel, Ré, "Efficiently Modeling Long Sequences with Structured State Spaces", arXiv 2111.00396, equations
1-5. The state is read after the update, so y_1 already sees u_1. The textbook instead updates after the read-out,
x_{k+1} = Ā x_k + B̄ u_k with inputs from u_0 on: the same states, with every input one index earlier.

Terms without conjugates are polynomials or power series in the matrices, so complex matrices obey the same equations;
modes.py is about complex modes and their conjugates.

The operator (operator.py), in continuous time (continuous.py), as a recurrence (recurrence.py), as a convolution (convolution.py,
feedthrough.py, order.py) and as a scan (scan.py); what a state keeps (history.py), several channels (channels.py), other
coordinates (modes.py), costs (costs.py), and the filter that is such a recurrence with gains of its own (kalman.py).
"""

from . import channels, continuous, convolution, costs, feedthrough, history, kalman, modes, order, recurrence, scan
from .operator import DECLARATION, DECLARATIONS

CLAIMS = (
    *continuous.CLAIMS,
    *recurrence.CLAIMS,
    *convolution.CLAIMS,
    *feedthrough.CLAIMS,
    *order.CLAIMS,
    *history.CLAIMS,
    *channels.CLAIMS,
    *modes.CLAIMS,
    *scan.CLAIMS,
    *costs.CLAIMS,
    *kalman.CLAIMS,
)

__all__ = ["CLAIMS", "DECLARATION", "DECLARATIONS"]
