"""Wiring: how a kernel is called whose arguments have other names, axes and codes than the plain call's.

`wire` makes the wiring of a kernel, of a signature's name and a map; `adapt` the plain call of the kernel; `disguise` is the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..operator import Operator
from .adapting import adapt
from .asking import asked
from .convention import Argument, Bridge, Result, Wiring, WiringError
from .detecting import Detected, detect
from .disguising import disguise
from .limiting import both, parse_limits
from .mamba import mamba
from .mapping import parse_map
from .onnx import onnx
from .plain import plain
from .proving import Problem, prove
from .sdpa import sdpa
from .settling import settle

__all__ = [
    "SIGNATURES",
    "Argument",
    "Bridge",
    "Detected",
    "Problem",
    "Result",
    "Wiring",
    "WiringError",
    "adapt",
    "both",
    "detect",
    "disguise",
    "parse_limits",
    "parse_map",
    "prove",
    "wire",
]

SIGNATURES: Mapping[str, Callable[[Operator], Wiring]] = {
    "plain": plain,
    "fla": plain,
    "isoform": plain,
    "mamba": mamba,
    "sdpa": sdpa,
    "onnx": onnx,
}
"""The conventions by name; each makes the wiring for an operator, or raises WiringError where it has none."""


def wire(function: Callable[..., Any], operator: Operator, signature: str = "plain", text: str = "") -> Wiring:
    """The wiring of a kernel, settled: a convention by its name, changed by a map.

    Raises WiringError, one sentence, for an unknown signature, a map that is not understood, and a kernel that they do not fit.
    """
    if signature not in SIGNATURES:
        raise WiringError(f"there is no signature {signature!r}; it is one of {', '.join(SIGNATURES)}")
    settled = settle(function, operator, parse_map(text, operator, SIGNATURES[signature](operator)))[1]
    return asked(function, operator, settled)
