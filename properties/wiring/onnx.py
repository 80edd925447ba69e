"""The operators of ONNX, operator set 27: LinearAttention, with heads packed in the last axis, and CausalConvWithState.

LinearAttention has as many heads of keys as of values, a state (B, H, K, V), log-decays, and a ``scale`` of which 0 means K^-1/2.
Sources: https://onnx.ai/onnx/operators/onnx__LinearAttention.html and onnx__CausalConvWithState.html.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..limits import GROUPS, MIXED, Limits
from ..operator import Operator, pair
from .adapting import presented
from .convention import OUT, STATE, Argument, Bridge, Result, Wiring, WiringError
from .settling import parameters

RULES = {
    "linear-attention": "linear",
    "gated-retention": "gated",
    "gated-linear-attention": "gated",
    "delta-rule": "delta",
    "gated-delta-rule": "gated_delta",
}
LIMITS = {
    GROUPS: "LinearAttention has as many heads of keys as of values",
    MIXED: "LinearAttention has gates of the dtype of its other inputs",
}
MEMORY = (
    Argument("query", "q", "b t (h k)"),
    Argument("key", "k", "b t (h k)"),
    Argument("value", "v", "b t (hv v)"),
    Argument("past_state", "initial_state"),
    Argument("scale", "scale"),
    Argument("chunk_size", "chunk_size"),
    Argument("q_num_heads", "size(h)"),
    Argument("kv_num_heads", "size(hv)"),
)
GATES = {
    "gated-retention": (Argument("decay", "g"),),
    "gated-linear-attention": (Argument("decay", "gk", "b t (h k)"),),
    "delta-rule": (Argument("beta", "beta"),),
    "gated-delta-rule": (Argument("decay", "g"), Argument("beta", "beta")),
}
FILTER = (
    Argument("input", "x"),
    Argument("weight", "weight", "d 1 w"),
    Argument("bias", "bias"),
    Argument("past_state", "initial_states"),
    Argument("activation", "activation"),
)


def onnx(operator: Operator) -> Wiring:
    """The convention for an operator. Raises WiringError for one that ONNX has not."""
    if operator.name == "causal-conv1d":
        return Wiring("onnx", FILTER)
    if operator.name not in RULES:
        raise WiringError(f"the signature onnx is for {', '.join((*RULES, 'causal-conv1d'))}, not for {operator.name}")
    rule = Argument("update_rule", value=RULES[operator.name], always=True)
    arguments = (*MEMORY, *GATES.get(operator.name, ()), rule)
    returns = (Result(OUT, "b t (hv v)"), Result(STATE))
    return Wiring("onnx", arguments, returns, bridge=Bridge(_into, _back), limits=Limits(refuses=LIMITS))


def _into(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose scale may be 0: the output of a scale of 1, times 0."""

    def call(**given: Any) -> Any:
        if given.get("scale") != 0:
            return kernel(**given)
        out, state = pair(kernel(**{**given, "scale": 1.0}))
        return out * 0.0, state

    known = parameters(kernel)
    return call if known is None else presented(call, known, kernel)


def _back(call: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose scale of 0 is none."""

    def kernel(**given: Any) -> Any:
        return call(**{n: x for n, x in given.items() if n != "scale" or x != 0})

    return presented(kernel, parameters(call) or (), call)
