"""The truth of stacks of layers beside balls, bounds by hand, and what claims say of any depth of the PyTorch stacks."""

from dataclasses import replace
from types import SimpleNamespace

import flint
import numpy as np
import pytest
import torch

from isoform.impl import transformer
from isoform.properties import layers
from isoform.properties.bounds import EXACT, SECOND_ORDER, gamma
from isoform.properties.columns import operator
from isoform.properties.crosscheck import forms_of
from isoform.properties.laws import laws
from isoform.properties.layers import Near, Roundings, Stage
from isoform.properties.running import run_law
from isoform.properties.strategies import Case
from isoform.properties.tensors import array, precision, tensor
from isoform.properties.transformer import stages

LAWS = {law.name: law for law in laws()}
DECODER, ENCODER = operator("decoder"), operator("encoder")
SIZES = {"b": 2, "t": 5, "n": 2, "h": 2, "groups": 2, "d": 2, "v": 3, "m": 4, "f": 5, "window": 2}
SINGLE = precision("float32")


def case(*flags, dtype="float64", seed=1, name="decoder", **sizes):
    return Case(name, tuple((SIZES | sizes).items()), seed, dtype, flags=flags)


def drawn(of, *flags, **sizes):
    """An instance whose tokens are of the size 1."""
    c = case(*flags, name=of.name, **sizes)
    x = of.draw(c)
    return replace(x, inputs={**x.inputs, "x": x.inputs["x"] / c.unit})


# The truth ------------------------------------------------------------------------------------------------


def balls(x):
    return np.vectorize(flint.arb, otypes=[object])(x)


@pytest.mark.parametrize("of", [DECODER, ENCODER], ids=lambda o: o.name)
@pytest.mark.parametrize("flags", [(), ("post-norm", "padding-left"), ("memory", "window", "padding-right")])
@pytest.mark.parametrize("depth", [1, 4])
def test_the_truth_is_that_of_balls_within_its_own_bound(of, flags, depth):
    """The same program on balls of 200 bits; the cosines and sines of angles are those of float64."""
    x = drawn(of, *flags, b=1, t=3, n=depth)
    found, tokens = stages(x, 0, of is DECODER)
    wide = [
        replace(s, weights={n: balls(w) for n, w in s.weights.items()}, memory=None if s.memory is None else balls(s.memory)) for s in found
    ]
    before, flint.ctx.prec = flint.ctx.prec, 200
    try:
        exact = layers.floats(layers.run(wide, balls(tokens))[-1])
    finally:
        flint.ctx.prec = before
    bound = layers.bound(found, tokens, EXACT.unit)
    assert np.all(bound < 2.0**-30) and np.all(np.abs(layers.run(found, tokens)[-1] - exact) <= bound)
    assert not np.allclose(exact, layers.run(found[:-1], tokens)[-1])


@pytest.mark.parametrize("flags", [(), ("post-norm", "padding-left", "memory")])
def test_a_derivative_is_a_difference_quotient(flags):
    x = drawn(DECODER, *flags)
    rng = np.random.default_rng(0)
    toward = {n: rng.standard_normal(a.shape) for n, a in x.inputs.items()}
    weights, step = rng.standard_normal(x.inputs["x"].shape), 2.0**-17
    moved = [replace(x, inputs={n: a if a.dtype == bool else a + sign * step * toward[n] for n, a in x.inputs.items()}) for sign in (1, -1)]
    late, early = ((DECODER.refer(y).output * weights).sum() for y in moved)
    value, bound = DECODER.derive(x, toward, None, weights, None)
    assert value == pytest.approx((late - early) / (2 * step), rel=1e-6)
    assert 0 < bound < 2.0**-18 * abs(value)


def test_a_stack_turns_its_keys_by_the_number_of_tokens_before_them():
    padded, plain = (drawn(DECODER, *flags, b=1) for flags in (("padding-left",), ()))
    alone = replace(plain, inputs={**plain.inputs, "x": plain.inputs["x"][:, 1:]})
    np.testing.assert_allclose(DECODER.refer(padded).output[:, 1:], DECODER.refer(alone).output, rtol=1e-12)


# Bounds by hand -------------------------------------------------------------------------------------------


