"""Mamba: a selective scan behind a causal convolution, with a gate.

The selective scan with either discretisation (selective.py, spans.py) and the convolution (convolution.py).
"""

from . import convolution
from .selective import recurrent, scan, softplus, step

FORMS = {
    "selective-scan": (recurrent, scan),
    "selective-scan-zoh": (recurrent, scan),
    "causal-conv1d": (convolution.recurrent, convolution.convolution),
}
STEPS = {"selective-scan": step, "selective-scan-zoh": step, "causal-conv1d": convolution.step}

__all__ = ["FORMS", "STEPS", "convolution", "recurrent", "scan", "softplus", "step"]
