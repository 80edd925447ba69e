"""Fit a convention to a certain kernel: which of its arguments the kernel has, by its signature or by asking it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def showing(call: Callable[..., Any], shown: Iterable[inspect.Parameter]) -> Any:
    """The callable itself, whose signature has these parameters from now on."""
    vars(call)["__signature__"] = inspect.Signature(list(shown))
    return call


def optional(names: Iterable[str], kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD) -> list[inspect.Parameter]:
    """Parameters of these names, each with the default None."""
    return [inspect.Parameter(n, kind, default=None) for n in names]


def open_ended(known: Parameters) -> bool:
    """Whether a callable takes arguments of any name."""
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())


def settle(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> tuple[Callable[..., Any], Wiring]:
    """The kernel behind the bridge of its convention, and the wiring with the arguments that it has.

    Raises WiringError where it lacks one that every call has, or needs another.
    """
    chosen = _convention(parameters(function), wiring)
    kernel = function if chosen.bridge is None else chosen.bridge.into(function)
    if chosen.settled:
        return kernel, chosen
    known, name = parameters(kernel), getattr(function, "__name__", "the kernel")
    kept = chosen.arguments if known is None else _kept(chosen.arguments, known, name)
    _complete(name, operator, kept, known or {})
    return kernel, replace(chosen, arguments=kept, own_scale=_own_scale(known, kept, chosen), settled=True)


def _convention(known: Parameters | None, wiring: Wiring) -> Wiring:
    """Of the conventions of one name that of the kernel, by the arguments that mark it."""
    fits = [w for w in (wiring, *wiring.otherwise) if known is not None and set(w.marks) <= set(known)]
    return max(fits, key=lambda w: len(w.marks), default=wiring)


def _kept(arguments: Sequence[Argument], known: Parameters, name: str) -> tuple[Argument, ...]:
    """The arguments that a kernel has, those without a name in its order."""
    found = [kept for a in arguments if (kept := _named(a, known, name)) is not None]
    only = [n for n, p in known.items() if p.kind is p.POSITIONAL_ONLY]
    first = [replace(a, name="") for n in only for a in found if a.name == n]
    return (*first, *(a for a in found if a.name not in only))


def _named(argument: Argument, known: Parameters, name: str) -> Argument | None:
    """The argument under the name that a kernel has for it; None where it has none. Raises WiringError if it must."""
    if not argument.name:
        return argument
    found = next((n for n in (argument.name, *argument.aliases) if n in known), None)
    if found is None:
        takes_any = open_ended(known)
        if argument.stated and not takes_any:
            raise WiringError(f"map: {name} has no argument {argument.name}; its arguments are {', '.join(known) or 'none'}")
        return argument if takes_any and (argument.carries or argument.always) else None
    return replace(argument, name=found)


def _complete(name: str, operator: Operator, kept: tuple[Argument, ...], known: Parameters) -> None:
    carried = {a.carries for a in kept}
    lacking = [n for n in calls.required(operator) if n not in carried]
    if lacking:
        has = ", ".join(known) or "none"
        raise WiringError(
            f"{name} has no argument {', '.join(lacking)}, which every call of {operator.name} has (its arguments: {has}); "
            f"a map says which of them it is"
        )
    taken = {a.name for a in kept}
    needed = [n for n, p in known.items() if p.default is p.empty and p.kind not in ANY and n not in taken]
    beyond = needed[sum(not a.name for a in kept) :]
    if beyond:
        raise WiringError(f"{name} needs {', '.join(beyond)}, which is no argument of {operator.name}; a map can give it a value")


def _own_scale(known: Parameters | None, kept: tuple[Argument, ...], wiring: Wiring) -> float | None:
    """The kernel's own factor: the default of its argument where that is a number."""
    argument = next((a for a in kept if a.carries == "scale"), None)
    default = known[argument.name].default if known and argument and argument.name in known else None
    return float(default) if isinstance(default, (int, float)) and not isinstance(default, bool) else wiring.own_scale