def g(count):
    return gamma(count, SINGLE.unit)


def one(*x):
    return np.array([x], float)


NORM = Stage("norm", {"gain": np.array([2.0, 3.0]), "shift": np.array([0.5, -0.25])}, eps=9.0)


def test_the_bound_of_a_norm():
    """Features 3 and 11: the mean is 7, σ is 5, and n is ∓4/5."""
    e = g(4) * (np.array([3.0, 11.0]) + 7) / 5
    relative = 0.8 * e.mean() + g(8)
    own = np.array([2.0, 3.0]) * (e + 0.8 * relative) + g(4) * np.array([2.1, 2.65])
    assert layers.bound([NORM], one(3, 11), SINGLE.unit)[0] == pytest.approx(own * SECOND_ORDER)


def test_errors_pass_a_stage_by_its_exact_jacobian():
    """Of the norm: (1 - 1/2 - n n / 2) / σ times the gain, equal in size for both features since n = ∓4/5."""
    through = np.array([[2.0], [3.0]]) * (0.5 - 0.32) / 5 * np.array([[1, -1], [-1, 1]])
    assert layers.jacobian(NORM, one(3, 11)) == pytest.approx(through)
    first, second = (layers.errors([s], x, SINGLE.unit).added[0] for s, x in ((NORM, one(3, 11)), (LATER, one(-1.1, 2.15))))
    jacobian = layers.jacobian(LATER, one(-1.1, 2.15))
    expected = np.abs(jacobian) @ first[0] + second[0]
    assert layers.bound([NORM, LATER], one(3, 11), SINGLE.unit)[0] == pytest.approx(expected * SECOND_ORDER)


LATER = replace(NORM, eps=1.0)
NETWORK = {"up": one(2.0, -3.0), "up_bias": np.array([1.0, 0.0]), "down": np.array([[4.0], [5.0]]), "down_bias": np.array([0.5])}


def test_the_bound_of_a_network():
    """x = 3: 7 is kept and -9 is not; an error of 1 makes it -9 ± 3, which is cut off too."""
    kept = 2 * 1 + g(3) * 6 + SINGLE.unit * 7
    expected = 4 * kept + g(4) * 28 + SINGLE.unit * 28.5
    found = Roundings(SINGLE.unit).feed_forward(Stage("feed-forward", NETWORK), Near(one(3), one(1)))
    assert found.value == 28.5 and found.error == pytest.approx(expected)


def test_a_feature_that_may_have_either_sign_counts():
    at_the_edge = NETWORK | {"up_bias": np.array([1.0, 9.0])}
    s = Stage(
        "feed-forward", at_the_edge | {"gain": np.ones(1), "shift": np.array([3.0])}, eps=9.0
    )  # of one feature, the norm is its shift
    other = replace(s, weights={**s.weights, "up_bias": NETWORK["up_bias"]})
    found, alone = (layers.errors([each], one(1), SINGLE.unit) for each in (s, other))
    edge = 3 * (g(3) * 2 / 3 + g(4) * 3) + g(3) * 9
    assert found.bent and not alone.bent
    assert found.added[0] - alone.added[0] == pytest.approx(5 * edge)


def test_the_bound_of_attention():
    """One key has weight 1 whatever the errors of scores: there are those of its value, of 8 sums and of two products."""
    w = {n: np.array([[[x]]], float) for n, x in (("q", 2), ("k", 3), ("v", 5), ("o", 7))}
    s = Stage("attention", w, seen=np.ones((1, 1), bool))
    found = Roundings(SINGLE.unit).attention(s, Near(one(2), one(1)))
    assert found.value == 70
    assert found.error == pytest.approx(7 * (5 + g(3) * 10 + g(8) * 20) + g(3) * 70)


def test_the_bound_of_a_residual():
    """Features 3 + 28.5, and 3 may be the first term of the last sums, of two products."""
    found = Roundings(SINGLE.unit).residual(Stage("feed-forward", NETWORK), Near(one(3), one(1)), Near(one(28.5), one(2)))
    assert found.value == 31.5 and found.error == pytest.approx(3 + SINGLE.unit * 31.5 + g(4) * 3)


