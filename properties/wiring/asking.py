"""What the signature of a kernel does not say, it is asked: which arguments it takes that takes any, and whether it returns a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..operator import Operator
from . import calls, probing
from .adapting import adapt, hands_out, shown
from .convention import STATE, Argument, Wiring
from .settling import open_ended, parameters


def asked(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> Wiring:
    """The settled wiring of a kernel, without what it does not take or return.

    Of a kernel that takes arguments of any name, an argument is taken if a right value goes through, alone or beside all others,
    and something else or nothing in its place does not, or changes the result. A state that goes through is taken: a kernel that
    ignores it is wrong, not limited.
    """
    known, needed = parameters(function) or {}, calls.required(operator)
    unsure = [a for a in wiring.arguments if a.name not in known and a.carries not in needed] if open_ended(known) else []
    unsure = [a for a in unsure if a.name and a.carries and not a.axis and a.carries != operator.final_argument]
    found = wiring.without(*(a.carries for a in unsure if not _takes(function, operator, wiring, a)))
    final = found.carrying(operator.final_argument)
    if not hands_out(found) or (final is not None and (not final.name or final.name in known)):
        return found
    if operator.state_argument not in {a.carries for a in found.arguments} or not _returns_a_state(function, operator, found):
        stateless = tuple(r for r in found.returns if r.carries != STATE)
        return replace(found.without(operator.final_argument), returns=stateless)
    return found


def _takes(function: Callable[..., Any], operator: Operator, wiring: Wiring, argument: Argument) -> bool:
    name, base = argument.carries, probing.comfortable(operator)
    more: dict[str, Any] = probing.packed(base.size("t")) if name == calls.PACKED else {}
    case = base if more else probing.with_argument(operator, name, base)
    if case is None:
        return False
    adapted, beside = adapt(function, operator, wiring), ((*calls.required(operator), name), tuple(shown(wiring, operator)))
    given = next((names for names in beside if probing.ask(operator, adapted, case, *names, **more).returned), None)
    if given is None:
        return False
    if name == operator.state_argument:
        return True

    def other(*positional: Any, **named: Any) -> Any:
        return function(*positional, **{**named, argument.name: object()})

    def without(*positional: Any, **named: Any) -> Any:
        return function(*positional, **{n: x for n, x in named.items() if n != argument.name})

    if not probing.ask(operator, adapt(other, operator, wiring), case, *given, **more).returned:
        return True
    if not probing.ask(operator, adapt(without, operator, wiring), case, *given, **more).returned:
        return True
    x = probing.drawn(operator, case, given)
    own, other_way = (operator.run(adapt(f, operator, wiring), x, **more)[0] for f in (function, without))
    return not np.array_equal(own, other_way, equal_nan=True)


def _returns_a_state(function: Callable[..., Any], operator: Operator, wiring: Wiring) -> bool:
    """Whether a state comes back, if it is asked for where that can be."""
    adapted = adapt(function, operator, wiring)
    given = operator.tensors(probing.drawn(operator, probing.comfortable(operator), calls.required(operator)))
    try:
        out = adapted(**given, **{operator.final_argument: True})
    except Exception:
        return False
    return isinstance(out, tuple) and len(out) > 1 and hasattr(out[1], "shape")
