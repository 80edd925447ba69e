"""Inputs on which float arithmetic is exact: small integers, so that forms can be compared bit for bit."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor


@pytest.fixture
def whole() -> Callable[..., Tensor]:
    """Draw integers from low to high as floats, the same ones in every run."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int, low: int = -2, high: int = 2, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=generator).to(dtype)

    return draw


@pytest.fixture
def smooth() -> Callable[..., Tensor]:
    """Draw normal numbers that ask for a gradient."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()

    return draw
