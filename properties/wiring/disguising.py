"""Make a kernel that is called otherwise of a plain one: the reverse of an adapter, to try it on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..operator import Operator, pair
from . import calls
from .adapting import hands_out, presented
from .axes import measured, names, reordered
from .convention import CODES, OUT, STATE, Argument, Wiring


def disguise(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> Callable[..., Any]:
    """A kernel in the convention of a wiring that is computed by a plain form, with the arguments that the form takes."""
    parameters = inspect.signature(function).parameters
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    taken = {a.carries for a in wiring.arguments if any_name or a.carries in parameters}
    arguments = [a for a in wiring.arguments if not a.carries or a.axis or a.carries in taken]
    titles = [a.name or f"argument_{n}" for n, a in enumerate(arguments)]

    def kernel(*positional: Any, **named: Any) -> Any:
        bound = dict(zip(titles, positional)) | named
        given = [(a, bound[title]) for a, title in zip(arguments, titles) if title in bound]
        sizes = _sizes(given, operator)
        plain = {a.carries: _plain(a, x, operator, sizes) for a, x in given if a.carries and not a.axis}
        if "scale" in parameters and plain.get("scale") is None and wiring.own_scale is not None:
            plain["scale"] = wiring.own_scale
        if operator.final_argument in parameters and hands_out(wiring) and wiring.carrying(operator.final_argument) is None:
            plain[operator.final_argument] = True
        return _foreign(function(**plain), wiring, operator, plain)

    shown = presented(kernel, titles, function, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return shown if wiring.bridge is None else wiring.bridge.back(shown)


def _sizes(given: list[tuple[Argument, Any]], operator: Operator) -> dict[str, int]:
    found = {a.axis: int(x) for a, x in given if a.axis}
    for a, x in given:
        if a.carries != operator.state_argument and hasattr(x, "shape"):
            found |= measured(a.axes or calls.axes_of(operator, a.carries, x), x, found)
    return found


def _plain(argument: Argument, x: Any, operator: Operator, sizes: Mapping[str, int]) -> Any:
    """The plain argument, of what a kernel was given."""
    if argument.axes and hasattr(x, "shape"):
        own = sizes if argument.carries != operator.state_argument else {**sizes, "b": _count(argument.axes, x, sizes)}
        x = reordered(x, argument.axes, _target(operator, argument), own)
    return CODES[argument.code].leave(x) if argument.code and x is not None else x


def _count(axes: str, x: Any, sizes: Mapping[str, int]) -> int:
    """The number of states in a tensor: of the batch, or of packed sequences."""
    return measured(axes, x, {n: s for n, s in sizes.items() if n != "b"})["b"]


def _target(operator: Operator, argument: Argument) -> str:
    """The plain axes of what an argument carries, among alternatives those with the same names."""
    plain = operator.state_axes if argument.carries == operator.state_argument else operator.axes[argument.carries].axes
    return next(a.strip() for a in plain.split("|") if set(a.split()) == set(names(argument.axes)))


def _foreign(result: Any, wiring: Wiring, operator: Operator, plain: Mapping[str, Any]) -> Any:
    """What a kernel returns: one tensor where the convention has no more, or where no state was asked for."""
    if not calls.output_axes(operator):
        return result
    out, state = pair(result)
    found = {OUT: out, STATE: state}
    axes = {OUT: calls.output_axes(operator), STATE: operator.state_axes}
    for r in wiring.returns:
        if r.axes and found.get(r.carries) is not None:
            sizes = calls.sizes(operator, plain, states=r.carries == STATE)
            found[r.carries] = reordered(found[r.carries], axes[r.carries], r.axes, sizes)
    results = tuple(found.get(r.carries) for r in wiring.returns)
    return found[OUT] if len(results) == 1 or (state is None and results[0] is found[OUT]) else results
