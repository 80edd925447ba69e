"""Memories: a state S (k × v) per head is written with keys and values, and read with queries after the write.

What is the same for all of them: the checked call, the loop over tokens, the one step, and how results leave.

Symbols: b batch, t time, h query and key heads, hv value heads (a multiple of h; value head i reads query and key
head i // (hv / h)), k and v the head sizes, n states: sequences when packed, otherwise n = b; m chunks of c tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._common import (
    accumulator,
    check,
    check_groups,
    check_packing,
    check_positive,
    check_state,
    chunk_layout,
    differentiated,
    each_segment,
    own,
    spread,
)
from ._spans import Form, Gradient, Spans

NORM_EPS = 1e-6
"""The ε inside the root of the optional norm of queries and keys, as public kernels have it."""

CACHED = 2**17
"""The numbers of a tensor of which one core of a CPU holds a few in its caches."""

Result = tuple[Float[Tensor, "b t hv v"], Float[Tensor, "n hv k v"] | None]
Gates = Mapping[str, tuple[Tensor | None, str]]
Function = TypeVar("Function", bound=Callable[..., Any])

SEQUENCE = """
Common to the forms of every memory: tensors in float64, float32, bfloat16 or float16; ``scale``, None being k^-0.5;
``initial_state``, None being 0; ``output_final_state``, whether to return the state; ``cu_seqlens``, offsets of packed
sequences in a batch of 1. Value head i reads query and key head i // (hv / h). Sums and states are kept in the promoted
dtype of the inputs, float32 for 16-bit ones; ``o`` has the dtype of ``v``. A row outside every packed sequence is 0; an
empty sequence hands its initial state back. A non-finite token changes its own and later rows only.

Raises
------
TypeError
    An argument that is no tensor of an allowed dtype; a ``chunk_size`` that is no integer.
ValueError
    Shapes or devices that do not fit together; a batch that is not 1 beside ``cu_seqlens``; ``chunk_size`` < 1.
"""

TOKEN = """
Returns (o, new state). The old state is left as it was; None is 0.

Raises
------
TypeError
    An argument that is no tensor of an allowed dtype.
ValueError
    Shapes or devices that do not fit together.
