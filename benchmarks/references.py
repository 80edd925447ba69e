"""Public implementations in torch as `isoform check` is told to call them; functions of other conventions stand behind an adapter here.

Limits say what an implementation does not claim: a reference of one dtype, of as many heads for values as for keys, of whole chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Public:
    """A public function: package, where it is (a file in the package, a module, or "" for an adapter of this file), and how to check it."""

    package: str
    home: str
    function: str
    operator: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What a report calls it."""
        return f"{self.package} {self.function}"

    @property
    def target(self) -> str:
        """The function as `isoform check` names it. Raises ModuleNotFoundError where its package is not installed."""
        spec = find_spec(self.package)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"{self.package} is not installed")
        if not self.home:
            return f"{__name__}:{self.function}"
        file = Path(spec.origin).parent / self.home
        return f"{file if self.home.endswith('.py') else self.home}:{self.function}"


def mambapy_selective_scan(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None = None) -> Tensor:
    """mambapy's parallel scan, which has time second."""
    return _mambapy("selective_scan", u, delta, A, B, C, D)


def mambapy_selective_scan_seq(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None = None) -> Tensor:
    """mambapy's loop, which has time second."""
    return _mambapy("selective_scan_seq", u, delta, A, B, C, D)


def _mambapy(name: str, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None) -> Tensor:
    block = import_module("mambapy.mamba").MambaBlock
    if B.ndim != 3 or C.ndim != 3:
        raise ValueError("B and C are (b, n, l)")
    sizes = SimpleNamespace(config=SimpleNamespace(d_inner=A.shape[0], d_state=A.shape[1]))
    u, delta, B, C = (x.transpose(1, 2) for x in (u, delta, B, C))
    D = A.new_zeros(len(A)) if D is None else D
    return getattr(block, name)(sizes, u, delta, A, B, C, D).transpose(1, 2)


def mamba_selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Mamba's fallback, without the arguments of any name that it takes and leaves unread, such as a state."""
    if B.ndim != 3 or C.ndim != 3:
        raise ValueError("B and C are (b, n, l)")
    run = import_module("transformers.models.mamba.modeling_mamba").mamba_selective_scan
    return run(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)


def causal_conv1d_fn(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """The fallback of the causal convolution, without the arguments of any name that it takes and leaves unread."""
    return import_module("transformers.models.mamba.modeling_mamba").causal_conv1d_fn(x, weight, bias, activation)


def mamba2_chunk_scan(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor | None]:
    """Mamba-2's chunks with steps of 1, so that A is the log-gate; its states have the value's axis first."""
    run = import_module("transformers.models.mamba2.modeling_mamba2").mamba2_chunk_scan
    start = None if initial_state is None else initial_state.transpose(2, 3)
    one = torch.ones_like(g)
    y, state = run(v, one, g, k, q * q.shape[-1] ** -0.5, chunk_size, initial_states=start, return_final_states=True)
    return y, state.transpose(2, 3) if output_final_state else None


def rwkv_linear_attention_cpu(
    k: Tensor, v: Tensor, w: Tensor, u: Tensor, initial_state: Tensor | None = None, output_final_state: bool = False
) -> tuple[Tensor, Tensor | None]:
    """The fallback of RWKV-4, which has w as -e^w."""
    run = import_module("transformers.models.rwkv.modeling_rwkv").rwkv_linear_attention_cpu
    state = None if initial_state is None else list(initial_state.unbind(1))
    o, state = run(torch.log(-w.to(torch.promote_types(w.dtype, torch.float32))), u, k, v, state, True)
    return o, torch.stack(state, 1) if output_final_state else None


HEADS = "groups=1"
FLOAT32 = "no float64, no bfloat16, no float16"
REFERENCES = (
    Public("fla", "ops/linear_attn/naive.py", "naive_recurrent_linear_attn", "linear-attention", {"limits": HEADS}),
    Public("fla", "ops/linear_attn/naive.py", "naive_chunk_linear_attn", "linear-attention", {"limits": f"{HEADS}, t%64"}),
    Public("fla", "ops/retention/naive.py", "naive_retention", "retention", {"map": "head-first", "limits": HEADS}),
    Public("fla", "ops/simple_gla/naive.py", "naive_recurrent_simple_gla", "gated-retention", {"limits": HEADS}),
    Public("fla", "ops/simple_gla/naive.py", "naive_chunk_simple_gla", "gated-retention", {"limits": f"{HEADS}, {FLOAT32}"}),
    Public(
        "fla",
        "ops/simple_gla/naive.py",
        "naive_parallel_simple_gla",
        "gated-retention",
        {"limits": f"{HEADS}, {FLOAT32}", "map": "-> out, _"},
    ),
    Public("transformers", "", "mamba2_chunk_scan", "gated-retention", {"limits": f"{HEADS}, {FLOAT32}"}),
    Public("fla", "ops/gla/naive.py", "naive_recurrent_gla", "gated-linear-attention", {"limits": HEADS}),
    Public("fla", "ops/delta_rule/naive.py", "delta_rule_recurrence", "delta-rule", {"map": "head-first", "limits": HEADS}),
    Public("fla", "ops/delta_rule/naive.py", "delta_rule_chunkwise", "delta-rule", {"map": "head-first", "limits": f"{HEADS}, t%64"}),
    Public(
        "fla", "ops/gated_delta_rule/naive.py", "naive_recurrent_gated_delta_rule", "gated-delta-rule", {"limits": f"{HEADS}, {FLOAT32}"}
    ),
    Public("fla", "ops/gated_delta_rule/naive.py", "naive_chunk_gated_delta_rule", "gated-delta-rule", {"limits": f"{HEADS}, {FLOAT32}"}),
    Public(
        "transformers",
        "transformers.models.qwen3_next.modeling_qwen3_next",
        "torch_chunk_gated_delta_rule",
        "gated-delta-rule",
        {"map": "query=q, key=k, value=v"},
    ),
    Public(
        "transformers",
        "transformers.models.qwen3_next.modeling_qwen3_next",
        "torch_recurrent_gated_delta_rule",
        "gated-delta-rule",
        {"map": "query=q, key=k, value=v"},
    ),
    Public("fla", "ops/attn/naive.py", "naive_parallel_attn", "attention", {"map": "-> out, _"}),
    Public("torch", "torch.nn.functional", "scaled_dot_product_attention", "attention", {"signature": "sdpa"}),
    Public("mambapy", "", "mambapy_selective_scan", "selective-scan"),
    Public("mambapy", "", "mambapy_selective_scan_seq", "selective-scan"),
    Public("transformers", "", "mamba_selective_scan", "selective-scan"),
    Public("transformers", "", "causal_conv1d_fn", "causal-conv1d"),
    Public("transformers", "", "rwkv_linear_attention_cpu", "wkv"),
)
