"""A function has a name only where a worker finds this very function under it."""

import math

from isoform.checking.target import Target, named


def known():
    """A function of a module."""


def renamed():
    """A function that is called something else."""


renamed.__qualname__ = "nothing_of_this_name"


def test_a_function_of_a_module_has_its_name():
    assert named(math.sqrt) == Target("math", "sqrt")
    found = named(known)
    assert found is not None and found.attribute == "known"


def test_a_closure_a_lambda_and_a_name_that_leads_elsewhere_are_none():
    def closure():
        """Only here."""

    assert named(closure) is None and named(lambda: None) is None and named(renamed) is None
