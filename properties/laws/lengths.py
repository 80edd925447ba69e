"""Lengths: every one from no token to two chunks and two tokens more, which is where tails and tiles go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..operator import Form, Operator
from ..strategies import Case
from .table import Comparison, Law, instance, needs, outputs, reference, state_after

UNKNOWN = 16
"""The size of a chunk where a case has none."""
LAYERS = 6
"""Tokens of a stack of layers, at most."""
BESIDE = 2
"""How far from whole chunks lengths are tried where each of them needs a truth of its own."""
SMALLEST = {"b": 1, "h": 1, "groups": 1, "g": 1, "k": 2, "d": 2, "v": 3, "n": 2, "c": 2}


def _every_length(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    """The truth of a causal operator for n tokens are the first n rows of that for all; others have one for each n."""
    x, whole = instance(operator, case), reference(operator, case)
    causal, chunk = "causal" in operator.capabilities, case.chunk or UNKNOWN
    for n in form.limits.kept("t", range(operator.length(x) + 1)):
        if not causal and BESIDE < n % chunk < chunk - BESIDE:
            continue
        part = operator.cut(x, 0, n)
        truth = whole if causal else operator.refer(part)
        found, state = operator.run(form.function, part)
        yield outputs(f"output of {n} tokens", found, truth, 0, n)
        if truth.states is not None and form.takes(operator.final_argument):
            yield state_after(f"state after {n} tokens", state, truth, n)


def _two_chunks(case: Case) -> Case:
    """Two chunks and two tokens more of one small head; one case for each size of a chunk, scale, and every other seed."""
    sizes = dict(case.sizes)
    steps = LAYERS if "m" in sizes else 2 * (case.chunk or UNKNOWN) + 2
    small = case.resized(**{**{n: s for n, s in SMALLEST.items() if n in sizes}, "t": steps})
    return replace(small, seed=case.seed % 2, dtype="float32", flags=("start",) if case.seed % 2 else ())


LAWS = (
    Law(
        "every-length",
        "any number of tokens, from none to two chunks and two more, is computed as it is written",
        _every_length,
        needs("sequence"),
        _two_chunks,
        kinds=("K2", "K3"),
    ),
)
