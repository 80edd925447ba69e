"""A call of the kernel that goes wrong, as Python which needs nothing but torch and the kernel."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoform.checking.target import Kernel, Target

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

MOST = 400
"""Numbers, at most, that a snippet spells out."""
NINE_DIGITS = 1e-9
"""A bound below this share of a number needs more digits than nine beside it."""
Part = int | None
"""The place of a result in a tuple, None of a bare tensor."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call as the kernel was given it, and what it returned.

    A backward pass adds what came in at each result (``arriving``), and the gradient by each argument.
    """

    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    result: Any
    function: Kernel | None = None
    arriving: dict[Part, Tensor] = field(default_factory=dict)
    gradients: dict[str, Tensor] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments by name; those that were given without one have a name of their own."""
        return {**{f"x{n}": x for n, x in enumerate(self.positional)}, **self.named}

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The arguments that are tensors."""
        return {name: x for name, x in self.given.items() if hasattr(x, "numel")}


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
            kept = Call(tuple(map(_given, args)), {n: _given(x) for n, x in kwargs.items()}, None, function)
            for name, x in Call(args, kwargs, None).tensors.items():
                _follow(x, kept.gradients, name)
            result = function(*args, **kwargs)
            for part, x in _results(result):
                _follow(x, kept.arriving, part)
            copied = tuple(map(_copy, result)) if isinstance(result, (tuple, list)) else _copy(result)
            self.calls.append(replace(kept, result=copied))
            return result

        return call


def _copy(x: Any) -> Any:
    return x.detach().clone() if hasattr(x, "detach") else x


def _given(x: Any) -> Any:
    """A copy that lies in memory as the argument does, and asks for a gradient where that does."""
    if not hasattr(x, "detach"):
        return x
    own = _copy(x) if x.is_contiguous() else _stored(x).clone().as_strided(x.shape, x.stride(), x.storage_offset())
    return own.requires_grad_(x.requires_grad)


def _stored(x: Tensor) -> Tensor:
    """The memory of a tensor, from its first number on."""
    return x.detach().as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)


def _follow(x: Tensor, found: dict[Any, Tensor], name: Any) -> None:
    """Keep the gradient that reaches a tensor."""
    if x.requires_grad:
        x.register_hook(lambda gradient: found.update({name: _copy(gradient)}))


@dataclass(frozen=True)
class Spot:
    """Where a number is: in a result of a call (``part``), or in the gradient by an argument (``by``); and the index."""

    call: Call
    part: Part
    index: tuple[int, ...]
    by: str = ""


def locate(found: np.ndarray[Any, Any], index: tuple[int, ...], calls: Sequence[Call], last: bool = False) -> Spot | None:
    """The latest call in whose results an entry of what was compared is, looked for among its last results first if ``last``.

    The result may have its axes in another order, be longer in time than what was compared, or be a part of it in time.
    """
    for call in reversed(calls):
        for part, x in list(_results(call.result))[:: -1 if last else 1]:
            at = _placed(found, index, x)
            if at is not None:
                return Spot(call, part, at)
    return None


def locate_gradient(found: np.ndarray[Any, Any], index: tuple[int, ...], calls: Sequence[Call], name: str) -> Spot | None:
    """Where an entry of a gradient is among those by the arguments of the one call that there was, that of this name first."""
    if len(calls) != 1 or not calls[0].arriving:
        return None
    (call,) = calls
    asked = {n: x for n, x in call.tensors.items() if x.requires_grad}
    for by in sorted(asked, key=lambda n: n != name):
        at = _placed(found, index, call.gradients.get(by, asked[by] * 0)) if by == name or found.any() else None
        if at is not None:
            return Spot(call, None, at, by)
    return None


def _placed(found: np.ndarray[Any, Any], index: tuple[int, ...], x: Tensor) -> tuple[int, ...] | None:
    """Where an entry is in a tensor that has the same numbers."""
    from isoform.properties.tensors import array

    for order in permutations(range(x.ndim)):
        at = _inside(found, index, array(x).transpose(order))
        if at is not None:
            return tuple(at[order.index(axis)] for axis in range(x.ndim))
    return None


def repeats(spot: Spot, right: Any, bound: float) -> bool:
    """Whether the call is as wrong once more, on tensors of its own, as a snippet makes it."""
    try:
        found = complex(_once_more(spot).item())
    except Exception:
        return False
    return found != right and not abs(found - right) <= bound


def _once_more(spot: Spot) -> Tensor:
    """The number at a spot of the same call."""
    import torch

    call = spot.call
    assert call.function is not None
    fresh = {n: _given(x) for n, x in call.tensors.items()}
    positional = [fresh.get(n, x) for n, x in list(call.given.items())[: len(call.positional)]]
    results = dict(_results(call.function(*positional, **{n: fresh.get(n, x) for n, x in call.named.items()})))
    if not spot.by:
        return results[spot.part][spot.index]
    outs, weights = [results[part] for part in call.arriving], list(call.arriving.values())
    (gradient,) = torch.autograd.grad(outs, [fresh[spot.by]], weights, materialize_grads=True)
    return gradient[spot.index]


def text(target: Target | None, spot: Spot, right: float, bound: float, part: str = "") -> str:
    """The snippet, which prints a number or a part of it; "" where too much is to be spelled out or the kernel has no name."""
    call = spot.call
    weights = call.arriving if spot.by else {}
    spelt = (x if x.is_contiguous() else _stored(x) for x in (*call.tensors.values(), *weights.values()))
    if target is None or sum(x.numel() for x in spelt) > MOST:
        return ""
    shown = {name: name if name in call.tensors else repr(x) for name, x in call.given.items()}
    positional = list(shown.values())[: len(call.positional)]
    at = f"[{', '.join(map(str, spot.index))}]" if spot.index else ""
    lines = [
        "import torch",
        *_import(target),
        "",
        *(f"{name} = {_tensor(x)}" for name, x in call.tensors.items()),
        f"result = {target.attribute}({', '.join([*positional, *(f'{name}={shown[name]}' for name in call.named)])})",
    ]
    if spot.by:
        results = ", ".join(map(_result, weights))
        lines += [f"weights = [{', '.join(map(_tensor, weights.values()))}]"]
        lines += [f"(gradient,) = torch.autograd.grad([{results}], [{spot.by}], weights, materialize_grads=True)"]
    number = "gradient" if spot.by else _result(spot.part)
    of = {"real part": ".real", "imaginary part": ".imag"}.get(part, "")
    return "\n".join([*lines, f"print({number}{at}.item(){of})  # right is {spelt_out(right, bound)}, within {bound:.2g}"]) + "\n"


def spelt_out(x: float, bound: float) -> str:
    """A number with as many digits as matter beside a bound."""
    return f"{x:.9g}" if bound > abs(x) * NINE_DIGITS else f"{x:.17g}"


def _result(part: Part) -> str:
    return "result" if part is None else f"result[{part}]"


def _import(target: Target) -> list[str]:
    name = target.attribute.partition(".")[0]
    if target.is_file:
        return [f"from {Path(target.home).stem} import {name}  # in the folder of {Path(target.home).name}"]
    return [f"from {target.home} import {name}"]


def _tensor(x: Tensor) -> str:
    """A tensor as Python, each number as short as it can be told from others of its dtype; a view with all of its memory."""
    asks = ".requires_grad_()" if x.requires_grad else ""
    dtype = str(x.dtype)
    if not x.numel():
        return f"torch.empty({tuple(x.shape)}, dtype={dtype}){asks}"
    if x.is_contiguous():
        return f"torch.tensor({_numbers(x)}, dtype={dtype}){asks}"
    view = f"as_strided({tuple(x.shape)}, {x.stride()}, {x.storage_offset()})"
    return f"torch.tensor({_numbers(_stored(x))}, dtype={dtype}).{view}{asks}"


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
