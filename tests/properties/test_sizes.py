"""Arrays have the sizes that their case names, so that sizes which differ are drawn to differ."""

import pytest

from isoform.properties.columns import columns, operators

OPERATORS = [o for c in columns() for o in operators(c)]
AXES = {"b", "t", "k", "v", "d", "n"}
"""Axes that are a size of the case itself; the others are products or shifts of sizes."""


def named_sizes(operator, x):
    """Every axis of every input, and of the state, with its size."""
    for i in operator.inputs:
        if i.name in x.inputs:
            yield from zip(i.of(x.inputs[i.name]), x.inputs[i.name].shape)
    if x.state is not None:
        yield from zip(operator.state_axes.split(), x.state.shape)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: o.name)
def test_an_axis_has_the_size_of_its_case(operator):
    seen = 0
    for n, case in enumerate(operator.corners()):
        distinct = case.resized(**{axis: 2 + n % 3 + m for m, (axis, _) in enumerate(case.sizes) if axis in AXES - {"t"}})
        found = [(axis, size) for axis, size in named_sizes(operator, operator.draw(distinct)) if axis in AXES]
        assert [(axis, distinct.size(axis)) for axis, _ in found] == found
        seen += len(found)
    assert seen > 0
