"""Mamba under test: the selective scan with either B̄, and the causal convolution in front of it."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from isoform.derivations.mamba.operator import CONVOLUTION, DECLARATION, ZOH_DECLARATION

from . import convolving, selecting, strategies
from .gates import SETTLING
from .strategies import LARGE, SMALL, Case

CAPABILITIES = frozenset({"sequence", "causal", "state", "gradient", "edges", "batch", "quarantine", "dyadic", "long"})


def corners(name: str) -> Iterator[Case]:
    """Cases that every run has: chunks that end off the grid, every kind of decay, of step and of weights."""
    for t, chunk, scale, dtype, flags in (
        (11, 4, SMALL, "float32", ("start",)),
        (11, 4, LARGE, "float32", ("start", "grouped", "gate")),
        (5, 16, SMALL, "float32", ("softplus", "bias")),
        (13, 3, LARGE, "float32", ("stiff", "start")),
        (12, 4, SMALL, "float32", ("A-small", "no-feedthrough")),
        (9, 4, LARGE, "float32", ("A-zero", "start", "no-feedthrough")),
        (6, 4, SMALL, "float32", ("softplus-low",)),
        (10, 3, LARGE, "float32", ("softplus-low", "bias")),
        (67, 16, LARGE, "float32", ("long-memory", "start")),
        (9, 4, LARGE, "bfloat16", ("start", "gate", "softplus", "bias")),
        (9, 2, SMALL, "float64", ("start", "grouped-writes", "softplus")),
        (8, 3, SMALL, "float32", ("steps-zero", "bias", "start")),
        (10, 4, LARGE, "float32", ("constant-weights", "time-invariant", "start")),
        (7, 3, SMALL, "float32", ("other-groups", "start")),
        (64, 64, SMALL, "float32", ("start", SETTLING)),
        (64, 64, LARGE, "float32", ("start", SETTLING)),
    ):
        shape = (("b", 1), ("t", t), ("d", 4), ("g", 2), ("n", 3), ("chunk", chunk))
        yield Case(name, shape, t, dtype, scale, flags)


def filters() -> Iterator[Case]:
    """Cases of the convolution that every run has: fewer inputs than taps, one tap, two taps."""
    for t, w, scale, dtype, flags in (
        (11, 4, SMALL, "float32", ("start",)),
        (2, 4, LARGE, "float32", ("start", "bias")),
        (9, 4, LARGE, "float32", ("silu", "bias")),
        (7, 1, SMALL, "float32", ("bias",)),
        (8, 2, SMALL, "float64", ("start", "silu")),
        (9, 3, LARGE, "bfloat16", ("start", "bias", "silu")),
        (6, 5, SMALL, "float32", ("constant", "start")),
        (30, 4, LARGE, "float32", ("start", "bias")),
    ):
        yield Case(CONVOLUTION.operator, (("b", 2), ("t", t), ("d", 3), ("w", w)), t, dtype, scale, flags)


SHAPE = strategies.sizes(
    b=st.integers(1, 2), t=strategies.lengths, d=st.integers(1, 6), g=st.integers(1, 3), n=st.integers(1, 4), chunk=strategies.chunks
)
STRUCTURE = strategies.flags(("start",), selecting.DECAYS, selecting.STEPS, ("bias",), selecting.WEIGHTS, ("gate",), ("no-feedthrough",))

OPERATORS = (
    *(
        selecting.operator(
            declaration,
            hold,
            capabilities=CAPABILITIES | {"outside"},
            cases=strategies.cases(declaration.operator, SHAPE, STRUCTURE),
            corners=lambda name=declaration.operator: tuple(corners(name)),
        )
        for declaration, hold in ((DECLARATION, False), (ZOH_DECLARATION, True))
    ),
    convolving.operator(
        CONVOLUTION,
        capabilities=CAPABILITIES,
        cases=strategies.cases(
            CONVOLUTION.operator,
            strategies.sizes(b=st.integers(1, 2), t=strategies.lengths, d=st.integers(1, 3), w=st.integers(1, 5)),
            strategies.flags(("start",), ("bias",), ("silu",), ("constant",)),
        ),
        corners=lambda: tuple(filters()),
    ),
)
