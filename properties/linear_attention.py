"""Linear attention under test: S_t = S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isoform.derivations.linear_attention import DECLARATION

from .bounds import Bounds, additive
from .memory import memory_operator
from .tensors import Precision

Array = np.ndarray[Any, Any]


def bound(head: Mapping[str, Array], states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head: all transitions are the identity, so the chunk size ``span`` makes no difference."""
    writes = np.abs(head["k"])[:, :, None] * np.abs(head["v"])[:, None, :]
    return additive(head["q"], writes, head["start"], precision)


OPERATORS = (memory_operator(DECLARATION, bound, neutral=(("k",), ("v",))),)
