"""How a kernel of somebody else's is called, as data: which of its arguments carries what of the plain call, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..limits import GRADIENT, Limits
from ..tensors import SHORT

OUT, STATE, UNUSED = "out", "state", "_"
SIZE = "size"


class WiringError(ValueError):
    """A wiring that is wrong, or that does not fit the kernel: one sentence for the user, never a verdict on the kernel."""


@dataclass(frozen=True)
class Code:
    """How the values of an argument are written, from the plain call's and back, and what cannot be asked of a kernel then."""

    says: str
    enter: Callable[[Any], Any]
    leave: Callable[[Any], Any]
    limits: Limits = field(default_factory=Limits)


def _short(says: str) -> dict[str, str]:
    return {dtype: f"{says} rounded to {dtype} is another number" for dtype in SHORT}


CODES = {
    "exp": Code("exp(g)", lambda x: x.exp(), lambda x: x.log(), Limits(refuses=_short("exp(g)"))),
    "neg": Code("-g", lambda x: -x, lambda x: -x),
    "log-neg": Code(
        "log(-g)",
        lambda x: (-x).log(),
        lambda x: -(x.exp()),
        Limits(refuses={**_short("log(-g)"), GRADIENT: "log(-g) has no slope at g = 0"}),
    ),
}
"""Of what the plain call has as g, a number that is at most 0: a log-decay, or a pole."""


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: the plain argument that it carries, in which order of axes and in which code.

    ``name`` is "" for one that is given by position. ``aliases`` are other names that it may have. ``axes`` are "" where they
    are the plain call's. ``carries`` may be "size(h)", the size of an axis. One that carries nothing is the constant ``value``,
    for kernels that name it, or for all if ``always``; that also has ``value`` stand for a plain argument which a call does not have.
    ``stated`` says that the kernel must have it, since a map says so.
    """

    name: str
    carries: str = ""
    axes: str = ""
    code: str = ""
    aliases: tuple[str, ...] = ()
    value: Any = None
    always: bool = False
    stated: bool = False

    @property
    def axis(self) -> str:
        """The axis whose size it carries, or ""."""
        return self.carries[len(SIZE) + 1 : -1] if self.carries.startswith(f"{SIZE}(") else ""


@dataclass(frozen=True)
class Result:
    """One of what a kernel returns: `OUT`, `STATE`, or `UNUSED`, and its order of axes, "" being the plain call's."""

    carries: str
    axes: str = ""


@dataclass(frozen=True)
class Bridge:
    """What names, axes and codes cannot say, as Python: ``into`` makes of a kernel one that they can describe, ``back`` the reverse."""

    into: Callable[[Callable[..., Any]], Callable[..., Any]]
    back: Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Wiring:
    """How a kernel is called.

    ``own_scale`` is the kernel's own factor on the queries, None being K^-1/2. ``marks`` are arguments by which a kernel of this
    convention is known, ``otherwise`` other conventions that have the same name. ``limits`` are what nobody can ask of a kernel
    that is called so, ``notes`` what a report says of it. ``single`` says that it is given one token a call, ``mapped`` that a map may
    change it, ``settled`` that the arguments are those of a certain kernel.
    """

    signature: str
    arguments: tuple[Argument, ...]
    returns: tuple[Result, ...] = (Result(OUT), Result(STATE))
    own_scale: float | None = None
    bridge: Bridge | None = None
    marks: tuple[str, ...] = ()
    otherwise: tuple[Wiring, ...] = ()
    limits: Limits = field(default_factory=Limits)
    notes: tuple[str, ...] = ()
    single: bool = False
    mapped: bool = True
    settled: bool = False

    def without(self, *plain: str) -> Wiring:
        """The wiring of a kernel that is never given these plain arguments."""
        return replace(self, arguments=tuple(a for a in self.arguments if a.carries not in plain))

    def carrying(self, plain: str) -> Argument | None:
        """The argument that carries a plain one, if there is one."""
        return next((a for a in self.arguments if a.carries == plain), None)
