"""The counter of operations: exact where the count is known by hand, and never silent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from isoform.properties.counting import OperationCounter, Uncounted, count


def ones(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.ones(shape, dtype=dtype)


a, b, x, y = ones(3, 4), ones(4, 5), ones(4), ones(7)
square, columns = ones(2, 4, 4), ones(2, 4, 3)
KNOWN: dict[str, tuple[Callable[[], object], dict[str, int]]] = {
    "outer product": (lambda: torch.outer(x, y), {"multiplications": 28}),
    "outer product, as a matrix product": (lambda: x[:, None] @ y[None], {"multiplications": 28}),
    "inner product": (lambda: x[None] @ x[:, None], {"multiplications": 4, "additions": 3}),
    "matrix product": (lambda: a @ b, {"multiplications": 60, "additions": 45}),
    "batched": (lambda: square @ columns, {"multiplications": 96, "additions": 72}),
    "einsum": (lambda: torch.einsum("bij,bjk->bik", square, columns), {"multiplications": 96, "additions": 72}),
    "over an axis of size 0": (lambda: ones(3, 0) @ ones(0, 5), {}),
    "added to a product": (lambda: torch.addmm(ones(3, 5), a, b), {"multiplications": 60, "additions": 60}),
    "rank-one update": (lambda: torch.baddbmm(ones(2, 4, 7), ones(2, 4, 1), ones(2, 1, 7)), {"multiplications": 56, "additions": 56}),
    "subtracted product": (lambda: torch.addmm(ones(3, 5), a, b, alpha=-1), {"multiplications": 60, "additions": 60}),
    "scaled product": (lambda: torch.addmm(ones(3, 5), a, b, alpha=2, beta=3), {"multiplications": 90, "additions": 60}),
    "product in the place of a sum": (lambda: torch.addmm(ones(3, 5), a, b, beta=0), {"multiplications": 60, "additions": 45}),
    "broadcast sum": (lambda: a + x, {"additions": 12}),
    "in place": (lambda: ones(3, 4).add_(x), {"additions": 12}),
    "scaled sum": (lambda: torch.add(a, a, alpha=2), {"additions": 12, "multiplications": 12}),
    "sum with a product of entries": (lambda: torch.addcmul(a, a, x), {"additions": 12, "multiplications": 12}),
    "matrix times vector": (lambda: a @ x, {"multiplications": 12, "additions": 9}),
    "difference": (lambda: a - x, {"additions": 12}),
    "sign": (lambda: -a, {}),
    "quotient": (lambda: a / x, {"divisions": 12}),
    "square": (lambda: a.square(), {"multiplications": 12}),
    "sum over an axis": (lambda: a.sum(1), {"additions": 9}),
    "sum": (lambda: a.sum(), {"additions": 11}),
    "running sum": (lambda: a.cumsum(0), {"additions": 8}),
    "exponential": (lambda: a.exp(), {"exponentials": 12}),
    "softmax": (lambda: a.softmax(-1), {"comparisons": 9, "additions": 21, "exponentials": 12, "divisions": 12}),
    "largest": (lambda: a.amax(-1), {"comparisons": 9}),
    "substitution": (
        lambda: torch.linalg.solve_triangular(square, columns, upper=False),
        {"multiplications": 36, "additions": 36, "divisions": 24},
    ),
    "substitution, 1 on the diagonal": (
        lambda: torch.linalg.solve_triangular(square, columns, upper=False, unitriangular=True),
        {"multiplications": 36, "additions": 36},
    ),
    "substitution from the right": (
        lambda: torch.linalg.solve_triangular(square, columns.mT, upper=True, left=False, unitriangular=True),
        {"multiplications": 36, "additions": 36},
    ),
    "substitution of nothing": (lambda: torch.linalg.solve_triangular(ones(0, 0), ones(0, 3), upper=False), {}),
    "integers": (lambda: torch.arange(5) + 1, {}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_count(name: str) -> None:
    program, operations = KNOWN[name]
    assert count(program)[0] == operations


def test_the_substitution_by_hand_takes_as_many() -> None:
    def by_hand() -> None:
        rows: list[Tensor] = []
        for i in range(4):
            row = columns[:, i]
            for j in range(i):
                row = row - square[:, i, j, None] * rows[j]
            rows.append(row / square[:, i, i, None])

    assert count(by_hand) == (KNOWN["substitution"][1], count(by_hand)[1])


def test_views_write_nothing_and_copies_do() -> None:
    assert count(lambda: a.T.unsqueeze(0).expand(2, 4, 3)[0, 1:].view(3, 3)) == ({}, 0)
    assert count(lambda: a.clone()) == ({}, 96)
    assert count(lambda: a.to(torch.float32)) == ({}, 48)
    assert count(lambda: a @ b)[1] == 3 * 5 * 8
    assert count(lambda: square @ columns)[1] == 2 * 4 * 3 * 8


def test_what_is_not_known_is_not_nothing() -> None:
    for program in (lambda: torch.linalg.inv(square), lambda: torch.fft.fft(x), lambda: a.pow(3), lambda: a.to(torch.complex128)):
        with pytest.raises(Uncounted):
            count(program)


def test_only_what_runs_inside_is_counted() -> None:
    with OperationCounter() as outer:
        a + x
    a @ b
    assert dict(outer.operations) == {"additions": 12}
