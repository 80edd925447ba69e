"""Faulty stacks of layers: each law must see faults of its kind; a stack without a fault holds under all of them."""

from types import SimpleNamespace

import pytest
import torch

from isoform.impl import transformer
from isoform.properties.columns import operator
from isoform.properties.operator import Form
from isoform.properties.running import run_law

from .layers import Causal, Plain
from .planting import LAWS, checked


def looks_ahead(base):
    class LooksAhead(base):
        def seen(self, y):
            t = y.shape[1]
            return super().seen(y) | torch.ones(t, t, dtype=torch.bool).triu(1).tril(1)

    return LooksAhead()


def last_key_dropped(base):
    class LastKeyDropped(base):
        def seen(self, y):
            seen = super().seen(y).clone()
            seen[:, :, -1:] = False
            return seen

    return LastKeyDropped()


def window_one_wider(base):
    class WindowOneWider(base):
        def seen(self, y):
            self.window = self.window and self.window + 1
            seen = super().seen(y)
            self.window = self.window and self.window - 1
            return seen

    return WindowOneWider()


def norm_over_time(base):
    class NormOverTime(base):
        def norm(self, y, gain, shift):
            c = y - y.mean((1, 2), keepdim=True)
            return gain * c / (c.square().mean((1, 2), keepdim=True) + self.eps).sqrt() + shift

    return NormOverTime()


def norm_over_the_batch(base):
    class NormOverTheBatch(base):
        def norm(self, y, gain, shift):
            c = y - y.mean(0, keepdim=True)
            return gain * c / (c.square().mean(0, keepdim=True) + self.eps).sqrt() + shift

    return NormOverTheBatch()


def norm_by_the_other_variance(base):
    class NormByTheOtherVariance(base):
        def norm(self, y, gain, shift):
            return gain * (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True) + self.eps).sqrt() + shift

    return NormByTheOtherVariance()


def epsilon_outside_the_root(base):
    class EpsilonOutsideTheRoot(base):
        def norm(self, y, gain, shift):
            return gain * (y - y.mean(-1, keepdim=True)) / (y.var(-1, correction=0, keepdim=True).sqrt() + self.eps) + shift

    return EpsilonOutsideTheRoot()


def residual_dropped(base):
    class ResidualDropped(base):
        def residual(self, number, y, mix, norm, pre_norm):
            return super().residual(number, y, mix, norm, pre_norm) - (y if number and pre_norm else 0)

    return ResidualDropped()


def residual_after_the_norm(base):
    class ResidualAfterTheNorm(base):
        def residual(self, number, y, mix, norm, pre_norm):
            return norm(y) + mix(norm(y)) if pre_norm else y + norm(mix(y))

    return ResidualAfterTheNorm()


def norms_in_the_other_place(base):
    class NormsInTheOtherPlace(base):
        def residual(self, number, y, mix, norm, pre_norm):
            return super().residual(number, y, mix, norm, not pre_norm)

    return NormsInTheOtherPlace()


def heads_tiled(base):
    class HeadsTiled(base):
        def repeat(self, y, groups):
            return y.repeat(1, 1, groups, 1)

    return HeadsTiled()


def mask_ignored(base):
    class MaskIgnored(base):
        def seen(self, y):
            mask, self.mask = self.mask, None
            seen = super().seen(y)
            self.mask = mask
            return seen

    return MaskIgnored()


def positions_count_padding(base):
    class PositionsCountPadding(base):
        def positions(self, y):
            return torch.arange(y.shape[1]).expand(y.shape[:2])

    return PositionsCountPadding()


def memory_of_the_neighbour(base):
    class MemoryOfTheNeighbour(base):
        def source(self, memory):
            return memory.roll(1, 0)

    return MemoryOfTheNeighbour()


def memory_one_row_late(base):
    class MemoryOneRowLate(base):
        def source(self, memory):
            return torch.cat([memory[:, :1], memory[:, :-1]], 1)

    return MemoryOneRowLate()


def memory_mask_ignored(base):
    class MemoryMaskIgnored(base):
        def sight(self, y, read):
            self.memory_mask = None
            return super().sight(y, read)

    return MemoryMaskIgnored()


def memory_detached(base):
    class MemoryDetached(base):
        def source(self, memory):
            return memory.detach()

    return MemoryDetached()


def weights_detached(base):
    class WeightsDetached(base):
        def weigh(self, scores, seen):
            return super().weigh(scores.detach(), seen)

    return WeightsDetached()


def half_precision(base):
    class HalfPrecision(base):
        def norm(self, y, gain, shift):
            return super().norm(y, gain, shift).to(torch.bfloat16).to(y.dtype)

    return HalfPrecision()


def a_little_large(base):
    class ALittleLarge(base):
        def attend(self, *given):
            return super().attend(*given) * 1.004

    return ALittleLarge()


def neighbours_poison(base):
    class NeighboursPoison(base):
        def weigh(self, scores, seen):
            return super().weigh(scores, seen) + 0 * scores.sum(0, keepdim=True)

    return NeighboursPoison()


def empty_rows_are_means(base):
    class EmptyRowsAreMeans(base):
        def weigh(self, scores, seen):
            return scores.masked_fill(~seen[:, None], -1e30).softmax(-1)

    return EmptyRowsAreMeans()


