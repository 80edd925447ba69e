"""What the forms share: argument checks, the accumulation dtype, quarantine of non-finite tokens, packed sequences.

No check makes a GPU wait: nothing here looks at a value on its way to a decision, with two exceptions that say so
(`each_segment`, and `_seen_finite` for values that the host holds).
"""

from __future__ import annotations

from cmath import isfinite
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

REAL = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
COMPLEX = (torch.complex128, torch.complex64)
_SHORT = (torch.bfloat16, torch.float16)


def check(where: str, tensors: Mapping[str, tuple[Tensor | None, str]], allowed: tuple[torch.dtype, ...] = REAL) -> dict[str, int]:
    """Check type, dtype, device and shape of named tensors; return the sizes bound to the axis names.

    Each item is ``name: (tensor, "axis names")``. The first tensor that uses an axis name fixes its size; leading
    axes are free where the names begin with ``...``.
    A tensor that is None is skipped.

    Raises
    ------
    TypeError
        Not a tensor, or a dtype that is not allowed.
    ValueError
        A wrong number of axes, a size that contradicts an earlier tensor, or another device.
    """
    sizes: dict[str, int] = {}
    first: Tensor | None = None
    for name, (x, axes) in tensors.items():
        if x is None:
            continue
        if not isinstance(x, Tensor):
            raise TypeError(f"{where}: {name} must be a torch.Tensor, not {type(x).__name__}.")
        if x.dtype not in allowed:
            raise TypeError(f"{where}: {name} has dtype {x.dtype}; allowed are {_names(allowed)}.")
        lead, names = _axes(axes)
        shape = x.shape
        if len(shape) < len(names) or (len(shape) > len(names) and not lead):
            raise ValueError(f"{where}: {name} has shape {tuple(shape)}; it needs the axes {_shape(axes.split())}.")
        for axis, size in zip(names, shape[len(shape) - len(names) :], strict=True):
            if sizes.setdefault(axis, size) != size:
                need = _shape([f"{n}={sizes[n]}" if n in sizes else n for n in names])
                raise ValueError(f"{where}: {name} has shape {tuple(x.shape)}; the other arguments need {need}.")
        if first is None:
            first = x
        elif x.device != first.device:
            raise ValueError(f"{where}: {name} is on {x.device}, the first argument on {first.device}; one device is allowed.")
    return sizes


@cache
def _axes(names: str) -> tuple[bool, list[str]]:
    """Whether leading axes are free, and the names of the others."""
    axes = names.split()
    lead = axes[:1] == ["..."]
    return lead, axes[lead:]


def check_groups(where: str, few: str, many: str, sizes: dict[str, int]) -> int:
    """Return how many of the `many` heads share one of the `few` heads; head ``i`` of the many belongs to ``i // groups``.

    Raises
    ------
    ValueError
        The one is not a multiple of the other.
    """
    a, b = sizes[few], sizes[many]
    if a == b:
        return 1
    if a == 0 or b % a:
        raise ValueError(f"{where}: {many}={b} heads cannot share {few}={a} heads; {many} must be a multiple of {few}.")
    return b // a


def check_packing(where: str, cu_seqlens: Tensor | None, like: Tensor) -> int:
    """Check packed offsets and return the number of states: sequences when packed, the batch size otherwise.

    Raises
    ------
    TypeError
        Offsets that are not an int32 or int64 tensor.
    ValueError
        Offsets that are not one-dimensional, fewer than two, on another device, or a batch that is not 1.
    """
    if cu_seqlens is None:
        return like.shape[0]
    if not isinstance(cu_seqlens, Tensor) or cu_seqlens.dtype not in (torch.int32, torch.int64):
        kind = cu_seqlens.dtype if isinstance(cu_seqlens, Tensor) else type(cu_seqlens).__name__
        raise TypeError(f"{where}: cu_seqlens must be an int32 or int64 tensor, not {kind}.")
    if cu_seqlens.ndim != 1 or cu_seqlens.shape[0] < 2:
        raise ValueError(f"{where}: cu_seqlens has shape {tuple(cu_seqlens.shape)}; it needs (n + 1,) with n >= 1.")
    if like.shape[0] != 1:
        raise ValueError(f"{where}: with cu_seqlens the batch size must be 1, not {like.shape[0]}.")
    if cu_seqlens.device != like.device:
        raise ValueError(f"{where}: cu_seqlens is on {cu_seqlens.device}, the first argument on {like.device}; one device is allowed.")
    return cu_seqlens.shape[0] - 1


