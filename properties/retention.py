"""Retention under test: S_t = γ S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t, with a constant γ per head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isoform.derivations.retention import DECLARATION

from . import gates
from .bounds import Bounds, fading
from .gates import Field
from .memory import memory_operator, plain, token_by_token
from .operator import Input, Reduction
from .strategies import Case
from .tensors import Precision

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
DECAY = Input("g_gamma", "h", "<= 0, -inf among them; absent: log(1 - 2^(-5-i)) of head i")
GIVEN = ("gates-zero", "gates-reset", "gates-mixed", "gates-strong", "long-memory", "gates-constant")
"""Structure for which the call has a decay; ``gates-constant`` is a drawn one."""


def draw(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """A decay per head, where the case asks for one."""
    if not any(case.has(flag) for flag in (*GIVEN, "dyadic", "edge", "outside")):
        return inputs
    return {**inputs, "g_gamma": gates.logs(case, 20, inputs["q"].shape[2:3])}


def enter(head: Head, field: Field) -> Head:
    """γ = e^g, and 1 - 2^{-5-i} for head i where none is given."""
    given = head.get("g_gamma")
    return {**head, "gamma": 1 - 2.0 ** (-5 - head["index"]) if given is None else field.exp(given)}


def bound(head: Head, states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head, in any order of summation and so for every chunk size ``span``."""
    writes = np.abs(head["k"])[:, :, None] * np.abs(head["v"])[:, None, :]
    return fading(head["q"], writes, states, (head["gamma"],), precision)


OPERATORS = (
    memory_operator(
        DECLARATION,
        bound,
        gates=(DECAY,),
        draw_gates=draw,
        flags=(GIVEN,),
        enter=enter,
        decays=("gamma",),
        capabilities=("outside",),
        needed=dict.fromkeys((*GIVEN, "dyadic", "edge", "outside"), "g_gamma"),
        reductions=(
            Reduction("γ = 1", ("start", "gates-zero"), "linear-attention", plain),
            Reduction("γ = 0", ("start", "gates-reset"), "linear-attention", lambda x: token_by_token(plain(x)), single=True),
        ),
    ),
)
