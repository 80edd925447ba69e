"""What decoding takes, counted as it runs: the proved polynomials exactly, of degree 2 from the cache and of degree 3 without it;
and what attention keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from isoform.derivations.attention.costs import KV_CACHE_COST, PASS_COST
from isoform.derivations.attention.operators import T
from isoform.derivations.evaluate.frame import Frame
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.terms import Term, index
from isoform.impl import attention
from isoform.properties.counting import count, peak

HEADS = 6  # of a batch of 2 with 3 heads each
WIDTH, HEIGHT = 4, 5
LENGTHS = (1, 2, 3, 5, 8)
EXPONENTIALS, MULTIPLICATIONS = "exponentials", "multiplications"


def at(x: Term, length: int) -> int:
    """The value of a cost for all heads."""
    sizes = {T: length, index("d_k"): WIDTH, index("d_v"): HEIGHT}
    return HEADS * int(Rationals().table(evaluate(x, Frame(Rationals(), None, sizes)))[0][0])  # type: ignore[arg-type]


def proved(claim: Any) -> list[Term]:
    """The closed forms of a claim about counts, in its order."""
    return [part.rhs for part in claim.statement.conclusion.args]


def tokens(length: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, length, 3, size, generator=random, dtype=dtype) for size in (WIDTH, WIDTH, HEIGHT))
    return q, k, v


def counted(call: Callable[..., Any], *arguments: Any) -> tuple[Counter[str], Any]:
    """The operations of a call, fused attention being taken apart, and its result."""
    kept = []
    with sdpa_kernel(SDPBackend.MATH):
        operations, _ = count(lambda: kept.append(call(*arguments)))
    return Counter(operations), kept[0]


def from_the_cache(length: int) -> Counter[str]:
    cache, total = None, Counter[str]()
    for token in zip(*(x.unbind(1) for x in tokens(length)), strict=True):
        operations, (_, cache) = counted(attention.step, *token, cache)
        total += operations
    return total


def again_and_again(length: int) -> Counter[str]:
    q, k, v = tokens(length)
    passes = [counted(attention.masked, q[:, :t], k[:, :t], v[:, :t])[0] for t in range(1, length + 1)]
    return sum(passes, Counter())


@pytest.mark.parametrize("length", LENGTHS)
def test_a_masked_pass_takes_what_is_proved(length: int) -> None:
    exponentials, products = proved(PASS_COST)
    found, _ = counted(attention.masked, *tokens(length))
    assert found[EXPONENTIALS] == at(exponentials, length)
    # beside the declared pass: the scores above the diagonal are computed and hidden, and queries and keys are scaled
    more = HEADS * (length * (length - 1) // 2 + 2 * length) * WIDTH
    assert 2 * (found[MULTIPLICATIONS] - more) == at(products, length)


@pytest.mark.parametrize("length", LENGTHS)
def test_decoding_from_the_cache_takes_what_is_proved(length: int) -> None:
    exponentials, products = proved(KV_CACHE_COST)[:2]
    found = from_the_cache(length)
    assert 2 * found[EXPONENTIALS] == at(exponentials, length)
    more = HEADS * sum(1 + t for t in range(1, length + 1)) * WIDTH  # a query and t keys are scaled
    assert 2 * (found[MULTIPLICATIONS] - more) == at(products, length)


@pytest.mark.parametrize("length", LENGTHS)
def test_decoding_by_whole_passes_takes_what_is_proved(length: int) -> None:
    exponentials, products = proved(KV_CACHE_COST)[2:]
    found = again_and_again(length)
    assert 6 * found[EXPONENTIALS] == at(exponentials, length)
    more = HEADS * sum(t * (t - 1) // 2 + 2 * t for t in range(1, length + 1)) * WIDTH
    assert 6 * (found[MULTIPLICATIONS] - more) == at(products, length)


@pytest.mark.parametrize(("decode", "degree"), [(from_the_cache, 2), (again_and_again, 3)])
def test_the_attention_terms_have_this_degree(decode: Callable[[int], Counter[str]], degree: int) -> None:
    every = [decode(length) for length in range(1, degree + 3)]
    for kind in (EXPONENTIALS, MULTIPLICATIONS):
        costs = [operations[kind] for operations in every]
        assert set(np.diff(costs, degree + 1)) == {0} and set(np.diff(costs, degree)) != {0}


def test_blocks_keep_memory_linear_in_the_length_and_weights_that_are_all_there_do_not() -> None:
    def over(form: Callable[..., Tensor]) -> list[int]:
        """The second differences of the largest memory at once, at the lengths 256, 512, 768, …"""
        most = []
        for length in range(256, 1025, 256):
            q, k, v = (x.requires_grad_() for x in tokens(length, torch.float32))
            most.append(peak(lambda q=q, k=k, v=v: form(q, k, v).sum().backward()))
        return list(np.diff(most, 2))

    def materialised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return attention.masked(q, k, v)

    square = 4 * HEADS * 256**2  # the bytes of the weights of 256 queries and keys
    assert all(abs(d) < square / 16 for d in over(lambda q, k, v: attention.blockwise(q, k, v, chunk_size=32)))
    assert all(d > square for d in over(materialised))
