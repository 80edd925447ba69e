"""Faults that one comparison alone can see: the truth is wrong with the form, an argument changes without effect."""

from dataclasses import replace
from functools import wraps

import pytest

from isoform.impl import attention, discretization, state_space
from isoform.properties.columns import operator, operators
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.running import run_law

LAWS = {law.name: law for law in laws()}
RULES = {o.name: o for o in operators("discretization")}
BESIDE_SCIPY = [
    (operator("attention"), attention.masked),
    (operator("full-attention"), attention.full),
    (operator("lti"), state_space.recurrent),
    (RULES["zoh"], discretization.zoh),
    (RULES["bilinear"], discretization.bilinear),
    (RULES["euler"], discretization.euler),
]


def twice(o):
    """An operator whose declaration, as far as its outputs go, is twice what it should be."""

    def refer(x):
        truth = o.refer(x)
        return replace(truth, output=2 * truth.output, bound=2 * truth.bound, sharp=2 * truth.sharp)

    return replace(o, refer=refer)


def doubled(form, pair):
    @wraps(form)
    def wrong(*args, **kwargs):
        found = form(*args, **kwargs)
        if not isinstance(found, tuple):
            return 2 * found
        return 2 * found[0], (2 * found[1] if pair else found[1])

    return wrong


@pytest.mark.parametrize(("o", "form"), BESIDE_SCIPY, ids=lambda x: getattr(x, "name", ""))
def test_scipy_sees_a_form_and_a_declaration_that_are_wrong_together(o, form):
    wrong = Form(form.__name__, doubled(form, o.name in RULES))

    def verdict(law):
        return run_law(LAWS[law], twice(o), wrong, examples=5, minimise=False).verdict

    assert (verdict("form-equals-oracle"), verdict("scipy-agrees")) == ("holds", "violated")


@wraps(attention.masked)
def clears_what_is_hidden(q, k, v, scale=None, mask=None, window_size=None):
    """Right outputs, twice the same; but the caller's hidden keys and values are gone."""
    if mask is not None and mask.ndim == 2:
        for x in (k, v):
            x.masked_fill_(~mask[:, :, None, None], 0)
    return attention.masked(q, k, v, scale, mask, window_size)


def test_an_argument_that_changes_without_effect_has_changed():
    form = Form("clears_what_is_hidden", clears_what_is_hidden)

    def result(law):
        return run_law(LAWS[law], operator("attention"), form, examples=40, minimise=False)

    assert result("form-equals-oracle").verdict == "holds"
    changed = result("arguments-untouched")
    assert changed.verdict == "violated" and "after the call" in changed.witness.what
