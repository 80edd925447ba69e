"""Softmax attention by two kernels: the framework's fused one, and an online softmax over blocks of queries and keys.

A kernel is called with finite numbers in the accumulation dtype, heads before tokens, and with what a row may see;
`attend` does the rest: what is not finite is set to 0 before, and marked after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from ._common import _seen_finite, accumulator, spread


@dataclass(frozen=True)
class Sight:
    """Which of ``keys`` keys a row of ``rows`` may see: the frontier j <= i + keys - rows, a window, and a mask."""

    rows: int
    keys: int
    causal: bool
    window: int | None
    mask: Bool[Tensor, "b s"] | Bool[Tensor, "b t s"] | None

    @property
    def square(self) -> bool:
        """Whether row i sees the keys up to i, and nothing else is said."""
        return self.causal and self.window is None and self.mask is None and self.rows == self.keys

    @property
    def full(self) -> bool:
        """Whether no row can be without a key."""
        return self.mask is None and self.keys > 0 and not (self.causal and self.keys < self.rows)

    def span(self, rows: slice) -> tuple[int, int]:
        """The keys that some rows see at most: start, end."""
        if not self.causal:
            return 0, self.keys
        offset = self.keys - self.rows
        start = 0 if self.window is None else max(0, rows.start + offset + 1 - self.window)
        return start, max(start, rows.stop + offset)

    def ends(self, device: torch.device) -> tuple[Int[Tensor, " t"] | None, Int[Tensor, " t"] | None]:
        """The keys start[i] <= j < end[i] that row i sees; None is no limit."""
        if not self.causal:
            return None, None
        end = (torch.arange(self.rows, device=device) + (self.keys - self.rows + 1)).clamp(min=0)
        return None if self.window is None else (end - self.window).clamp(min=0), end

    def within(self, rows: slice, keys: slice, device: torch.device) -> Bool[Tensor, "*b #t s"] | None:
        """What the frontier, the window and the mask say of some rows and keys; None is all."""
        mask = None if self.mask is None else self.mask[:, None, keys] if self.mask.ndim == 2 else self.mask[:, rows, keys]
        first, last = rows.start + self.keys - self.rows, rows.stop - 1 + self.keys - self.rows
        if not self.causal or (keys.stop - 1 <= first and (self.window is None or keys.start > last - self.window)):
            return mask
        i = torch.arange(first, last + 1, device=device)[:, None]
        j = torch.arange(keys.start, keys.stop, device=device)
        band = j <= i if self.window is None else (j <= i) & (j > i - self.window)
        return band if mask is None else band & mask


class Kernel(Protocol):
    """Attention on finite numbers; an empty row is 0."""

    def __call__(
        self, q: Float[Tensor, "b h t d"], k: Float[Tensor, "b hkv s d"], v: Float[Tensor, "b hkv s v"], scale: float, sight: Sight
    ) -> Float[Tensor, "b h t v"]: ...


def attend(
    kernel: Kernel,
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b s hkv d"],
    v: Float[Tensor, "b s hkv v"],
    scale: float | None,
    sight: Sight,
) -> Float[Tensor, "b t h v"]:
    """Attention where a row that sees what is not finite is NaN, and what it does not see may be anything."""
    dtype = accumulator(q, k, v)
    scale = max(1, q.shape[-1]) ** -0.5 if scale is None else scale
    queries, keys, values = given = [x.to(dtype).transpose(1, 2) for x in (q, k, v)]
    if _seen_finite(*given):
        return kernel(queries, keys, values, scale, sight).transpose(1, 2).to(v.dtype)
    queries, keys, values = [torch.nan_to_num(x, 0.0, 0.0, 0.0) for x in given]
    o = kernel(queries, keys, values, scale, sight).transpose(1, 2)
    bad = spread(_seen(~v.isfinite() | ~k.isfinite().all(-1, keepdim=True), sight), _groups(q.shape[2], k.shape[2]), 2)
    o = o + torch.zeros_like(o).masked_fill(bad | ~q.isfinite().all(-1, keepdim=True), torch.nan)
    return (o if sight.full else o.masked_fill(_empty(sight, q.device)[..., None, None], 0.0)).to(v.dtype)


def fused(q: Tensor, k: Tensor, v: Tensor, scale: float, sight: Sight) -> Float[Tensor, "b h t v"]:
    """The framework's kernel; its own causal frontier is ours where there are as many keys as queries."""
    groups = _groups(q.shape[1], k.shape[1])
    k, v = spread(k, groups, 1), spread(v, groups, 1)
    if sight.square:
        return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    visible = sight.within(slice(0, sight.rows), slice(0, sight.keys), q.device)
    if sight.full:
        return scaled_dot_product_attention(q, k, v, visible, scale=scale)
    empty = _empty(sight, q.device)[:, None, :, None]
    some = empty if visible is None else visible.unsqueeze(-3) | empty
    return scaled_dot_product_attention(q, k, v, some, scale=scale).masked_fill(empty, 0.0)


