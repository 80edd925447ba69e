"""What a torch program computes: operations by kind, and bytes written, counted as the program runs.

The conventions are those of ``derivations.cost``: a product of n x k by k x m takes n·k·m multiplications and n·m·(k-1)
additions, a sum of n numbers n-1 additions, and a sign nothing. Only floating-point numbers are counted, not indices and
masks. An operator that the tables do not know raises: nothing is counted as 0 unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .tensors import tensors_in

ADDITIONS, MULTIPLICATIONS, DIVISIONS, EXPONENTIALS = "additions", "multiplications", "divisions", "exponentials"
LOGARITHMS, ROOTS, COMPARISONS = "logarithms", "roots", "comparisons"
Counts = Mapping[str, int]
Rule = Callable[[Sequence[Any], Mapping[str, Any], Tensor], Counts]


class Uncounted(NotImplementedError):
    """An operator whose cost is not known."""


class OperationCounter(TorchDispatchMode):
    """Counts while it is entered: ``with OperationCounter() as c: form(...)``, then ``c.operations`` and ``c.written``.

    ``operations`` are by kind, in numbers of scalar operations; ``written`` is the bytes of every result that is not a
    view. What returns no tensor (a dtype, a number on the host) is no operation.
    Raises Uncounted for an operator without a rule, and for complex numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[str] = Counter()
        self.written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator and count it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__.removesuffix("_")  # in place or not
        outputs = tensors_in(list(result) if isinstance(result, (tuple, list)) else result)
        operands = tensors_in([*args, *kwargs.values()])
        if any(x.is_complex() for x in (*outputs, *operands)):
            raise Uncounted(f"{name} of complex numbers: only real operations are counted.")
        if _is_view(func, name) or not outputs:
            return result
        self.written += sum(x.numel() * x.element_size() for x in outputs)
        if name in MOVES:
            return result
        rule = RULES.get(name)
        if rule is None:
            raise Uncounted(f"{func}: its operations are not known to the counter.")
        if any(x.is_floating_point() for x in (*outputs, *operands)):
            self.operations.update({kind: n for kind, n in rule(args, kwargs, outputs[0]).items() if n})
        return result


