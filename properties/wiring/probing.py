"""Small right calls of a kernel, to find out what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..operator import FormRaised, Instance, Operator
from ..strategies import LARGE, Case
from ..tensors import offsets
from .calls import PACKED

SIZES = dict.fromkeys("kvdncm", 16) | {"b": 1, "t": 64, "h": 2, "groups": 1, "g": 1, "w": 4, "chunk": 16, "block": 16}
"""Sizes with which a kernel that takes anything can be expected to be content."""
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, NameError, RecursionError, SyntaxError)
"""What Python raises where a program is wrong: no kernel refuses an argument so."""


@dataclass(frozen=True)
class Answer:
    """What a kernel did with a call: it returned, or what it raised, and whether that is the way to refuse something."""

    raised: str = ""
    refused: bool = False

    @property
    def returned(self) -> bool:
        """Whether the call went through."""
        return not self.raised


def comfortable(operator: Operator) -> Case:
    """A case without structure, whose sizes are even and not small."""
    first = operator.corners()[0]
    return replace(first, dtype="float32", scale=LARGE, flags=()).resized(**{n: SIZES[n] for n, _ in first.sizes if n in SIZES})


def with_argument(operator: Operator, name: str, base: Case) -> Case | None:
    """A case as comfortable, with as little structure, whose call has a certain argument; None where no case that every run has has it."""
    corners = [c.flags for c in operator.corners()]
    alone = [(f,) for flags in corners for f in flags]
    cases = (replace(base, flags=flags) for flags in dict.fromkeys([(), *alone, *corners]))
    return next((c for c in cases if name in _named(operator, c)), None)


def _named(operator: Operator, case: Case) -> set[str]:
    x = operator.draw(case)
    return {*operator.tensors(x), *x.options}


def drawn(operator: Operator, case: Case, names: Iterable[str]) -> Instance:
    """The instance of a case, without all arguments but these."""
    x, kept = operator.draw(case), set(names)
    return replace(
        x,
        inputs={n: a for n, a in x.inputs.items() if n in kept},
        options={n: a for n, a in x.options.items() if n in kept},
        state=x.state if operator.state_argument in kept else None,
    )


def ask(operator: Operator, function: Callable[..., Any], case: Case, *names: str, **more: Any) -> Answer:
    """Call an adapted kernel with a case: with all of its arguments that the kernel takes, or with these alone."""
    shown = set(inspect.signature(function).parameters)
    try:
        operator.call(function, drawn(operator, case, shown & set(names) if names else shown), **more)
    except FormRaised as error:
        cause, said = error.__cause__, str(error).removeprefix("raised ").rstrip(": ")
        return Answer(said, cause is not None and not isinstance(cause, FAULTS))
    return Answer()


def packed(steps: int) -> dict[str, Any]:
    """The argument that packs two sequences of half the length each."""
    return {PACKED: offsets((0, steps // 2, steps))}
