"""Public implementations of the same operators, each behind one call that takes the operator's inputs by name and returns its output.

flash-linear-attention's package imports Triton at once, its references only torch and einops: each is loaded from its
file. transformers replaces its torch functions by kernels where it finds some, so they are unwrapped.
"""

from __future__ import annotations

import ast
import inspect
import os
import tempfile
import textwrap
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

    `swapped`: axes 1 and 2 are the other way round, (b h t …) for (b t h …) and (b t d) for (b d t). `row_scale`: every row of
    the output is divided by a positive number that the norm after it makes irrelevant, so rows are compared after division by
    their norms. `longest`: of the sequences that it is given.
    """

    name: str
    operators: tuple[str, ...]
    load: Callable[[], Call]
    language: str = "torch"
    swapped: bool = False
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


def _mambapy_scan(name: str) -> Callable[[], Call]:
    def load() -> Call:
        block = import_module("mambapy.mamba").MambaBlock

        def scanned(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor) -> Tensor:
            sizes = SimpleNamespace(config=SimpleNamespace(d_inner=A.shape[0], d_state=A.shape[1]))
            return getattr(block, name)(sizes, u, delta, A, B, C, D)

        return scanned

    return load


def _transformers_scan() -> Call:
    call = _transformers("mamba", "mamba_selective_scan")
    return lambda u, delta, A, B, C, D: call(u, delta, A, B, C, D)


def _s5() -> Call:
    """The scan of all states at once; each channel is a system of its own, of which S5 has one for all."""
    jax_compat, model = import_module("s5.jax_compat"), import_module("s5.s5_model")

    def scanned(u: Tensor, Lambda: Tensor, B: Tensor, C: Tensor, delta: Tensor) -> Tensor:
        transition, write = _held(Lambda, B, delta)
        drive = u[0].T[:, :, None] * write
        _, states = jax_compat.associative_scan(model.binary_operator, (transition.expand_as(drive), drive))
        return torch.einsum("tdn,dn->dt", states, C).real[None]

    return scanned


def _held(Lambda: Tensor, B: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Zero-order hold of S4D's modes, (d n): e^{ΔΛ} and B̄."""
    transition = (delta[:, None] * Lambda).exp()
    return transition, (transition - 1) / Lambda * B


def _loop() -> Call:
    """What one writes without a library: a state, a loop over time, and outputs that are stacked."""

    def stepped(u: Tensor, Lambda: Tensor, B: Tensor, C: Tensor, delta: Tensor) -> Tensor:
        transition, write = _held(Lambda, B, delta)
        state, outputs = torch.zeros_like(write), []
        for now in u[0].unbind(1):
            state = transition * state + write * now[:, None]
            outputs.append((C * state).real.sum(1))
        return torch.stack(outputs, 1)[None]

    return stepped


def _dense_kernel() -> Call:
    """The kernel as one product with all powers of every mode (Gu et al. 2022, arXiv:2206.11893, section 3.2), and a padded transform."""

    def convolved(u: Tensor, Lambda: Tensor, B: Tensor, C: Tensor, delta: Tensor) -> Tensor:
        _, write = _held(Lambda, B, delta)
        length = u.shape[-1]
        powers = (torch.arange(length) * (delta[:, None] * Lambda)[..., None]).exp()
        kernel = torch.einsum("dn,dnl->dl", C * write, powers).real
        spectrum = torch.fft.rfft(u, 2 * length) * torch.fft.rfft(kernel, 2 * length)
        return torch.fft.irfft(spectrum, 2 * length)[..., :length]

    return convolved


def _lfilter() -> Call:
    """One filter of first order a mode; without gradients."""
    lfilter = import_module("scipy.signal").lfilter

    def filtered(u: Tensor, Lambda: Tensor, B: Tensor, C: Tensor, delta: Tensor) -> Tensor:
        transition, write = (x.numpy() for x in _held(Lambda, B, delta))
        inputs, read, outputs = u[0].numpy(), C.numpy(), torch.zeros_like(u)
        for channel, signal in enumerate(inputs):
            for a, b, c in zip(transition[channel], write[channel], read[channel]):
                outputs[0, channel] += torch.from_numpy(lfilter([c * b], [1.0, -a], signal).real)
        return outputs

    return filtered


def _transformers_rwkv() -> Call:
    call = _transformers("rwkv", "rwkv_linear_attention_cpu")
    return lambda k, v, w, u: call(torch.log(-w), u, k, v)[0]


