"""Transformers: multi-head attention and feed-forward layers between residuals and norms, in stacks; greedy decoding.

Vaswani et al. 2017 (arXiv:1706.03762), section 3: a decoder layer is masked self-attention, attention to a memory where it
has one, and a feed-forward layer, each inside x + f(norm(x)) (``pre_norm``: Xiong et al. 2020, arXiv:2002.04745) or, as in
the paper, norm(x + f(x)); an encoder layer has full self-attention. Positions are rotary (`isoform.impl.attention.rotate`).

Symbols: b batch, t tokens, s tokens of a memory, m model features, f hidden features, n words; h, hkv, d and v as in attention.

Functions take float64, float32, bfloat16 or float16 for ``x`` and compute in its dtype, 16-bit ones in float32; weights are
converted to that, and the result has the dtype of ``x``. Masks are boolean, True meaning a token and False padding, which
changes no row of a token, NaN included; with one, positions count tokens alone. Any objects with the fields of the
classes here will do for weights.

Each function raises TypeError for an argument that is no tensor of an allowed dtype, and ValueError for shapes or devices
that do not fit together and for a memory that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import layer_norm

from . import attention
from ._common import accumulator, check, check_groups, check_positive
from ._rotation import Positions
from .attention import KVCache, RingCache


@dataclass(frozen=True)
class Heads:
    """The projections of multi-head attention."""

    q: Float[Tensor, "m h d"]
    k: Float[Tensor, "m hkv d"]
    v: Float[Tensor, "m hkv v"]
    o: Float[Tensor, "h v m"]


@dataclass(frozen=True)
class FeedForward:
    """x ↦ max(0, x U + a) D + c."""

    up: Float[Tensor, "m f"]
    up_bias: Float[Tensor, " f"]
    down: Float[Tensor, "f m"]
    down_bias: Float[Tensor, " m"]


@dataclass(frozen=True)
class Norm:
    """Layer norm over features: gain · (x - mean) / √(variance + ε) + shift."""

    gain: Float[Tensor, " m"]
    shift: Float[Tensor, " m"]


@dataclass(frozen=True)
class Layer:
    """One layer; with ``cross`` it reads a memory."""

    attention: Heads
    attention_norm: Norm
    feed_forward: FeedForward
    feed_forward_norm: Norm
    cross: Heads | None = None
    cross_norm: Norm | None = None


@dataclass(frozen=True)
class Style:
    """How layers are put together: where norms stand, the rotary base (None is no positions), the window, the norms' ε."""

    pre_norm: bool = True
    base: float | None = None
    window_size: int | None = None
    eps: float = 1e-5


@dataclass(frozen=True)
class Stack:
    """Layers of one style on top of each other, and a norm at the end where there is one."""

    layers: tuple[Layer, ...]
    style: Style = Style()
    norm: Norm | None = None


