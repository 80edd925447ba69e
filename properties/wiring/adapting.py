"""Make the plain call of a kernel that is called otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..operator import Operator
from . import calls
from .axes import reordered, size
from .convention import CODES, OUT, SIZE, STATE, Argument, Wiring
from .settling import settle


def adapt(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> Callable[..., Any]:
    """The plain call of a kernel; its signature shows exactly the plain arguments that the kernel can take.

    Raises WiringError where the kernel does not have the arguments of the wiring, or needs others.
    """
    settled = settle(function, operator, wiring)

    def plain(**given: Any) -> Any:
        found = _returned(function(*_positional(settled, operator, given), **_named(settled, operator, given)), settled)
        return _plainly(found, settled, operator, given)

    shown = [n for n in calls.arguments(operator) if _shown(n, settled, operator)]
    kinds = inspect.Parameter.KEYWORD_ONLY
    plain.__signature__ = inspect.Signature([inspect.Parameter(n, kinds, default=None) for n in shown])  # type: ignore[attr-defined]
    plain.__name__ = getattr(function, "__name__", type(function).__name__)
    plain.__qualname__ = getattr(function, "__qualname__", plain.__name__)
    plain.__module__ = getattr(function, "__module__", None) or "MODULE"
    return plain if settled.bridge is None else settled.bridge.into(plain)


def _shown(name: str, wiring: Wiring, operator: Operator) -> bool:
    if name == operator.final_argument:
        return wiring.carrying(name) is not None or any(r.carries == STATE for r in wiring.returns)
    return wiring.carrying(name) is not None or (name == "scale" and calls.scales(operator))


def _positional(wiring: Wiring, operator: Operator, given: Mapping[str, Any]) -> list[Any]:
    found = [_value(a, wiring, operator, given) for a in wiring.arguments if not a.name]
    while found and found[-1] is None:
        found.pop()
    return found


def _named(wiring: Wiring, operator: Operator, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {a: _value(a, wiring, operator, given) for a in wiring.arguments if a.name}
    return {a.name: v for a, v in found.items() if v is not None or a.carries in given or not a.carries or a.always}


def _value(argument: Argument, wiring: Wiring, operator: Operator, given: Mapping[str, Any]) -> Any:
    """What a kernel is given for an argument; None where the plain call has nothing for it."""
    if argument.carries.startswith(f"{SIZE}("):
        return size(argument.carries[len(SIZE) + 1 : -1], calls.sizes(operator, given))
    x = given.get(argument.carries) if argument.carries else argument.value
    if x is None and argument.carries == "scale" and wiring.unscaled:
        return _own_scale(given)
    if x is None or not argument.carries:
        return argument.value
    if argument.code:
        x = CODES[argument.code].enter(x)
    if not argument.axes:
        return x
    sizes = calls.sizes(operator, given)
    if argument.carries == operator.state_argument:
        sizes["b"] = calls.sequences(given, sizes["b"])
    return reordered(x, calls.axes_of(operator, argument.carries, x), argument.axes, sizes)


def _own_scale(given: Mapping[str, Any]) -> float:
    """K^-1/2."""
    return float(given["q"].shape[-1] ** -0.5)


def _returned(result: Any, wiring: Wiring) -> dict[str, Any]:
    """What a kernel returned, by what it is; one tensor is the output."""
    if not isinstance(result, (tuple, list)):
        return {OUT: result}
    named = {r.carries: x for r, x in zip(wiring.returns, result)}
    return {OUT: result, **named}


def _plainly(found: dict[str, Any], wiring: Wiring, operator: Operator, given: Mapping[str, Any]) -> Any:
    """What the plain call returns."""
    sizes = calls.sizes(operator, given)
    states = sizes | ({"b": calls.sequences(given, sizes["b"])} if "b" in sizes else {})
    plain = {OUT: calls.output_axes(operator), STATE: operator.state_axes}
    for r in wiring.returns:
        if r.axes and hasattr(found.get(r.carries), "shape"):
            found[r.carries] = reordered(found[r.carries], r.axes, plain[r.carries], states if r.carries == STATE else sizes)
    out, state = found[OUT], found.get(STATE)
    if calls.scales(operator) and wiring.carrying("scale") is None and hasattr(out, "shape"):
        factor = (_own_scale(given) if given.get("scale") is None else given["scale"]) / (1.0 if wiring.unscaled else _own_scale(given))
        out = out if factor == 1 else out * factor
    return out if state is None else (out, state)
