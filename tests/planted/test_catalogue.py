"""The catalogue: every kind and operator is in it, a check kills all of it, and nothing that is right is accused."""

from pathlib import Path

import pytest

import isoform
from isoform.properties.laws import laws
from isoform.properties.laws.table import KINDS

from . import catalogue
from .catalogue import BASES, CATALOGUE, OPERATORS, WKV
from .gated import GATES, Chunks, Loop, form
from .orders import MASKED_LATE, ORDERS
from .recurring import Mean
from .recurring import form as recurring
from .strangers import STRANGERS

BY_NAME = {planted.name: planted for planted in CATALOGUE}
SAMPLE = (
    "start_ignored__linear_attention",
    "tail_reversed__causal_conv1d",
    "top_left_frontier__attention",
    "remembers__linear_attention",
    "GatesInBaseTwo__gated_retention",
    "other_discretization__selective_scan",
)
RIGHT = {
    **{f"{f.__name__}-{operator}": (operator, f) for kernels in (STRANGERS, ORDERS) for operator, found in kernels.items() for f in found},
    **{f"{kind.__name__}-{operator}": (operator, form(kind, operator)) for operator in GATES for kind in (Loop, Chunks)},
    **{f"{f.__module__.rpartition('.')[2]}.{f.__name__}-{operator}": (operator, f) for operator, f in BASES.items()},
    "Mean-wkv": (WKV, recurring(Mean, WKV)),
}
QUICK = ("system_by_doubling-lti",)


def test_there_are_enough_and_each_has_its_name():
    assert len(BY_NAME) == len(CATALOGUE) >= 60
    assert all(getattr(catalogue, planted.name) is planted.kernel for planted in CATALOGUE)


def test_every_kind_but_the_symbolic_engine_s_is_planted():
    assert {kind for p in CATALOGUE for kind in p.kinds} == set(KINDS) - {"K18"}
    assert list((Path(__file__).parent / "edits").glob("proof-*.patch"))


def test_every_operator_is_planted_in_and_has_right_kernels():
    assert {p.operator for p in CATALOGUE} == set(OPERATORS) == set(STRANGERS)


def test_every_kind_is_one_that_a_law_is_there_for():
    assert {kind for law in laws() for kind in law.kinds} == set(KINDS) - {"K18"}


def killed(planted, **options):
    """The law that kills a planted fault at the default level, or ""."""
    report = isoform.check(planted.kernel, planted.operator, fail_fast=True, **options)
    assert report.level == "default"
    return next((law.law for law in report.violated), "")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_planted_fault_is_killed(name):
    assert killed(BY_NAME[name])


@pytest.mark.deep
@pytest.mark.parametrize("name", BY_NAME)
def test_every_planted_fault_is_killed_by_a_law_of_its_kind(name):
    planted = BY_NAME[name]
    chosen = [law.name for law in laws() if set(law.kinds) & set(planted.kinds) or "K19" in planted.kinds]
    assert killed(planted, laws=chosen)


def accused(name, **options):
    operator, kernel = RIGHT[name]
    report = isoform.check(kernel, operator, limits="no nonfinite" if kernel in MASKED_LATE else "", **options)
    return [(law.law, law.verdict, law.detail) for law in report.laws if law.verdict not in ("holds", "not-applicable")]


@pytest.mark.parametrize("name", QUICK)
def test_a_right_kernel_is_not_accused(name):
    assert accused(name, level="quick", seed=3) == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_are_not_accused_with_any_seed(name, seed):
    assert accused(name, seed=seed, level="quick" if seed else "default") == []
