"""Make the plain call of a kernel that is called otherwise."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..operator import Operator
from . import calls
from .axes import reordered, size
from .convention import CODES, OUT, STATE, Argument, Wiring
from .settling import optional, settle, showing

Given = Mapping[str, Any]
"""The arguments of a plain call."""


def adapt(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> Callable[..., Any]:
    """The plain call of a kernel; its signature shows exactly the plain arguments that the kernel can take.

    Raises WiringError where the kernel does not have the arguments of the wiring, or needs others.
    """
    kernel, fitted = settle(function, operator, wiring)

    def plain(**given: Any) -> Any:
        values = [(a, _value(a, fitted, operator, given)) for a in fitted.arguments]
        positional, named = _placed(values, given)
        return _plainly(kernel(*positional, **named), fitted, operator, given)

    return presented(plain, shown(fitted, operator), function)


def presented(call: Callable[..., Any], names: Iterable[str], like: Callable[..., Any], kind: Any = inspect.Parameter.KEYWORD_ONLY) -> Any:
    """A callable with a signature of these names, all optional, under the name of another one."""
    showing(call, optional(names, kind))
    call.__name__ = getattr(like, "__name__", type(like).__name__)
    call.__qualname__ = getattr(like, "__qualname__", call.__name__)
    call.__module__ = getattr(like, "__module__", None) or "MODULE"
    return call


def shown(wiring: Wiring, operator: Operator) -> list[str]:
    """The plain arguments that a kernel can take.

    A scale is one if its own is a number, and that a state is asked for if it takes and returns one.
    """
    taken = {a.carries for a in wiring.arguments}
    if calls.scales(operator) and wiring.own_scale is not None:
        taken.add("scale")
    if operator.state_argument in taken and hands_out(wiring):
        taken.add(operator.final_argument)
    return [n for n in calls.arguments(operator) if n in taken]


def hands_out(wiring: Wiring) -> bool:
    """Whether a state comes back."""
    return any(r.carries == STATE for r in wiring.returns)


def _value(argument: Argument, wiring: Wiring, operator: Operator, given: Given) -> Any:
    """What a kernel is given for an argument; None where the plain call has nothing for it."""
    if argument.axis:
        return size(argument.axis, calls.sizes(operator, given))
    x = given.get(argument.carries) if argument.carries else None
    if x is None:
        return calls.root_scale(given) if argument.carries == "scale" and wiring.own_scale is not None else argument.value
    if argument.code:
        x = CODES[argument.code].enter(x)
    sizes = calls.sizes(operator, given, states=argument.carries == operator.state_argument)
    return reordered(x, calls.axes_of(operator, argument.carries, x), argument.axes, sizes) if argument.axes else x


def _placed(values: Iterable[tuple[Argument, Any]], given: Given) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, by position and by name, without those that are not given."""
    values = list(values)
    positional = [x for a, x in values if not a.name]
    while positional and positional[-1] is None:
        positional.pop()
    return positional, {a.name: x for a, x in values if a.name and (x is not None or a.always or not a.carries or a.carries in given)}


def _plainly(result: Any, wiring: Wiring, operator: Operator, given: Given) -> Any:
    """What the plain call returns: the output, and the state where there is one. A lone tensor is the output."""
    if not calls.output_axes(operator):
        return result
    found = dict(zip((r.carries for r in wiring.returns), result)) if isinstance(result, (tuple, list)) else {OUT: result}
    plain = {OUT: calls.output_axes(operator), STATE: operator.state_axes}
    for r in wiring.returns:
        if r.axes and hasattr(found.get(r.carries), "shape"):
            sizes = calls.sizes(operator, given, states=r.carries == STATE)
            found[r.carries] = reordered(found[r.carries], r.axes, plain[r.carries], sizes)
    out, state = found.get(OUT), found.get(STATE)
    if calls.scales(operator) and wiring.carrying("scale") is None and hasattr(out, "shape"):
        out = _scaled(out, wiring, given)
    return out if state is None or operator.final_argument not in shown(wiring, operator) else (out, state)


def _scaled(out: Any, wiring: Wiring, given: Given) -> Any:
    """The output of a kernel that takes no scale, times the factor of the plain call over its own."""
    if wiring.own_scale is None:
        return out
    wanted = given.get("scale")
    factor = (calls.root_scale(given) if wanted is None else wanted) / wiring.own_scale
    return out if factor == 1 else out * factor