def check_state(
    where: str, like: Tensor, state: Tensor, sizes: dict[str, int], allowed: tuple[torch.dtype, ...] = REAL, name: str = "initial_state"
) -> None:
    """Check the initial state, an argument of this name, against its sizes; raises as `check` does."""
    check(where, {name: (state, " ".join(sizes))}, allowed)
    if tuple(state.shape) != tuple(sizes.values()):
        need = _shape([f"{axis}={size}" for axis, size in sizes.items()])
        raise ValueError(f"{where}: {name} has shape {tuple(state.shape)}; the other arguments need {need}.")
    if state.device != like.device:
        raise ValueError(f"{where}: {name} is on {state.device}, the first argument on {like.device}; one device is allowed.")


def own(state: Tensor, length: int) -> Tensor:
    """The state as a result: of no token it would be the caller's initial state itself, so it is copied."""
    return state if length else state.clone()


def made_of(rows: Tensor, *inputs: Tensor | None) -> Tensor:
    """Rows of no token, which have a gradient by all inputs of this kind: 0."""
    return reduce(lambda y, x: y * (x.sum().real if x.is_complex() else x.sum()), (x for x in inputs if x is not None), rows)


def check_positive(where: str, name: str, value: int) -> None:
    """Raise TypeError or ValueError unless `value` is a Python integer of at least 1."""
    if not isinstance(value, int | torch.SymInt) or isinstance(value, bool):
        raise TypeError(f"{where}: {name} must be an int, not {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"{where}: {name} must be at least 1, not {value}.")


def accumulator(*tensors: Tensor | None) -> torch.dtype:
    """Return the promoted dtype of the tensors, float32 where that is a 16-bit one: sums and states live in it."""
    dtype = reduce(torch.promote_types, {x.dtype for x in tensors if x is not None})
    return torch.float32 if dtype in _SHORT else dtype


def spread(x: Tensor, groups: int, dim: int) -> Tensor:
    """Repeat each head for every member of its group (repeat_interleave)."""
    return x if groups == 1 else x.repeat_interleave(groups, dim)


def quarantine(*tensors: Float[Tensor, "*b t _"]) -> tuple[list[Tensor], Float[Tensor, "*b t _"] | None]:
    """Zero non-finite entries, and return beside them a running stain: 0, and NaN from the first non-finite token on.

    A matrix product over a masked axis computes 0·NaN, so a bad token would reach rows that must not see it. The
    product of the zeroed tensors plus the stain has the bad token exactly where a recurrence has it. The last
    tensor is stained feature by feature, the others as a whole. None is no stain.
    """
    if _seen_finite(*tensors):
        return list(tensors), None
    good = tensors[-1].abs() < torch.inf
    for x in tensors[:-1]:
        good = good & (x.abs().amax(-1, keepdim=True) < torch.inf)
    stain = torch.where(good, 0.0, torch.nan).to(tensors[-1].dtype)
    return [torch.nan_to_num(x, 0.0, 0.0, 0.0) for x in tensors], stain.cumsum(-2)


def _seen_finite(*tensors: Tensor) -> bool:
    """Whether the host sees that all entries are finite: a sum is not finite if a term is not, and one pass is cheap.

    Never true where looking would make a device wait or freeze a decision into a graph.
    """
    if torch.compiler.is_compiling():
        return False
    try:
        for x in tensors:
            if not (x.is_cpu and isfinite((x.detach() if x.requires_grad else x).sum().item())):
                return False
    except RuntimeError:  # a batched or fake tensor has no value
        return False
    return True


def recorded(*tensors: Tensor) -> bool:
    """Whether what is done with these tensors is recorded for a gradient."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def transformed() -> bool:
    """Whether operations are compiled, or under a function transform, and not run one by one."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def eager(*tensors: Tensor) -> bool:
    """Whether operations are run one by one on a CPU."""
    return not transformed() and all(x.is_cpu for x in tensors)


def writable(*tensors: Tensor) -> bool:
    """Whether results may be written over others."""
    return not transformed() and not recorded(*tensors)


def in_place(*tensors: Tensor) -> bool:
    """Whether results may be written over others, and on a CPU are better."""
    return writable(*tensors) and all(x.is_cpu for x in tensors)


def batched(*tensors: Tensor) -> bool:
    """Whether one of them stands for many, as where all rows of a Jacobian are computed at once."""
    return any(torch._C._functorch.is_batchedtensor(x) or torch._C._functorch.is_legacy_batchedtensor(x) for x in tensors)


def multiplied(x: Tensor, y: Tensor) -> Tensor:
    """x · y, in the place of an x that nobody else has; under a transform y may have axes that x has not."""
    return x * y if transformed() else x.mul_(y)


def plus_product(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """x + y · z, as `multiplied`."""
    return torch.addcmul(x, y, z) if transformed() else x.addcmul_(y, z)


def differentiated(results: Sequence[Tensor], leaves: Sequence[Tensor], by: Sequence[Tensor], create_graph: bool = False) -> list[Any]:
    """Return the gradients by the leaves, None for those that need none, from the gradients by the results."""
    outputs, weights = zip(*((x, w) for x, w in zip(results, by, strict=True) if x.requires_grad), strict=True)
    wanted = [x for x in leaves if x.requires_grad]
    found = iter(torch.autograd.grad(outputs, wanted, weights, create_graph=create_graph, materialize_grads=True))
    return [next(found) if x.requires_grad else None for x in leaves]


def each_segment(
    form: Callable[..., tuple[Tensor, Tensor]],
    tensors: Sequence[Tensor],
    initial_state: Tensor | None,
    cu_seqlens: Int[Tensor, " n+1"],
) -> tuple[Tensor, Tensor]:
    """Run `form` on each packed sequence by itself; rows outside every sequence are 0.

    The offsets are read by the host, which makes a GPU wait once.
    """
    offsets = cu_seqlens.tolist()
    length = tensors[0].shape[1]
    sizes = [offsets[0], *(b - a for a, b in pairwise(offsets)), length - offsets[-1]]
    pieces = list(zip(*(x.split(sizes, dim=1) for x in tensors), strict=True))
    states = [None] * (len(sizes) - 2) if initial_state is None else initial_state.split(1)
    done = [form(*piece, state) for piece, state in zip(pieces[1:-1], states, strict=True)]
    o = torch.cat([o for o, _ in done], dim=1)
    o = torch.nn.functional.pad(o, (0, 0) * (o.ndim - 2) + (sizes[0], sizes[-1]))
    return o, torch.cat([s for _, s in done])


class ChunkLayout(NamedTuple):
    """Where packed tokens sit once every sequence starts on a chunk of its own (shapes are known without the values)."""

    token: Int[Tensor, "m c"]
    """The token in each slot of each chunk; the length of the buffer means none."""
    slot: Int[Tensor, " t"]
    """The slot of each token; m·c means none."""
    segment: Int[Tensor, " m"]
    """The sequence of each chunk."""
    first: Bool[Tensor, " m"]
    """Whether a chunk is its sequence's first."""
    last: Int[Tensor, " n"]
    """The last chunk of each sequence."""
    empty: Bool[Tensor, " n"]
    """Whether a sequence has no token."""


def chunk_layout(cu_seqlens: Int[Tensor, " n+1"], length: int, chunk_size: int) -> ChunkLayout:
    """Lay packed sequences out in chunks that no two sequences share, without reading the offsets on the host.

    The sum of ceil(l / C) over n sequences is at most floor(T / C) + n, which fixes the number of chunks.
    """
    cu = cu_seqlens.to(torch.int64).contiguous()
    n = cu.shape[0] - 1
    counts = (cu.diff() + chunk_size - 1) // chunk_size
    ends = counts.cumsum(0)
    starts = ends - counts
    chunk = torch.arange(length // chunk_size + n, device=cu.device)
    owner = torch.searchsorted(ends, chunk, right=True)
    segment = owner.clamp(max=n - 1)
    token = (cu[segment] + (chunk - starts[segment]) * chunk_size)[:, None] + torch.arange(chunk_size, device=cu.device)
    token = torch.where((token < cu[segment + 1][:, None]) & (owner < n)[:, None], token, length)

    time = torch.arange(length, device=cu.device)
    owner = torch.searchsorted(cu[1:].contiguous(), time, right=True)
    inside = (owner < n) & (time >= cu[0])
    owner = owner.clamp(max=n - 1)
    slot = torch.where(inside, starts[owner] * chunk_size + time - cu[owner], chunk.shape[0] * chunk_size)
    return ChunkLayout(token, slot, segment, chunk == starts[segment], (ends - 1).clamp(min=0), counts == 0)


def to_chunks(
    x: Float[Tensor, "b t h d"], chunk_size: int, layout: ChunkLayout | None, *, by_time: bool = False
) -> Float[Tensor, "b h m c d"]:
    """Cut the time axis into chunks, the missing tokens being 0; in memory those of one head or, ``by_time``, of one time are together."""
    if layout is None:
        missing = -x.shape[1] % chunk_size
        x = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, missing)) if missing else x
        x = x.unflatten(1, (x.shape[1] // chunk_size, chunk_size))
    else:
        x = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, 1))
        x = x[:, layout.token.flatten()].unflatten(1, tuple(layout.token.shape))
    return x.permute(1, 0, 3, 2, 4).contiguous().permute(1, 2, 0, 3, 4) if by_time else x.permute(0, 3, 1, 2, 4).contiguous()


def from_chunks(x: Float[Tensor, "b h m c d"], length: int, layout: ChunkLayout | None) -> Float[Tensor, "b t h d"]:
    """Undo `to_chunks`; a token outside every packed sequence is 0."""
    x = x.permute(0, 2, 3, 1, 4).flatten(1, 2)
    if layout is None:
        return x[:, :length]
    return torch.nn.functional.pad(x, (0, 0, 0, 0, 0, 1))[:, layout.slot]


def put_chunks(place: Float[Tensor, "b t h d"], x: Float[Tensor, "b h m c d"]) -> None:
    """Write what `from_chunks` gives of unpacked chunks, in one pass where they are all full."""
    length, (m, c) = place.shape[1], x.shape[2:4]
    if length == m * c:
        place.unflatten(1, (m, c)).copy_(x.permute(0, 2, 3, 1, 4))
    else:
        place.copy_(from_chunks(x, length, None))


def scan_chunks(
    change: Float[Tensor, "b h m k v"],
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
    decay: Float[Tensor, "b h m _ _"] | None = None,
) -> tuple[Float[Tensor, "b h m k v"], Float[Tensor, "n h k v"]]:
    """Run S ← decay ⊙ S + change over the chunks; return S before each, and after the last of each sequence.

    Without a decay a running sum replaces the loop where many small operations are dear: on a GPU, and in a compiled graph.
    """
    tensors = (change,) if decay is None else (change, decay.expand(-1, -1, change.shape[2], -1, -1))
    if layout is None and in_place(state, *tensors):
        return scan_in_place(change, state, decay)
    if decay is not None:
        return each_chunk(lambda s, c, a: torch.addcmul(c, a, s), tensors, state, layout)
    if layout is None and (torch.compiler.is_compiling() or not change.is_cpu):
        sums = torch.cat([state.unsqueeze(2), change], 2).cumsum(2)
        return sums[:, :, :-1], sums[:, :, -1]
    return each_chunk(torch.add, tensors, state, layout)


def scan_in_place(
    change: Float[Tensor, "b h m k v"], state: Float[Tensor, "b h k v"], decay: Float[Tensor, "b h m _ _"] | None, *, backward: bool = False
) -> tuple[Float[Tensor, "b h m k v"], Float[Tensor, "b h k v"]]:
    """`scan_chunks` where `in_place` allows it, from the last chunk to the first if ``backward``."""
    entering, last = torch.empty_like(change), torch.empty_like(state)
    way = -1 if backward else 1
    places = [*entering.unbind(2)[::way], last]
    decays = () if decay is None else decay.expand(-1, -1, change.shape[2], -1, -1).unbind(2)[::way]
    places[0].copy_(state)
    advance(places, change.unbind(2)[::way], decays)
    return entering, last


def advance(places: Sequence[Tensor], changes: Sequence[Tensor], decays: Sequence[Tensor] = ()) -> None:
    """Write s ← decay ⊙ s + change, without a decay the sum, into one place after the other, from what stands in the first on.

    A place may be the change that leads to it.
    """
    for n, c in enumerate(changes):
        if decays:
            torch.addcmul(c, decays[n], places[n], out=places[n + 1])
        else:
            torch.add(places[n], c, out=places[n + 1])


def each_chunk(
    update: Callable[..., Tensor],
    tensors: Sequence[Float[Tensor, "b h m _ _"]],
    state: Float[Tensor, "n h k v"],
    layout: ChunkLayout | None,
) -> tuple[Float[Tensor, "b h m k v"], Float[Tensor, "n h k v"]]:
    """Run S ← update(S, chunk of each tensor) from chunk to chunk; return S before each, and after the last of each sequence.

    ``update`` sees one axis (b·h) in the place of b and h; a tensor may have b = 1 or h = 1 to be the same for all.
    """
    b, h = (state if layout is None else state[:1]).shape[:2]
    s = state[:b].flatten(0, 1)
    fresh = None if layout is None else list(zip(layout.first.unbind(0), state[layout.segment].unbind(0)))
    chunks = list(zip(*(x.expand(b, h, *x.shape[2:]).flatten(0, 1).unbind(1) for x in tensors), strict=True))
    if not chunks:
        return state.new_empty(b, h, 0, *state.shape[2:]), state
    before, after = [], []
    for m, chunk in enumerate(chunks):
        if fresh is not None:
            s = torch.where(*fresh[m], s)
        before.append(s)
        s = update(s, *chunk)
        after.append(s)
    entering = torch.stack(before, 1).unflatten(0, (b, h))
    if layout is None:
        return entering, s.view(state.shape)
    ends = torch.stack(after)[layout.last]
    return entering, torch.where(layout.empty[:, None, None, None], state, ends)


def _names(dtypes: tuple[torch.dtype, ...]) -> str:
    return ", ".join(str(d).removeprefix("torch.") for d in dtypes)


def _shape(axes: Sequence[str]) -> str:
    return "(" + ", ".join(axes) + ("," if len(axes) == 1 else "") + ")"
