"""Every form takes a batch of nothing, and returns what has its shapes."""

from dataclasses import replace

import numpy as np
import pytest

from .test_every_form import found

FORMS = [pytest.param(operator, form, id=f"{operator.name}.{form.name}") for operator, form in found()]


def without_rows(operator, x):
    """The instance with the first of its axes b, or the batch of its state, left empty."""
    inputs = {n: np.take(a, [], operator.axes[n].of(a).index("b")) if "b" in operator.axes[n].of(a) else a for n, a in x.inputs.items()}
    return replace(x, inputs=inputs, state=None if x.state is None else x.state[:0])


@pytest.mark.parametrize(("operator", "form"), FORMS)
def test_a_batch_of_nothing(operator, form):
    for case in operator.corners():
        x = operator.draw(case)
        if "cu_seqlens" in x.options or (x.state is not None and not isinstance(x.state, np.ndarray)):
            continue
        given = without_rows(operator, x)
        if all(np.size(a) for a in given.inputs.values()):
            continue
        (want, last), (out, state) = operator.run(form.function, x), operator.run(form.function, given)
        if isinstance(want, np.ndarray):
            assert out.shape == (0, *want.shape[1:])
        if isinstance(last, np.ndarray):
            assert state.shape == (0, *last.shape[1:])
        return
    pytest.skip("no corner with a batch")
