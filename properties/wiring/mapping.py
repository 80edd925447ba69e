"""A map, as text: small differences between a kernel's call and a signature's, written like a Python call.

    query=q[b h t k], decay=exp(g), normalize=False -> out[b h t v], state[b hv v k]

An entry before the arrow says what one argument of the kernel is given: a plain argument by its name, in the order of axes in
brackets if that is another one than the plain call's; ``exp(g)``, ``-g`` or ``log(-g)`` of a plain argument g that is at most 0; the
size of an axis, ``size(h)``; or a constant of Python. A number on the left is a position, 1 the first; without a left side the
kernel's name is the plain one. ``head-first`` swaps heads and time in all tensors, ``unscaled`` says that the kernel's own factor on
queries is 1. Behind the arrow stands what comes back, in order: ``out``, ``state``, and ``_`` for what is not compared. A state that
comes back has the axes of the one that is given, unless it says its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..operator import Operator
from . import calls
from .axes import names
from .convention import CODES, OUT, SIZE, STATE, UNUSED, Argument, Result, Wiring, WiringError
from .limiting import both

HEAD_FIRST, UNSCALED = "head-first", "unscaled"
ARROW = "->"
HEADS = ("h", "hv", "hkv")
_TARGET = re.compile(r"\s*([A-Za-z_]\w*|[1-9]\d*)\s*=\s*(?!=)(.*)", re.DOTALL)
_SOURCE = re.compile(r"\s*(.*?)\s*(?:\[([^\[\]]*)\])?\s*", re.DOTALL)
_CODED = ((re.compile(r"exp\((\w+)\)"), "exp"), (re.compile(r"log\(\s*-\s*(\w+)\)"), "log-neg"), (re.compile(r"-\s*(\w+)"), "neg"))
_SIZED = re.compile(rf"{SIZE}\((\w+)\)")


@dataclass(frozen=True)
class _Entry:
    """What one argument of the kernel is given; ``place`` is 0 for one by name."""

    argument: Argument
    place: int = 0


def parse_map(text: str, operator: Operator, wiring: Wiring) -> Wiring:
    """The wiring with the changes of a map. Raises WiringError, one sentence, for a map that is not understood."""
    if not text.strip():
        return wiring
    if not wiring.mapped:
        raise WiringError(f"map: the signature {wiring.signature} takes none; write an adapter in Python, or use the signature plain")
    before, arrow, behind = text.partition(ARROW)
    parts = _split(before)
    words = [p for p in parts if p in (HEAD_FIRST, UNSCALED)]
    entries = [_entry(p, operator) for p in parts if p not in words]
    results = tuple(_result(p, operator) for p in _split(behind)) if arrow else wiring.returns
    if OUT not in [r.carries for r in results]:
        raise WiringError(f"map: {behind.strip()!r} names no {OUT}; what comes back is {OUT}, {STATE} and {UNUSED}, in order")
    named = replace(wiring, arguments=_merged(wiring.arguments, entries), returns=results, otherwise=(), marks=())
    ordered = _swapped(named, operator) if HEAD_FIRST in words else named
    scaled = replace(ordered, own_scale=1.0) if UNSCALED in words else ordered
    return _limited(replace(scaled, returns=_stated(scaled, operator)))


def _split(text: str) -> list[str]:
    """The entries between commas that stand in no bracket and no string. Raises WiringError for brackets that do not close."""
    found, depth, quote, start = [], 0, "", 0
    for n, c in enumerate(text):
        if quote or c in "'\"":
            quote = c if not quote else "" if c == quote else quote
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            found.append(text[start:n])
            start = n + 1
    if depth or quote:
        raise WiringError(f"map: a bracket or a string in {text.strip()!r} is not closed")
    return [e.strip() for e in (*found, text[start:]) if e.strip()]


def _entry(text: str, operator: Operator) -> _Entry:
    target = _TARGET.fullmatch(text)
    left, source = (target[1], target[2].strip()) if target else ("", text)
    argument = _given(text, source, operator)
    if left.isdigit():
        return _Entry(replace(argument, name=""), place=int(left))
    name = left or argument.carries
    if not name.isidentifier():
        raise WiringError(f"map: {text!r} says for no argument of the kernel what it is; write ARGUMENT={source}")
    return _Entry(replace(argument, name=name, stated=True))


def _given(text: str, source: str, operator: Operator) -> Argument:
    """What stands on the right: a plain argument, in a code and in an order of axes, a size, or a constant."""
    found = _SOURCE.fullmatch(source)
    bare, axes = (found[1], found[2]) if found else (source, None)
    code = next(((match[1], code) for pattern, code in _CODED if (match := pattern.fullmatch(bare))), None)
    plain, coded = code if code and not code[0].isdigit() else (bare, "")
    if plain in calls.arguments(operator):
        if coded and not _signed(operator, plain):
            raise WiringError(f"map: {text!r} writes {plain} as {CODES[coded].says}, which is for what is at most 0")
        return Argument("", plain, _axes(text, axes, _plain_axes(operator, plain)) if axes is not None else "", coded)
    sized = _SIZED.fullmatch(source)
    if sized:
        return Argument("", source, always=True)
    try:
        return Argument("", value=ast.literal_eval(source), always=True)
    except (ValueError, SyntaxError):
        allowed = ", ".join(calls.arguments(operator))
        raise WiringError(
            f"map: {source!r} in {text!r} is no argument of {operator.name} and no constant; its arguments are {allowed}"
        ) from None


def _signed(operator: Operator, plain: str) -> bool:
    return plain in operator.axes and operator.axes[plain].domain.startswith("<= 0")


def _plain_axes(operator: Operator, plain: str) -> str:
    if plain == operator.state_argument:
        return operator.state_axes
    return operator.axes[plain].axes if plain in operator.axes else ""


def _axes(text: str, given: str, plain: str) -> str:
    """Axes in another order. Raises WiringError unless they are those of the plain call."""
    allowed = [a.strip() for a in plain.split("|") if a.strip()]
    found = names(given)
    if not any(sorted(found) == sorted(a.split()) and len(set(found)) == len(found) for a in allowed):
        raise WiringError(f"map: [{given}] in {text!r} are not its axes, which are {' or '.join(allowed) or 'none that can be moved'}")
    return " ".join(given.split())


def _result(text: str, operator: Operator) -> Result:
    found = _SOURCE.fullmatch(text)
    name, axes = (found[1], found[2]) if found else (text, None)
    plain = {OUT: calls.output_axes(operator), STATE: operator.state_axes, UNUSED: ""}
    if name not in plain:
        raise WiringError(f"map: {text!r} behind {ARROW} is none of {OUT}, {STATE} and {UNUSED}")
    return Result(name, "" if axes is None else _axes(text, axes, plain[name]))


def _merged(base: tuple[Argument, ...], entries: Sequence[_Entry]) -> tuple[Argument, ...]:
    """The arguments by position in order, then those by name; what an entry carries or is called like replaces what stood there."""
    given = [e.argument for e in entries]
    for what, all_of in (("argument", [a.name for a in given if a.name]), ("plain argument", [a.carries for a in given if a.carries])):
        twice = sorted({n for n in all_of if all_of.count(n) > 1})
        if twice:
            raise WiringError(f"map: the {what} {twice[0]} stands there twice")
    placed = sorted((e for e in entries if e.place), key=lambda e: e.place)
    if [e.place for e in placed] != list(range(1, len(placed) + 1)):
        raise WiringError("map: positions are 1, 2, 3, … without a gap")
    taken, carried = {a.name for a in given if a.name}, {a.carries for a in given if a.carries}
    kept = [a for a in base if a.name not in taken and a.carries not in carried]
    return (*(e.argument for e in placed), *kept, *(e.argument for e in entries if not e.place))


def _swapped(wiring: Wiring, operator: Operator) -> Wiring:
    """Heads before time wherever a tensor has both."""

    def swapped(given: str, plain: str) -> str:
        return given or _head_first(plain)

    arguments = tuple(replace(a, axes=swapped(a.axes, _plain_axes(operator, a.carries))) for a in wiring.arguments)
    out = calls.output_axes(operator)
    return replace(
        wiring, arguments=arguments, returns=tuple(replace(r, axes=swapped(r.axes, out * (r.carries == OUT))) for r in wiring.returns)
    )


def _head_first(axes: str) -> str:
    """Time and heads swapped; "" where there is nothing to swap, or more than one order of axes."""
    order = axes.split()
    head = next((n for n in HEADS if n in order), None)
    time = next((n for n in "ts" if n in order), None)
    if "|" in order or head is None or time is None:
        return ""
    return " ".join({head: time, time: head}.get(n, n) for n in order)


def _stated(wiring: Wiring, operator: Operator) -> tuple[Result, ...]:
    """A state that comes back without axes of its own has those of the one that is given."""
    given = wiring.carrying(operator.state_argument)
    return tuple(replace(r, axes=given.axes) if r.carries == STATE and not r.axes and given else r for r in wiring.returns)


def _limited(wiring: Wiring) -> Wiring:
    """What the codes leave out."""
    limits = wiring.limits
    for a in wiring.arguments:
        limits = both(limits, CODES[a.code].limits) if a.code else limits
    return replace(wiring, limits=limits)
