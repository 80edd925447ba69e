"""The only place that knows torch: arrays to tensors and back, the precision of a dtype, views, gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]
SHORT = ("bfloat16", "float16")
DTYPES = ("float64", "float32", *SHORT)
LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")


@dataclass(frozen=True)
class Precision:
    """What a form promises: sums in one dtype, outputs rounded to another.

    ``unit`` and ``out`` are the error of one rounding relative to its result, ``tiny`` and ``out_tiny`` the absolute
    error below the normal numbers. Rounding is taken to be *faithful* (below one unit in the last place, twice the
    half unit of IEEE arithmetic), which is what accelerators and their math libraries promise. ``operand`` is the error of one
    operand of a product that is rounded before, where that is not in ``unit``.
    """

    unit: float
    tiny: float
    out: float = 0.0
    out_tiny: float = 0.0
    operand: float = 0.0


PRECISIONS = ("", "float64", "float32", "tf32", "bf16-operands", "fp16-operands", "bfloat16", "float16")
"""What a form may be declared to compute in: as the dtype says, with sums in a dtype, or with operands of products rounded first."""
OPERAND_DTYPES = {"bf16-operands": "bfloat16", "fp16-operands": "float16"}
TF32 = 2.0**-10
"""A unit in the last place of TF32, which has 10 bits behind the point and the exponents of float32."""


def precision(dtype: str, declared: str = "", apart: bool = False) -> Precision:
    """The precision of a form whose inputs have this dtype, by what it is declared to compute in, one of `PRECISIONS`.

    Without a declaration 16-bit inputs are summed in float32. The rounding of operands is ``unit``, as if each rounding were one of
    theirs, or, for bounds that count products apart, ``operand``. Raises ValueError for another word.
    """
    if declared not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(filter(None, PRECISIONS))}, not {declared!r}")
    own = torch.finfo(getattr(torch, dtype))
    single = "float32" if declared or dtype in SHORT else dtype
    sums = torch.finfo(getattr(torch, declared if declared in DTYPES else single))
    operands = torch.finfo(getattr(torch, OPERAND_DTYPES[declared])) if declared in OPERAND_DTYPES else sums
    operand = TF32 if declared == "tf32" else operands.eps
    out = (own.eps, own.tiny) if own.eps > sums.eps else (0.0, 0.0)
    return Precision(sums.eps, operands.tiny, *out, operand * (operand > sums.eps)) if apart else Precision(operand, operands.tiny, *out)


def sum_dtype(dtype: str, declared: str = "") -> str:
    """The dtype of states: 16 bits where they are declared so, float64 beside float64, else float32."""
    return declared if declared in SHORT else "float64" if dtype == "float64" else "float32"


def largest(dtype: str) -> float:
    """The largest number of a dtype."""
    return float(torch.finfo(getattr(torch, dtype)).max)


def rounded(x: Array, dtype: str) -> Array:
    """The nearest values of a dtype, as float64 (complex128 for complex x); exact for the forms' inputs."""
    if np.iscomplexobj(x):
        return rounded(x.real, dtype) + 1j * rounded(x.imag, dtype)
    return torch.from_numpy(np.array(x, dtype=np.float64)).to(getattr(torch, dtype)).to(torch.float64).numpy()


def tensor(x: Array, dtype: str, layout: str = "contiguous") -> Tensor:
    """A tensor of the dtype with the values of x, in memory as the layout says; bool stays bool."""
    t = torch.from_numpy(np.array(x, order="C"))
    if t.is_complex():
        t = t.to(torch.complex128 if dtype == "float64" else torch.complex64)
    elif t.dtype.is_floating_point:
        t = t.to(getattr(torch, dtype))
    return laid_out(t, layout)


def laid_out(t: Tensor, layout: str) -> Tensor:
    """A view with the values of t: axes stored in reverse order, every second element, or (where the values allow) stride 0."""
    if t.ndim == 0:
        return t
    if layout == "transposed":
        axes = tuple(reversed(range(t.ndim)))
        return t.permute(axes).contiguous().permute(axes)
    if layout == "sliced":
        wide = torch.full((*t.shape[:-1], 2 * t.shape[-1] + 1), torch.nan if t.dtype.is_floating_point else 0, dtype=t.dtype)
        return wide[..., 1::2].copy_(t)
    if layout == "expanded":
        for axis in range(t.ndim):
            first = t.narrow(axis, 0, min(1, t.shape[axis]))
            if t.shape[axis] > 1 and torch.equal(first.expand_as(t), t):
                return first.expand_as(t)
    return t