def test_first_order_says_nothing_of_tokens_whose_features_are_nearly_equal():
    close = replace(NORM, eps=1e-12)
    assert np.all(np.isinf(layers.bound([close], one(1000, 1000.001), SINGLE.unit)))
    assert np.all(layers.bound([close], one(1000, 1000.001), EXACT.unit) < 2.0**-10)


def test_a_gradient_has_no_bound_where_a_feature_may_have_either_sign():
    weights = {n: a for n, a in NETWORK.items() if n != "up_bias"} | {"gain": np.ones(1), "shift": np.zeros(1)}

    def bound(bias):
        stack = [Stage("feed-forward", weights | {"up_bias": np.array(bias)})]
        return layers.slope_bound(lambda step: (stack, one(1) + step * one(1)), one(1), SINGLE.unit)

    assert np.isfinite(bound([1.0, -1.0])) and np.isinf(bound([1.0, 0.0]))


# What the claims say --------------------------------------------------------------------------------------


def at_depth(of, depth, memory=False):
    """The operator with stacks of so many layers alone."""

    def cases(**wanted):
        return of.cases(**wanted).map(lambda c: replace(c.resized(n=depth), flags=(*c.flags, *("memory",) * memory)))

    return replace(of, cases=cases, corners=lambda: ())


FORM = forms_of(transformer.FORMS["decoder"], transformer.STEPS["decoder"], transformer.CACHED["decoder"])[0]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("memory", [False, True], ids=["stack", "decoder"])
@pytest.mark.parametrize("law", ["prefix-invariance", "cached-parts"])
def test_a_stack_of_any_depth_is_prefix_invariant_and_may_cache(law, memory, depth):
    result = run_law(LAWS[law], at_depth(DECODER, depth, memory), FORM, examples=8, seed=depth)
    assert result.verdict == "holds" and result.worst_error_over_bound <= 0.2, result


def parts(x):
    """The prefixes, each as a part of the instance."""
    return [DECODER.cut(x, 0, n) for n in range(1, DECODER.length(x) + 1)]


@pytest.mark.parametrize("flags", [(), ("post-norm", "window"), ("memory", "padding-right")])
def test_one_pass_has_the_loss_and_the_gradient_of_all_prefixes(flags):
    """Losses are linear in the rows, with weights that are drawn; each side is held against the truth of the other."""
    x = drawn(DECODER, *flags, t=4)
    rng = np.random.default_rng(3)
    weights = rng.standard_normal(x.inputs["x"].shape)
    toward = {n: rng.standard_normal(a.shape) for n, a in x.inputs.items()}
    leaves = {n: t.requires_grad_() if t.is_floating_point() else t for n, t in DECODER.tensors(x).items()}
    options, factors = DECODER.arguments(transformer.decoder, x), tensor(weights, x.dtype)

    def rows(n):
        return transformer.decoder(**leaves | {k: leaves[k][:, :n] for k in ("x", "mask") if k in leaves}, **options)

    def slope(loss):
        wanted = {n: t for n, t in leaves.items() if t.requires_grad}
        return sum(float((array(g) * toward[n]).sum()) for n, g in zip(wanted, torch.autograd.grad(loss, wanted.values())))

    one_pass = (factors * rows(4)).sum()
    apart = sum((factors[:, n - 1] * rows(n)[:, -1]).sum() for n in range(1, 5))
    value, bound = DECODER.derive(x, toward, None, weights, None)
    own = []
    for n, part in enumerate(parts(x), 1):
        last = np.zeros_like(part.inputs["x"])
        last[:, -1] = weights[:, n - 1]
        moves = {name: a[:, :n] if name in ("x", "mask") else a for name, a in toward.items()}
        own.append(DECODER.derive(part, moves, None, last, None))
    truth, truth_bound = (sum(each) for each in zip(*own))
    assert abs(slope(one_pass) - truth) <= bound + truth_bound < 2.0**-16 * abs(truth)
    assert abs(slope(apart) - value) <= bound + truth_bound
    whole = DECODER.refer(x)
    size = np.abs(weights) * (whole.bound + gamma(40, EXACT.unit) * np.abs(whole.output))
    assert abs(float(apart.detach()) - (weights * whole.output).sum()) <= size.sum()


