"""Packed sequences: each is what it is alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from ..operator import Form, Operator
from ..strategies import Case
from ..tensors import offsets
from .table import Comparison, Law, instance, outputs, packs, rows, state_after


def _packed(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    x = instance(operator, case)
    steps = operator.length(x)
    ends = on_grid(form, places(case, steps), steps)
    states = None if x.state is None else np.concatenate([x.state * 0.5**n for n in range(len(ends) - 1)])
    found, last = operator.run(form.function, replace(x, state=states), cu_seqlens=offsets(tuple(ends), wide=bool(case.seed % 2)))
    for n, (a, b) in enumerate(pairwise(ends)):
        part = operator.cut(x, a, b, None if states is None else states[n : n + 1])
        truth = operator.refer(part if states is not None else replace(part, state=None))
        yield outputs(f"segment {a}..{b} of {ends}", rows(found, a, b), truth)
        yield state_after(f"state of segment {a}..{b} of {ends}", None if last is None else last[n : n + 1], truth, b - a)
    rest = rows(found, ends[-1], steps)
    yield Comparison(f"rows past the last offset of {ends}", rest, np.zeros_like(rest), np.zeros_like(rest))


def places(case: Case, steps: int) -> list[int]:
    """Offsets of parts of 0, 1, 2 tokens and one less, exactly and one more than a chunk, as far as they fit, and of drawn ones.

    Empty parts come first, last, and two in a row; the buffer is longer than the last offset. The first offset is 0, as in every
    library: what a kernel does with another is its own affair.
    """
    chunk = case.size("chunk")
    last = steps - 2 if steps > 2 else steps
    around = (chunk, chunk + 1, chunk - 1) if case.seed % 2 else (chunk + 1, chunk, chunk - 1)
    fixed = accumulate((0, 1, 0, 0, 2, *around), initial=0)
    inner = sorted(int(n) for n in case.rng(300).integers(0, steps + 1, 2))
    fitting = [n for n in fixed if n <= last]
    return [*fitting, *(n for n in inner if fitting[-1] < n < last), last, last]


def on_grid(form: Form, ends: list[int], steps: int) -> list[int]:
    """Offsets moved to where the form takes every part; of a form that takes no other part, those of the whole."""
    return ends if not form.limits else form.limits.cut(ends, steps)


def _alone(case: Case) -> Case:
    return case.resized(b=1)


LAWS = (Law("packed-equals-alone", "packed sequences do not leak into each other", _packed, packs, _alone, 0.5, ("K7", "K3")),)
