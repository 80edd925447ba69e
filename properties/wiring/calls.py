"""What the plain call of an operator consists of, read off the cases that every run has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..operator import Operator
from .axes import measured

PACKED = "cu_seqlens"


@cache
def arguments(operator: Operator) -> tuple[str, ...]:
    """The names of all arguments of the plain call."""
    instances = [operator.draw(case) for case in operator.corners()]
    tensors = [n for x in instances for n in operator.tensors(x) if n != operator.state_argument]
    options = [n for x in instances for n in x.options]
    state = [operator.state_argument, operator.final_argument] if "state" in operator.capabilities else []
    packed = [PACKED] if "packing" in operator.capabilities else []
    return tuple(dict.fromkeys((*tensors, *options, *operator.needed.values(), *state, *packed)))


@cache
def required(operator: Operator) -> tuple[str, ...]:
    """The names of those arguments that every call has."""
    calls = [set(operator.tensors(operator.draw(case))) for case in operator.corners()]
    return tuple(n for n in arguments(operator) if all(n in c for c in calls))


@cache
def fixed(operator: Operator) -> Mapping[str, Any]:
    """The options that have one value in all calls: a kernel that has no argument for one is taken to have that value."""
    calls = [operator.draw(case).options for case in operator.corners()]
    return {n: x for n, x in calls[0].items() if n in operator.optional and all(n in c and c[n] == x for c in calls)}


def scales(operator: Operator) -> bool:
    """Whether the result is a multiple of the argument ``scale``."""
    return "memory" in operator.capabilities and "scale" in arguments(operator)


def output_axes(operator: Operator) -> str:
    """The axes of the result in the plain call: those of values that have time, else of queries with the width of the values.

    "" for an operator whose results are returned as they are.
    """
    for name in ("v", "u", "x"):
        given = operator.axes.get(name)
        if given is not None and "t" in given.axes.split():
            return given.axes
    q, v = (operator.axes.get(n) for n in "qv")
    return "" if q is None or v is None else " ".join([*q.axes.split()[:-1], v.axes.split()[-1]])


def axes_of(operator: Operator, name: str, x: Any) -> str:
    """The axes of a tensor that is given for a plain argument; "" where it has none."""
    if name == operator.state_argument:
        return operator.state_axes
    return " ".join(operator.axes[name].of(x)) if name in operator.axes else ""


def sizes(operator: Operator, given: Mapping[str, Any], states: bool = False) -> dict[str, int]:
    """The sizes of axes by name, of the inputs of a plain call; of states, that of the batch is the number of packed sequences."""
    found: dict[str, int] = {}
    for name in operator.axes:
        if given.get(name) is not None and hasattr(given[name], "shape"):
            found |= measured(axes_of(operator, name, given[name]), given[name], found)
    packed = given.get(PACKED) if states else None
    return found if packed is None else {**found, "b": len(packed) - 1}


def root_scale(given: Mapping[str, Any]) -> float:
    """K^-1/2, the factor on the queries of a plain call that has none."""
    return float(given["q"].shape[-1] ** -0.5)
