"""Kernels that take one token and write the new state over the old one, as whole sequences: token after token."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..operator import pair
from ..tensors import joined
from .convention import Bridge
from .settling import optional, parameters, showing

NOTE = "the kernel takes one token at a time, and its state in place: a sequence is as many calls"
SCAN = {"u": "x", "delta": "dt", "delta_bias": "dt_bias", "delta_softplus": "dt_softplus", "initial_state": "state"}
FILTER = {"initial_states": "conv_state"}
"""What a step calls the arguments of the whole, where it is something else."""


def _scan(update: Callable[..., Any]) -> Callable[..., Any]:
    """The selective scan of selective_state_update."""

    def whole(u: Any, delta: Any, A: Any, B: Any, C: Any, initial_state: Any = None, return_last_state: bool = False, **more: Any) -> Any:
        b, d, length = u.shape
        state = _wide(u).new_zeros((b, d, A.shape[1])) if initial_state is None else initial_state.clone()
        gate = more.pop("z", None)
        fixed = {SCAN.get(n, n): x for n, x in more.items()}
        rows = []
        for t in range(length):
            token = {"x": u[..., t], "dt": delta[..., t], "B": _at(B, b, t), "C": _at(C, b, t)}
            token |= {} if gate is None else {"z": gate[..., t]}
            rows.append(update(state=state, A=A, **token, **fixed).unsqueeze(-1))
        return _all(rows, u), state

    return _shown(
        whole,
        update,
        SCAN,
        ("u", "delta", *"ABCDz", "delta_bias", "delta_softplus", "discretization", "initial_state"),
        "return_last_state",
    )


def _filter(update: Callable[..., Any]) -> Callable[..., Any]:
    """The causal convolution of causal_conv1d_update."""

    def whole(x: Any, weight: Any, initial_states: Any = None, return_final_states: bool = False, **more: Any) -> Any:
        shape = (*x.shape[:2], weight.shape[1] - 1)
        state = x.new_zeros(shape) if initial_states is None else initial_states.to(x.dtype).clone()
        rows = [update(x=x[..., t], conv_state=state, weight=weight, **more).unsqueeze(-1) for t in range(x.shape[2])]
        return _all(rows, x), state

    return _shown(whole, update, FILTER, ("x", "weight", "bias", "activation", "initial_states"), "return_final_states")


def _shown(
    whole: Callable[..., Any], update: Callable[..., Any], other: dict[str, str], names: tuple[str, ...], final: str
) -> Callable[..., Any]:
    """The whole, with those arguments that the step has, and the one that asks for a state."""
    known = parameters(update) or {}
    kept = [n for n in names if other.get(n, n) in known]
    return showing(whole, optional((*kept, final)))


def _wide(x: Any) -> Any:
    """A tensor in the dtype of states."""
    return x if x.element_size() > 4 else x.float()


def _at(weights: Any, b: int, t: int) -> Any:
    """B or C at a token; constant ones are those of a group for each channel."""
    return weights.expand(b, *weights.shape) if weights.ndim == 2 else weights[..., t]


def _all(rows: list[Any], like: Any) -> Any:
    return joined(rows, -1) if rows else like.clone()


def _scan_step(whole: Callable[..., Any]) -> Callable[..., Any]:
    """selective_state_update, of a selective scan."""
    plain = {step: n for n, step in SCAN.items()}

    def update(state: Any, x: Any, dt: Any, A: Any, B: Any, C: Any, **more: Any) -> Any:
        given = {plain.get(n, n): v for n, v in more.items() if v is not None}
        given |= {"z": given["z"].unsqueeze(-1)} if "z" in given else {}
        token = {"u": x, "delta": dt, "B": B, "C": C}
        given |= {n: v.unsqueeze(-1) for n, v in token.items()}
        out, last = pair(whole(A=A, initial_state=state.clone(), return_last_state=True, **given))
        state.copy_(last)
        return out.squeeze(-1)

    return _step_of(update, whole, SCAN, ("state", "x", "dt", *"ABCDz", "dt_bias", "dt_softplus", "discretization"))


def _filter_step(whole: Callable[..., Any]) -> Callable[..., Any]:
    """causal_conv1d_update, of a convolution."""

    def update(x: Any, conv_state: Any, weight: Any, **more: Any) -> Any:
        out, last = pair(whole(x=x.unsqueeze(-1), weight=weight, initial_states=conv_state.clone(), return_final_states=True, **more))
        conv_state.copy_(last)
        return out.squeeze(-1)

    return _step_of(update, whole, FILTER, ("x", "conv_state", "weight", "bias", "activation"))


def _step_of(update: Callable[..., Any], whole: Callable[..., Any], other: dict[str, str], names: tuple[str, ...]) -> Callable[..., Any]:
    taken = {other.get(n, n) for n in inspect.signature(whole).parameters}
    update.__name__ = whole.__name__
    return showing(update, optional(n for n in names if n in taken))


BRIDGES = {
    "selective-scan": ("state", Bridge(_scan, _scan_step)),
    "selective-scan-zoh": ("state", Bridge(_scan, _scan_step)),
    "causal-conv1d": ("conv_state", Bridge(_filter, _filter_step)),
}
"""By operator: the argument that marks a step, and the bridge."""