PLANTED = {
    "form-equals-oracle": (
        last_key_dropped,
        norm_over_time,
        norm_by_the_other_variance,
        residual_dropped,
        residual_after_the_norm,
        norms_in_the_other_place,
        half_precision,
        a_little_large,
        mask_ignored,
    ),
    "scipy-agrees": (norms_in_the_other_place, a_little_large),
    "padding-mask": (mask_ignored, positions_count_padding, norm_over_time),
    "group-map": (heads_tiled,),
    "gradient-of-inputs": (weights_detached,),
    "batch-company": (norm_over_the_batch, neighbours_poison),
}
CAUSAL = {
    "form-equals-oracle": (looks_ahead, memory_one_row_late, memory_mask_ignored, memory_of_the_neighbour, empty_rows_are_means),
    "prefix-invariance": (looks_ahead, norm_over_time),
    "window": (window_one_wider,),
    "gradient-of-inputs": (memory_detached,),
    "batch-company": (memory_of_the_neighbour,),
}
BASES = {"encoder": Plain, "decoder": Causal}
PAIRS = [(name, law, f) for name in BASES for law, fs in PLANTED.items() for f in fs]
PAIRS += [("decoder", law, f) for law, fs in CAUSAL.items() for f in fs]


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("law", PLANTED)
def test_a_plain_stack_holds(name, law):
    result = run_law(LAWS[law], operator(name), Form("Plain", BASES[name]()), examples=3, seed=0, corners=3)
    assert result.verdict == "holds", result


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("name", "law", "plant"), [pytest.param(*p, id=f"{p[0]}-{p[1]}-{p[2].__name__}") for p in PAIRS])
def test_a_faulty_stack_is_caught(name, law, plant, scale):
    result = checked(law, name, Form(plant.__name__, plant(BASES[name])), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


@pytest.mark.parametrize("name", BASES)
def test_an_epsilon_in_the_wrong_place_is_caught_where_tokens_are_small(name):
    plant = epsilon_outside_the_root(BASES[name])
    assert checked("form-equals-oracle", name, Form("epsilon_outside_the_root", plant), "small").verdict == "violated"


# Caches ---------------------------------------------------------------------------------------------------

RIGHT = transformer.CACHED["decoder"]


def positions_restart(x, state, **more):
    out, new = RIGHT["extend"](x, state._replace(length=0), **more)
    return out, new._replace(length=state.length + x.shape[1])


def positions_one_late(x, state, **more):
    out, new = RIGHT["extend"](x, state._replace(length=state.length + (state.length > 0)), **more)
    return out, new._replace(length=state.length + x.shape[1])


def caches_of_the_layer_below(x, state, **more):
    out, new = RIGHT["extend"](x, state, **more)
    return out, new._replace(caches=(new.caches[0], *new.caches[:-1]))


def cache_forgotten(x, state, **more):
    return RIGHT["extend"](x, RIGHT["begin"](**{n: a for n, a in more.items() if n != "mask"}), **more)


def mask_forgotten(x, state, mask=None, **more):
    return RIGHT["extend"](x, state, **more)


def memory_mask_forgotten(x, state, **more):
    return RIGHT["extend"](x, state._replace(memory_mask=None), **more)


def oldest_token_dropped(x, state, **more):
    out, new = RIGHT["extend"](x, state, **more)
    caches = tuple(c if hasattr(c, "window") else type(c)(c.k[:, -3:], c.v[:, -3:]) for c in new.caches)
    return out, new._replace(caches=caches)


def begun_shared(**more):
    return SimpleNamespace(state=RIGHT["begin"](**more))


def extended_in_place(x, state, **more):
    out, state.state = RIGHT["extend"](x, state.state, **more)
    return out, state


def cropped_in_place(state, count):
    state.state = RIGHT["crop"](state.state, count)
    return state


def one_too_few(state, count):
    return RIGHT["crop"](state, count - 1)


def caches_alone(state, count):
    return RIGHT["crop"](state, count)._replace(length=state.length)


def first_layer_alone(state, count):
    new = RIGHT["crop"](state, count)
    return new._replace(caches=(new.caches[0], *state.caches[1:]))


def spare_ignored(spare=0, **more):
    return RIGHT["begin"](**more)


SHARED = {"begin": begun_shared, "extend": extended_in_place, "crop": cropped_in_place}
CACHED = [
    ("cached-parts", {"extend": positions_restart}),
    ("cached-parts", {"extend": positions_one_late}),
    ("cached-parts", {"extend": caches_of_the_layer_below}),
    ("cached-parts", {"extend": cache_forgotten}),
    ("cached-parts", {"extend": mask_forgotten}),
    ("padding-mask", {"extend": mask_forgotten}),
    ("cached-parts", {"extend": memory_mask_forgotten}),
    ("cached-parts", {"extend": oldest_token_dropped}),
    ("two-continuations", SHARED),
    ("roll-back", {"crop": one_too_few}),
    ("roll-back", {"crop": caches_alone}),
    ("roll-back", {"crop": first_layer_alone}),
    ("roll-back", {"begin": spare_ignored}),
    ("gradient-of-parts", {"extend": torch.no_grad()(RIGHT["extend"])}),
]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "faulty"), CACHED, ids=lambda x: x if isinstance(x, str) else "-".join(f.__name__ for f in x.values()))
def test_a_faulty_cache_is_caught(law, faulty, scale):
    result = checked(law, "decoder", Form("decoder", transformer.decoder, cached={**RIGHT, **faulty}), scale)
    assert result.verdict == "violated", result


def forgets_the_memory(x, memory=None, memory_mask=None, state=None, mask=None, **weights):
    memory = None if memory is None else torch.zeros_like(memory)
    return transformer.decoder_step(x, memory, memory_mask, state, mask, **weights)


def forgets_the_state(x, memory=None, memory_mask=None, state=None, mask=None, **weights):
    return transformer.decoder_step(x, memory, memory_mask, None, None if mask is None else mask[:, -1:], **weights)


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("step", [forgets_the_memory, forgets_the_state])
def test_a_faulty_step_is_caught(step, scale):
    assert checked("step-equals-whole", "decoder", Form("decoder", transformer.decoder, step), scale).verdict == "violated"
