"""Transformers: layers by hand, decoding in parts, padding, roll-back, and greedy words with and without a cache."""

import itertools
from dataclasses import is_dataclass, replace
from types import SimpleNamespace

import pytest
import torch

from isoform.impl import attention, transformer
from isoform.impl.transformer import Layer, Norm, Stack, Style

STYLES = [Style(), Style(False), Style(True, 10000.0), Style(False, 10000.0, 3), Style(True, None, 1)]
BOUND = 2**14 * torch.finfo(torch.float64).eps
"""Three layers of norms and sums of at most 64 products of numbers of a size of 1: a few thousand roundings of a size of 1."""


def model(style=STYLES[2], encoder_layers=2, kv_heads=2, dtype=torch.float64, **sizes):
    given = {"words": 11, "width": 8, "layers": 3, "heads": 4, "kv_heads": kv_heads, "hidden": 12} | sizes
    return transformer.init(torch.Generator().manual_seed(0), **given, encoder_layers=encoder_layers, style=style, dtype=dtype)


def words(*shape, seed=0):
    return torch.randint(0, 11, shape, generator=torch.Generator().manual_seed(seed))


def draw(b=2, t=7, m=8):
    return torch.randn(b, t, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def near(a, b):
    return a.shape == b.shape and bool((a - b).abs().max() <= BOUND)


# One layer, number by number ----------------------------------------------------------------------


def norm_by_hand(x, norm, eps):
    mean = x.sum(-1, keepdim=True) / x.shape[-1]
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / x.shape[-1]
    return norm.gain * (x - mean) / (variance + eps).sqrt() + norm.shift


def heads_by_hand(x, w, memory, visible, base=None):
    """Head by head and row by row."""
    out = torch.zeros_like(x)
    for n, h, i in itertools.product(range(x.shape[0]), range(w.q.shape[1]), range(x.shape[1])):
        keys, g = visible[i].nonzero().flatten(), h // (w.q.shape[1] // w.k.shape[1])
        q, k = (x[n, i] @ w.q[:, h])[None], memory[n, keys] @ w.k[:, g]
        if base is not None:
            q = attention.rotate(q[None, :, None], i, base)[0, :, 0]
            k = attention.rotate(k[None, :, None], keys[None], base)[0, :, 0]
        weights = (k @ q[0] * q.shape[-1] ** -0.5).softmax(0)
        out[n, i] += (weights @ (memory[n, keys] @ w.v[:, g])) @ w.o[h]
    return out


def layer_by_hand(x, layer, style, visible, memory=None):
    def residual(x, norm, f):
        return x + f(norm_by_hand(x, norm, style.eps)) if style.pre_norm else norm_by_hand(x + f(x), norm, style.eps)

    x = residual(x, layer.attention_norm, lambda y: heads_by_hand(y, layer.attention, y, visible, style.base))
    if layer.cross is not None:
        every = torch.ones(x.shape[1], memory.shape[1]).bool()
        x = residual(x, layer.cross_norm, lambda y: heads_by_hand(y, layer.cross, memory, every))
    w = layer.feed_forward
    return residual(x, layer.feed_forward_norm, lambda y: (y @ w.up + w.up_bias).clamp(min=0) @ w.down + w.down_bias)


def uneven(layer):
    """The layer with norms and biases that do something."""
    generator = torch.Generator().manual_seed(1)

    def moved(x):
        return (x.detach() + 0.5 * torch.randn(x.shape, generator=generator, dtype=x.dtype)).requires_grad_()

    norms = {n: Norm(moved(x.gain), moved(x.shift)) for n, x in vars(layer).items() if isinstance(x, Norm)}
    w = layer.feed_forward
    return replace(layer, **norms, feed_forward=replace(w, up_bias=moved(w.up_bias), down_bias=moved(w.down_bias)))


@pytest.mark.parametrize("style", STYLES)
def test_blocks_are_what_the_paper_says(style):
    x, memory, made = draw(), draw(t=5), model(style)
    full, causal = torch.ones(7, 7).bool(), torch.ones(7, 7).bool().tril()
    band = causal if style.window_size is None else causal.triu(1 - style.window_size)
    layer = uneven(made.encoder.layers[0])
    assert near(transformer.encoder_block(x, layer, style), layer_by_hand(x, layer, style, full))
    assert near(transformer.decoder_block(x, layer, style), layer_by_hand(x, layer, style, band))
    layer = uneven(made.decoder.layers[0])
    assert near(transformer.decoder_block(x, layer, style, memory), layer_by_hand(x, layer, style, band, memory))


def test_a_stack_is_its_layers_one_after_the_other():
    x, memory = draw(), draw(t=5)
    made = model()
    want = x
    for layer in made.decoder.layers:
        want = transformer.decoder_block(want, layer, made.decoder.style, memory)
    assert near(transformer.decode(x, made.decoder, memory), norm_by_hand(want, made.decoder.norm, 1e-5))
    assert torch.equal(transformer.decode(x, Stack(())), x)


def test_multi_head_attention_and_the_network():
    x, memory, layer = draw(), draw(t=5), uneven(model().encoder.layers[0])
    every = torch.ones(7, 7).bool()
    assert near(transformer.multi_head(x, layer.attention), heads_by_hand(x, layer.attention, x, every))
    assert near(transformer.multi_head(x, layer.attention, causal=True), heads_by_hand(x, layer.attention, x, every.tril()))
    assert near(transformer.multi_head(x, layer.attention, memory), heads_by_hand(x, layer.attention, memory, every[:, :5]))
    mask = torch.tensor([[True, False, True, True, False]]).expand(2, 5)
    found = transformer.multi_head(x, layer.attention, memory, mask)
    assert near(found, heads_by_hand(x, layer.attention, memory[:, [0, 2, 3]], every[:, :3]))
    w = layer.feed_forward
    assert near(transformer.feed_forward(x, w), (x @ w.up + w.up_bias).clamp(min=0) @ w.down + w.down_bias)


# Decoding -----------------------------------------------------------------------------------------


def in_parts(x, stack, cuts, state, mask=None):
    rows, states, end = [], [], 0
    for part in x.split(cuts, 1):
        end += part.shape[1]
        shown = None if mask is None else mask[:, :end]
        if part.shape[1] == 1:
            y, state = transformer.step(part[:, 0], stack, state, shown)
            y = y[:, None]
        else:
            y, state = transformer.extend(part, stack, state, shown)
        rows.append(y)
        states.append(state)
    return torch.cat(rows, 1), states


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("cuts", [(7,), (1,) * 7, (3, 0, 1, 3), (6, 1)])
@pytest.mark.parametrize("padded", [False, True])
def test_decoding_in_parts_is_the_whole(style, cuts, padded):
    x, source, made = draw(), draw(t=5), model(style)
    mask = torch.tensor([[True] * 7, [False] * 2 + [True] * 5]) if padded else None
    memory_mask = torch.tensor([[True] * 5, [True, False] * 2 + [False]]) if padded else None
    memory = transformer.encode(source, made.encoder, memory_mask)
    want = transformer.decode(x, made.decoder, memory, memory_mask, mask)
    found, states = in_parts(x, made.decoder, cuts, transformer.begin(made.decoder, memory, memory_mask), mask)
    assert near(found, want)
    assert [state.length for state in states] == list(itertools.accumulate(cuts))


@pytest.mark.parametrize("style", STYLES)
def test_later_tokens_do_not_change_earlier_rows(style):
    x, stack = draw(), model(style, encoder_layers=0).decoder
    want, other = transformer.decode(x, stack), x.clone()
    for bad in (1.0, torch.nan, torch.inf):
        other[:, 4:] = bad
        assert torch.equal(transformer.decode(other, stack)[:, :4], want[:, :4])


@pytest.mark.parametrize("style", STYLES)
def test_padding_changes_nothing_whatever_it_contains(style):
    """Two tokens of padding on the left, in the source on the right: rows and gradients are those of the tokens alone."""
    made, x, source = model(style), draw(), draw(t=5)
    mask = torch.tensor([[False] * 2 + [True] * 5] * 2)
    source_mask = torch.tensor([[True] * 3 + [False] * 2] * 2)
    leaves = list(transformer.parameters((made.encoder, made.decoder)))

    def run(x, source, mask, source_mask):
        memory = transformer.encode(source, made.encoder, source_mask)
        y = transformer.decode(x, made.decoder, memory, source_mask, mask)[:, -5:]
        return y, torch.autograd.grad(y.sin().sum(), leaves)

    want, gradients = run(x[:, 2:], source[:, :3], None, None)
    for loud in (1.0, 1e6):
        x[:, :2], source[:, 3:] = loud, -loud
        found, others = run(x, source, mask, source_mask)
        assert near(found, want)
        assert all(near(a, b) for a, b in zip(others, gradients, strict=True))
    x[:, :2], source[:, 3:] = torch.nan, torch.inf
    memory = transformer.encode(source, made.encoder, source_mask)
    assert near(transformer.decode(x, made.decoder, memory, source_mask, mask)[:, -5:], want)


@pytest.mark.parametrize("style", [STYLES[1], Style(True, 10000.0, 3)])
def test_a_state_is_left_as_it_was_and_may_be_rolled_back(style):
    x, stack = draw(), model(style, encoder_layers=0).decoder
    want = transformer.decode(x, stack)
    with torch.no_grad():
        _, (state,) = in_parts(x[:, :4], stack, (4,), None)
        aside, other = transformer.extend(-x[:, 4:5], stack, state)
        y, _ = transformer.step(x[:, 4], stack, state)
        again, _ = transformer.step(x[:, 4], stack, transformer.crop(other, 1))
    assert near(y, want[:, 4]) and near(again, want[:, 4])
    assert not near(aside[:, 0], want[:, 4])
    assert transformer.crop(other, 0).length == other.length == 5
    with pytest.raises(ValueError, match=r"count=6 tokens cannot be taken from a state of 5"):
        transformer.crop(other, 6)


def test_gradients_go_through_the_caches():
    made, x = model(encoder_layers=0), draw().requires_grad_()
    leaves = [x, *transformer.parameters(made.decoder)]
    parts, _ = in_parts(x, made.decoder, (3, 1, 3), None)
    found, want = (torch.autograd.grad(y.sin().sum(), leaves) for y in (parts, transformer.decode(x, made.decoder)))
    assert all(near(a, b) and b.any() for a, b in zip(found, want, strict=True))


def test_gradients():
    made = model(encoder_layers=1, layers=1, width=4, heads=2, kv_heads=1, hidden=3)
    x, source = draw(1, 3, 4).requires_grad_(), draw(1, 2, 4).requires_grad_()

    def form(x, source, *given):
        return transformer.decode(x, made.decoder, transformer.encode(source, made.encoder))

    assert torch.autograd.gradcheck(form, (x, source, *transformer.parameters((made.encoder, made.decoder))), fast_mode=True)


# Words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("encoder_layers", [0, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_greedy_words_are_the_same_with_and_without_the_cache(style, encoder_layers, padded):
    made, tokens = model(style, encoder_layers), words(2, 4)
    source = words(2, 5, seed=1) if encoder_layers else None
    mask = torch.tensor([[True] * 4, [False] * 2 + [True] * 2]) if padded else None
    found, again = (transformer.greedy(tokens, made, 9, source, mask, use_cache=use) for use in (True, False))
    assert found.shape == (2, 9)
    assert torch.equal(found, again)
    longer = None if mask is None else torch.cat([mask, mask.new_ones(2, 9)], 1)
    logits = transformer.forward(torch.cat([tokens, found], 1), made, source, longer)
    best = logits[:, 3:-1].sort(-1, descending=True).values
    assert (best[..., 0] - best[..., 1]).min() > 2 * BOUND  # no near tie decided
    assert torch.equal(logits[:, 3:-1].argmax(-1), found)


@pytest.mark.parametrize("use_cache", [True, False])
def test_of_equally_likely_words_the_first_is_taken(use_cache):
    made = model(encoder_layers=0)
    same = replace(made, head=torch.eye(8, dtype=torch.float64)[:, [4, 4, 7, 0, 7, 1, 0, 7, 1, 0, 4]])  # each logit is one product
    taken = set(transformer.greedy(words(8, 3), same, 12, use_cache=use_cache).flatten().tolist())
    assert taken <= {0, 2, 3, 5}
    assert len(taken) > 1
    assert not transformer.greedy(words(2, 3), replace(made, head=torch.zeros_like(made.head)), 3, use_cache=use_cache).any()


def test_no_word_and_no_token():
    made = model(encoder_layers=0)
    assert transformer.greedy(words(2, 3), made, 0).shape == (2, 0)
    assert transformer.forward(words(2, 0), made).shape == (2, 0, 11)
    with pytest.raises(ValueError, match="the number of tokens must be at least 1, not 0"):
        transformer.greedy(words(2, 0), made, 1)


def test_the_same_generator_draws_the_same_weights_that_ask_for_gradients():
    a, b, c = (list(transformer.parameters(model(**kwargs))) for kwargs in ({}, {}, {"kv_heads": 4}))
    assert len(a) == 2 + (2 * 12 + 2) + (3 * 18 + 2)  # words, both stacks; the cross-attention of a layer and its norm have 6
    assert all(torch.equal(x, y) and x.requires_grad and x.is_leaf for x, y in zip(a, b, strict=True))
    assert [x.shape for x in a] != [x.shape for x in c]


# Precision, weights, errors -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_inputs_are_computed_in_float32(dtype):
    made = model(dtype=dtype)
    x, source = (draw(t=n).to(dtype) for n in (7, 5))
    for form in (
        lambda x, source: transformer.encode(x, made.encoder),
        lambda x, source: transformer.decode(x, made.decoder, source),
        lambda x, source: transformer.extend(x, made.decoder, transformer.begin(made.decoder, source))[0],
    ):
        found = form(x, source)
        assert found.dtype == dtype
        assert torch.equal(found, form(x.float(), source.float()).to(dtype))


def test_any_object_with_the_fields_is_a_weight():
    stack, x = model(encoder_layers=0).decoder, draw()

    def plain(w):
        return SimpleNamespace(**{n: plain(x) if isinstance(x, (Layer, Norm)) else x for n, x in vars(w).items()})

    other = SimpleNamespace(layers=tuple(plain(layer) for layer in stack.layers), style=stack.style, norm=plain(stack.norm))
    assert torch.equal(transformer.decode(x, other), transformer.decode(x, stack))


def test_views_do_not_matter():
    x, made = draw(), model(encoder_layers=0)
    turned = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert near(transformer.decode(turned, made.decoder), transformer.decode(x, made.decoder))


def test_compiles_into_one_graph():
    torch.compiler.reset()
    stack, x = model(Style(True, 10000.0), encoder_layers=0, layers=1).decoder, draw()
    compiled = torch.compile(lambda x: transformer.decode(x, stack), fullgraph=True, backend="aot_eager")
    assert near(compiled(x), transformer.decode(x, stack))


@pytest.mark.parametrize("use_cache", [True, False])
def test_no_value_of_a_device_is_read(use_cache):
    """Tensors on the meta device have no values: whoever reads one raises."""

    def moved(w):
        if isinstance(w, torch.Tensor):
            return w.to("meta")
        if isinstance(w, tuple):
            return tuple(map(moved, w))
        return replace(w, **{n: moved(x) for n, x in vars(w).items()}) if is_dataclass(w) else w

    tokens, source, mask = (x.to("meta") for x in (words(2, 4), words(2, 5), words(2, 4) > 5))
    assert transformer.greedy(tokens, moved(model(STYLES[3])), 3, source, mask, use_cache=use_cache).shape == (2, 3)


def test_what_is_wrong_is_named():
    made, x = model(), draw()
    layer = made.decoder.layers[0]
    with pytest.raises(ValueError, match=r"transformer\.decode: a layer with cross-attention needs a memory"):
        transformer.decode(x, made.decoder)
    with pytest.raises(ValueError, match=r"transformer\.decode: no layer has the cross-attention that reads a memory"):
        transformer.decode(x, made.encoder, x)
    with pytest.raises(ValueError, match=r"transformer\.encode: layers\[0\]\.attention\.q has shape \(8, 4, 2\); the other arguments need"):
        transformer.encode(x[..., :6], made.encoder)
    heads = replace(layer.attention, k=torch.ones(8, 3, 2), v=torch.ones(8, 3, 2))
    with pytest.raises(ValueError, match="h=4 heads cannot share hkv=3 heads"):
        transformer.multi_head(x.float(), heads)
    with pytest.raises(ValueError, match=r"layers\[0\] has one of cross and cross_norm; cross-attention needs both"):
        transformer.decoder_block(x, replace(layer, cross_norm=None), Style(), x)
    with pytest.raises(TypeError, match=r"x has dtype torch\.int64"):
        transformer.feed_forward(x.long(), layer.feed_forward)
    with pytest.raises(TypeError, match=r"tokens has dtype torch\.float64"):
        transformer.greedy(x[..., 0], made, 1)
    with pytest.raises(TypeError, match=r"transformer\.forward: tokens has dtype torch\.float64"):
        transformer.forward(x[..., 0], made)
    with pytest.raises(ValueError, match="a source needs an encoder, and the model has none"):
        transformer.forward(words(2, 4), replace(made, encoder=None), words(2, 5))


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (torch.ones(2, 7), TypeError, r"mask has dtype torch\.float32; allowed are bool"),
        (torch.ones(2, 3, dtype=torch.bool), ValueError, r"mask has shape \(2, 3\); it needs \(2, 7\)"),
        ([[True] * 7] * 2, TypeError, r"mask must be a torch\.Tensor, not list"),
    ],
    ids=["dtype", "shape", "list"],
)
def test_a_wrong_mask_is_named(mask, error, message):
    stack, x = model().decoder, draw()
    with pytest.raises(error, match=rf"transformer\.decode: {message}"):
        transformer.decode(x, stack, x, mask=mask)
    with pytest.raises(error, match=rf"transformer\.decode: memory_{message}"):
        transformer.decode(x, stack, x, mask)