def _rwkv() -> Call:
    """The loop over time of the package's `att_seq`, alone, in TorchScript, as the package runs it."""
    os.environ["RWKV_JIT_ON"] = "0"  # leaves the method a function with a source
    method = ast.parse(textwrap.dedent(inspect.getsource(import_module("rwkv.model").RWKV.att_seq))).body[0]
    (loop,) = (line for line in method.body if isinstance(line, ast.For))  # type: ignore[attr-defined]
    head = "import torch\ndef run(x, k, v, aa, bb, pp, t_decay, t_first):\n    sx = torch.zeros_like(x)\n    T = x.shape[0]\n"
    text = head + textwrap.indent(ast.unparse(loop), "    ") + "\n    return sx\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rwkv_loop.py"
        path.write_text(text, encoding="utf-8")
        loader = SourceFileLoader("rwkv_loop", str(path))
        module = module_from_spec(spec_from_loader(loader.name, loader))
        loader.exec_module(module)
        call = torch.jit.script(module.run)

    def averaged(k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Tensor:
        zero = torch.zeros_like(w)
        return call(v[0], k[0], v[0], zero, zero, zero - 1e30, w, u)[None]

    return averaged


LINEAR, RETENTION, GATED, CHANNELS = "linear-attention", "retention", "gated-retention", "gated-linear-attention"
DELTA, GATED_DELTA, ATTENTION = "delta-rule", "gated-delta-rule", "attention"
SELECTIVE, DIAGONAL, WKV = "selective-scan", "s4d", "wkv"
PEERS = (
    Peer("fla naive_chunk_linear_attn", (LINEAR,), _fla_linear),
    Peer("fla naive_recurrent_linear_attn", (LINEAR,), _fla_linear_recurrent),
    Peer("fast-transformers causal_dot_product", (LINEAR,), _fast_transformers, language="C++", swapped=True),
    Peer("fla naive_chunk_simple_gla, constant gate", (RETENTION,), _fla_retention),
    Peer("torchscale chunk_recurrent_forward", (RETENTION,), _torchscale, row_scale=True),
    Peer("fla naive_chunk_simple_gla", (GATED,), _fla_simple),
    Peer("fla naive_recurrent_simple_gla", (GATED,), _fla_simple_recurrent),
    Peer("transformers mamba2_chunk_scan", (RETENTION, GATED), _transformers_mamba2),
    Peer("mambapy Mamba2", (GATED,), _mambapy),
    Peer("fla naive_chunk_rwkv6, read shifted", (CHANNELS,), _fla_rwkv6, swapped=True),
    Peer("fla dplr_chunkwise, rank 0", (CHANNELS,), _fla_dplr, swapped=True),
    Peer("fla naive_recurrent_gla", (CHANNELS,), _fla_gla_recurrent),
    Peer("fla delta_rule_chunkwise", (DELTA,), _fla_delta, swapped=True),
    Peer("fla naive_chunk_gated_delta_rule", (DELTA, GATED_DELTA), _fla_gated_delta),
    Peer("fla naive_recurrent_gated_delta_rule", (DELTA, GATED_DELTA), _fla_gated_delta_recurrent),
    Peer("transformers torch_chunk_gated_delta_rule", (DELTA, GATED_DELTA), _transformers_delta),
    Peer("torch scaled_dot_product_attention", (ATTENTION,), _fused, swapped=True),
    Peer("transformers eager_attention_forward", (ATTENTION,), _eager, swapped=True, longest=LONGEST_QUADRATIC),
    Peer("mambapy selective_scan", (SELECTIVE,), _mambapy_scan("selective_scan"), swapped=True),
    Peer("mambapy selective_scan_seq", (SELECTIVE,), _mambapy_scan("selective_scan_seq"), swapped=True),
    Peer("transformers mamba_selective_scan", (SELECTIVE,), _transformers_scan),
    Peer("a loop over time", (DIAGONAL,), _loop),
    Peer("dense Vandermonde kernel", (DIAGONAL,), _dense_kernel),
    Peer("s5 associative_scan", (DIAGONAL,), _s5),
    Peer("scipy lfilter, mode by mode", (DIAGONAL,), _lfilter, language="C"),
    Peer("rwkv att_seq's loop", (WKV,), _rwkv),
    Peer("transformers rwkv_linear_attention_cpu", (WKV,), _transformers_rwkv),
)
