"""Cases: deterministic, printable, inside the domain of their operator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoform.properties.columns import columns, operators
from isoform.properties.discretization import equilibrium
from isoform.properties.gates import FLOATS, unit
from isoform.properties.laws.packing import places
from isoform.properties.strategies import Case
from isoform.properties.tensors import DTYPES, rounded, tensor

OPERATORS = [o for c in columns() for o in operators(c)]
each_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: o.name)


@each_operator
@given(data=st.data())
def test_a_case_is_its_json_and_its_arrays(operator, data):
    case = data.draw(operator.cases())
    again = Case.from_json(case.to_json())
    assert again == case
    a, b = operator.draw(case), operator.draw(again)
    assert a.inputs.keys() == b.inputs.keys()
    for name in a.inputs:
        np.testing.assert_array_equal(a.inputs[name], b.inputs[name])


@each_operator
@given(data=st.data())
def test_arrays_are_values_of_the_dtype_in_the_shapes_of_the_call(operator, data):
    case = data.draw(operator.cases())
    x = operator.draw(case)
    sizes = {}
    for i in operator.inputs:
        if i.name in x.inputs:
            a = x.inputs[i.name]
            assert len(i.of(a)) == a.ndim
            for axis, size in zip(i.of(a), a.shape):
                assert sizes.setdefault(axis, size) == size
            if a.dtype.kind == "f":
                np.testing.assert_array_equal(rounded(a, x.dtype_of(i.name)), a)


@given(data=st.data())
def test_the_delta_rule_stays_a_contraction(data):
    (operator,) = operators("delta-rule")
    case = data.draw(operator.cases())
    x = operator.draw(case)
    k, beta = x.inputs["k"], x.inputs["beta"]
    k = unit(k, FLOATS) if case.has("normed") else k
    strength = beta * np.repeat((k**2).sum(-1), beta.shape[2] // k.shape[2], 2)
    margin = 1 + {"float64": 1e-15, "float32": 1e-6, "bfloat16": 0.02, "float16": 2e-3}[case.dtype]
    assert (strength >= 0).all() and (strength <= 2 * margin).all()


@pytest.mark.parametrize("flag", ["beta-zero", "beta-one", "beta-two"])
def test_a_strength_is_what_its_flag_says(flag):
    (operator,) = operators("delta-rule")
    x = operator.draw(Case("delta-rule", operator.corners()[0].sizes, 3, "float64", "large", (flag,)))
    strength = x.inputs["beta"] * np.repeat((x.inputs["k"] ** 2).sum(-1), 2, 2)
    np.testing.assert_allclose(strength, {"beta-zero": 0, "beta-one": 1, "beta-two": 2}[flag], rtol=1e-14)


def test_an_equilibrium_is_one_exactly():
    for operator in operators("discretization"):
        for dtype in ("float64", "float32"):
            case = Case(operator.name, (("b", 3), ("n", 4)), 5, dtype, "large", ("equilibrium",))
            x = operator.draw(case)
            assert (np.einsum("bij,bj->bi", x.inputs["A"], equilibrium(case)) + x.inputs["B"] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "expanded"])
def test_a_layout_keeps_the_values(dtype, layout):
    x = rounded(np.arange(24.0).reshape(2, 3, 4), dtype)
    t = tensor(x, dtype, layout)
    assert t.tolist() == x.tolist()
    assert t.is_contiguous() == (layout in ("contiguous", "expanded"))
    assert 0 in tensor(np.ones((2, 3)), dtype, "expanded").stride()


def test_drawn_lengths_reach_the_edges():
    seen = set()

    @given(OPERATORS[0].cases())
    def collect(case):
        seen.add(dict(case.sizes).get("t"))

    collect()
    assert {0, 1, 2} <= seen


@given(st.integers(0, 50), st.sampled_from([1, 2, 16, 64]), st.integers(0, 10))
def test_packed_sequences_follow_each_other_from_the_first_token_on(steps, chunk, seed):
    case = Case("delta-rule", (("chunk", chunk),), seed=seed)
    ends = places(case, steps)
    assert ends[0] == 0 and ends == sorted(ends) and ends[-1] <= steps
