"""Gated linear attention under test: S_t = diag(e^{gk_t}) S_{t-1} diag(e^{gv_t}) + k_t v_tᵀ, o_t = scale · S_tᵀ q_t."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isoform.derivations.gated_linear_attention import DECLARATION

from . import gates
from .bounds import Bounds, fading
from .gates import Field
from .memory import memory_operator, plain, token_by_token
from .operator import Input, Instance, Reduction
from .strategies import Case
from .tensors import Precision

Array = np.ndarray[Any, Any]
Head = Mapping[str, Array]
GATES = (Input("gk", "b t h k", "<= 0, -inf among them"), Input("gv", "b t hv v", "<= 0, -inf among them; absent: 0"))
CHANNELS = (0, 3)
"""The axes of batch and channel, along which a constant gate does not change."""
VALUES = "value-gates"
"""Structure in which the channels of the values fade too."""


def draw(case: Case, inputs: dict[str, Array]) -> dict[str, Array]:
    """The log of a decay for every token and channel of the keys, and of the values where the case asks for it."""
    found = {**inputs, "gk": gates.logs(case, 20, inputs["k"].shape, CHANNELS)}
    return {**found, "gv": gates.logs(case, 21, inputs["v"].shape)} if case.has(VALUES) else found


def enter(head: Head, field: Field) -> Head:
    """a_t = e^{gk_t} and e_t = e^{gv_t}, 1 where the values have no gate."""
    given = head.get("gv")
    return {**head, "a": field.exp(head["gk"]), "e": np.ones(head["v"].shape) if given is None else field.exp(given)}


def bound(head: Head, states: Array, precision: Precision, span: int) -> Bounds:
    """The bounds of one head, in any order of summation and so for every chunk size ``span``."""
    writes = np.abs(head["k"])[:, :, None] * np.abs(head["v"])[:, None, :]
    return fading(head["q"], writes, states, (head["a"][:, :, None], head["e"][:, None, :]), precision)


def one_gate(x: Instance) -> Instance:
    """Gated retention with the decay of the first channel."""
    groups = x.inputs["v"].shape[2] // x.inputs["k"].shape[2]
    return replace(plain(x), inputs={**plain(x).inputs, "g": np.repeat(x.inputs["gk"][..., 0], groups, axis=2)})


OPERATORS = (
    memory_operator(
        DECLARATION,
        bound,
        gates=GATES,
        draw_gates=draw,
        flags=(gates.IN_TIME, (VALUES,)),
        enter=enter,
        decays=("a", "e"),
        capabilities=("outside",),
        needed={VALUES: "gv"},
        reductions=(
            Reduction("gk = 0", ("start", "gates-zero"), "linear-attention", plain),
            Reduction("gk = gv = 0", ("start", "gates-zero", VALUES), "linear-attention", plain),
            Reduction("gk = -∞", ("start", "gates-reset"), "linear-attention", lambda x: token_by_token(plain(x)), single=True),
            Reduction("gk constant over the channels", ("start", "gates-constant"), "gated-retention", one_gate),
        ),
        neutral=(("k", "gk", "gv"), ("v", "gk", "gv")),
    ),
)