@dataclass(frozen=True)
class Transformer:
    """Words in, logits out; with an encoder, the decoder reads what that makes of a source. Both share the embedding."""

    embedding: Float[Tensor, "n m"]
    decoder: Stack
    head: Float[Tensor, "m n"]
    encoder: Stack | None = None


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention up to the output projection: of the queries, keys and values of the tokens."""


class State(NamedTuple):
    """What decoding keeps: the cache of each layer, the keys and values of the memory in each, and how many tokens there were."""

    caches: tuple[KVCache | RingCache | None, ...]
    memory: tuple[KVCache | None, ...]
    memory_mask: Bool[Tensor, "b s"] | None = None
    length: int = 0


def multi_head(
    x: Float[Tensor, "b t m"],
    heads: Heads,
    memory: Float[Tensor, "b s m"] | None = None,
    mask: Bool[Tensor, "b s"] | Bool[Tensor, "b t s"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "b t m"]:
    """Attention of every head, to ``x`` itself or to a memory, then the output projection."""
    _check_heads("transformer.multi_head", x, "heads", heads, memory)
    wide = _wide(x)
    read = wide if memory is None else memory.to(wide.dtype)
    q, k, v = _heads(wide, heads.q), _heads(read, heads.k), _heads(read, heads.v)
    o = attention.masked(q, k, v, None, mask) if causal else attention.full(q, k, v, None, mask)
    return _merge(o, heads.o).to(x.dtype)


def feed_forward(x: Float[Tensor, "b t m"], weights: FeedForward) -> Float[Tensor, "b t m"]:
    """Two layers with a ReLU between them, token by token."""
    _check_feed_forward("transformer.feed_forward", x, "weights", weights)
    return _feed_forward(_wide(x), weights).to(x.dtype)


def encoder_block(
    x: Float[Tensor, "b t m"], layer: Layer, style: Style = Style(), mask: Bool[Tensor, "b t"] | None = None
) -> Float[Tensor, "b t m"]:
    """One layer of an encoder."""
    return _encode("transformer.encoder_block", x, Stack((layer,), style), mask)


def decoder_block(
    x: Float[Tensor, "b t m"],
    layer: Layer,
    style: Style = Style(),
    memory: Float[Tensor, "b s m"] | None = None,
    memory_mask: Bool[Tensor, "b s"] | None = None,
    mask: Bool[Tensor, "b t"] | None = None,
) -> Float[Tensor, "b t m"]:
    """One layer of a decoder."""
    return _decode("transformer.decoder_block", x, Stack((layer,), style), memory, memory_mask, mask)


def encode(x: Float[Tensor, "b t m"], stack: Stack, mask: Bool[Tensor, "b t"] | None = None) -> Float[Tensor, "b t m"]:
    """All layers of an encoder: every token sees all tokens."""
    return _encode("transformer.encode", x, stack, mask)


def decode(
    x: Float[Tensor, "b t m"],
    stack: Stack,
    memory: Float[Tensor, "b s m"] | None = None,
    memory_mask: Bool[Tensor, "b s"] | None = None,
    mask: Bool[Tensor, "b t"] | None = None,
) -> Float[Tensor, "b t m"]:
    """All layers of a decoder, all tokens at once: a token sees itself, the tokens before, and the memory."""
    return _decode("transformer.decode", x, stack, memory, memory_mask, mask)


def begin(
    stack: Stack, memory: Float[Tensor, "b s m"] | None = None, memory_mask: Bool[Tensor, "b s"] | None = None, spare: int = 0
) -> State:
    """The state before the first token; a memory is projected once. With a window, caches are rings with so many spare slots."""
    window = stack.style.window_size
    caches = tuple(None if window is None else RingCache(window, spare) for _ in stack.layers)
    shown = None if memory_mask is None else memory_mask.clone()
    return State(caches, _memories("transformer.begin", stack, memory, memory_mask), shown)


def extend(
    x: Float[Tensor, "b t m"], stack: Stack, state: State | None = None, mask: Bool[Tensor, "b s"] | None = None
) -> tuple[Float[Tensor, "b t m"], State]:
    """Several new tokens after those of the state: (what `decode` has in their places, new state).

    ``state`` None is ``begin(stack)``; ``mask`` is that of all tokens so far and the new ones.
    """
    state = begin(stack) if state is None else state
    caches: list[KVCache | RingCache] = []

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o, new = attention.extend(q, k, v, state.caches[len(caches)], None, mask)
        caches.append(new)
        return o

    y = _stacked("transformer.extend", x, stack, attend, mask, state.length, state.memory, state.memory_mask)
    return y, state._replace(caches=tuple(caches), length=state.length + x.shape[1])


def step(
    x: Float[Tensor, "b m"], stack: Stack, state: State | None = None, mask: Bool[Tensor, "b s"] | None = None
) -> tuple[Float[Tensor, "b m"], State]:
    """One new token: (what `decode` has in its place, new state)."""
    check("transformer.step", {"x": (x, "b m")})
    y, new = extend(x.unsqueeze(1), stack, state, mask)
    return y.squeeze(1), new


def crop(state: State, count: int) -> State:
    """The state without its latest ``count`` tokens; raises as `isoform.impl.attention.crop` does."""
    if count > state.length:
        raise ValueError(f"transformer.crop: count={count} tokens cannot be taken from a state of {state.length}.")
    caches = tuple(cache if cache is None else attention.crop(cache, count) for cache in state.caches)
    return state._replace(caches=caches, length=state.length - count)


def forward(
    tokens: Int[Tensor, "b t"],
    model: Transformer,
    source: Int[Tensor, "b s"] | None = None,
    mask: Bool[Tensor, "b t"] | None = None,
    source_mask: Bool[Tensor, "b s"] | None = None,
) -> Float[Tensor, "b t n"]:
    """The logits of the word after each token."""
    check("transformer.forward", {"tokens": (tokens, "b t")}, (torch.int64, torch.int32))
    memory = _read(model, source, source_mask)
    return decode(model.embedding[tokens], model.decoder, memory, source_mask, mask) @ model.head


@torch.no_grad()
def greedy(
    tokens: Int[Tensor, "b t"],
    model: Transformer,
    steps: int,
    source: Int[Tensor, "b s"] | None = None,
    mask: Bool[Tensor, "b t"] | None = None,
    source_mask: Bool[Tensor, "b s"] | None = None,
    use_cache: bool = True,
) -> Int[Tensor, "b steps"]:
    """The next ``steps`` words, each the likeliest after those before it; of equally likely ones the first in the list of words.

    Without the cache every step runs all tokens again: the same words, up to rounding where two are nearly as likely.
    """
    where = "transformer.greedy"
    check(where, {"tokens": (tokens, "b t")}, (torch.int64, torch.int32))
    check_positive(where, "the number of tokens", tokens.shape[1])
    memory = _read(model, source, source_mask)
    state, new, first = begin(model.decoder, memory, source_mask), tokens, tokens.shape[1]
    for _ in range(steps):
        if use_cache:
            y, state = extend(model.embedding[new], model.decoder, state, mask)
        else:
            y = decode(model.embedding[tokens], model.decoder, memory, source_mask, mask)
        new = (y[:, -1:] @ model.head).argmax(-1).to(tokens.dtype)
        tokens = torch.cat([tokens, new], 1)
        mask = None if mask is None else torch.cat([mask, mask.new_ones(mask.shape[0], 1)], 1)
    return tokens[:, first:]


def init(
    generator: torch.Generator,
    *,
    words: int,
    width: int,
    layers: int,
    heads: int,
    kv_heads: int | None = None,
    head_size: int | None = None,
    hidden: int | None = None,
    encoder_layers: int = 0,
    style: Style = Style(base=10000.0),
    dtype: torch.dtype = torch.float32,
) -> Transformer:
    """Random weights on the generator's device that ask for a gradient: normal, of variance 1 / (number of summands).

    By default there are as many key and value heads as query heads, of size width / heads, and 4 · width hidden features.
    """
    few, size = kv_heads or heads, head_size or width // heads
    inner = hidden or 4 * width

    def weight(*shape: int, summands: int) -> Tensor:
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
        return (drawn * summands**-0.5).to(dtype).requires_grad_()

    def filled(value: float, length: int = width) -> Tensor:
        return torch.full((length,), value, dtype=dtype, device=generator.device, requires_grad=True)

    def attending() -> Heads:
        q, k, v = (weight(width, n, size, summands=width) for n in (heads, few, few))
        return Heads(q, k, v, weight(heads, size, width, summands=heads * size))

    def norm() -> Norm:
        return Norm(filled(1.0), filled(0.0))

    def layer(cross: bool) -> Layer:
        up, down = weight(width, inner, summands=width), weight(inner, width, summands=inner)
        own = Layer(attending(), norm(), FeedForward(up, filled(0.0, inner), down, filled(0.0)), norm())
        return Layer(own.attention, own.attention_norm, own.feed_forward, own.feed_forward_norm, attending(), norm()) if cross else own

    def stack(count: int, cross: bool) -> Stack:
        return Stack(tuple(layer(cross) for _ in range(count)), style, norm() if style.pre_norm else None)

    encoder = stack(encoder_layers, False) if encoder_layers else None
    decoder = stack(layers, encoder is not None)
    return Transformer(weight(words, width, summands=1), decoder, weight(width, words, summands=width), encoder)


def parameters(weights: Any) -> Iterator[Tensor]:
    """Every tensor in a dataclass of weights, those of its parts included."""
    if isinstance(weights, Tensor):
        yield weights
    parts = weights if isinstance(weights, tuple) else [getattr(weights, f.name) for f in fields(weights)] if is_dataclass(weights) else ()
    for part in parts:
        yield from parameters(part)


def stacked(
    *,
    q: Float[Tensor, "n m h d"],
    k: Float[Tensor, "n m hkv d"],
    v: Float[Tensor, "n m hkv v"],
    o: Float[Tensor, "n h v m"],
    up: Float[Tensor, "n m f"],
    up_bias: Float[Tensor, "n f"],
    down: Float[Tensor, "n f m"],
    down_bias: Float[Tensor, "n m"],
    gain: Float[Tensor, "n norms m"],
    shift: Float[Tensor, "n norms m"],
    end_gain: Float[Tensor, " m"] | None = None,
    end_shift: Float[Tensor, " m"] | None = None,
    cross_q: Float[Tensor, "n m h d"] | None = None,
    cross_k: Float[Tensor, "n m hkv d"] | None = None,
    cross_v: Float[Tensor, "n m hkv v"] | None = None,
    cross_o: Float[Tensor, "n h v m"] | None = None,
    pre_norm: bool = True,
    base: float | None = None,
    window_size: int | None = None,
    eps: float = 1e-5,
) -> Stack:
    """A stack from tensors of the weights of all ``n`` layers: the norms of a layer in order, the one at the end apart.

    Raises ValueError where some of the weights of cross-attention, or one of a norm's two, are missing.
    """
    crossing = (cross_q, cross_k, cross_v, cross_o)
    if len({w is None for w in crossing}) > 1 or (end_gain is None) != (end_shift is None):
        raise ValueError("transformer.stacked: cross-attention needs its four weights, and a norm its gain and its shift.")
    end = None if end_gain is None or end_shift is None else Norm(end_gain, end_shift)
    layers = []
    for n in range(q.shape[0]):
        first, *between, last = (Norm(g, s) for g, s in zip(gain[n], shift[n], strict=True))
        cross = Heads(*(w[n] for w in crossing if w is not None)) if cross_q is not None else None
        network = FeedForward(up[n], up_bias[n], down[n], down_bias[n])
        layers.append(Layer(Heads(q[n], k[n], v[n], o[n]), first, network, last, cross, *between))
    return Stack(tuple(layers), Style(pre_norm, base, window_size, eps), end)


def encoder(x: Float[Tensor, "b t m"], mask: Bool[Tensor, "b t"] | None = None, **weights: Any) -> Float[Tensor, "b t m"]:
    """`encode` by the arguments of `stacked`."""
    return encode(x, stacked(**weights), mask)


def decoder(
    x: Float[Tensor, "b t m"],
    memory: Float[Tensor, "b s m"] | None = None,
    memory_mask: Bool[Tensor, "b s"] | None = None,
    mask: Bool[Tensor, "b t"] | None = None,
    **weights: Any,
) -> Float[Tensor, "b t m"]:
    """`decode` by the arguments of `stacked`."""
    return decode(x, stacked(**weights), memory, memory_mask, mask)


def decoder_begin(
    memory: Float[Tensor, "b s m"] | None = None, memory_mask: Bool[Tensor, "b s"] | None = None, spare: int = 0, **weights: Any
) -> State:
    """`begin` by the arguments of `stacked`."""
    return begin(stacked(**weights), memory, memory_mask, spare)


def decoder_extend(
    x: Float[Tensor, "b t m"], state: State, mask: Bool[Tensor, "b s"] | None = None, **weights: Any
) -> tuple[Float[Tensor, "b t m"], State]:
    """`extend` by the arguments of `stacked`."""
    return extend(x, stacked(**weights), state, mask)


def decoder_step(
    x: Float[Tensor, "b m"],
    memory: Float[Tensor, "b s m"] | None = None,
    memory_mask: Bool[Tensor, "b s"] | None = None,
    state: State | None = None,
    mask: Bool[Tensor, "b s"] | None = None,
    **weights: Any,
) -> tuple[Float[Tensor, "b m"], State]:
    """`step` by the arguments of `stacked`; a memory is read at the first token."""
    stack = stacked(**weights)
    return step(x, stack, begin(stack, memory, memory_mask) if state is None else state, mask)


FORMS = {"encoder": (encoder,), "decoder": (decoder,)}
STEPS = {"decoder": decoder_step}
CACHED = {"decoder": {"begin": decoder_begin, "extend": decoder_extend, "crop": crop}}


def _encode(where: str, x: Tensor, stack: Stack, mask: Tensor | None) -> Tensor:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention.full(q, k, v, None, mask)

    return _stacked(where, x, stack, attend, mask, 0, (None,) * len(stack.layers), None)


def _decode(where: str, x: Tensor, stack: Stack, memory: Tensor | None, memory_mask: Tensor | None, mask: Tensor | None) -> Tensor:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention.masked(q, k, v, None, mask, stack.style.window_size)

    return _stacked(where, x, stack, attend, mask, 0, _memories(where, stack, memory, memory_mask), memory_mask)


def _stacked(
    where: str,
    x: Float[Tensor, "b t m"],
    stack: Stack,
    attend: Attend,
    mask: Tensor | None,
    before: int,
    memories: Sequence[KVCache | None],
    memory_mask: Tensor | None,
) -> Float[Tensor, "b t m"]:
    """Tokens, ``before`` so many others, through all layers; ``attend`` is the self-attention of each, one after the other."""
    _check_stack(where, x, stack)
    if mask is not None and (not isinstance(mask, Tensor) or mask.ndim == 2):
        _check_mask(where, "mask", mask, (x.shape[0], before + x.shape[1]))
    position = _positions(mask, x.shape[1], before)
    y = _wide(x)
    for layer, memory in zip(stack.layers, memories, strict=True):
        y = _layer(
            where,
            y,
            layer,
            stack.style,
            lambda y, heads: _self_attention(y, heads, stack.style.base, position, attend),
            memory,
            memory_mask,
        )
    return (y if stack.norm is None else _norm(y, stack.norm, stack.style.eps)).to(x.dtype)


def _layer(
    where: str,
    x: Tensor,
    layer: Layer,
    style: Style,
    mix: Callable[[Tensor, Heads], Tensor],
    memory: KVCache | None,
    memory_mask: Tensor | None,
) -> Tensor:
    x = _residual(x, layer.attention_norm, style, lambda y: mix(y, layer.attention))
    if layer.cross is not None and layer.cross_norm is not None:
        if memory is None:
            raise ValueError(f"{where}: a layer with cross-attention needs a memory.")
        heads = layer.cross
        x = _residual(x, layer.cross_norm, style, lambda y: _cross_attention(y, heads, memory, memory_mask))
    return _residual(x, layer.feed_forward_norm, style, lambda y: _feed_forward(y, layer.feed_forward))


def _self_attention(x: Tensor, heads: Heads, base: float | None, position: Positions, attend: Attend) -> Tensor:
    q, k, v = (_heads(x, w) for w in (heads.q, heads.k, heads.v))
    if base is not None:
        q, k = attention.rotate(q, position, base), attention.rotate(k, position, base)
    return _merge(attend(q, k, v), heads.o)


def _cross_attention(x: Tensor, heads: Heads, memory: KVCache, mask: Tensor | None) -> Tensor:
    return _merge(attention.full(_heads(x, heads.q), memory.k, memory.v, None, mask), heads.o)


def _residual(x: Tensor, norm: Norm, style: Style, f: Callable[[Tensor], Tensor]) -> Tensor:
    return x + f(_norm(x, norm, style.eps)) if style.pre_norm else _norm(x + f(x), norm, style.eps)


def _norm(x: Tensor, norm: Norm, eps: float) -> Tensor:
    return layer_norm(x, x.shape[-1:], norm.gain.to(x.dtype), norm.shift.to(x.dtype), eps)


def _feed_forward(x: Tensor, w: FeedForward) -> Tensor:
    up, up_bias, down, down_bias = (y.to(x.dtype) for y in (w.up, w.up_bias, w.down, w.down_bias))
    return (x @ up + up_bias).relu() @ down + down_bias


def _heads(x: Float[Tensor, "b t m"], weight: Float[Tensor, "m h d"]) -> Float[Tensor, "b t h d"]:
    return (x @ weight.to(x.dtype).flatten(1)).unflatten(-1, tuple(weight.shape[1:]))


def _merge(x: Float[Tensor, "b t h v"], weight: Float[Tensor, "h v m"]) -> Float[Tensor, "b t m"]:
    return x.flatten(2) @ weight.to(x.dtype).flatten(0, 1)


def _positions(mask: Tensor | None, count: int, before: int) -> Positions:
    """The position of the first of some new tokens; with a mask of all tokens the number of tokens before each."""
    if mask is None or mask.ndim != 2:
        return before
    return (mask.cumsum(1) - 1)[:, mask.shape[1] - count :]


def _memories(where: str, stack: Stack, memory: Tensor | None, mask: Tensor | None) -> tuple[KVCache | None, ...]:
    """The keys and values of a memory in each layer that reads it; padding is 0, so that it spoils no gradient of a weight."""
    reading = [layer.cross for layer in stack.layers]
    if memory is None:
        return (None,) * len(reading)
    if not any(reading):
        raise ValueError(f"{where}: no layer has the cross-attention that reads a memory.")
    check(where, {"memory": (memory, "b s m")})
    if mask is not None:
        _check_mask(where, "memory_mask", mask, tuple(memory.shape[:2]))
    wide = _wide(memory) if mask is None else _wide(memory).masked_fill(~mask.unsqueeze(2), 0)
    for n, heads in enumerate(reading):
        if heads is not None:
            _check_heads(where, memory, f"layers[{n}].cross", heads)
    return tuple(None if heads is None else KVCache(_heads(wide, heads.k), _heads(wide, heads.v)) for heads in reading)


def _read(model: Transformer, source: Tensor | None, source_mask: Tensor | None) -> Tensor | None:
    if source is None:
        return None
    if model.encoder is None:
        raise ValueError("transformer: a source needs an encoder, and the model has none.")
    check("transformer", {"source": (source, "b s")}, (torch.int64, torch.int32))
    return encode(model.embedding[source], model.encoder, source_mask)


def _wide(x: Tensor) -> Tensor:
    return x.to(accumulator(x))


def _check_stack(where: str, x: Tensor, stack: Stack) -> None:
    check(where, {"x": (x, "b t m")})
    norms = {"norm": stack.norm}
    for n, layer in enumerate(stack.layers):
        name = f"layers[{n}]"
        _check_heads(where, x, f"{name}.attention", layer.attention)
        _check_feed_forward(where, x, f"{name}.feed_forward", layer.feed_forward)
        if (layer.cross is None) != (layer.cross_norm is None):
            raise ValueError(f"{where}: {name} has one of cross and cross_norm; cross-attention needs both.")
        if layer.cross is not None:
            _check_heads(where, x, f"{name}.cross", layer.cross)
        own = {"attention_norm": layer.attention_norm, "cross_norm": layer.cross_norm, "feed_forward_norm": layer.feed_forward_norm}
        norms |= {f"{name}.{each}": norm for each, norm in own.items()}
    for name, norm in norms.items():
        if norm is not None:
            check(where, {"x": (x, "b t m"), f"{name}.gain": (norm.gain, "m"), f"{name}.shift": (norm.shift, "m")})


def _check_mask(where: str, name: str, mask: Tensor, shape: tuple[int, ...]) -> None:
    check(where, {name: (mask, "b s")}, (torch.bool,))
    if tuple(mask.shape) != shape:
        raise ValueError(f"{where}: {name} has shape {tuple(mask.shape)}; it needs {shape}.")


def _check_heads(where: str, x: Tensor, name: str, w: Heads, memory: Tensor | None = None) -> None:
    axes = {"q": (w.q, "m h d"), "k": (w.k, "m hkv d"), "v": (w.v, "m hkv v"), "o": (w.o, "h v m")}
    given = {f"{name}.{n}": each for n, each in axes.items()}
    check_groups(where, "hkv", "h", check(where, {"x": (x, "b t m"), "memory": (memory, "b s m"), **given}))


def _check_feed_forward(where: str, x: Tensor, name: str, w: FeedForward) -> None:
    axes = {"up": (w.up, "m f"), "up_bias": (w.up_bias, "f"), "down": (w.down, "f m"), "down_bias": (w.down_bias, "m")}
    check(where, {"x": (x, "b t m"), **{f"{name}.{n}": each for n, each in axes.items()}})
