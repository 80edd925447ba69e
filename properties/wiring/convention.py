"""How a kernel of somebody else's is called, as data: which of its arguments carries what of the plain call, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OUT, STATE, UNUSED = "out", "state", "_"
SIZE = "size"


class WiringError(ValueError):
    """A wiring that is wrong, or that does not fit the kernel: one sentence for the user, never a verdict on the kernel."""


@dataclass(frozen=True)
class Code:
    """How the values of an argument are written: from the plain call's and back."""

    says: str
    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]


CODES = {
    "exp": Code("the decay itself, where the plain call has its log", lambda x: x.exp(), lambda x: x.log()),
    "neg": Code("with the other sign", lambda x: -x, lambda x: -x),
    "log-neg": Code("the log of the number with the other sign", lambda x: (-x).log(), lambda x: -(x.exp())),
}


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: the plain argument that it carries, in which order of axes and in which code.

    ``name`` is "" for one that is given by position. ``aliases`` are other names that it may have. ``axes`` are "" where they
    are the plain call's. ``carries`` may be "size(h)", the size of an axis. One that carries nothing is the constant ``value``,
    for kernels that name it, or for all if ``always``; that also has ``value`` stand for a plain argument which a call does not have.
    """

    name: str
    carries: str = ""
    axes: str = ""
    code: str = ""
    aliases: tuple[str, ...] = ()
    value: Any = None
    always: bool = False


@dataclass(frozen=True)
class Result:
    """One of what a kernel returns: `OUT`, `STATE`, or `UNUSED`, and its order of axes."""

    carries: str
    axes: str = ""


@dataclass(frozen=True)
class Bridge:
    """What names, axes and codes cannot say: makes a plain callable of one that takes and returns something else, and the reverse."""

    into: Callable[[Callable[..., Any]], Callable[..., Any]]
    back: Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Wiring:
    """How a kernel is called.

    ``unscaled`` says that its own factor on the queries is 1, where the plain call has K^-1/2. ``settled`` says that the
    arguments are those that a certain kernel takes. ``notes`` are what a report says of it.
    """

    signature: str
    arguments: tuple[Argument, ...]
    returns: tuple[Result, ...] = (Result(OUT), Result(STATE))
    unscaled: bool = False
    bridge: Bridge | None = None
    notes: tuple[str, ...] = ()
    settled: bool = False

    def carrying(self, plain: str) -> Argument | None:
        """The argument that carries a plain one, if there is one."""
        return next((a for a in self.arguments if a.carries == plain), None)
