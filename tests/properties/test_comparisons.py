"""What counts as equal: nothing that could hide a fault."""

import numpy as np
import pytest

from isoform.properties.laws import Comparison
from isoform.properties.tensors import tensor, values

ONE = np.ones(3)


def comparison(found, truth=ONE, bound=1e-6 * ONE, sharp=None):
    return Comparison("x", np.asarray(found), np.asarray(truth), np.asarray(bound), sharp)


def test_error_is_relative_to_the_bound():
    c = comparison([1, 1 + 2e-6, 1 - 5e-7])
    assert c.worst == pytest.approx(2.0)
    assert c.first_bad() == (1,)


@pytest.mark.parametrize("found", [[1, np.nan, 1], [1, np.inf, 1], [1, 1], [[1, 1, 1]], [], 1.0])
def test_nan_infinity_and_other_shapes_fail(found):
    assert comparison(found).worst == np.inf


@pytest.mark.parametrize("bound", [0.0, np.nan])
def test_without_a_bound_only_the_same_value_passes(bound):
    assert comparison([1, 1, 1], bound=bound * ONE).worst == 0
    assert comparison([1, 1, 1 + 1e-16 * 3], bound=bound * ONE).worst == np.inf


def test_nan_is_right_where_it_is_the_truth():
    assert comparison([1, np.nan, 1], truth=[1, np.nan, 1]).worst == 0
    assert comparison([1, 1, 1], truth=[1, np.nan, 1]).worst == np.inf


def test_complex_numbers_are_compared_whole():
    assert comparison([1, 1, 1 + 1e-5j]).worst == pytest.approx(10)


def test_a_wide_bound_is_blind():
    assert not comparison(ONE, bound=ONE * 2.0**-8).blind
    assert comparison(ONE, bound=ONE * 2.0**-7).blind
    assert comparison(ONE, bound=np.array([0, 0, 2.0**-7])).blind
    assert not comparison(ONE, bound=ONE / 2, sharp=ONE * 2.0**-9).blind


def test_a_bound_that_zeros_pass_is_blind():
    assert comparison(ONE, bound=ONE, sharp=ONE * 2.0**-9).blind
    assert not comparison(ONE, bound=np.array([1, 1, 0.5]), sharp=ONE * 2.0**-9).blind
    assert not comparison(0 * ONE, 0 * ONE, 0 * ONE).blind


def test_nothing_to_see_is_vacuous():
    assert comparison(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3))).vacuous
    assert comparison(0 * ONE, 0 * ONE).vacuous
    assert not comparison(ONE).vacuous


def test_contiguous_is_contiguous_whatever_the_order_of_an_array():
    """A kernel may take another path for another order of axes, so two instances that are compared bit for bit must have one."""
    x = np.arange(6.0).reshape(2, 3)
    for given in (x, np.asfortranarray(x), x.T.copy().T, x[:, ::-1]):
        assert tensor(given, "float32").stride() == (3, 1)
        assert (values(tensor(given, "float32")) == given).all()


def test_beyond_the_range_of_numbers_anything_may_come_out_and_is_blind():
    truth, bound = np.array([1, np.nan, np.nan]), np.array([0, np.inf, np.inf])
    gone = comparison(np.array([1, np.inf, np.nan]), truth, bound)
    assert gone.worst == 0 and gone.blind
    assert comparison(np.array([2, np.inf, np.nan]), truth, bound).worst == np.inf
    assert comparison(np.nan * ONE, ONE, np.inf * ONE).worst == np.inf
