"""Fit a convention to a certain kernel: which of its arguments the kernel has, by its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..operator import Operator
from . import calls
from .convention import Argument, Wiring, WiringError

Parameters = Mapping[str, inspect.Parameter]
ANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def parameters(function: Callable[..., Any]) -> Parameters | None:
    """The parameters of a callable; None where Python cannot tell, as of a builtin."""
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        return None


def settle(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> Wiring:
    """The wiring with the arguments that the kernel has. Raises WiringError where it lacks one that every call has, or needs another."""
    known = parameters(function)
    if wiring.settled:
        return wiring
    kept = wiring.arguments if known is None else tuple(found for a in wiring.arguments if (found := _placed(a, known)) is not None)
    name = getattr(function, "__name__", "the kernel")
    carried = {a.carries for a in kept}
    if wiring.bridge is None:
        lacking = [n for n in calls.required(operator) if n not in carried]
        if lacking:
            raise WiringError(f"{name} has no argument {', '.join(lacking)}, which every call of {operator.name} has; a map can name it")
    taken = {a.name for a in kept}
    needed = [n for n, p in (known or {}).items() if p.default is p.empty and p.kind not in ANY and n not in taken]
    positional = sum(not a.name for a in kept)
    if needed[positional:]:
        raise WiringError(f"{name} needs {', '.join(needed[positional:])}, which is no argument of {operator.name}; a map can give it")
    return replace(wiring, arguments=kept, settled=True)


def _placed(argument: Argument, known: Parameters) -> Argument | None:
    """The argument under the name that a kernel has for it, or by its position; None where it has none."""
    if not argument.name:
        return argument
    found = next((n for n in (argument.name, *argument.aliases) if n in known), None)
    if found is None:
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
        return argument if takes_any and (argument.carries or argument.always) else None
    return replace(argument, name="" if known[found].kind is inspect.Parameter.POSITIONAL_ONLY else found)
