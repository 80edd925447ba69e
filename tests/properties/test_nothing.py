"""A batch of nothing, and no token: every form has an answer, and autograd knows what it is made of."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from isoform.properties.operator import invoke

from .test_every_form import found

FORMS = [(operator, form) for operator, form in found()]
names = [f"{operator.name}.{form.name}" for operator, form in FORMS]
every_form = pytest.mark.parametrize(("operator", "form"), FORMS, ids=names)


def without_rows(operator, x):
    """The instance with a batch of 0."""
    inputs = {n: np.take(a, [], operator.axes[n].of(a).index("b")) if "b" in operator.axes[n].of(a) else a for n, a in x.inputs.items()}
    return replace(x, inputs=inputs, state=None if x.state is None else x.state[:0])


def instances(operator):
    """The corners that are no packed sequences."""
    found = (operator.draw(case) for case in operator.corners())
    return (x for x in found if "cu_seqlens" not in x.options)


@every_form
def test_a_batch_of_nothing(operator, form):
    x = next(x for x in instances(operator) if 0 in np.shape(next(iter(without_rows(operator, x).inputs.values()))))
    (want, last), (out, state) = operator.run(form.function, x), operator.run(form.function, without_rows(operator, x))
    if isinstance(want, np.ndarray):
        assert out.shape == (0, *want.shape[1:])
    if isinstance(last, np.ndarray):
        assert state.shape == (0, *last.shape[1:])


@every_form
def test_no_token_has_a_gradient_by_every_input(operator, form):
    if not {"sequence", "state"} <= operator.capabilities:
        pytest.skip("not a sequence that may be empty")
    x = operator.cut(next(instances(operator)), 0, 0)
    given = operator.tensors(x)
    leaves = {i.name: given[i.name].requires_grad_() for i in operator.inputs if i.name in given and given[i.name].dtype != torch.bool}
    out, _ = invoke(form.function, given | operator.arguments(form.function, x))
    assert out.numel() == 0
    for leaf, slope in zip(leaves.values(), torch.autograd.grad(out.sum(), list(leaves.values())), strict=True):
        assert torch.equal(slope, torch.zeros_like(leaf))
