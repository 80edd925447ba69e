"""What a form costs before any clock runs: operations and bytes, and whether both grow in a straight line."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.contestants import forms
from benchmarks.operators import Operator, draw
from isoform.properties.counting import count

LENGTHS = (2048, 4096, 6144, 8192)


@dataclass(frozen=True)
class Cost:
    """Scalar operations of every kind and bytes written by one forward pass at the last of the lengths.

    `straight`: at evenly spaced lengths both grow by the same amount from each to the next, exactly.
    """

    operations: int
    bytes: int
    straight: bool


def cost(operator: Operator, lengths: tuple[int, ...] = LENGTHS) -> Cost:
    """Count the form that is linear in the length.

    Raises LookupError without one, and Uncounted where the counter does not know an operation.
    """
    form = next((form for form in forms(operator.name) if form.__name__ == operator.form and not operator.quadratic), None)
    if form is None:
        raise LookupError(f"{operator.name} has no form that is linear in the length")
    counts = []
    for length in lengths:
        operations, written = count(form, **draw(operator, length))
        counts.append((sum(operations.values()), written))
    steps = {tuple(b - a for a, b in zip(*pair)) for pair in zip(counts, counts[1:])}
    return Cost(*counts[-1], straight=len(steps) == 1)
