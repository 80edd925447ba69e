"""Wiring: how a kernel is called whose arguments have other names, axes and codes than the plain call's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..operator import Operator
from .adapting import adapt
from .convention import Argument, Bridge, Result, Wiring, WiringError
from .disguising import disguise
from .mamba import mamba
from .onnx import onnx
from .plain import plain
from .sdpa import sdpa
from .settling import settle

__all__ = ["SIGNATURES", "Argument", "Bridge", "Result", "Wiring", "WiringError", "adapt", "disguise", "settle"]

SIGNATURES: Mapping[str, Callable[[Operator], Wiring]] = {
    "plain": plain,
    "fla": plain,
    "isoform": plain,
    "mamba": mamba,
    "sdpa": sdpa,
    "onnx": onnx,
}
"""The conventions by name; each makes the wiring for an operator, or raises WiringError where it has none."""