"""


def documented(text: str) -> Callable[[Function], Function]:
    """Append what is common to all memories to a docstring."""

    def append(function: Function) -> Function:
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n{text}"
        return function

    return append


@dataclass(frozen=True)
class Call:
    """A checked call: tensors in the accumulation dtype, and a state to start from."""

    inputs: tuple[Float[Tensor, "b t h d"], ...]
    """q, k, v, and the gates with a time axis, whose last axis is 1 if they have none of their own."""
    state: Float[Tensor, "n h k v"]
    v: Float[Tensor, "b t hv v"]
    """The values as they were passed, for the shape and the dtype of the result."""
    cu_seqlens: Int[Tensor, " n+1"] | None
    output_final_state: bool
    scale: float
    l2norm: bool

    def by_sequence(self, form: Callable[..., tuple[Tensor, Tensor]]) -> Result:
        """Run ``form(*inputs, state)`` on the whole, or on each packed sequence by itself; the host then reads the offsets."""
        q, k, *rest = self.inputs
        q, k = normalized(q, k) if self.l2norm else (q, k)
        inputs = [q * self.scale, k, *rest]
        if self.cu_seqlens is None:
            return self._leave(*form(*inputs, self.state))
        return self._leave(*each_segment(form, inputs, self.state, self.cu_seqlens))

    def by_chunk(self, form: Form, chunk_size: int, gradient: Gradient | None = None, *, by_time: bool = False) -> Result:
        """Run ``form(*inputs, state, layout)`` on inputs (b h m c d), cut into chunks that no two sequences share."""
        gradient = _of_normalized(gradient) if self.l2norm and gradient is not None else gradient

        def chunks(q: Tensor, k: Tensor, *rest: Any) -> tuple[Tensor, ...]:
            return form(*(normalized(q, k) if self.l2norm else (q, k)), *rest)

        spans = Spans(chunks, gradient, chunk_size, self._span(chunk_size), self.scale, by_time)
        if self.cu_seqlens is None:
            return self._leave(*spans(self.inputs, self.state))
        return self._leave(*spans.packed(self.inputs, self.state, chunk_layout(self.cu_seqlens, self.v.shape[1], chunk_size)))

    def _span(self, chunk_size: int) -> int:
        """How many tokens go through a form at once: on a CPU as many whole chunks as a cache holds, else all."""
        q, k, v = self.inputs[:3]
        if torch.compiler.is_compiling() or not q.is_cpu:
            return max(1, q.shape[1])
        token = q.shape[0] * q.shape[2] * max(chunk_size, k.shape[3], v.shape[3])
        return chunk_size * max(1, CACHED * torch.get_num_threads() // max(1, token * chunk_size))

    def counting(self) -> Call:
        """The same call with one more input: a 1 (1 t 1 1) for every token, which padding lacks."""
        return replace(self, inputs=(*self.inputs, self.v.new_ones(1, self.v.shape[1], 1, 1, dtype=self.state.dtype)))

    def _leave(self, o: Tensor, state: Tensor) -> Result:
        """Undo the folding of heads, and return to the caller's dtype."""
        o = o.reshape(self.v.shape).to(self.v.dtype)
        if not self.output_final_state:
            return o, None
        n, h, dk, _ = state.shape
        hv, dv = self.v.shape[2:]
        state = own(state, self.v.shape[1]).reshape(n, h, dk, hv // h if h else 1, dv).transpose(2, 3)
        return o, state.reshape(n, hv, dk, dv)


def call(
    where: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None,
    initial_state: Tensor | None,
    output_final_state: bool,
    cu_seqlens: Tensor | None,
    gates: Gates | None = None,
    *,
    fold: bool = False,
    l2norm: bool = False,
    chunk_size: int = 1,
) -> Call:
    """Check the arguments and prepare them.

    Heads that share a query and key are folded into one wide value, (b t h gv), with ``fold``; otherwise every value
    head gets a query and a key of its own. A gate without a time axis is checked, and counts for the dtype, but is left to
    the caller.
    """
    check_positive(where, "chunk_size", chunk_size)
    gates = gates or {}
    sizes = check(where, {"q": (q, "b t h k"), "k": (k, "b t h k"), "v": (v, "b t hv v"), **gates})
    groups = check_groups(where, "h", "hv", sizes)
    b, t, h, dk = q.shape
    hv, dv = v.shape[2:]
    n = check_packing(where, cu_seqlens, q)
    if initial_state is not None:
        check_state(where, q, initial_state, {"n": n, "hv": hv, "k": dk, "v": dv})
    dtype = accumulator(q, k, v, initial_state, *(x for x, _ in gates.values()))
    state = q.new_zeros(n, hv, dk, dv, dtype=dtype) if initial_state is None else initial_state.to(dtype)
    if fold:
        state = state.reshape(n, h, groups, dk, dv).transpose(2, 3).flatten(3)

    def by_head(x: Tensor, axes: list[str]) -> Tensor:
        x = x.to(dtype) if x.ndim == 4 else x.to(dtype).unsqueeze(-1)
        if "hv" not in axes:
            return x if fold else spread(x, groups, 2)
        return x.reshape(b, t, h, groups * x.shape[3]) if fold else x

    tensors = [(q, "b t h k"), (k, "b t h k"), (v, "b t hv v"), *gates.values()]
    named = [(x, axes.split()) for x, axes in tensors if x is not None]
    inputs = tuple(by_head(x, axes) for x, axes in named if "t" in axes)
    return Call(inputs, state, v, cu_seqlens, output_final_state, default_scale(dk) if scale is None else scale, l2norm)


def default_scale(k: int) -> float:
    """Return k^-0.5, the scale of queries with k features."""
    return max(1, k) ** -0.5


def normalized(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Divide every row by its norm."""
    return tuple(x * (x.square().sum(-1, keepdim=True) + NORM_EPS).rsqrt() for x in tensors)


def _of_normalized(gradient: Gradient) -> Gradient:
    """The gradient by queries and keys that are normalized first."""

    def by_inputs(q: Tensor, k: Tensor, *rest: Any) -> list[Any] | None:
        with torch.enable_grad():
            units = normalized(q, k)
        found = gradient(*(x.detach() for x in units), *rest)
        if found is None or not any(x.requires_grad for x in units):
            return found
        return [*differentiated(units, (q, k), found[:2]), *found[2:]]

    return by_inputs


Update = Callable[..., Float[Tensor, "bh k v"]]
"""``update(s, k, v, *gates)`` is the next state of each head; k (bh 1 k), v (bh 1 v), gates (bh 1 d)."""


def token_by_token(update: Update) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return the form ``(q, k, v, *gates, state) -> (o, last state)`` that loops over the tokens."""

    def form(*arguments: Tensor) -> tuple[Tensor, Tensor]:
        *inputs, state = arguments
        b, t, h, _ = inputs[0].shape
        if t == 0:
            return reduce(torch.mul, (x.sum(-1, keepdim=True) for x in inputs), inputs[2]), state
        s = state.flatten(0, 1)
        rows = []
        for tokens in zip(*(x.unbind(1) for x in inputs), strict=True):
            q, *writes = (x.reshape(b * h, 1, x.shape[-1]) for x in tokens)
            s = update(s, *writes)
            rows.append(torch.bmm(q, s))
        o = torch.stack(rows, 1).view(b, h, t, state.shape[-1]).transpose(1, 2)
        return o, s.view(state.shape)

    return form


def one_token(
    where: str,
    update: Update,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor | None,
    scale: float | None,
    gates: Gates | None = None,
    *,
    l2norm: bool = False,
) -> tuple[Float[Tensor, "b hv v"], Float[Tensor, "b hv k v"]]:
    """Check one token's tensors, update the state, read it. A gate per query head counts for each of its value heads."""
    gates = gates or {}
    sizes = check(where, {"q": (q, "b h k"), "k": (k, "b h k"), "v": (v, "b hv v"), **gates, "state": (state, "b hv k v")})
    groups = check_groups(where, "h", "hv", sizes)
    present = [(x, axes.split()) for x, axes in gates.values() if x is not None]
    dtype = accumulator(q, k, v, state, *(x for x, _ in present))
    b, hv, dk, dv = sizes["b"], sizes["hv"], sizes["k"], sizes["v"]

    def by_head(x: Tensor, axes: list[str]) -> Tensor:
        x = x.to(dtype) if "hv" in axes else spread(x.to(dtype), groups, 1)
        return x.reshape(b * hv, 1, x.shape[2] if x.ndim == 3 else 1)

    q, k = q.to(dtype), k.to(dtype)
    q, k = normalized(q, k) if l2norm else (q, k)
    q, k = (by_head(x, ["h"]) for x in (q * (default_scale(dk) if scale is None else scale), k))
    old = q.new_zeros(b * hv, dk, dv) if state is None else state.to(dtype).reshape(b * hv, dk, dv)
    new = update(old, k, by_head(v, ["hv"]), *(by_head(x, axes) for x, axes in present))
    return torch.bmm(q, new).view(b, hv, dv).to(v.dtype), new.view(b, hv, dk, dv)
