"""Maps and declared limits, as text: what they say, and one sentence for each mistake."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from isoform.impl import gated_delta_rule
from isoform.properties.columns import operator
from isoform.properties.limits import Limits, Sizes
from isoform.properties.wiring import SIGNATURES, WiringError, adapt, both, disguise, parse_limits, parse_map, wire

GATED = operator("gated-delta-rule")
CASES = [replace(c, dtype="float32") for c in GATED.corners()[:4]]


def plainly(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=True):
    return gated_delta_rule.recurrent(q, k, v, g, beta, scale, initial_state, output_final_state)


def renamed(query, key, value, g, beta, scale=None, state=None):
    return plainly(query, key, value, g, beta, scale, state)


def head_first(q, k, v, g, beta, scale=None, initial_state=None):
    swap = [x.transpose(1, 2) for x in (q, k, v, g, beta)]
    o, s = plainly(*swap, scale, initial_state)
    return o.transpose(1, 2), s


def values_first(q, k, v, g, beta, scale=None, initial_state=None):
    o, s = plainly(q, k, v, g, beta, scale, None if initial_state is None else initial_state.transpose(-1, -2))
    return o, s.transpose(-1, -2)


def linear_gates(q, k, v, alpha, beta, scale=None, initial_state=None):
    return plainly(q, k, v, alpha.log(), beta, scale, initial_state)


def negative_gates(q, k, v, decay, beta, scale=None, initial_state=None):
    return plainly(q, k, v, -decay, beta, scale, initial_state)


def double_log_gates(q, k, v, w, beta, scale=None, initial_state=None):
    return plainly(q, k, v, -(w.exp()), beta, scale, initial_state)


def packed_heads(query, key, value, g, beta, heads, value_heads, scale=None, initial_state=None):
    q, k, v = (x.unflatten(2, (n, -1)) for x, n in ((query, heads), (key, heads), (value, value_heads)))
    o, s = plainly(q, k, v, g, beta, scale, initial_state)
    return o.flatten(2), s


def state_first(q, k, v, g, beta, mode, scale=None, initial_state=None):
    assert mode == "chunk, fast"
    o, s = plainly(q, k, v, g, beta, scale, initial_state)
    return s, None, o


def by_position(*given):
    q, k, v, g, beta = given
    return plainly(q, k, v, g, beta)


def without_scale(q, k, v, g, beta, initial_state=None):
    return plainly(q, k, v, g, beta, 1.0, initial_state)


PACKED = "query=q[b t (h k)], key=k[b t (h k)], value=v[b t (hv v)], heads=size(h), value_heads=size(hv) -> out[b t (hv v)], state"
MAPS = [
    (renamed, "query=q, key=k, value=v, state=initial_state", 0),
    (head_first, "head-first", 0),
    (head_first, "q[b h t k], k=k[b h t k], v[b hv t v], g[b hv t], beta[b hv t] -> out[b hv t v], state", 0),
    (values_first, "initial_state[b hv v k]", 0),
    (values_first, "initial_state[b hv v k] -> out, state[b hv v k]", 0),
    (linear_gates, "alpha=exp(g)", 1),
    (negative_gates, "decay=-g", 0),
    (double_log_gates, "w=log(-g)", 1),
    (packed_heads, PACKED, 0),
    (state_first, "mode='chunk, fast' -> state, _, out", 0),
    (by_position, "1=q, 2=k, 3=v, 4=g, 5=beta", 0),
    (without_scale, "unscaled", 1),
]
"""Kernels, their maps, and whether the values that arrive are off by a rounding."""


@pytest.mark.parametrize(("kernel", "text", "rounds"), MAPS, ids=lambda x: getattr(x, "__name__", None))
def test_a_map_makes_a_kernel_a_plain_one(kernel, text, rounds):
    adapted = adapt(kernel, GATED, wire(kernel, GATED, text=text))
    shown = inspect.signature(adapted).parameters
    assert {"q", "k", "v", "g", "beta"} <= set(shown)
    for case in CASES:
        x = GATED.draw(case)
        x = replace(x, options={n: a for n, a in x.options.items() if n in shown}, state=x.state if "initial_state" in shown else None)
        (out, state), (own, last) = GATED.run(adapted, x), GATED.run(plainly, x)
        truth = GATED.refer(replace(x, options={"chunk_size": 1, **x.options}))
        assert np.array_equal(out, own) if not rounds else np.all(np.abs(out - truth.output) <= truth.bound)
        if "output_final_state" in shown:
            assert np.array_equal(state, last) if not rounds else np.all(np.abs(state - truth.states[:, -1]) <= truth.states_bound[:, -1])


@pytest.mark.parametrize("text", [t for _, t, rounds in MAPS if not rounds], ids=range(9))
def test_a_plain_form_is_disguised_by_a_map_and_adapted_again(text):
    wiring = parse_map(text, GATED, SIGNATURES["plain"](GATED))
    there_and_back = adapt(disguise(plainly, GATED, wiring), GATED, wiring)
    for case in CASES:
        x = GATED.draw(case)
        for a, b in zip(GATED.run(there_and_back, x), GATED.run(plainly, x), strict=True):
            assert np.array_equal(a, b)


def test_what_a_code_leaves_out_is_a_limit():
    for text, refused in (("a=exp(g)", {"bfloat16", "float16"}), ("w=log(-g)", {"bfloat16", "float16", "gradient"}), ("d=-g", set())):
        assert set(parse_map(text, GATED, SIGNATURES["plain"](GATED)).limits.refuses) == refused


WRONG = [
    ("query=qq", "'qq' in 'query=qq' is no argument of gated-delta-rule and no constant; its arguments are q, k, v,"),
    ("a=exp(q)", "writes q as exp(g), which is for what is at most 0"),
    ("q[b t h]", "[b t h] in 'q[b t h]' are not its axes, which are b t h k"),
    ("q[b b t h k]", "are not its axes"),
    ("scale[b]", "which are none that can be moved"),
    ("a=q, a=k", "the argument a stands there twice"),
    ("a=q, b=q", "the plain argument q stands there twice"),
    ("2=q", "positions are 1, 2, 3, … without a gap"),
    ("7", "'7' says for no argument of the kernel what it is; write ARGUMENT=7"),
    ("q -> foo", "'foo' behind -> is none of out, state and _"),
    ("q -> state", "'state' names no out"),
    ("q -> ", "names no out"),
    ("q[b t h k", "is not closed"),
    ("mode='a", "is not closed"),
    ("=q", "'=q' is no argument"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_mistake_in_a_map_is_one_sentence(text, says):
    with pytest.raises(WiringError) as found:
        parse_map(text, GATED, SIGNATURES["plain"](GATED))
    assert str(found.value).startswith("map: ") and says in str(found.value) and "\n" not in str(found.value)


def test_a_map_names_arguments_that_the_kernel_has():
    with pytest.raises(WiringError, match="map: plainly has no argument h0; its arguments are q, k, v, g, beta, scale"):
        wire(plainly, GATED, text="h0=initial_state")
    attention = operator("attention")
    with pytest.raises(WiringError, match="map: the signature sdpa takes none"):
        parse_map("query=q", attention, SIGNATURES["sdpa"](attention))


def test_an_empty_map_changes_nothing():
    wiring = SIGNATURES["plain"](GATED)
    assert parse_map(" ", GATED, wiring) == wiring


DECLARED = [
    ("", Limits()),
    ("T%16", Limits((Sizes("t", multiple=16, reason="declared: T%16"),))),
    ("t >= 16, T%8", Limits((Sizes("t", multiple=8, least=16, reason="declared: t >= 16; declared: T%8"),))),
    ("K=64", Limits((Sizes("k", least=64, most=64, reason="declared: K=64"),))),
    ("V<=8", Limits((Sizes("v", most=8, reason="declared: V<=8"),))),
    ("K=V, groups=1", Limits(refuses={"unequal": "declared: K=V", "groups": "declared: groups=1"})),
    ("no packing,no float64", Limits(refuses={"packing": "declared: no packing", "float64": "declared: no float64"})),
]


@pytest.mark.parametrize(("text", "limits"), DECLARED)
def test_limits_are_declared_as_text(text, limits):
    assert parse_limits(text, GATED) == limits
    assert dict(parse_limits(text, GATED).refuses) == dict(limits.refuses)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fast", "'fast' is not understood; allowed are T%16"),
        ("no luck", "'no luck' is not understood"),
        ("Z%4", "'Z%4' is of no size of gated-delta-rule, which has b, t, h, groups, k, v, chunk"),
        ("T%0", "'T%0' leaves nothing"),
        ("T<=8, T>=9", "no multiple of 1 is from 9 to 8"),
        ("no float64, no float32, no bfloat16, no float16", "no dtype is left"),
    ],
)
def test_a_mistake_in_limits_is_one_sentence(text, says):
    with pytest.raises(WiringError) as found:
        parse_limits(text, GATED)
    assert str(found.value).startswith("limits: ") and says in str(found.value) and "\n" not in str(found.value)


def test_two_limits_are_what_is_within_both():
    found = both(parse_limits("T%4, K=V", GATED), parse_limits("T%6, T<=48", GATED))
    assert (found.sizes[0].multiple, found.sizes[0].most) == (12, 48)
    assert set(found.refuses) == {"unequal"}