def blocks(size: int) -> Kernel:
    """The online softmax over blocks of so many queries and keys: one block of scores is in memory at a time."""

    def kernel(q: Tensor, k: Tensor, v: Tensor, scale: float, sight: Sight) -> Float[Tensor, "b h t v"]:
        o: Tensor = _Blockwise.apply(q, k, v, scale, sight, size)[0]
        return o

    return kernel


class _Blockwise(torch.autograd.Function):
    """Dao 2023 (FlashAttention-2, arXiv:2307.08691), algorithms 1 and 2: the backward pass computes the weights again."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, scale: float, sight: Sight, size: int) -> tuple[Tensor, Tensor, Tensor]:
        o, largest, share = whole = [q.new_zeros(*q.shape[:3], n) for n in (v.shape[3], 1, 1)]
        for rows in _cut(0, sight.rows, size):
            found = _online(_fold(q, rows, k.shape[1]), k, v, scale, sight, rows, size)
            for x, part in zip(whole, found, strict=True):
                x[:, :, rows] = _unfold(part, q.shape[1])
        return o, largest, share

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs[:3], *output)
        ctx.mark_non_differentiable(*output[1:])
        ctx.scale, ctx.sight, ctx.size = inputs[3:]

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *others: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, o, largest, share = ctx.saved_tensors
        with torch.no_grad():
            found = _derivatives(grad, q, k, v, o, largest, share, ctx.scale, ctx.sight, ctx.size)
        if not torch.compiler.is_compiling():  # a compiler refuses by itself
            found = _Once.apply(*found, grad, q, k, v)
        return *found, None, None, None


class _Once(torch.autograd.Function):
    """The first three tensors, which depend on the others in a way that has no derivative here."""

    @staticmethod
    def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(x.view_as(x) for x in tensors[:3])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError("attention.blockwise: a second derivative is not implemented.")


def _online(
    q: Float[Tensor, "b hkv n d"], k: Tensor, v: Tensor, scale: float, sight: Sight, rows: slice, size: int
) -> tuple[Float[Tensor, "b hkv n v"], Float[Tensor, "b hkv n 1"], Float[Tensor, "b hkv n 1"]]:
    """Some rows: their outputs, their largest scores, and one over their sums of weights (0 where no key is seen)."""
    largest = q.new_full((*q.shape[:3], 1), torch.finfo(q.dtype).min)
    total, o = torch.zeros_like(largest), q.new_zeros(*q.shape[:3], v.shape[3])
    for keys in _cut(*sight.span(rows), size):
        scores = _scores(q, k[:, :, keys], scale, sight.within(rows, keys, q.device))
        before, largest = largest, torch.maximum(largest, scores.amax(-1, keepdim=True))
        weights, kept = (scores - largest).exp(), (before - largest).exp()
        total = total * kept + weights.sum(-1, keepdim=True)
        o = o * kept + weights @ v[:, :, keys]
    share = torch.where(total == 0, 0.0, 1 / total)
    return o * share, largest, share


def _derivatives(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, largest: Tensor, share: Tensor, scale: float, sight: Sight, size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v. A weight of 0 passes nothing on, however large the value behind it."""
    d_q, d_k, d_v = (torch.zeros_like(x) for x in (q, k, v))
    mean = (grad * o).sum(-1, keepdim=True)
    for rows in _cut(0, sight.rows, size):
        queries, toward, shift, part, below = (_fold(x, rows, k.shape[1]) for x in (q, grad, largest, share, mean))
        d_queries = torch.zeros_like(queries)
        for keys in _cut(*sight.span(rows), size):
            scores = _scores(queries, k[:, :, keys], scale, sight.within(rows, keys, q.device))
            weights = (scores - shift).exp() * part
            d_scores = (weights * (toward @ v[:, :, keys].mT - below) * scale).masked_fill(weights == 0, 0.0)
            d_v[:, :, keys] += weights.mT @ toward
            d_k[:, :, keys] += d_scores.mT @ queries
            d_queries += d_scores @ k[:, :, keys]
        d_q[:, :, rows] = _unfold(d_queries, q.shape[1])
    return d_q, d_k, d_v


