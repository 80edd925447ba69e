"""A long sequence goes through a form in spans that a cache holds, forward and backward.

Where a form has a gradient of its own, nothing is kept but the state that enters each chunk and what the form returns beside it;
the backward pass takes the spans from the last to the first and computes there again what else it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ._common import ChunkLayout, batched, differentiated, eager, from_chunks, in_place, put_chunks, recorded, to_chunks

Form = Callable[..., tuple[Tensor, ...]]
"""``form(*inputs, state, layout)`` for inputs (b h m c d): the output (b h m c v), linear in the first, the state after it, and, beside a
gradient, the states before every chunk and whatever else the gradient is to know."""
Gradient = Callable[..., list[Any] | None]
"""``gradient(*inputs, states, *else, by_o, by_last)``: by the inputs (None for what needs none) and the state; or None if not finite."""


@dataclass(frozen=True)
class Spans:
    """A form over (b t h d), its output times ``scale``, in spans of ``tokens``: a multiple of ``chunk_size``, or all."""

    form: Form
    gradient: Gradient | None
    chunk_size: int
    tokens: int
    scale: float
    by_time: bool = False
    """Whether the form wants the chunks of one time together in memory."""

    def __call__(self, inputs: Sequence[Float[Tensor, "b t h d"]], state: Float[Tensor, "b h k v"]) -> tuple[Tensor, Tensor]:
        """Return the output and the last state."""
        if self.gradient is not None and inputs[0].shape[1] and recorded(*inputs, state) and eager(*inputs, state):
            return _Explicit.apply(self, state, *inputs)
        return self.forward(inputs, state)

    def packed(self, inputs: Sequence[Tensor], state: Tensor, layout: ChunkLayout) -> tuple[Tensor, Tensor]:
        """Run all sequences at once, in chunks that are laid out."""
        o, state, *_ = self._chunks(inputs, state, layout)
        return from_chunks(o, inputs[0].shape[1], layout), state

    def forward(self, inputs: Sequence[Tensor], state: Tensor, entered: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the output and the last state; append what every span keeps to ``entered``."""
        length, rows, whole = inputs[0].shape[1], [], None
        for n, part in enumerate(zip(*(x.split(self.tokens, 1) for x in inputs), strict=True)):
            o, state, *before = self._chunks(part, state, None)
            if entered is not None:
                entered.extend(before)
            if not in_place(o) or self.tokens >= length:
                rows.append(from_chunks(o, part[0].shape[1], None))
                continue
            whole = o.new_empty(o.shape[0], length, o.shape[1], o.shape[4]) if whole is None else whole
            put_chunks(whole[:, n * self.tokens : (n + 1) * self.tokens], o)
        if whole is None:
            whole = rows[0] if len(rows) == 1 else torch.cat(rows, 1)
        return whole, state

    def _chunks(self, inputs: Sequence[Tensor], state: Tensor, layout: ChunkLayout | None) -> tuple[Tensor, ...]:
        o, *states = self.form(*(to_chunks(x, self.chunk_size, layout, by_time=self.by_time) for x in inputs), state, layout)
        return o if self.scale == 1.0 else o.mul_(self.scale), *states  # here and not on a tensor of its own, for o is in a cache by now

    def backward(self, leaves: Sequence[Tensor], entered: Sequence[Tensor], by_o: Tensor, by_last: Tensor) -> list[Any]:
        """Return the gradients by the first state and by the inputs, None for those that need none."""
        found = [torch.empty_like(x) if x.requires_grad else None for x in leaves]
        pieces = [x.split(self.tokens, 1) for x in (by_o, *leaves)]
        places = [() if x is None else x.split(self.tokens, 1) for x in found]
        spans = len(pieces[0])
        each = len(entered) // spans
        for n in reversed(range(spans)):
            by_rows, *part = (to_chunks(x[n], self.chunk_size, None, by_time=self.by_time).detach() for x in pieces)
            for x, leaf in zip(part, leaves, strict=True):
                x.requires_grad_(leaf.requires_grad)
            kept, by_rows = entered[n * each : (n + 1) * each], by_rows * self.scale
            own = None if self.gradient is None else self.gradient(*part, *kept, by_rows, by_last)
            *gradients, by_last = own or self._differentiated(*part, kept[0], by_rows, by_last)
            for place, x in zip(places, gradients, strict=True):
                if place:
                    put_chunks(place[n], x)
        return [by_last, *found]

    def _differentiated(self, *arguments: Tensor) -> list[Any]:
        """The gradient of the form, whatever the inputs are."""
        *leaves, states, by_o, by_last = arguments
        leaves.append(states[:, :, 0].detach().requires_grad_())
        with torch.enable_grad():
            o, last, *_ = self.form(*leaves, None)
        return differentiated((o, last), leaves, (by_o, by_last))


class _Explicit(torch.autograd.Function):
    """Spans whose form has a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, spans: Spans, state: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        entered: list[Tensor] = []
        results = spans.forward(inputs, state, entered)
        ctx.spans = spans
        ctx.save_for_backward(state, *entered, *inputs)
        return results

    @staticmethod
    def backward(ctx: Any, by_o: Tensor, by_last: Tensor) -> tuple[Tensor | None, ...]:
        inputs = len(ctx.needs_input_grad) - 2
        (state, *entered), leaves = ctx.saved_tensors[:-inputs], ctx.saved_tensors[-inputs:]
        again = torch.is_grad_enabled()
        if again or batched(by_o, by_last):
            with torch.enable_grad():
                results = replace(ctx.spans, gradient=None)(leaves, state)
            return None, *differentiated(results, (state, *leaves), (by_o, by_last), create_graph=again)
        return None, *ctx.spans.backward(leaves, entered, by_o, by_last)
