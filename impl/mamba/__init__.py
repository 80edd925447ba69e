"""Mamba: a selective scan behind a causal convolution, with a gate.

The selective scan with either discretisation (selective.py, spans.py), the convolution (convolution.py), the block that has
both (block.py), and that of Mamba-2 (ssd.py).
"""

from . import block, convolution, ssd
from .selective import recurrent, scan, softplus, step

FORMS = {
    "selective-scan": (recurrent, scan),
    "selective-scan-zoh": (recurrent, scan),
    "causal-conv1d": (convolution.recurrent, convolution.convolution),
}
STEPS = {"selective-scan": step, "selective-scan-zoh": step, "causal-conv1d": convolution.step}

__all__ = ["FORMS", "STEPS", "block", "convolution", "recurrent", "scan", "softplus", "ssd", "step"]