def _scores(
    q: Float[Tensor, "b hkv n d"], k: Float[Tensor, "b hkv m d"], scale: float, visible: Tensor | None
) -> Float[Tensor, "b hkv n m"]:
    """Scaled scores, -∞ where nothing is to be seen; the rows are those of every head of a group."""
    scores = q @ k.mT * scale
    if visible is None:
        return scores
    hidden = ~visible.unsqueeze(-3).unsqueeze(-3)
    return scores.unflatten(2, (-1, visible.shape[-2])).masked_fill(hidden, -torch.inf).flatten(2, 3)


def _cut(start: int, end: int, size: int) -> Iterator[slice]:
    return (slice(n, min(n + size, end)) for n in range(start, end, size))


def _fold(x: Float[Tensor, "b h t d"], rows: slice, heads: int) -> Float[Tensor, "b hkv n d"]:
    """Some rows of all heads of a group, one head's after another's."""
    part = x[:, :, rows]
    groups = _groups(x.shape[1], heads)
    return part.reshape(part.shape[0], heads, groups * part.shape[2], part.shape[3])


def _unfold(x: Float[Tensor, "b hkv n d"], heads: int) -> Float[Tensor, "b h t d"]:
    groups = _groups(heads, x.shape[1])
    return x.reshape(x.shape[0], heads, x.shape[2] // groups, x.shape[3])


def _groups(many: int, few: int) -> int:
    return many // few if few else 1


def _seen(bad: Bool[Tensor, "b s hkv v"], sight: Sight) -> Bool[Tensor, "#b #t hkv v"]:
    """Whether a row sees a bad entry, by counting in its range of keys."""
    mask = sight.mask
    if mask is not None and mask.ndim == 3:
        visible = sight.within(slice(0, sight.rows), slice(0, sight.keys), mask.device)
        assert visible is not None
        return (visible.float() @ bad.flatten(2).float()).unflatten(2, bad.shape[2:]) > 0
    shown = bad if mask is None else bad & mask[:, :, None, None]
    return _count(shown, sight) > 0


def _empty(sight: Sight, device: torch.device) -> Bool[Tensor, "#b #t"]:
    """Whether a row sees no key."""
    mask = sight.mask
    if mask is not None and mask.ndim == 3:
        visible = sight.within(slice(0, sight.rows), slice(0, sight.keys), device)
        assert visible is not None
        return ~visible.any(-1)
    return _count(torch.ones(1, sight.keys, dtype=torch.bool, device=device) if mask is None else mask, sight) == 0


def _count(flags: Bool[Tensor, "b s *f"], sight: Sight) -> Int[Tensor, "b #t *f"]:
    start, end = sight.ends(flags.device)
    if end is None:
        return flags.sum(1, keepdim=True, dtype=torch.int32)
    sums = pad(flags.cumsum(1, dtype=torch.int32), (0, 0) * (flags.ndim - 2) + (1, 0))
    return sums[:, end] if start is None else sums[:, end] - sums[:, start]
