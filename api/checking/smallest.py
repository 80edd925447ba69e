"""Of the cases in which a law does not hold the one to show: the smallest, and of those the plainest to read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoform.properties.laws import Law
    from isoform.properties.operator import Form, Operator
    from isoform.properties.strategies import Case

PLAIN = "float32"
SEEDS = 3
INNER = ("chunk", "block")
"""Sizes that make a case neither smaller nor larger."""


def simplicity(case: Case) -> tuple[int, int, bool, bool, int, int]:
    """What comes first of two cases: the smaller one, then ordinary inputs, float32, less structure, the lower seed."""
    from isoform.properties.strategies import ORDINARY

    sizes = [n for axis, n in case.sizes if axis not in INNER]
    return math.prod(sizes), sum(sizes), case.scale != ORDINARY, case.dtype != PLAIN, len(case.flags), case.seed


def plainer(law: Law, operator: Operator, form: Form, case: Case) -> Iterator[Case]:
    """Cases of the same sizes with ordinary inputs, in float32 if that is taken and with no structure but the law's own first.

    Some with other numbers are among them: where a strength happens to be 1 nothing is left of what was there before.
    """
    from isoform.properties.running import prepared
    from isoform.properties.strategies import ORDINARY

    for dtype, more in product(dict.fromkeys((PLAIN, case.dtype)), range(SEEDS)):
        drawn = replace(case, seed=case.seed + more)
        for near in (prepared(law, operator, form, replace(drawn, flags=())), drawn):
            if near is not None and near.sizes == case.sizes and dtype in form.limits.dtypes:
                yield replace(near, dtype=dtype, scale=ORDINARY)
