"""Claims with given results, that a worker process can import."""

import time
from dataclasses import dataclass
from types import SimpleNamespace

from isoform.derivations.claim import FORMS, ClaimResult, Evidence, NearMissResult, Source, Step


@dataclass(frozen=True)
class FakeClaim:
    id: str
    expected: str = "proved"
    version: int = 1
    title: str = "A title"
    text: str = "a"

    def fingerprint(self):
        return self.text * 64


CLAIMS = (
    FakeClaim("alpha/holds"),
    FakeClaim("alpha/differs"),
    FakeClaim("alpha/unknown"),
    FakeClaim("alpha/kept-near-miss"),
    FakeClaim("alpha/slow"),
    FakeClaim("alpha/crashes"),
    FakeClaim("beta-net/refuted", expected="refuted"),
)
OPERATOR = "alpha"
EVIDENCE = (Evidence("proved", "kernel", "1", "induction"), Evidence("certified", "evaluate", "2", "failure probability 2^-50"))
NEAR_MISS = NearMissResult("exponent off by one", True, "T = 2: 3 ≠ 4", ("kernel", "evaluate"), changes=("instead: H_t = 0",), kind="exact")


def result(id="alpha/holds", **changes):
    fields = {
        "id": id,
        "version": 1,
        "title": "50% of a title",
        "statement": "H_t = Σ v_j k_jᵀ",
        "statement_latex": "H_t = \\sum_j v_j k_j^T",
        "verdict": "proved",
        "expected": "proved",
        "scope": "all sizes",
        "assumptions": ("0 ≤ β",),
        "sources": (Source("A. Author", "eq. 3", "index shifted"),),
        "evidence": EVIDENCE,
        "near_misses": (NEAR_MISS,),
        "steps": (
            Step("Base", "Both sides are zero.", "0 = 0", "normal form", ("0 = 0 by normal form",)),
            Step("The update", "H_t = a", "H_t = a_l", "normal form", (), ("H_t", "a"), ("H_t", "a_l")),
            Step("The state before", "a = b", "a_l = b_l", "normal form", ("induction hypothesis",), ("a", "b"), ("a_l", "b_l"), True),
        ),
        "parts": ("H_t = Σ v_j k_jᵀ", "Q = K"),
        "definitions": (("H_0 = 0, H_t = H_{t−1} + v_t k_tᵀ", "H_{0} = 0"),),
        "as_written": "",
        "counterexample": "",
        "operator": OPERATOR,
        "seconds": 0.25,
        "reason": "",
    }
    return ClaimResult(**{**fields, **changes})


def warm_up():
    """Nothing more is to be loaded than this module."""


def prove(id, seed):
    slug = id.partition("/")[2]
    if slug == "slow":
        while time.process_time() < 60:
            pass
    if slug == "crashes":
        raise ValueError("lost its way")
    changes = {
        "differs": {"verdict": "refuted"},
        "unknown": {"verdict": "unknown", "reason": "no method applies"},
        "kept-near-miss": {"near_misses": (NEAR_MISS, NearMissResult("wrong sign", False, "", (), "search found nothing"))},
        "refuted": {"verdict": "refuted", "expected": "refuted"},
    }
    return result(id, **changes.get(slug, {}))


def prove_with_remark(id, seed):
    return result(id, reason="no near miss drops the assumption x")


def cross_check(name, level, seed):
    rows = (row("prefix invariance", "holds", 0.125), row("packing", "not-applicable", None))
    return SimpleNamespace(column=name, laws=rows, evidence={OPERATOR: (Evidence("bounded", FORMS, "3", f"level {level}, seed {seed}"),)})


def violated_cross_check(name, level, seed):
    laws = (row("chunk size", "violated", 7.5),)
    return SimpleNamespace(column=name, laws=laws, evidence={OPERATOR: (Evidence("bounded", FORMS, "3", ""),)})


def row(law, verdict, ratio):
    return SimpleNamespace(
        law=law, operator="alpha", form="recurrent", verdict=verdict, examples=10, worst_error_over_bound=ratio, detail=""
    )