def test_full_layers_in_one_pass_are_not_those_of_the_prefixes():
    """The near miss: rows that read later tokens are not those of their prefixes."""
    x = drawn(ENCODER, t=4)
    last = ENCODER.refer(ENCODER.cut(x, 0, 2))
    whole = ENCODER.refer(x)
    assert np.all(np.max(np.abs(whole.output[:, 1] - last.output[:, 1]), -1) > 100 * np.max(whole.bound[:, 1], -1))


def model(seed, depth, dtype):
    style = transformer.Style(pre_norm=seed % 2 == 0, base=100.0, window_size=3 if seed % 3 == 0 else None)
    generator = torch.Generator().manual_seed(seed)
    sizes = {"words": 7, "width": 8, "layers": depth, "heads": 2, "kv_heads": 1, "hidden": 8}
    return transformer.init(generator, style=style, dtype=dtype, **sizes)


def stack_of(stack, x):
    """A decoder of the PyTorch weights as stages of the truth, for one sequence without padding and memory."""
    t, style = len(x), stack.style
    i, j = np.arange(t)[:, None], np.arange(t)[None]
    near = (j <= i) & (j > i - (style.window_size or t))
    angles = i * style.base ** (-np.arange(0, stack.layers[0].attention.q.shape[-1], 2) / stack.layers[0].attention.q.shape[-1])

    def named(norm, weights):
        return {n: array(w) for n, w in (*vars(weights).items(), *vars(norm).items())}

    found, common = [], {"pre_norm": style.pre_norm, "eps": style.eps}
    for layer in stack.layers:
        found.append(Stage("attention", named(layer.attention_norm, layer.attention), seen=near, angles=angles, **common))
        found.append(Stage("feed-forward", named(layer.feed_forward_norm, layer.feed_forward), **common))
    return found + ([Stage("norm", named(stack.norm, SimpleNamespace()), **common)] if stack.norm is not None else [])


def best(made, line):
    """The index of the largest true logit after these words, or None if another may be as large in float32 or float64."""
    x, head = array(made.embedding[line]), array(made.head)
    unit, found = precision(str(made.head.dtype).removeprefix("torch.")).unit, stack_of(made.decoder, x)
    row, error = layers.run(found, x)[-1][-1], layers.bound(found, x, unit)[-1]
    logits, size = row @ head, np.abs(head)
    off = error @ size + gamma(len(row), unit) * ((np.abs(row) + error) @ size)
    first = int(np.argmax(logits))
    return first if np.all(np.delete(logits + off, first) < logits[first] - off[first]) else None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_words_are_the_truths_wherever_the_best_is_clear(seed, dtype):
    """With and without caches each word is that of the largest true logit, if no other is within the errors of both.

    Of two words that are nearer than that rounding decides, so there the two runs may part; each is judged by its own words.
    """
    made, steps = model(seed, 1 + seed, dtype), 5
    tokens = torch.randint(7, (2, 3), generator=torch.Generator().manual_seed(seed))
    for cached in (True, False):
        words = transformer.greedy(tokens, made, steps, use_cache=cached)
        right = [best(made, torch.cat([tokens, words], 1)[b, : 3 + n]) for b in range(2) for n in range(steps)]
        assert all(r in (None, w) for r, w in zip(right, words.flatten().tolist(), strict=True))
        assert right.count(None) <= (0 if dtype == torch.float64 else 8)


def test_hidden_memory_that_is_no_number_has_no_gradient_and_gives_none():
    x = drawn(DECODER, "memory", "padding-right", t=3)
    shown = x.inputs["memory_mask"]
    spoilt = replace(x, inputs={**x.inputs, "memory": np.where(shown[:, :, None], x.inputs["memory"], np.nan)})
    found = []
    for each in (x, spoilt):
        leaves = {n: t.requires_grad_() if t.is_floating_point() else t for n, t in DECODER.tensors(each).items()}
        out = transformer.decoder(**leaves, **DECODER.arguments(transformer.decoder, each))
        out.square().sum().backward()
        found.append({n: t.grad for n, t in leaves.items() if t.is_floating_point()})
    assert not found[1]["memory"][~torch.from_numpy(shown)].any()
    assert all(torch.equal(found[0][n], found[1][n]) for n in found[0])
