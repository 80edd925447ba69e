"""Gated retention under test: S_t = e^{g_t} S_{t-1} + k_t v_tᵀ, o_t = scale · S_tᵀ q_t, with a decay per token and head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isoform.derivations.gated_retention import DECLARATION

from . import gates
from .bounds import Bounds, fading
from .gates import Field
from .memory import memory_operator, plain, token_by_token
from .operator import Input, Instance, Reduction
from .strategies import Case
from .tensors import Precision

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
GATE = Input("g", "b t hv", "<= 0, -inf among them")
TIME = (0, 1)
"""The axes of batch and time, along which a constant gate does not change."""


def draw(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """The log of a decay for every token and value head."""
    return {**inputs, "g": gates.logs(case, 20, inputs["v"].shape[:3], TIME)}


def enter(head: Head, field: Field) -> Head:
    """γ_t = e^{g_t}."""
    return {**head, "gamma": field.exp(head["g"])}


def bound(head: Head, states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head, in any order of summation and so for every chunk size ``span``."""
    writes = np.abs(head["k"])[:, :, None] * np.abs(head["v"])[:, None, :]
    return fading(head["q"], writes, states, (head["gamma"][:, None, None],), precision)


def constant(x: Instance) -> Instance:
    """Retention of as many query as value heads, with the decay of the first token."""
    groups = x.inputs["v"].shape[2] // x.inputs["q"].shape[2]
    few = {n: np.repeat(x.inputs[n], groups, axis=2) for n in "qk"}
    return replace(x, inputs={**few, "v": x.inputs["v"], "g_gamma": x.inputs["g"][0, 0]})


OPERATORS = (
    memory_operator(
        DECLARATION,
        bound,
        gates=(GATE,),
        draw_gates=draw,
        flags=(gates.IN_TIME,),
        enter=enter,
        decays=("gamma",),
        capabilities=("outside",),
        reductions=(
            Reduction("g = 0", ("start", "gates-zero"), "linear-attention", plain),
            Reduction("g = -∞", ("start", "gates-reset"), "linear-attention", lambda x: token_by_token(plain(x)), single=True),
            Reduction("g constant in time", ("start", "gates-constant"), "retention", constant),
        ),
        neutral=(("k", "g"), ("v", "g")),
    ),
)
