"""Faulty attention: each law must see faults of its kind, at both scales."""

import pytest

from isoform.impl import attention
from isoform.properties.operator import Form

from .attending import BASES
from .faults.attention import CAUSAL, PLANTED
from .planting import checked

PAIRS = [("attention", law, f) for law, fs in (*PLANTED.items(), *CAUSAL.items()) for f in fs]
PAIRS += [("full-attention", law, f) for law, fs in PLANTED.items() for f in fs]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("name", "law", "plant"), [pytest.param(*p, id=f"{p[0]}-{p[1]}-{p[2].__name__}") for p in PAIRS])
def test_a_faulty_form_is_caught(name, law, plant, scale):
    result = checked(law, name, Form(plant.__name__, plant(BASES[name])), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


def forgets_the_cache(q, k, v, cache=None, scale=None):
    return attention.step(q, k, v, None, scale)


def drops_the_oldest_key(q, k, v, cache=None, scale=None):
    o, new = attention.step(q, k, v, cache, scale)
    return o, attention.KVCache(new.k[:, 1:], new.v[:, 1:]) if new.k.shape[1] > 2 else new


def does_not_see_itself(q, k, v, cache=None, scale=None):
    _, new = attention.step(q, k, v, cache, scale)
    before = new if cache is None else cache
    return attention.masked(q.unsqueeze(1), before.k, before.v, scale).squeeze(1), new


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("step", [forgets_the_cache, drops_the_oldest_key, does_not_see_itself])
def test_a_faulty_step_is_caught(step, scale):
    assert checked("step-equals-whole", "attention", Form("masked", attention.masked, step), scale).verdict == "violated"
