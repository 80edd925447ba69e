"""Every law holds on every form that is found, and every form is found."""

import importlib
from dataclasses import replace
from itertools import groupby, product

import pytest

from isoform.properties.columns import columns, operators
from isoform.properties.crosscheck import forms_of
from isoform.properties.laws import laws
from isoform.properties.running import run_law

EXAMPLES = 4
DEEP = 300
SHARES = 4
"""Of the corner cases a law meets every fourth here, so that each is met by a quarter of the laws; in the deep tier it meets all."""
FAR_BELOW = 0.2
"""The largest error over bound of a correct form. A bound counts every rounding of every order of evaluation, each a
whole unit in the last place; a form has some of them, half a unit at most. Exact comparisons have 0 here or fail."""


def found():
    """Every operator with each of its forms, by what the columns export."""
    for column in columns():
        module = importlib.import_module(f"isoform.impl.{column.replace('-', '_')}")
        steps, cached = (getattr(module, name, {}) for name in ("STEPS", "CACHED"))
        for operator in operators(column):
            for form in forms_of(module.FORMS[operator.name], steps.get(operator.name), cached.get(operator.name)):
                yield operator, form


def shared(operator):
    """The operator with each share of its corner cases."""
    return [replace(operator, corners=lambda n=n: operator.corners()[n::SHARES]) for n in range(SHARES)]


CASES = [
    pytest.param(law, operator, form, id=f"{operator.name}.{form.name}-{law.name}")
    for operator, forms in groupby(found(), key=lambda pair: pair[0])
    for law, (_, form) in product(laws(), forms)
]
"""Law by law, since the forms of an operator share the truths of its cases."""


SHARED = {operator.name: shared(operator) for operator, _ in found()}


def assert_holds(result):
    if result.verdict == "not-applicable":
        assert result.detail
        return
    assert result.verdict == "holds", f"{result.verdict}: {result.detail}"
    assert result.examples > 0 and result.worst_error_over_bound <= FAR_BELOW, result.detail


@pytest.mark.parametrize(("law", "operator", "form"), CASES)
def test_the_law_holds(law, operator, form):
    result = run_law(law, SHARED[operator.name][laws().index(law) % SHARES], form, examples=EXAMPLES)
    if result.verdict == "unverified":  # nothing in this share can be compared
        result = run_law(law, operator, form, examples=EXAMPLES)
    assert_holds(result)


@pytest.mark.deep
@pytest.mark.parametrize(("law", "operator", "form"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_law_holds_on_many_cases(law, operator, form, seed):
    assert_holds(run_law(law, operator, form, examples=DEEP, seed=seed))


def test_every_form_belongs_to_an_operator():
    for column in columns():
        module = importlib.import_module(f"isoform.impl.{column.replace('-', '_')}")
        assert set(module.FORMS) == {o.name for o in operators(column)}
        for others in ("STEPS", "CACHED"):
            assert set(getattr(module, others, {})) <= set(module.FORMS)


def test_every_implemented_column_is_checked():
    """A column that computes matrices for others has no forms; every function that is one of several ways is in FORMS."""
    import pkgutil

    modules = {m.name: f"isoform.impl.{m.name}" for m in pkgutil.iter_modules(importlib.import_module("isoform.impl").__path__)}
    implemented = {name.replace("_", "-"): importlib.import_module(path) for name, path in modules.items() if not name.startswith("_")}
    without = {name for name, module in implemented.items() if not hasattr(module, "FORMS")}
    assert without <= {"hippo"}
    assert set(implemented) - without == set(columns())


@pytest.mark.parametrize("law", laws(), ids=lambda law: law.name)
def test_every_law_applies_somewhere(law):
    assert any(not law.missing(operator, form) for operator, form in found())
