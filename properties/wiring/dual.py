"""Gated retention by mamba_chunk_scan_combined, which computes S_t = e^{Δ_t A} S_{t-1} + Δ_t B_t x_tᵀ with A < 0 for each head.

A token is two of the kernel's: one that only decays, Δ = -g 2⁶⁰ with A = -2⁻⁶⁰ and x = 0, and one that only writes, Δ = 1, whose
decay rounds to 1. So Δ A is g to the last bit, and a write that does not depend on the decay is possible, which the kernel has not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..operator import pair
from ..tensors import joined
from .settling import parameters, showing

POLE = 2.0**-60
GONE = -1e4
"""A log-decay in place of -∞: nothing is left of either."""
NOTE = "each token is two of mamba_chunk_scan_combined's: one that decays, one that writes"


def into(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Gated retention, its state (B, H, V, K), without a scale."""
    known = parameters(kernel) or {}

    def call(q: Any, k: Any, v: Any, g: Any, chunk_size: int = 64, initial_state: Any = None, output_final_state: bool = False) -> Any:
        steps = g.clamp(min=GONE).double() / -POLE
        given = {
            "x": _both(v * 0, v),
            "dt": _both(steps, steps * 0 + 1).to(g.dtype if g.element_size() > 2 else v.float().dtype),
            "A": g.float().new_full((v.shape[2],), -POLE),
            "B": _both(k, k),
            "C": _both(q, q),
            "chunk_size": chunk_size,
        }
        given |= {} if initial_state is None else {"initial_states": initial_state}
        given |= {"return_final_states": True} if output_final_state else {}
        out, state = pair(kernel(**given))
        return out[:, 1::2], state

    absent = {"initial_state": "initial_states", "output_final_state": "return_final_states"}
    kept = [p for n, p in inspect.signature(call).parameters.items() if absent.get(n, "x") in known]
    return showing(call, kept)


def _both(first: Any, second: Any) -> Any:
    """Two tensors, token by token in turn."""
    return joined((first.unsqueeze(2), second.unsqueeze(2)), 2).flatten(1, 2)


def back(call: Callable[..., Any]) -> Callable[..., Any]:
    """mamba_chunk_scan_combined, of gated retention."""

    def kernel(
        x: Any, dt: Any, A: Any, B: Any, C: Any, chunk_size: int, initial_states: Any = None, return_final_states: bool = False
    ) -> Any:
        given = {"q": C, "k": B, "v": (x * dt[..., None]).to(x.dtype), "g": dt * A}
        given |= {} if initial_states is None else {"initial_state": initial_states}
        taken = inspect.signature(call).parameters
        given |= {"chunk_size": chunk_size} if "chunk_size" in taken else {}
        return call(**given, output_final_state=True) if return_final_states else call(**given)

    kernel.__name__ = call.__name__
    return kernel
