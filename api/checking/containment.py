"""Calls of a kernel that may hang, crash or leave: each is noted to a file before it is made, and has a limit.

The limit counts processor time, so that what else the machine does has no say; a call that waits instead of working ends after
`WAIT` times as long by the clock. Both are alarms whose default action ends the process, so that they also end a loop in C. The
process that started the worker reads the notes and knows the case.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoform.checking.target import Kernel

WAIT = 3.0
"""How many times its limit a call may take by the clock."""


@dataclass(frozen=True)
class Tried:
    """One comparison of a law: the case (as a dictionary), what was compared, and whether it was within its bound."""

    case: dict[str, Any]
    what: str
    fine: bool


class Notes:
    """What a worker is doing, a line of JSON for each event; without a path nothing is written and no alarm is set."""

    def __init__(self, path: Path | None = None, limit: float = 0.0) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1) if path else None
        self._limit = limit if hasattr(signal, "setitimer") else 0.0

    @property
    def contained(self) -> bool:
        """Whether the process is one that may die."""
        return self._file is not None

    def write(self, event: str, value: Any = None) -> None:
        """Note an event."""
        if self._file:
            self._file.write(json.dumps([event, value]) + "\n")

    @contextmanager
    def calling(self, given: str = "") -> Iterator[None]:
        """Around a call of the kernel; ``given`` says what it is given."""
        self.write("call", given)
        self._alarm(self._limit)
        try:
            yield
        finally:
            self._alarm(0.0)
            self.write("return")

    def _alarm(self, seconds: float) -> None:
        """End this process after so much of its time, or longer by the clock; 0 takes the alarms away."""
        if self.contained and self._limit:
            for timer, number, limit in (
                (signal.ITIMER_VIRTUAL, signal.SIGVTALRM, seconds),
                (signal.ITIMER_REAL, signal.SIGALRM, WAIT * seconds),
            ):
                signal.signal(number, signal.SIG_DFL)
                signal.setitimer(timer, limit)


@dataclass(frozen=True)
class Left:
    """What the notes of a process that died say: what was tried before, the case that was not finished, if any, and the last call."""

    tried: tuple[Tried, ...]
    case: dict[str, Any] | None
    calling: bool
    called: bool
    given: str = ""

    @staticmethod
    def read(path: Path) -> Left:
        """Read the notes."""
        tried: list[Tried] = []
        case, calling, called, given = None, False, False, ""
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                event, value = json.loads(line)
            except ValueError:  # the last line, half written
                break
            if event == "case":
                case, calling = value, False
            elif event == "done":
                case = None
            elif event == "tried" and case is not None:
                tried.append(Tried(case, *value))
            else:
                calling, called = event == "call", True
                given = value if calling else given
        return Left(tuple(tried), case, calling, called, given if calling else "")


def contained(function: Kernel, notes: Notes) -> Kernel:
    """The function under an alarm; what would end the process by an exception is an ordinary exception."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with notes.calling(_shapes(args, kwargs) if notes.contained else ""):
            try:
                return function(*args, **kwargs)
            except Exception:
                raise
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) and not notes.contained:
                    raise
                raise _ordinary(error) from error

    return call


def _shapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The arguments that are tensors, by name and shape."""
    given = [*((f"argument {n}", x) for n, x in enumerate(args, 1)), *kwargs.items()]
    return ", ".join(f"{name} {tuple(x.shape)}" for name, x in given if hasattr(x, "shape"))


def settle(notes: Notes) -> None:
    """Make this worker a place for kernels: nothing to read on stdin, and backward passes under the alarm as well."""
    import torch

    sys.stdin = open("/dev/null" if Path("/dev/null").exists() else "nul", encoding="utf-8")  # noqa: SIM115
    plain: Callable[..., Any] = getattr(torch.autograd.grad, "__wrapped__", torch.autograd.grad)
    torch.autograd.grad = contained(plain, notes)


def _ordinary(error: BaseException) -> Exception:
    """The same by name and message, as an exception that a law takes for a finding."""
    kind: type[Exception] = type(type(error).__name__, (Exception,), {})
    return kind(*error.args)
