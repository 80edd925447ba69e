"""Cases around one that fails, one thing changed at a time: what tells those that fail from those that do not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoform.properties.laws import Law
    from isoform.properties.operator import Form, Operator
    from isoform.properties.strategies import Case

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 128, 129)
CHUNKS = (1, 2, 3, 4, 8, 16, 64)
SMALL = (1, 2, 3)
BUDGET = {"quick": 2.0, "default": 4.0, "deep": 20.0}
"""Seconds that the survey of one law may take, by level."""


def around(case: Case) -> Iterator[Case]:
    """The case with another number of tokens, structure, dtype, scale or size, one of these at a time."""
    from isoform.properties.strategies import SCALES
    from isoform.properties.tensors import DTYPES

    sizes = dict(case.sizes)
    yield from (case.resized(t=n) for n in LENGTHS if "t" in sizes)
    yield from (replace(case, flags=tuple(f for f in case.flags if f != flag)) for flag in case.flags)
    yield replace(case, flags=tuple(dict.fromkeys((*case.flags, "start"))))
    yield from (replace(case, dtype=dtype) for dtype in DTYPES)
    yield from (replace(case, scale=scale) for scale in SCALES)
    yield from (case.resized(chunk=n) for n in CHUNKS if "chunk" in sizes)
    for axis in ("k", "v", "b", "h", "groups"):
        yield from (case.resized(**{axis: n}) for n in SMALL if axis in sizes)


def survey(law: Law, operator: Operator, form: Form, case: Case, seconds: float) -> None:
    """Hold the law against cases around one, as far as the time goes; what comes out is kept by the law that was handed in."""
    from isoform.properties.operator import FormRaised
    from isoform.properties.running import prepared
    from isoform.properties.tensors import one_thread

    end = time.perf_counter() + seconds
    for near in dict.fromkeys(around(case)):
        fitted = prepared(law, operator, form, near)
        if fitted is None:
            continue
        if time.perf_counter() > end:
            return
        with one_thread(), suppress(FormRaised):
            for _ in law.check(operator, form, fitted):
                pass
