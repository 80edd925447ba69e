"""The truth: the operator's own declaration, run exactly where that is quick, else in balls or float64.

Derivations write states as columns read, H (V x K); the plain call hands out S = Hᵀ (K x V). This is the one place
that transposes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from isoform.derivations.evaluate import oracle

if TYPE_CHECKING:
    from isoform.derivations.kernel.formulas import Declaration

Array = np.ndarray[Any, Any]
EXACT_WORK = 1500
"""Multiplications of one head up to which rational arithmetic is used."""


def memory(declaration: Declaration, inputs: Mapping[str, Array], start: Array | None) -> tuple[Array, Array]:
    """Outputs (T, V) and states (T + 1, K, V) of one head of a matrix memory, correctly rounded or in float64.

    ``inputs`` are those of the declaration, queries scaled; ``start`` is (K, V) or None for 0.
    """
    steps, width = inputs["k"].shape
    columns = inputs["v"].shape[1]
    system = "qq" if steps * width * columns <= EXACT_WORK and _finite(inputs) else "float64"
    out, states = oracle(
        declaration, inputs, length=steps, system=system, initial_state=np.zeros((columns, width)) if start is None else start.T
    )
    shape = (steps + 1, columns, width)
    return _floats(out, (steps, columns)), _floats(states, shape).transpose(0, 2, 1)


def slope(declaration: Declaration, inputs: Mapping[str, Array], start: Array, toward: Mapping[str, Array], push: Array) -> Any:
    """The derivative of `memory` in a direction (``toward`` for the inputs, ``push`` for the start): outputs and final state.

    By a complex step of 2⁻²⁰⁰, which subtracts nothing and is exact to rounding.
    """
    step = 2.0**-200
    moved = {n: x + 1j * step * toward[n] for n, x in inputs.items()}
    steps, width = inputs["k"].shape
    columns = inputs["v"].shape[1]
    out, states = oracle(declaration, moved, length=steps, system="float64", initial_state=(start + 1j * step * push).T)
    out = np.asarray(out, complex).reshape(steps, columns)
    states = np.asarray(states, complex).reshape(steps + 1, columns, width)
    return out.imag / step, states[-1].T.imag / step


def _finite(inputs: Mapping[str, Array]) -> bool:
    return all(bool(np.isfinite(x).all()) for x in inputs.values())


def _floats(x: Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(x, dtype=np.float64).reshape(shape)
