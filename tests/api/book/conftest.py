"""A small run: real claims, verified here, and laws with every verdict."""

import pytest

from isoform.book import site
from isoform.derivations.registry import claim
from isoform.derivations.verification import verify_claim
from isoform.exits import Exit
from isoform.outcome import Failure, Law, Report

CLAIMS = ("delta-rule/unrolled", "delta-product/interleaved", "discretization/zoh", "mamba/discretization", "attention/zero-mask")
ROWS = (
    ("forms-agree", "recurrent", "holds", 8, 0.0137, "13 comparisons"),
    ("forms-agree", "chunkwise", "violated", 3, 7.5, "at <t = 2>"),
    ("exact-bits", "recurrent", "holds", 8, 0.0, ""),
    ("exact-bits", "chunkwise", "violated", 1, float("inf"), "raised ValueError"),
    ("padding", "recurrent", "unverified", 2, None, "all 4 comparisons are blind"),
    ("padding", "chunkwise", "not-applicable", 0, None, "no biases"),
    ("roll-back", "recurrent", "not-applicable", 0, None, "no cache"),
    ("roll-back", "chunkwise", "not-applicable", 0, None, "no cache"),
)
LAWS = tuple(Law("delta_rule", law, "delta-rule", form, verdict, n, ratio, detail) for law, form, verdict, n, ratio, detail in ROWS)


def make(claims, laws=(), failures=(), **changes):
    return Report("0.1.0", 0, "quick", tuple(claims), tuple(laws), tuple(failures), **changes)


@pytest.fixture(scope="session")
def results():
    return tuple(verify_claim(claim(id)) for id in CLAIMS)


@pytest.fixture(scope="session")
def report(results):
    failure = Failure("delta-rule.chunkwise / forms-agree", Exit.VIOLATED, "at <t = 2>")
    return make(results, LAWS, [failure])


@pytest.fixture(scope="session")
def files(report):
    return site.files_of(report)