def array(x: Tensor) -> Array:
    """The values of a tensor as float64 or complex128."""
    wide = x.detach().to("cpu").to(torch.complex128 if x.is_complex() else torch.float64)
    return wide.numpy().copy()


def values(x: Any) -> Any:
    """Tensors as arrays; None stays None, a tuple becomes a tuple."""
    if isinstance(x, tuple):
        return tuple(values(e) for e in x)
    return array(x) if isinstance(x, Tensor) else x


def offsets(x: tuple[int, ...], wide: bool = False) -> Tensor:
    """Offsets of packed sequences, in int32 or int64."""
    return torch.tensor(x, dtype=torch.int64 if wide else torch.int32)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two tensors have one dtype, shape and value everywhere, NaN equal to NaN."""
    return a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(torch.nan_to_num(a, 7.0), torch.nan_to_num(b, 7.0)))


def shares_memory(a: Any, b: Any) -> bool:
    """Whether two tensors live in one storage; empty ones do not."""
    return bool(a.numel() and b.numel() and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


def gradients(
    loss: Callable[[Mapping[str, Tensor]], tuple[tuple[Tensor, Array], ...]],
    inputs: Mapping[str, Tensor],
    layout: str = "contiguous",
) -> tuple[dict[str, Array], bool]:
    """The gradient of Σ weight · output by every input, for ``loss`` that returns pairs (output, weight).

    Of complex ones it is that of Re Σ weight* · output: by the real part, plus i times by the imaginary part.
    The weights lie in memory as the layout says; second, whether the backward pass left them as they were.
    """
    leaves = {name: x.detach().requires_grad_() for name, x in inputs.items()}
    pairs = [(out, laid_out(torch.from_numpy(np.array(weight)).to(out.dtype), layout)) for out, weight in loss(leaves) if out.requires_grad]
    if not pairs:
        return {name: array(torch.zeros_like(x)) for name, x in leaves.items()}, True
    outs, weights = zip(*pairs, strict=True)
    before = [w.clone() for w in weights]
    found = torch.autograd.grad(outs, list(leaves.values()), weights, allow_unused=True)
    kept = all(same_bits(a, b) for a, b in zip(before, weights, strict=True))
    return {n: array(torch.zeros_like(leaves[n]) if g is None else g) for n, g in zip(leaves, found, strict=True)}, kept


def differentiable(x: Tensor) -> bool:
    """Whether a gradient can be asked for: of real and complex numbers."""
    return x.is_floating_point() or x.is_complex()


@contextmanager
def one_thread() -> Iterator[None]:
    """Small tensors on one thread: sharing them out takes longer than computing them, most of all beside other processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SURROUNDINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "random numbers": (torch.get_rng_state, torch.set_rng_state),
}
"""What all code in a process shares: how it is looked up, and set."""


def surroundings() -> dict[str, Any]:
    """What all code in a process shares, as it is now."""
    return {name: look() for name, (look, _) in SURROUNDINGS.items()}


def changed(before: Mapping[str, Any]) -> list[str]:
    """The names of `SURROUNDINGS` that are not what they were."""
    now = surroundings()
    return [n for n, old in before.items() if not (torch.equal(old, now[n]) if isinstance(old, Tensor) else old == now[n])]


@contextmanager
def kept_surroundings() -> Iterator[None]:
    """What happens inside changes nothing of `SURROUNDINGS` for what comes after."""
    before = surroundings()
    try:
        yield
    finally:
        for name in changed(before):
            SURROUNDINGS[name][1](before[name])


def tensors_in(x: Any) -> list[Tensor]:
    """The tensors of an argument or result, in order."""
    if isinstance(x, Tensor):
        return [x]
    return [t for e in x for t in tensors_in(e)] if isinstance(x, (tuple, list)) else []


def joined(parts: Sequence[Tensor], axis: int = 1) -> Tensor:
    """Tensors one behind the other."""
    return torch.cat(list(parts), axis)


def overwrite(t: Tensor) -> None:
    """Fill a tensor with something else, in place."""
    t.copy_(torch.logical_not(t) if t.dtype == torch.bool else torch.full_like(t, -7.0))
