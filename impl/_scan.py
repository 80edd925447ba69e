"""First-order scans along time: h_t = a_t h_{t-1} + b_t, entry by entry or with matrices that do not commute.

Nothing is divided by a product of gates, and no product of theirs reaches further than a block: gates of 0, of e^{-10000}
and of 1 are as exact as in the recurrence. The gradient is a scan from the last token to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import torch
from jaxtyping import Inexact
from torch import Tensor

from ._common import advance, batched, made_of, recorded, transformed

DIRECT = {"cpu": 2**12}
"""The numbers of a token from which a loop over the tokens is faster than two over blocks; elsewhere never."""

Element = tuple[Tensor, ...]


def scan(
    a: Inexact[Tensor, "b t *#s"], b: Inexact[Tensor, "b t *s"], initial: Inexact[Tensor, "b *s"], *, reverse: bool = False
) -> tuple[Inexact[Tensor, "b t *s"], Inexact[Tensor, "b *s"]]:
    """h_t = a_t h_{t-1} + b_t with h_{-1} = ``initial``, or h_t = a_t h_{t+1} + b_t with h_T = ``initial`` if ``reverse``.

    Returns all h and the one that was computed last. Real or complex, of one dtype; an axis of ``a`` but that of time may
    be 1 to be the same for all. Blocks of about √T tokens run side by side: first for what they leave of a state and add
    to it, then, each from its own start, for what is returned.
    """
    return _scan(_Entries, a, b, initial, reverse)


def matrix_scan(
    a: Inexact[Tensor, "b t n n"], b: Inexact[Tensor, "b t n"], initial: Inexact[Tensor, "b n"], *, reverse: bool = False
) -> tuple[Inexact[Tensor, "b t n"], Inexact[Tensor, "b n"]]:
    """`scan` with matrices for gates, which need not commute: later ones stand on the left. Pairs are joined at about log₂ T depths."""
    return _scan(_Matrices, a, b, initial, reverse)


def associative_scan(combine: Callable[[Element, Element], Element], elements: Element, *, reverse: bool = False) -> Element:
    """All prefixes x_0, x_0·x_1, x_0·x_1·x_2, … of elements along axis 1 of their tensors; suffixes if ``reverse``.

    ``combine(first, second)`` is an associative product of many elements at once, which need not commute; the first is the
    one that a scan meets first, so for suffixes the later one. Neighbours are joined in pairs, and pairs again: less than
    2T products at about 2 log₂ T depths.
    """
    if reverse:
        return tuple(x.flip(1) for x in associative_scan(combine, tuple(x.flip(1) for x in elements)))
    t = elements[0].shape[1]
    if t < 2:
        return elements
    early, late = (tuple(x[:, start : t - t % 2 : 2] for x in elements) for start in (0, 1))
    pairs = associative_scan(combine, combine(early, late))
    between = tuple(x.narrow(1, 0, (t - 1) // 2) for x in pairs)
    inner = combine(between, tuple(x[:, 2::2] for x in elements)) if t > 2 else tuple(x[:, :0] for x in elements)
    even = (torch.cat([x[:, :1], y], 1) for x, y in zip(elements, inner, strict=True))
    return tuple(_interleaved(x, y) for x, y in zip(even, pairs, strict=True))


def run(
    a: Inexact[Tensor, "b t *#s"],
    b: Inexact[Tensor, "b t *s"],
    initial: Inexact[Tensor, "b *s"],
    h: Inexact[Tensor, "b t *s"],
    way: int = 1,
) -> None:
    """Write what `scan` returns into ``h``, which may be ``b`` itself, without a gradient; ``way`` is 1, or -1 for the reverse."""
    t = b.shape[1]
    if t == 0:
        return
    size = 1 if b[:, 0].numel() >= DIRECT.get(b.device.type, torch.inf) else isqrt(max(1, t // 3))
    if size == 1:
        _directly(a, b, initial, h, way)
        return
    blocks = t // size
    place = slice(0, blocks * size) if way > 0 else slice(t - blocks * size, t)
    gates, changes, found = (x[:, place].unflatten(1, (blocks, size)) for x in (a.expand(-1, t, *a.shape[2:]), b, h))
    starts, last = _starts(gates.unbind(2)[::way], changes.unbind(2)[::way], initial, way)
    advance([starts, *found.unbind(2)[::way]], changes.unbind(2)[::way], gates.unbind(2)[::way])
    rest = slice(blocks * size, t) if way > 0 else slice(0, t - blocks * size)
    _directly(a[:, rest], b[:, rest], last, h[:, rest], way)


def _starts(
    gates: Sequence[Inexact[Tensor, "b m *#s"]], changes: Sequence[Inexact[Tensor, "b m *s"]], initial: Tensor, way: int
) -> tuple[Inexact[Tensor, "b m *s"], Inexact[Tensor, "b *s"]]:
    """The state before each block, given its tokens, and that after the last one.

    A state of 0 stays 0 even where the product of a block's gates overflows.
    """
    whole, change = gates[0].clone(), torch.zeros_like(changes[0])
    for n, (a, b) in enumerate(zip(gates, changes, strict=True)):
        if n:
            whole.mul_(a)
        torch.addcmul(b, a, change, out=change)
    starts, after = torch.empty_like(change), torch.empty_like(initial)
    places = [*starts.unbind(1)[::way], after]
    places[0].copy_(initial)
    for n, (a, b) in enumerate(zip(whole.unbind(1)[::way], change.unbind(1)[::way], strict=True)):
        torch.add(b, torch.where(places[n] == 0, 0, a * places[n]), out=places[n + 1])
    return starts, after


def _directly(a: Tensor, b: Tensor, initial: Tensor, h: Tensor, way: int) -> None:
    advance([initial, *h.unbind(1)[::way]], b.unbind(1)[::way], a.unbind(1)[::way])


def _interleaved(x: Inexact[Tensor, "b n ..."], y: Inexact[Tensor, "b m ..."]) -> Inexact[Tensor, "b n+m ..."]:
    """x_0, y_0, x_1, y_1, …, where x may have one more."""
    m = y.shape[1]
    both = torch.stack([x.narrow(1, 0, m), y], 2).reshape(y.shape[0], 2 * m, *y.shape[2:])
    return both if x.shape[1] == m else torch.cat([both, x[:, m:]], 1)


class _Entries:
    """Gates that multiply entry by entry."""

    @staticmethod
    def apply(a: Tensor, h: Tensor) -> Tensor:
        return a * h

    @staticmethod
    def adjoint(a: Tensor) -> Tensor:
        return a.conj()

    @staticmethod
    def weigh(by: Tensor, h: Tensor, a: Tensor) -> Tensor:
        """The gradient by the gates."""
        return (by * h.conj()).sum_to_size(a.shape)

    @staticmethod
    def one(a: Tensor) -> Tensor:
        return torch.ones_like(a)

    @staticmethod
    def combine(first: Element, second: Element) -> Element:
        return first[0] * second[0], second[0] * first[1] + second[1]

    @classmethod
    def run(cls, a: Tensor, b: Tensor, initial: Tensor, reverse: bool) -> Tensor:
        h = torch.empty_like(b, memory_format=torch.contiguous_format)
        run(a, b, initial, h, -1 if reverse else 1)
        return h


class _Matrices:
    """Gates that are matrices."""

    @staticmethod
    def apply(a: Tensor, h: Tensor) -> Tensor:
        return (a @ h.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    def adjoint(a: Tensor) -> Tensor:
        return a.mH

    @staticmethod
    def weigh(by: Tensor, h: Tensor, a: Tensor) -> Tensor:
        return by.unsqueeze(-1) * h.conj().unsqueeze(-2)

    @staticmethod
    def one(a: Tensor) -> Tensor:
        return torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand_as(a)

    @staticmethod
    def combine(first: Element, second: Element) -> Element:
        return second[0] @ first[0], _Matrices.apply(second[0], first[1]) + second[1]

    @classmethod
    def run(cls, a: Tensor, b: Tensor, initial: Tensor, reverse: bool) -> Tensor:
        return _joined(cls, a, b, initial, reverse)


Gates = type[_Entries] | type[_Matrices]


def _scan(gates: Gates, a: Tensor, b: Tensor, initial: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    if b.shape[1] == 0:
        return made_of(b, a).clone(), initial.clone()
    if transformed() or batched(a, b, initial):
        h = _joined(gates, a, b, initial, reverse)
    elif recorded(a, b, initial):
        return _Scan.apply(gates, a, b, initial, reverse)
    else:
        h = gates.run(a, b, initial, reverse)
    return h, h[:, 0 if reverse else -1].clone()


def _joined(gates: Gates, a: Tensor, b: Tensor, initial: Tensor, reverse: bool) -> Tensor:
    """The scan by `associative_scan`, with the start in the first change."""
    edge = -1 if reverse else 0
    first = (b[:, edge] + gates.apply(a[:, edge], initial)).unsqueeze(1)
    b = torch.cat([b[:, :-1], first] if reverse else [first, b[:, 1:]], 1)
    return associative_scan(gates.combine, (a, b), reverse=reverse)[1]


class _Scan(torch.autograd.Function):
    """A scan, and beside it the scan in the other direction that is its gradient."""

    @staticmethod
    def forward(ctx: Any, gates: Gates, a: Tensor, b: Tensor, initial: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
        h = gates.run(a, b, initial, reverse)
        ctx.gates, ctx.reverse = gates, reverse
        ctx.save_for_backward(a, initial, h)
        return h, h[:, 0 if reverse else -1].clone()

    @staticmethod
    def backward(ctx: Any, by_h: Tensor, by_last: Tensor) -> tuple[Tensor | None, ...]:
        """With g_t = by_h_t + a*_{t+1} g_{t+1} the gradients are g_t by b_t, g_t h*_{t-1} by a_t, and a*_0 g_0 by the start."""
        gates, (a, initial, h) = ctx.gates, ctx.saved_tensors
        adjoint = gates.adjoint(a)
        edge = gates.one(a[:, :1])
        start = initial.unsqueeze(1)
        if ctx.reverse:
            before, shifted = torch.cat([h[:, 1:], start], 1), torch.cat([edge, adjoint[:, :-1]], 1)
        else:
            before, shifted = torch.cat([start, h[:, :-1]], 1), torch.cat([adjoint[:, 1:], edge], 1)
        by_b, _ = _scan(gates, shifted, by_h, by_last, not ctx.reverse)
        first = -1 if ctx.reverse else 0
        by_initial = gates.apply(adjoint[:, first], by_b[:, first]) if ctx.needs_input_grad[3] else None
        return None, gates.weigh(by_b, before, a) if ctx.needs_input_grad[1] else None, by_b, by_initial, None
