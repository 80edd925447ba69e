"""The calls of mamba-ssm and causal-conv1d: the selective scan, the state-space dual, the convolution, and their steps.

selective_scan_fn and causal_conv1d_fn are the plain call. selective_state_update and causal_conv1d_update take one token and write
the new state over the old one. Gated retention is ssd_minimal_discrete, or `dual.py`'s way through mamba_chunk_scan_combined.
"""

from __future__ import annotations

from dataclasses import replace

from ..operator import Operator
from . import dual, steps
from .convention import OUT, STATE, Argument, Bridge, Result, Wiring, WiringError
from .plain import plain

STATES = "b hv v k"
MINIMAL = Wiring(
    "mamba",
    (
        Argument("X", "v"),
        Argument("A", "g"),
        Argument("B", "k"),
        Argument("C", "q"),
        Argument("block_len", "chunk_size", value=64, always=True),
        Argument("initial_states", "initial_state", "b 1 hv v k"),
    ),
    (Result(OUT), Result(STATE, STATES)),
    own_scale=1.0,
    marks=("X", "A", "B", "C", "block_len"),
)
"""Its initial states have an axis of chunks, its final ones have none."""
COMBINED = Wiring(
    "mamba",
    (
        *(Argument(n, n) for n in ("q", "k", "v", "g")),
        Argument("chunk_size", "chunk_size", value=64, always=True),
        Argument("initial_state", "initial_state", STATES),
        Argument("output_final_state", "output_final_state"),
    ),
    (Result(OUT), Result(STATE, STATES)),
    own_scale=1.0,
    bridge=Bridge(dual.into, dual.back),
    marks=("x", "dt", "A", "B", "C"),
    notes=(dual.NOTE,),
)


def mamba(operator: Operator) -> Wiring:
    """The conventions for an operator; a kernel's arguments say which. Raises WiringError for one that these libraries have not."""
    if operator.name == "gated-retention":
        return replace(MINIMAL, otherwise=(COMBINED,))
    if operator.name not in steps.BRIDGES:
        allowed = ", ".join((*steps.BRIDGES, "gated-retention"))
        raise WiringError(f"the signature mamba is for {allowed}, not for {operator.name}")
    whole = replace(plain(operator), signature="mamba")
    mark, bridge = steps.BRIDGES[operator.name]
    return replace(whole, otherwise=(replace(whole, bridge=bridge, marks=(mark,), notes=(steps.NOTE,), single=True),))
