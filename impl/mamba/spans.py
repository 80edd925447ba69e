"""The recurrence of a selective state space, span by span: a number for every channel, state and token exists for one span only.

h_t = e^{z_t} h_{t-1} + φ(z_t) B_t x_t, y_t = Σ_n C_t h_t with z_t = Δ_t A and x_t = Δ_t u_t, where φ is 1, or (e^z - 1)/z for
zero-order hold. Forward nothing is kept but the state that enters each span; backward takes the spans from the last to the
first and computes there again what else it needs.

Symbols: b batch, t time, g groups of e channels each, n states. The axes b, t and e of B and C are 1 where they do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .. import _scan
from .._common import batched, differentiated, made_of, recorded, transformed
from ..discretization import phi1

Inputs = tuple[Tensor, ...]
"""Δ (b t g e), u (b t g e), A (g n e), B and C (b t g n e), and the state (b g n e) before the first token."""


@dataclass(frozen=True)
class Spans:
    """The recurrence in spans of so many tokens; ``hold`` for zero-order hold."""

    hold: bool
    tokens: int
    explicit: bool = True

    def __call__(self, *inputs: Tensor) -> tuple[Float[Tensor, "b t g e"], Float[Tensor, "b g n e"]]:
        """Return y and the last state."""
        delta = inputs[0]
        if delta.shape[1] == 0:
            return made_of(delta, *inputs[1:5]), inputs[5]
        if transformed() or batched(*inputs) or not self.explicit:
            return self._recorded(*inputs)
        if recorded(*inputs):
            return _Explicit.apply(self, *inputs)
        return self.forward(inputs)

    def forward(self, inputs: Inputs, entered: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Without a gradient; append the state that enters each span to ``entered``."""
        delta, u, A, B, C, state = inputs
        y, rooms = torch.empty_like(delta, memory_format=torch.contiguous_format), self._rooms(inputs, 2)
        for part in self._parts(delta):
            if entered is not None:
                entered.append(state)
            _, h = self._states(delta[:, part], u[:, part], A, during(B, part), state, rooms)
            read(during(C, part), h, y[:, part])
            state = h[:, -1].clone()
        return y, state

    def backward(self, inputs: Inputs, entered: list[Tensor], by_y: Tensor, by_last: Tensor) -> list[Tensor]:
        """The gradients by the inputs.

        With g_t = C_t by_y_t + e^{z_{t+1}} g_{t+1} they are those of Σ_t g_t ⊙ (e^{z_t} h_{t-1} + φ(z_t) B_t x_t) with h held.
        """
        delta, u, A, B, C, _ = inputs
        by_delta, by_u = torch.empty_like(delta), torch.empty_like(u)
        by_A, by_B, by_C = (torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (A, B, C))
        rooms = self._rooms(inputs, 4 if self.hold else 3)
        for part, start in reversed(list(zip(self._parts(delta), entered, strict=True))):
            steps, ins, outs = delta[:, part], u[:, part], by_y[:, part]
            x, b, c = steps * ins, during(B, part), during(C, part)
            a, h = self._states(steps, ins, A, b, start, rooms)
            g = torch.mul(c, outs.unsqueeze(-2), out=taken(rooms[2], h.shape))
            g[:, -1].add_(by_last)
            _scan.run(a[:, 1:], g[:, :-1], g[:, -1], g[:, :-1], -1)
            by_last = a[:, 0] * g[:, 0]
            during(by_C, part).add_(weighed(h, outs, c))
            driven, turned = g, None
            if self.hold:
                z = torch.mul(steps.unsqueeze(-2), A, out=taken(rooms[3], h.shape))
                turned = phi1_slope(z).mul_(g).mul_(b).mul_(x.unsqueeze(-2))
                driven = z.copy_(_phi1(z)).mul_(g)
            during(by_B, part).add_(weighed(driven, x, b))
            by_x = read(b, driven)
            w = g.mul_(a)
            w[:, 1:].mul_(h[:, :-1])
            w[:, 0].mul_(start)
            w = w if turned is None else w.add_(turned)
            torch.add(torch.mul(w, A, out=h).sum(-2), by_x * ins, out=by_delta[:, part])
            torch.mul(by_x, steps, out=by_u[:, part])
            by_A.add_(torch.mul(w, steps.unsqueeze(-2), out=h).sum((0, 1)))
        return [by_delta, by_u, by_A, by_B, by_C, by_last]

    def _states(self, delta: Tensor, u: Tensor, A: Tensor, B: Tensor, state: Tensor, rooms: list[Tensor]) -> tuple[Tensor, Tensor]:
        """The gates e^z of a span and its states, in the first two rooms."""
        a, h = (taken(room, (*delta.shape[:3], *A.shape[1:])) for room in rooms[:2])
        torch.mul(delta.unsqueeze(-2), A, out=a)
        torch.mul(B, (delta * u).unsqueeze(-2), out=h)
        if self.hold:
            h.mul_(_phi1(a))
        a.exp_()
        _scan.run(a, h, state, h)
        return a, h

    def _recorded(self, delta: Tensor, u: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """By operations that can be recorded and transformed."""
        rows = []
        for part in self._parts(delta):
            z, drive = delta[:, part].unsqueeze(-2) * A, during(B, part) * (delta[:, part] * u[:, part]).unsqueeze(-2)
            h, state = _scan.scan(z.exp(), drive * phi1(z) if self.hold else drive, state)
            rows.append((during(C, part) * h).sum(-2))
        return torch.cat(rows, 1), state

    def _parts(self, delta: Tensor) -> list[slice]:
        t = delta.shape[1]
        return [slice(start, min(t, start + self.tokens)) for start in range(0, t, self.tokens)]

    def _rooms(self, inputs: Inputs, count: int) -> list[Tensor]:
        delta, state = inputs[0], inputs[5]
        size = state.numel() * min(self.tokens, delta.shape[1])
        return [state.new_empty(size) for _ in range(count)]


class _Explicit(torch.autograd.Function):
    """Spans with a gradient of their own."""

    @staticmethod
    def forward(ctx: Any, spans: Spans, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        entered: list[Tensor] = []
        results = spans.forward(inputs, entered)
        ctx.spans = spans
        ctx.save_for_backward(*inputs, *entered)
        return results

    @staticmethod
    def backward(ctx: Any, by_y: Tensor, by_last: Tensor) -> tuple[Tensor | None, ...]:
        inputs, entered = ctx.saved_tensors[:6], list(ctx.saved_tensors[6:])
        again = torch.is_grad_enabled()
        if again or batched(by_y, by_last):
            with torch.enable_grad():
                results = replace(ctx.spans, explicit=False)(*inputs)
            return None, *differentiated(results, inputs, (by_y, by_last), create_graph=again)
        found = ctx.spans.backward(inputs, entered, by_y, by_last)
        return None, *(x if needed else None for x, needed in zip(found, ctx.needs_input_grad[1:], strict=True))


def during(x: Float[Tensor, "b t ..."], part: slice) -> Float[Tensor, "b s ..."]:
    """The tokens of a span; what has no time is the same in all."""
    return x if x.shape[1] == 1 else x[:, part]


def taken(room: Float[Tensor, " size"], shape: torch.Size | tuple[int, ...]) -> Tensor:
    """The beginning of a room, in a shape."""
    return room[: torch.Size(shape).numel()].view(shape)


def read(weights: Float[Tensor, "b s g n e"], h: Float[Tensor, "b s g n e"], y: Tensor | None = None) -> Float[Tensor, "b s g e"]:
    """Σ_n of the products; into ``y`` if there is one."""
    found = (weights.mT @ h).squeeze(-2) if weights.shape[-1] == 1 else (weights * h).sum(-2)
    return found if y is None else y.copy_(found)


def weighed(h: Float[Tensor, "b s g n e"], by_y: Float[Tensor, "b s g e"], weights: Tensor) -> Tensor:
    """The gradient of `read` by the weights: h times the row, summed over axes that the weights do not have."""
    if weights.shape[:2] == h.shape[:2] and weights.shape[-1] == 1:
        return (by_y.unsqueeze(-2) @ h.mT).mT
    return (h * by_y.unsqueeze(-2)).sum_to_size(weights.shape)


def _phi1(z: Tensor) -> Tensor:
    """(e^z - 1)/z, 1 at z = 0, as accurate as expm1; for derivatives there is `isoform.impl.discretization.phi1`."""
    return torch.where(z == 0, 1, torch.expm1(z).div_(z))


def phi1_slope(z: Tensor) -> Tensor:
    """The derivative of (e^z - 1)/z: (e^z - φ₁)/z, and near 0 the series Σ (k + 1) zᵏ/(k + 2)!."""
    far = z.exp().sub_(_phi1(z)).div_(z)
    small = z.clamp(-0.5, 0.5)
    series = torch.zeros_like(z)
    for c in reversed(_coefficients(z.dtype)):
        series.mul_(small).add_(c)
    return torch.where(z.abs() > 0.5, far, series)


def _coefficients(dtype: torch.dtype) -> list[float]:
    """(k + 1)/(k + 2)! as long as a term is not below a rounding of the sum, which is at least ⅓, at |z| = ½."""
    found, c, k = [], 0.5, 0
    while c * 0.5**k > torch.finfo(dtype).eps / 8:
        found.append(c)
        k += 1
        c = c * (k + 1) / (k * (k + 2))
    return found
