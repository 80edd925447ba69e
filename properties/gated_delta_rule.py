"""The gated delta rule under test: S' = e^{g_t} S_{t-1}, S_t = S' + β_t k_t (v_t - S'ᵀ k_t)ᵀ, o_t = scale · S_tᵀ q_t."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isoform.derivations.gated_delta_rule import DECLARATION

from . import delta_rule, gated_retention, gates
from .delta_rule import BETA, NOTHING_FOUND, STRENGTHS, bound, majorant
from .gated_retention import GATE, enter
from .memory import NORM, memory_operator, token_by_token
from .operator import Instance, Reduction
from .strategies import Case

Array = np.ndarray[Any, Any]


def draw(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """The gates of gated retention and of the delta rule."""
    return gated_retention.draw(case, delta_rule.strengths(case, inputs))


def ungated(x: Instance) -> Instance:
    """The delta rule."""
    return replace(x, inputs={n: a for n, a in x.inputs.items() if n != "g"})


def idle(x: Instance) -> Instance:
    """Gated retention without a value: nothing is written."""
    kept = {n: a for n, a in x.inputs.items() if n != "beta"}
    return replace(x, inputs={**kept, "v": 0 * x.inputs["v"]})


OPERATORS = (
    memory_operator(
        DECLARATION,
        bound,
        majorant=majorant,
        corrects=True,
        gates=(GATE, BETA),
        draw_gates=draw,
        flags=(gates.IN_TIME, tuple(STRENGTHS), ("long-keys",), ("normed",)),
        enter=enter,
        decays=("gamma",),
        capabilities=("outside",),
        needed={"normed": NORM},
        reductions=(
            Reduction("g = 0", ("start", "gates-zero"), "delta-rule", ungated),
            Reduction("g = -∞", ("start", "gates-reset"), "delta-rule", lambda x: token_by_token(ungated(x)), single=True),
            Reduction("β = 0", ("start", "beta-zero"), "gated-retention", idle),
            replace(NOTHING_FOUND, flags=(*NOTHING_FOUND.flags, "gates-zero")),
        ),
        neutral=(("k", "g"), ("beta", "g")),
    ),
)
