"""Who runs: our forms, found by the operator's name, and the peers that can be loaded; the others with the reason."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor

import isoform.impl
from benchmarks.operators import Operator
from benchmarks.peers import LONGEST_QUADRATIC, PEERS

QUADRATIC = ("parallel",)
"""Forms whose memory grows with the square of the length: timed up to `LONGEST_QUADRATIC`."""


@dataclass(frozen=True)
class Contestant:
    """A call that takes the operator's inputs by keyword and returns its output, and its name."""

    name: str
    call: Callable[..., Tensor]
    ours: bool = True
    language: str = "torch"
    swapped: bool = False
    row_scale: bool = False
    longest: int | None = None

    def arrange(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Lay inputs out as the contestant has them, in memory of their own."""
        return {name: self.swap(x).clone(memory_format=torch.contiguous_format) for name, x in inputs.items()}

    def swap(self, x: Tensor) -> Tensor:
        """Between the operator's own order of axes 1 and 2 and the contestant's; what has no batch stays."""
        return x.transpose(1, 2) if self.swapped and x.ndim > 2 else x


Form = Callable[..., Tensor | tuple[Tensor, Tensor | None]]


def forms(operator: str) -> tuple[Form, ...]:
    """Our forms of an operator. Raises LookupError where no file of ``isoform.impl`` has it."""
    for module in pkgutil.iter_modules(isoform.impl.__path__):
        if not module.name.startswith("_"):
            found = getattr(import_module(f"isoform.impl.{module.name}"), "FORMS", {})
            if operator in found:
                return tuple(found[operator])
    raise LookupError(f"isoform.impl has no form of {operator}")


def contestants(operator: Operator) -> tuple[list[Contestant], dict[str, str]]:
    """Everyone who can run this operator, ours first; and by name why the others cannot."""
    able, missing = [], {}
    try:
        able += [_ours(form) for form in forms(operator.name)]
    except LookupError as reason:
        missing["isoform"] = str(reason)
    for peer in PEERS:
        if operator.name in peer.operators:
            try:
                call = peer.load()
            except Exception as reason:
                missing[peer.name] = f"{type(reason).__name__}: {reason}".splitlines()[0]
            else:
                able.append(Contestant(peer.name, call, False, peer.language, peer.swapped, peer.row_scale, peer.longest))
    return able, missing


def output(form: Form) -> Callable[..., Tensor]:
    """The form without the state that a memory returns beside its output."""

    def call(**inputs: Tensor) -> Tensor:
        result = form(**inputs)
        return result if isinstance(result, Tensor) else result[0]

    return call


def _ours(form: Form) -> Contestant:
    name = form.__name__
    return Contestant(f"isoform {name}", output(form), longest=LONGEST_QUADRATIC if name in QUADRATIC else None)
