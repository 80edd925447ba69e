"""Faulty normalisers: each law must see those of its kind, at both scales."""

from functools import wraps

import pytest
import torch

from isoform.impl import linear_attention
from isoform.impl.normalized_linear_attention import chunkwise, recurrent
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.running import run_law

NAME = "normalized-linear-attention"
LAWS = {law.name: law for law in laws()}


def faulty(change):
    """Make of change(parts, call) a form: ``parts(…)`` gives numerator, denominator and state of a call with other arguments."""

    @wraps(chunkwise)
    def form(q, k, v, **call):
        def parts(**other):
            given = {"q": q, "k": k, "v": v, **call, **other}
            given.pop("feature_map")
            wide = torch.promote_types(v.dtype, torch.float32)
            values = torch.cat([given["v"].to(wide), torch.ones_like(given["v"][..., :1], dtype=wide)], -1)
            o, state = linear_attention.chunkwise(**{**given, "v": values, "scale": 1.0})
            return o[..., :-1], o[..., -1:], state

        o, state = change(parts, {"q": q, "k": k, "v": v, **call})
        return o.to(v.dtype), state

    form.__name__ = change.__name__
    return form


def ratio(above, below):
    return torch.where(below == 0, 0.0, above / torch.where(below == 0, 1.0, below))


@faulty
def none_planted(parts, call):
    above, below, state = parts()
    return ratio(above, below), state


@faulty
def normaliser_not_carried(parts, call):
    start = call.get("initial_state")
    if start is None:
        return none_planted(**call)
    above, _, state = parts()
    _, below, _ = parts(initial_state=torch.cat([start[..., :-1], start[..., -1:] * 0], -1))
    return ratio(above, below), state


@faulty
def normaliser_without_the_current_token(parts, call):
    above, below, state = parts()
    groups = call["v"].shape[2] // call["q"].shape[2]
    own = (call["q"] * call["k"]).sum(-1, keepdim=True).repeat_interleave(groups, 2)
    return ratio(above, below - own), state


@faulty
def epsilon_in_the_denominator(parts, call):
    above, below, state = parts()
    return ratio(above, below + 1e-6), state


@faulty
def denominator_a_little_large(parts, call):
    above, below, state = parts()
    return ratio(above, below * (1 + 2.0**-6)), state


@faulty
def denominators_swapped_between_heads(parts, call):
    above, below, state = parts()
    return ratio(above, below.flip(2)), state


@faulty
def denominators_of_the_first_head(parts, call):
    above, below, state = parts()
    return ratio(above, below[:, :, :1]), state


@faulty
def denominator_of_the_last_token(parts, call):
    above, below, state = parts()
    return ratio(above, below[:, -1:]), state


@faulty
def no_denominator(parts, call):
    above, _, state = parts()
    return above, state


@faulty
def denominator_in_half_precision(parts, call):
    above, below, state = parts()
    return ratio(above, below.to(torch.bfloat16).to(below.dtype)), state


@faulty
def absolute_denominator_of_values(parts, call):
    above, below, state = parts()
    return ratio(above, parts(v=call["v"].abs())[0].sum(-1, keepdim=True) + 0 * below), state


@faulty
def normaliser_left_out_of_the_state(parts, call):
    o, state = none_planted(**call)
    return o, None if state is None else torch.cat([state[..., :-1], state[..., -1:] * 0], -1)


@faulty
def normaliser_in_half_precision_in_the_state(parts, call):
    o, state = none_planted(**call)
    return o, None if state is None else torch.cat([state[..., :-1], state[..., -1:].to(torch.bfloat16).to(state.dtype)], -1)


@faulty
def normaliser_first_in_the_state(parts, call):
    o, state = none_planted(**call)
    return o, None if state is None else state.roll(1, -1)


@faulty
def denominator_detached(parts, call):
    above, below, state = parts()
    return ratio(above, below.detach()), state


@faulty
def denominator_of_packed_sequences_runs_on(parts, call):
    if call.get("cu_seqlens") is None:
        return none_planted(**call)
    above, _, state = parts()
    start = call.get("initial_state")
    _, below, _ = parts(cu_seqlens=None, initial_state=None if start is None else start[:1])
    return ratio(above, below), state


PLANTED = {
    "form-equals-oracle": (
        normaliser_not_carried,
        normaliser_without_the_current_token,
        denominator_a_little_large,
        denominators_swapped_between_heads,
        denominator_of_the_last_token,
        no_denominator,
        denominator_in_half_precision,
        absolute_denominator_of_values,
    ),
    "state-equals-oracle": (normaliser_left_out_of_the_state, normaliser_in_half_precision_in_the_state, normaliser_first_in_the_state),
    "split-and-resume": (normaliser_not_carried, normaliser_left_out_of_the_state),
    "prefix-invariance": (denominator_of_the_last_token,),
    "group-map": (denominators_swapped_between_heads, denominators_of_the_first_head),
    "gradient-of-inputs": (denominator_detached,),
    "packed-equals-alone": (denominator_of_packed_sequences_runs_on,),
    "finite-at-the-edges": (epsilon_in_the_denominator,),
    "forms-agree": (normaliser_without_the_current_token, no_denominator),
}


def checked(law, form, scale, examples=12):
    siblings = (recurrent,)
    return run_law(
        LAWS[law], operator(NAME), Form(form.__name__, form, siblings=siblings), examples=examples, scales=(scale,), minimise=False
    )


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("law", "form"), [pytest.param(law, f, id=f"{law}-{f.__name__}") for law, fs in PLANTED.items() for f in fs])
def test_a_faulty_form_is_caught(law, form, scale):
    result = checked(law, form, scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None


def test_an_epsilon_is_caught_where_it_matters():
    """Denominators of 2^-20 and less feel 1e-6; those of 2^20 round it away, and the form is a right one there."""
    assert checked("form-equals-oracle", epsilon_in_the_denominator, "small").verdict == "violated"


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("law", PLANTED)
def test_the_harness_itself_is_a_right_form(law, scale):
    assert checked(law, none_planted, scale).verdict == "holds"
