"""Public implementations of the same operators, each behind one call ``(q, k, v, **gates) -> o``.

flash-linear-attention's package imports Triton at once, its references only torch and einops: each is loaded from its
file. transformers replaces its torch functions by kernels where it finds some, so they are unwrapped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

Call = Callable[..., Tensor]
CHUNK = 64
LONGEST_QUADRATIC = 2048
"""The longest sequence for what keeps a number for each pair of its tokens."""


@dataclass(frozen=True)
class Peer:
    """A peer: `load` imports it and returns its call, or raises what hinders it.

    `head_first`: tensors are (b h t …), not (b t h …). `row_scale`: every row of the output is divided by a positive number
    that the norm after it makes irrelevant, so rows are compared after division by their norms. `longest`: of the sequences
    that it is given.
    """

    name: str
    operators: tuple[str, ...]
    load: Callable[[], Call]
    language: str = "torch"
    head_first: bool = False
    row_scale: bool = False
    longest: int | None = None


def _fla(file: str, name: str) -> Any:
    spec = find_spec("fla")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("flash-linear-attention is not installed")
    path = Path(spec.origin).parent / "ops" / file
    loader = SourceFileLoader(f"fla_reference_{path.parent.name}_{path.stem}", str(path))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return getattr(module, name)


def _transformers(model: str, name: str) -> Any:
    return inspect.unwrap(getattr(import_module(f"transformers.models.{model}.modeling_{model}"), name))


def _gammas(k: Tensor) -> Tensor:
    """The log-decays of retention, (h): log(1 - 2^(-5-i))."""
    return torch.log1p(-torch.exp2(-5.0 - torch.arange(k.shape[2])))


def _constant(k: Tensor) -> Tensor:
    return _gammas(k).to(k).expand(k.shape[:3])


def _fla_linear() -> Call:
    return _fla("linear_attn/naive.py", "naive_chunk_linear_attn")


def _fla_linear_recurrent() -> Call:
    call = _fla("linear_attn/naive.py", "naive_recurrent_linear_attn")
    return lambda q, k, v: call(q, k, v)[0]


def _fla_retention() -> Call:
    call = _fla("simple_gla/naive.py", "naive_chunk_simple_gla")
    return lambda q, k, v: call(q, k, v, _constant(k))[0]


def _fla_simple() -> Call:
    call = _fla("simple_gla/naive.py", "naive_chunk_simple_gla")
    return lambda q, k, v, g: call(q, k, v, g)[0]


def _fla_simple_recurrent() -> Call:
    call = _fla("simple_gla/naive.py", "naive_recurrent_simple_gla")
    return lambda q, k, v, g: call(q, k, v, g)[0]


def _fla_rwkv6() -> Call:
    """RWKV-6 reads before it writes, with a bonus u for the present token: a decayed query, and the present token by hand."""
    call = _fla("rwkv6/chunk_naive.py", "naive_chunk_rwkv6")

    def gated(q: Tensor, k: Tensor, v: Tensor, gk: Tensor) -> Tensor:
        q = q * q.shape[-1] ** -0.5
        present = (q * k).sum(-1, keepdim=True) * v
        return call(q * gk.exp(), k, v, gk, q.new_zeros(q.shape[1], q.shape[3])) + present

    return gated


def _fla_dplr() -> Call:
    """Diagonal plus low rank, of rank 0."""
    call = _fla("generalized_delta_rule/dplr/naive.py", "dplr_chunkwise")

    def gated(q: Tensor, k: Tensor, v: Tensor, gk: Tensor) -> Tensor:
        zero = torch.zeros_like(k)
        return call(q, k, v, zero, zero, gk)[0]

    return gated


def _fla_gla_recurrent() -> Call:
    call = _fla("gla/naive.py", "naive_recurrent_gla")
    return lambda q, k, v, gk: call(q, k, v, gk)[0]


def _fla_delta() -> Call:
    call = _fla("delta_rule/naive.py", "delta_rule_chunkwise")
    return lambda q, k, v, beta: call(q, k, v, beta)[0]


def _fla_gated_delta() -> Call:
    call = _fla("gated_delta_rule/naive.py", "naive_chunk_gated_delta_rule")
    return lambda q, k, v, beta, g=None: call(q, k, v, torch.zeros_like(beta) if g is None else g, beta)[0]


def _fla_gated_delta_recurrent() -> Call:
    call = _fla("gated_delta_rule/naive.py", "naive_recurrent_gated_delta_rule")
    return lambda q, k, v, beta, g=None: call(q, k, v, beta, torch.zeros_like(beta) if g is None else g)[0]


def _transformers_delta() -> Call:
    call = _transformers("qwen3_next", "torch_chunk_gated_delta_rule")
    return lambda q, k, v, beta, g=None: call(q, k, v, torch.zeros_like(beta) if g is None else g, beta)[0]


def _transformers_mamba2() -> Call:
    """The decay of a step is A · dt: here the log-gate and 1."""
    call = _transformers("mamba2", "mamba2_chunk_scan")

    def retained(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None = None) -> Tensor:
        g = _constant(k) if g is None else g
        return call(v, torch.ones_like(g), g, k, q * q.shape[-1] ** -0.5, CHUNK)

    return retained


def _torchscale() -> Call:
    """The masks are the caller's: decays inside a chunk, of the chunk before, from each query and to each value."""
    call = import_module("torchscale.component.multiscale_retention").MultiScaleRetention.chunk_recurrent_forward

    def retained(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        i, g = torch.arange(CHUNK), _gammas(k)[:, None, None]
        inner = ((i[:, None] - i) * g).exp().tril()
        masks = (inner, (CHUNK * g).exp(), ((i[:, None] + 1) * g).exp(), ((CHUNK - 1 - i[:, None]) * g).exp())
        sizes = SimpleNamespace(num_heads=k.shape[2], key_dim=k.shape[3], head_dim=v.shape[3])
        return call(sizes, q.transpose(1, 2), k.transpose(1, 2), v.flatten(2), masks).flatten(1, 2)

    return retained


def _fast_transformers() -> Call:
    if find_spec("fast_transformers") is None:
        raise ModuleNotFoundError("not installed: it is compiled, and fails where nvcc is found without the toolkit that CUDA_HOME names")
    call = import_module("fast_transformers.causal_product").causal_dot_product
    return lambda q, k, v: call(q * q.shape[-1] ** -0.5, k, v)


def _fused() -> Call:
    return lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _eager() -> Call:
    """Softmax over all scores, those of later keys being -∞ by a mask that is added."""
    call = _transformers("llama", "eager_attention_forward")

    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        module = SimpleNamespace(num_key_value_groups=1, training=False)
        hidden = torch.full((q.shape[2], k.shape[2]), -torch.inf).triu(1)
        return call(module, q, k, v, hidden, q.shape[-1] ** -0.5)[0].transpose(1, 2)

    return attended


def _mambapy() -> Call:
    import_module("mambapy.mamba2")
    raise NotImplementedError("mambapy's Mamba-2 is one module that calls mamba-ssm's Triton kernel")


LINEAR, RETENTION, GATED, CHANNELS = "linear-attention", "retention", "gated-retention", "gated-linear-attention"
DELTA, GATED_DELTA, ATTENTION = "delta-rule", "gated-delta-rule", "attention"
PEERS = (
    Peer("fla naive_chunk_linear_attn", (LINEAR,), _fla_linear),
    Peer("fla naive_recurrent_linear_attn", (LINEAR,), _fla_linear_recurrent),
    Peer("fast-transformers causal_dot_product", (LINEAR,), _fast_transformers, language="C++", head_first=True),
    Peer("fla naive_chunk_simple_gla, constant gate", (RETENTION,), _fla_retention),
    Peer("torchscale chunk_recurrent_forward", (RETENTION,), _torchscale, row_scale=True),
    Peer("fla naive_chunk_simple_gla", (GATED,), _fla_simple),
    Peer("fla naive_recurrent_simple_gla", (GATED,), _fla_simple_recurrent),
    Peer("transformers mamba2_chunk_scan", (RETENTION, GATED), _transformers_mamba2),
    Peer("mambapy Mamba2", (GATED,), _mambapy),
    Peer("fla naive_chunk_rwkv6, read shifted", (CHANNELS,), _fla_rwkv6, head_first=True),
    Peer("fla dplr_chunkwise, rank 0", (CHANNELS,), _fla_dplr, head_first=True),
    Peer("fla naive_recurrent_gla", (CHANNELS,), _fla_gla_recurrent),
    Peer("fla delta_rule_chunkwise", (DELTA,), _fla_delta, head_first=True),
    Peer("fla naive_chunk_gated_delta_rule", (DELTA, GATED_DELTA), _fla_gated_delta),
    Peer("fla naive_recurrent_gated_delta_rule", (DELTA, GATED_DELTA), _fla_gated_delta_recurrent),
    Peer("transformers torch_chunk_gated_delta_rule", (DELTA, GATED_DELTA), _transformers_delta),
    Peer("torch scaled_dot_product_attention", (ATTENTION,), _fused, head_first=True),
    Peer("transformers eager_attention_forward", (ATTENTION,), _eager, head_first=True, longest=LONGEST_QUADRATIC),
)
