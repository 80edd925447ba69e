"""The call of scaled_dot_product_attention: (query, key, value, attn_mask, is_causal, scale, enable_gqa), heads before time.

``is_causal`` has its frontier at the top left, j ≤ i, where the plain call has j ≤ i + (S - T): it is used where there are as many
keys as queries and no mask. Every other frontier, a window and a mask reach the kernel as ``attn_mask``, True meaning visible.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from ..operator import Operator
from .convention import OUT, Argument, Bridge, Result, Wiring, WiringError
from .settling import open_ended, parameters, showing

KNOWN = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
"""The arguments of PyTorch's function, whose signature Python cannot read, and of what passes all arguments on to it."""
NOTE = (
    "is_causal is checked where there are as many keys as queries and no mask; other frontiers, windows and masks are given "
    "as attn_mask, so the frontier of is_causal for T ≠ S (top left) is not"
)


def sdpa(operator: Operator) -> Wiring:
    """The convention for attention. Raises WiringError for another operator."""
    if operator.name not in ("attention", "full-attention"):
        raise WiringError(f"the signature sdpa is for attention and full-attention, not for {operator.name}")
    causal = "causal" in operator.capabilities
    arguments = (
        Argument("q", "q", "b h t d"),
        Argument("k", "k", "b hkv s d"),
        Argument("v", "v", "b hkv s v"),
        *(Argument(n, n) for n in ("scale", "mask", *(("window_size",) if causal else ()))),
    )
    bridge = CAUSAL if causal else FULL
    return Wiring("sdpa", arguments, (Result(OUT, "b h t v"),), bridge=bridge, notes=(NOTE,) if causal else (), mapped=False)


def _into(causal: bool, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that takes a mask and a window; what it shows depends on what the kernel has."""
    known = parameters(kernel)
    taken = dict.fromkeys(KNOWN) if known is None or open_ended(known) else known

    def call(q: Any, k: Any, v: Any, scale: float | None = None, mask: Any = None, window_size: int | None = None) -> Any:
        square = q.shape[2] == k.shape[2] and mask is None and window_size is None
        by_flag = causal and "is_causal" in taken and (square or "attn_mask" not in taken)
        given: dict[str, Any] = {"is_causal": True} if by_flag else {}
        given |= {} if by_flag or not (causal or mask is not None) else {"attn_mask": _visible(q, k, causal, mask, window_size)}
        given |= {} if scale is None else {"scale": scale}
        given |= {} if q.shape[1] == k.shape[1] or "enable_gqa" not in taken else {"enable_gqa": True}
        return kernel(q, k, v, **given)

    shown = [*"qkv", *(("scale",) if "scale" in taken else ()), *(("mask", "window_size") if "attn_mask" in taken else ())]
    kept = [p for n, p in inspect.signature(call).parameters.items() if n in shown]
    return showing(call, kept)


def _visible(q: Any, k: Any, causal: bool, mask: Any, window: int | None) -> Any:
    """Which keys each row sees, broadcasting to (b, h, t, s)."""
    t, s = q.shape[2], k.shape[2]
    ones = q.new_ones((t, s))
    band = ones.tril(s - t) if causal else ones
    band = band - ones.tril(s - t - window) if window is not None else band
    seen = band > 0
    return seen if mask is None else seen & (mask[:, None, None] if mask.ndim == 2 else mask[:, None])


def _back(causal: bool, call: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that PyTorch has, of one that takes a mask."""

    def kernel(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        shape = (query.shape[0], query.shape[2], key.shape[2])
        masks = {} if attn_mask is None else {"mask": (attn_mask[:, 0] if attn_mask.ndim == 4 else attn_mask).expand(shape)}
        if causal and is_causal:
            masks = {"mask": (query.new_ones(shape[1:]).tril() > 0).expand(shape)} if shape[1] != shape[2] else {}
        return call(q=query, k=key, v=value, scale=scale, **masks)

    kernel.__name__ = call.__name__
    return kernel


CAUSAL, FULL = (Bridge(partial(_into, causal), partial(_back, causal)) for causal in (True, False))
