"""A call of the kernel that goes wrong, as Python which needs nothing but torch and the kernel."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform.checking.target import Kernel, Target

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

MOST = 400
"""Numbers, at most, that a snippet spells out."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call as the kernel was given it, and what it returned."""

    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any


@dataclass
class Log:
    """The calls of a kernel, kept while ``on``."""

    calls: list[Call] = field(default_factory=list)
    on: bool = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep calls, those from here on."""
        self.calls.clear()
        self.on = True
        try:
            yield
        finally:
            self.on = False

    def keeping(self, function: Kernel) -> Kernel:
        """The function, whose calls are kept as they were made, whatever it does to its arguments."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not self.on:
                return function(*args, **kwargs)
            positional, named = tuple(map(_copy, args)), {n: _copy(x) for n, x in kwargs.items()}
            result = function(*args, **kwargs)
            self.calls.append(Call(positional, named, tuple(map(_copy, result)) if isinstance(result, (tuple, list)) else _copy(result)))
            return result

        return call


def _copy(x: Any) -> Any:
    return x.detach().clone() if hasattr(x, "detach") else x


@dataclass(frozen=True)
class Spot:
    """Where in the results of a call a number is: the result's place in a tuple (None of a bare tensor), and the index."""

    call: Call
    part: int | None
    index: tuple[int, ...]


def locate(found: np.ndarray[Any, Any], index: tuple[int, ...], calls: Sequence[Call], last: bool = False) -> Spot | None:
    """The latest call in whose results an entry of what was compared is, looked for among its last results first if ``last``.

    The result may have its axes in another order, be longer in time than what was compared, or be a part of it in time.
    """
    from isoform.properties.tensors import array

    for call in reversed(calls):
        for part, x in list(_results(call.result))[:: -1 if last else 1]:
            for order in permutations(range(x.ndim)):
                given = array(x).transpose(order)
                at = _inside(found, index, given)
                if at is not None:
                    back = tuple(at[order.index(axis)] for axis in range(x.ndim))
                    return Spot(call, part, back)
    return None


def text(target: Target | None, spot: Spot, right: float, bound: float) -> str:
    """The snippet, or "" where the arguments are too many to be spelled out or the kernel has no name."""
    given = [*((f"x{n}", x) for n, x in enumerate(spot.call.positional)), *spot.call.named.items()]
    tensors = {name: x for name, x in given if hasattr(x, "numel")}
    if target is None or sum(x.numel() for x in tensors.values()) > MOST:
        return ""
    positional = [name if name in tensors else repr(x) for name, x in given[: len(spot.call.positional)]]
    named = [f"{name}={name if name in tensors else repr(x)}" for name, x in given[len(spot.call.positional) :]]
    part = "" if spot.part is None else f"[{spot.part}]"
    lines = [
        "import torch",
        *_import(target),
        "",
        *(f"{name} = {_tensor(x)}" for name, x in tensors.items()),
        f"result = {target.attribute}({', '.join([*positional, *named])})",
        f"print(result{part}[{', '.join(map(str, spot.index))}].item())  # right is {right:.9g}, within {bound:.2g}",
    ]
    return "\n".join(lines) + "\n"


def _import(target: Target) -> list[str]:
    name = target.attribute.partition(".")[0]
    if target.is_file:
        return [f"from {Path(target.home).stem} import {name}  # in the folder of {Path(target.home).name}"]
    return [f"from {target.home} import {name}"]


def _tensor(x: Tensor) -> str:
    """A tensor as Python, each number as short as it can be told from others of its dtype."""
    dtype = str(x.dtype)
    if not x.numel():
        return f"torch.empty({tuple(x.shape)}, dtype={dtype})"
    return f"torch.tensor({_numbers(x)}, dtype={dtype})"


def _numbers(x: Tensor) -> str:
    if x.ndim:
        return f"[{', '.join(_numbers(row) for row in x)}]"
    if not x.dtype.is_floating_point:
        return str(x.item())
    import numpy as np

    value = x.item()
    text = str(value if str(x.dtype) == "torch.float64" else np.float32(value))
    return text if np.isfinite(value) else f'float("{text}")'


def _results(result: Any) -> Iterator[tuple[int | None, Tensor]]:
    if hasattr(result, "numel"):
        yield None, result
    elif isinstance(result, (tuple, list)):
        for part, x in enumerate(result):
            if hasattr(x, "numel"):
                yield part, x


def _inside(found: np.ndarray[Any, Any], index: tuple[int, ...], given: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """The index of an entry of ``found`` in an array that is the same, begins with it, or is a part of it, along time (axis 1)."""
    import numpy as np

    if given.ndim != found.ndim or not given.size:
        return None
    if given.ndim < 2 or given.shape[1] == found.shape[1]:
        return index if np.array_equal(given, found, equal_nan=True) else None
    if (given.shape[0], *given.shape[2:]) != (found.shape[0], *found.shape[2:]):
        return None
    steps, t = given.shape[1], index[1]
    if steps > found.shape[1]:
        return index if np.array_equal(given[:, : found.shape[1]], found, equal_nan=True) else None
    for start in range(max(0, t - steps + 1), min(t, found.shape[1] - steps) + 1):
        if np.array_equal(given, found[:, start : start + steps], equal_nan=True):
            return (index[0], t - start, *index[2:])
    return None