def count(form: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[dict[str, int], int]:
    """Run a form: its operations by kind, and the bytes that it writes."""
    with torch.no_grad(), OperationCounter() as counter:
        form(*args, **kwargs)
    return dict(counter.operations), counter.written


def peak(call: Callable[[], Any]) -> int:
    """Run a call: the largest number of bytes that it holds at once on the CPU, beside what was there before."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    events = sorted((e.start_ns(), e.nbytes()) for e in profile.profiler.kineto_results.events() if e.name() == "[memory]")
    return int(max(accumulate((size for _, size in events), initial=0)))


def _is_view(func: Any, name: str) -> bool:
    """Whether the results of an operator are its arguments, seen in another way."""
    returns = [r.alias_info for r in func._schema.returns]
    return name == "_unsafe_view" or (bool(returns) and all(a is not None and not a.is_write for a in returns))


MOVES = frozenset(
    {
        "abs",
        "arange",
        "bitwise_and",
        "bitwise_not",
        "bitwise_or",
        "cat",
        "clone",
        "constant_pad_nd",
        "copy",
        "empty",
        "empty_like",
        "eye",
        "fill",
        "flip",
        "full",
        "full_like",
        "gather",
        "index",
        "index_select",
        "logical_and",
        "logical_not",
        "logical_or",
        "masked_fill",
        "nan_to_num",
        "neg",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "ones_like",
        "repeat",
        "scalar_tensor",
        "searchsorted",
        "stack",
        "_to_copy",
        "tril",
        "triu",
        "where",
        "zeros",
        "zeros_like",
    }
)
"""Operators that store, choose and look up: bytes, but no arithmetic. A sign is none either."""


def _each(*kinds: str) -> Rule:
    """So many operations for every number of the result."""
    return lambda args, kwargs, out: {kind: out.numel() for kind in kinds}


def _sum(kind: str = ADDITIONS) -> Rule:
    """A reduction of the first argument: one operation fewer than there are numbers, for every number of the result."""
    return lambda args, kwargs, out: {kind: max(args[0].numel() - out.numel(), 0)}


def _add(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    return {ADDITIONS: out.numel(), MULTIPLICATIONS: _scaling(kwargs.get("alpha", 1), out)}


def _added_entries(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    """x + value · a · b, entry by entry."""
    return {ADDITIONS: out.numel(), MULTIPLICATIONS: out.numel() + _scaling(kwargs.get("value", 1), out)}


def _scaling(factor: float, out: Tensor) -> int:
    return 0 if factor in (1, -1) else out.numel()


def _product(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    inner = args[0].shape[-1]
    return {MULTIPLICATIONS: out.numel() * inner, ADDITIONS: out.numel() * max(inner - 1, 0)}


def _added_product(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    """beta · x + alpha · (a @ b)."""
    beta, alpha = kwargs.get("beta", 1), kwargs.get("alpha", 1)
    product = _product(args[1:], {}, out)
    scaled = (_scaling(beta, out) if beta else 0) + _scaling(alpha, out)
    added = out.numel() if beta else 0
    return {MULTIPLICATIONS: product[MULTIPLICATIONS] + scaled, ADDITIONS: product[ADDITIONS] + added}


def _solve(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    """Substitution, from either side: the i-th unknown subtracts i - 1 products, and is divided by the diagonal where that is not 1."""
    below = out.numel() * (args[0].shape[-1] - 1) // 2
    return {MULTIPLICATIONS: below, ADDITIONS: below, DIVISIONS: 0 if kwargs.get("unitriangular", False) else out.numel()}


def _softmax(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    """Of each row of n: the largest, n differences and exponentials, their sum, n quotients."""
    size = out.numel()
    rows = size // out.shape[args[1]] if size else 0
    return {COMPARISONS: size - rows, ADDITIONS: 2 * size - rows, EXPONENTIALS: size, DIVISIONS: size}


def _safe_softmax(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    """A softmax that is 0 where all of a row is -∞: every number is looked at once more, and all of a row at once."""
    found = Counter(_softmax(args, kwargs, out))
    found[COMPARISONS] += out.numel() + found[COMPARISONS]
    return found


def _running(kind: str) -> Rule:
    def rule(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
        size = out.numel()
        return {kind: size - size // out.shape[args[1]] if size else 0}

    return rule


def _power(args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor) -> Counts:
    if args[1] != 2:
        raise Uncounted(f"a power {args[1]}: only squares are counted.")
    return {MULTIPLICATIONS: out.numel()}


COMPARING = ("eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "clamp", "clamp_min", "clamp_max", "isnan", "isinf")
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("add", "sub", "rsub"), _add),
    **dict.fromkeys(("mul", "square"), _each(MULTIPLICATIONS)),
    **dict.fromkeys(COMPARING, _each(COMPARISONS)),
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), _product),
    **dict.fromkeys(("addmm", "baddbmm"), _added_product),
    **dict.fromkeys(("amax", "amin", "any", "all"), _sum(COMPARISONS)),
    "addcmul": _added_entries,
    "sum": _sum(),
    "cumsum": _running(ADDITIONS),
    "cumprod": _running(MULTIPLICATIONS),
    "div": _each(DIVISIONS),
    "reciprocal": _each(DIVISIONS),
    **dict.fromkeys(("exp", "exp2"), _each(EXPONENTIALS)),
    "expm1": _each(EXPONENTIALS, ADDITIONS),
    "log": _each(LOGARITHMS),
    "log1p": _each(LOGARITHMS, ADDITIONS),
    "sqrt": _each(ROOTS),
    "rsqrt": _each(ROOTS, DIVISIONS),
    "sigmoid": _each(EXPONENTIALS, ADDITIONS, DIVISIONS),
    "pow": _power,
    "_softmax": _softmax,
    "_safe_softmax": _safe_softmax,
    "linalg_solve_triangular": _solve,
}
