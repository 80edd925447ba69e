"""How close each law came to its bound: a dot for every form, on a logarithmic scale that ends at the bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isoform.book.operators import Operator
    from isoform.outcome import Law

LABELS, LEFT, SCALE, ROW, HEAD, MARKS = 210.0, 30.0, 380.0, 22.0, 34.0, 4


@dataclass(frozen=True)
class Dot:
    """One form under one law; ``mark`` is the number of its form."""

    x: float
    y: float
    mark: int
    says: str


@dataclass(frozen=True)
class Plot:
    """The plot of an operator: its rows (height, law), dots, ticks (place, power of ten), and the place of the bound."""

    rows: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    ticks: tuple[tuple[float, int], ...]
    zero: float
    bound: float
    width: float
    height: float


def plot(operator: Operator) -> Plot | None:
    """Return the plot of all ratios error/bound that were measured; None if there is none."""
    measured = {name: [law for law in row.values() if law.worst_error_over_bound is not None] for name, row in operator.rows.items()}
    measured = {name: laws for name, laws in measured.items() if laws}
    ratios = [ratio(law) for laws in measured.values() for law in laws]
    if not ratios:
        return None
    powers = [math.log10(r) for r in ratios if 0 < r < math.inf]
    low, high = math.floor(min(powers, default=-1.0)), max(0, math.ceil(max(powers, default=0.0)))
    low = min(low, high - 1)

    def place(r: float) -> float:
        if r == 0:
            return LABELS
        power = high if r == math.inf else math.log10(r)
        return LABELS + LEFT + SCALE * (power - low) / (high - low)

    rows = tuple((HEAD + ROW * (n + 0.5), name) for n, name in enumerate(measured))
    dots = tuple(
        Dot(place(ratio(law)), y + 4 * (n - (len(measured[name]) - 1) / 2), operator.forms.index(law.form) % MARKS, _says(law))
        for y, name in rows
        for n, law in enumerate(measured[name])
    )
    step = max(1, math.ceil((high - low) / 8))
    ticks = tuple((place(10.0**power), power) for power in range(high, low - 1, -step))
    return Plot(rows, dots, ticks, LABELS, place(1.0), LABELS + LEFT + SCALE + 24, HEAD + ROW * len(rows) + 12)


def _says(law: Law) -> str:
    return f"{law.form}, {law.law}: {ratio(law):.2g}"


def ratio(law: Law) -> float:
    """The worst error over bound of a law that measured one; one that is no number is as far off as can be."""
    value = law.worst_error_over_bound
    assert value is not None
    return math.inf if math.isnan(value) else value
