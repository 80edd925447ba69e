"""Wrong forms, made of a right one: what every adapter must let through for the laws to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import wraps
from typing import Any

from ..operator import Operator, pair
from ..tensors import joined
from . import calls

Call = Callable[..., Any]
PART = 4
"""Tokens after which the carry is dropped."""


def wrongs(operator: Operator, right: Call, shown: Set[str], single: bool) -> Iterator[tuple[str, Call]]:
    """Every wrong form, by what is wrong with it, that a kernel can be which shows these arguments; ``single``: one token a call."""
    yield "zeros", _result(right, lambda out: out * 0.0)
    yield "every output times 1.004", _result(right, lambda out: out * 1.004)
    yield "inputs rounded to 16 bits", _given(right, _short)
    swapped = _alike(operator)
    if swapped:
        yield f"{' and '.join(swapped)} swapped", _given(right, lambda given: _swap(given, *swapped))
    if "sequence" in operator.capabilities:
        axis = calls.output_axes(operator).split().index("t")
        if not single:
            yield "the mean over time", _result(right, lambda out: _mean(out, axis))
        yield "the last token dropped", _result(right, lambda out: _without_last(out, axis))
    if "state" in operator.capabilities:
        yield "the carry dropped", _forgetful(operator, right)
    if {operator.state_argument, operator.final_argument} <= shown:
        yield "the state ignored on the way in", _given(right, lambda given: {**given, operator.state_argument: None})
        yield "the state one token late", _late(operator, right)
        yield "the state backwards", _state(right, lambda s: s.flip(-1))
        if len(operator.state_axes.split()) > 2:
            yield "the state transposed", _state(right, lambda s: s.transpose(-1, -2))


def _mean(out: Any, axis: int) -> Any:
    return out.mean(axis, keepdim=True).expand_as(out) if out.shape[axis] else out


def _without_last(out: Any, axis: int) -> Any:
    last = min(1, out.shape[axis])
    return joined((out.narrow(axis, 0, out.shape[axis] - last), out.narrow(axis, 0, last) * 0.0), axis)


def _alike(operator: Operator) -> tuple[str, str] | None:
    """Two inputs that have the same axes."""
    inputs = operator.inputs
    return next(((a.name, b.name) for n, a in enumerate(inputs) for b in inputs[n + 1 :] if a.axes == b.axes and len(a.axes) > 1), None)


def _given(right: Call, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Call:
    """Right of other arguments."""

    @wraps(right)
    def wrong(**given: Any) -> Any:
        return right(**change(given))

    return wrong


def _result(right: Call, change: Callable[[Any], Any]) -> Call:
    """Right, and then changed."""

    @wraps(right)
    def wrong(**given: Any) -> Any:
        out, state = pair(right(**given))
        return change(out) if state is None else (change(out), state)

    return wrong


def _state(right: Call, change: Callable[[Any], Any]) -> Call:
    """Right but for the state that is handed out."""

    @wraps(right)
    def wrong(**given: Any) -> Any:
        out, state = pair(right(**given))
        return out if state is None else (out, change(state))

    return wrong


def _short(given: Mapping[str, Any]) -> Mapping[str, Any]:
    def rounded(x: Any) -> Any:
        return x.bfloat16().to(x.dtype) if hasattr(x, "is_floating_point") and x.is_floating_point() else x

    return {n: rounded(x) for n, x in given.items()}


def _swap(given: Mapping[str, Any], a: str, b: str) -> Mapping[str, Any]:
    same = a in given and b in given and given[a].shape == given[b].shape
    return {**given, a: given[b], b: given[a]} if same else given


def _between(operator: Operator, given: Mapping[str, Any], start: int, stop: int) -> dict[str, Any]:
    """The arguments of tokens start..stop-1."""
    found = dict(given)
    for name in operator.axes:
        order = calls.axes_of(operator, name, given[name]).split() if given.get(name) is not None else []
        if "t" in order:
            found[name] = given[name].narrow(order.index("t"), start, stop - start)
    return found


def _late(operator: Operator, right: Call) -> Call:
    """Right but for a state that has not seen the last token."""

    @wraps(right)
    def wrong(**given: Any) -> Any:
        out, state = pair(right(**given))
        steps = calls.sizes(operator, given)["t"]
        return out if state is None else (out, pair(right(**_between(operator, given, 0, max(0, steps - 1))))[1])

    return wrong


def _forgetful(operator: Operator, right: Call) -> Call:
    """Right of a first part, and of the rest as if it were all."""
    axis = calls.output_axes(operator).split().index("t")

    @wraps(right)
    def wrong(**given: Any) -> Any:
        cut = min(PART, calls.sizes(operator, given)["t"])
        rest = {n: x for n, x in given.items() if n != operator.state_argument}
        out, state = pair(right(**_between(operator, given, 0, cut)))
        later, last = pair(right(**_between(operator, rest, cut, calls.sizes(operator, given)["t"])))
        return joined((out, later), axis) if state is None else (joined((out, later), axis), last)

    return wrong
