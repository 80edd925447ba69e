"""What a witness says reads as a sentence: the place by axes, and what is no number with its verb."""

import numpy as np
import pytest
import torch

from isoform.checking import plan, printing, trial
from isoform.checking.witness import _parts, axes_of
from isoform.properties.columns import columns, operator, operators
from isoform.properties.laws import laws
from isoform.properties.laws.table import LACKING, Comparison
from isoform.properties.operator import Form
from isoform.properties.strategies import Case

from .kernels.kernels import right

KEPT = []


def shown(change, law):
    """What one law shows of a kernel that is changed in one way."""

    def kernel(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        call = {"q": q, "k": k, "v": v, "beta": beta, "initial_state": initial_state}
        return change(call, *right(q, k, v, beta, scale, initial_state, output_final_state))

    made = plan.make(None, "kernel", "delta-rule", level="quick", laws=law, fail_fast=True)
    return trial.try_law(made, {}, law, None, kernel).smallest


def overwritten(call, out, state):
    call["v"].mul_(2)
    return out, state


def kept(call, out, state):
    KEPT[:] = [KEPT[0].copy_(out) if KEPT and KEPT[0].shape == out.shape and KEPT[0].dtype == out.dtype else out]
    return KEPT[0], state


def handed_back(call, out, state):
    return out, state if call["initial_state"] is None else call["initial_state"]


def settings(call, out, state):
    torch.set_default_dtype(torch.float64)
    return out, state


def another_dtype(call, out, state):
    return out.to(torch.float64), state


@pytest.mark.parametrize(
    ("change", "law", "says"),
    [
        (overwritten, "arguments-untouched", "v is not the same after the call"),
        (kept, "calls-apart", "an earlier result is changed by a call with other content"),
        (handed_back, "results-own-memory", "a result changes when initial_state is overwritten"),
        (settings, "surroundings-untouched", "the call changes torch's default dtype"),
        (another_dtype, "result-dtypes", "the output is torch.float64, right is torch.float32"),
    ],
)
def test_what_is_no_number_is_a_sentence(change, law, says):
    assert printing.sentence(shown(change, law)) == says


def a_little_large(call, out, state):
    return 1.01 * out, state


def state_a_little_large(call, out, state):
    return out, None if state is None else 1.01 * state


@pytest.mark.parametrize(
    ("change", "law", "axes", "begins"),
    [
        (state_a_little_large, "padding", ("head", "key feature", "feature"), "final state of sequence 0 with padding behind ("),
        (a_little_large, "state-on-request", ("batch", "time", "head", "feature"), "output where no state is asked for"),
    ],
)
def test_a_place_is_said_by_axes(change, law, axes, begins):
    found = shown(change, law)
    assert found.axes == axes and len(found.index) == len(axes) and found.breaks.startswith(begins)
    assert f"at {axes[0]} " in printing.sentence(found)


@pytest.mark.parametrize(
    ("what", "shape", "axes"),
    [
        ("output", (2, 5, 4, 2), ("batch", "time", "head", "feature")),
        ("output of sequence 1", (3, 4, 2), ("time", "head", "feature")),
        ("output from the state", (2, 1, 4, 2), ("batch", "time", "head", "feature")),
        ("final state", (2, 4, 3, 2), ("batch", "head", "key feature", "feature")),
        ("final state of sequence 1", (4, 3, 2), ("head", "key feature", "feature")),
        ("shape for no token", (4,), ()),
    ],
)
def test_axes_have_names(what, shape, axes):
    delta = operator("delta-rule")
    case = Case("delta-rule", tuple({"b": 2, "t": 5, "h": 2, "groups": 2, "k": 3, "v": 2, "chunk": 4}.items()))
    zeros = np.zeros(shape)
    assert axes_of(delta, case, Comparison(what, zeros, zeros, zeros)) == axes


def nothing(*_):
    """Has no arguments by name."""


@pytest.mark.parametrize("known", [o for column in columns() for o in operators(column)], ids=lambda o: o.name)
def test_why_a_law_does_not_apply_is_said_in_words(known):
    found = [law.missing(known, Form("nothing", nothing)) for law in laws()]
    bare = {f"{known.name} has no {word}" for word in LACKING if word != "window"}
    assert any(found) and not bare & set(found)


@pytest.mark.parametrize(
    ("found", "right", "shown"),
    [
        (0.25, 0.5, ((0.25, 0.5), "")),
        (0.25, 0.25 + 0.125j, ((0.0, 0.125), "imaginary part")),
        (0.5 + 0.125j, 0.25 + 0.125j, ((0.5, 0.25), "real part")),
        (complex(0.25, float("inf")), 0.25 + 0.125j, ((float("inf"), 0.125), "imaginary part")),
    ],
)
def test_of_complex_numbers_the_part_that_is_wrong_is_shown(found, right, shown):
    assert _parts(found, right) == shown
