"""What all code in a process shares is not a kernel's to change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..operator import Form, Operator
from ..strategies import Case
from ..tensors import changed, surroundings
from .table import Comparison, Law, instance


def _surroundings_kept(operator: Operator, form: Form, case: Case) -> Iterator[Comparison]:
    before = surroundings()
    operator.call(form.function, instance(operator, case))
    others = changed(before)
    for name in before:
        yield Comparison(f"the call changes torch's {name}", np.array([float(name not in others)]), np.ones(1), np.zeros(1))


LAWS = (
    Law(
        "surroundings-untouched",
        "a call changes no setting of torch and draws no random numbers",
        _surroundings_kept,
        weight=0.5,
        kinds=("K11",),
    ),
)
