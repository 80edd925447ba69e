"""What the forms cost, counted as they run: the proved polynomials exactly, and growth in the length of the sequence."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from isoform.derivations import cost
from isoform.derivations.attention.kv_cache import key, value
from isoform.derivations.attention.operators import i, j
from isoform.derivations.attention.room import caches
from isoform.derivations.evaluate.frame import Frame
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.instances import instantiate
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import Direct
from isoform.derivations.kernel.terms import Exp, Named, Sum, Term, index, le, scalar
from isoform.derivations.rnn.costs import ATTENDED, LINEAR_ATTENTION, LINEAR_STEP, STEP_COST, queries, t
from isoform.impl import _cache, attention, linear_attention
from isoform.properties.columns import columns, operators
from isoform.properties.counting import count
from isoform.properties.operator import Operator

HEADS = 6  # of a batch of 2 with 3 heads each
WIDTH, HEIGHT = 4, 5
LENGTHS = (1, 2, 5, 9)
scale, largest = scalar("scale"), scalar("largest")


def at(x: Term, time: int) -> int:
    """The value of a cost."""
    sizes = {t: time, index("d_k"): WIDTH, index("d_v"): HEIGHT}
    return int(Rationals().table(evaluate(x, Frame(Rationals(), None, sizes)))[0][0])  # type: ignore[arg-type]


def claimed(*computed: Term) -> dict[str, Term]:
    """The closed forms that the claim proves of what some terms take."""
    parts = [p for p in STEP_COST.statement.conclusion.args if isinstance(p.lhs, Named) and p.lhs.arguments == computed]  # type: ignore[attr-defined]
    assert parts
    return {p.lhs.label: p.rhs for p in parts}  # type: ignore[attr-defined]


def every_head(operations: Mapping[str, Term], time: int) -> dict[str, int]:
    return {kind: HEADS * at(x, time) for kind, x in operations.items()}


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def token() -> tuple[Tensor, Tensor, Tensor]:
    return random(2, 3, WIDTH), random(2, 3, WIDTH), random(2, 3, HEIGHT)


# The claims about one step ------------------------------------------------------------------------


def after(steps: int, step: Callable[..., Any]) -> Any:
    """The state or the cache after some steps."""
    state = None
    for _ in range(steps):
        _, state = step(*token(), state)
    return state


@pytest.mark.parametrize("time", LENGTHS)
def test_a_step_of_linear_attention_takes_what_is_proved_and_scales_its_query(time: int) -> None:
    state = after(time - 1, linear_attention.step) if time > 1 else random(2, 3, WIDTH, HEIGHT)
    found, _ = count(linear_attention.step, *token(), state)
    assert found == every_head(cost.operations(scale * queries[t], *LINEAR_STEP), time)
    proved = every_head(claimed(*LINEAR_STEP), time)
    assert found == {**proved, "multiplications": proved["multiplications"] + HEADS * WIDTH}


@pytest.mark.parametrize("time", LENGTHS)
def test_the_state_of_linear_attention_has_the_size_that_is_proved(time: int) -> None:
    kept = claimed(LINEAR_ATTENTION.state[t])["numbers"]
    assert after(time, linear_attention.step).numel() == HEADS * at(kept, time)


def weight(of: Any) -> Term:
    """What a score weighs before the division, the largest score being subtracted."""
    return Exp(scale * (queries[t].T * key(of)[t]) - largest)


AS_COMPUTED = Sum(weight(j) / Sum(weight(i), i, 1, t) * value(j)[t], j, 1, t)
"""The step as it is implemented: scores are scaled, the largest is subtracted, and weights are normalised one by one."""


def test_the_implemented_step_of_attention_is_the_declared_one() -> None:
    with_scaled_queries = instantiate(Statement(Equation(AS_COMPUTED, ATTENDED), le(1, t)), {"q": ((t,), scale * queries[t])})
    (_, declared) = with_scaled_queries.conclusion.args
    assert prove(Statement(Equation(AS_COMPUTED, cast(Term, declared)), le(1, t)), Direct(), pytest.fail).scope == "all sizes"


@pytest.mark.parametrize("time", LENGTHS)
def test_a_step_of_attention_from_a_cache_takes_what_is_counted_on_its_term(time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cache, "writable", lambda *given: False)  # else the fused kernel takes it
    found, _ = count(attention.step, *token(), after(time - 1, attention.step))
    comparisons = found.pop("comparisons", 0)
    assert comparisons == HEADS * (time - 1 + 2 * (time + HEIGHT))  # the largest of t scores; is one, or an output, not finite?
    found["additions"] -= HEADS * HEIGHT  # NaN where one is not finite
    assert found == every_head(cost.operations(AS_COMPUTED), time)
    # beside the declared step: t scores are scaled and shifted, and t weights are divided in the place of d_v sums
    proved = every_head(claimed(ATTENDED), time)
    more = {"multiplications": time, "additions": time, "divisions": time - HEIGHT, "exponentials": 0}
    assert found == {kind: n + HEADS * more[kind] for kind, n in proved.items()}


@pytest.mark.parametrize("time", LENGTHS)
def test_the_cache_has_the_size_that_is_proved(time: int) -> None:
    cache = after(time, attention.step)
    assert cache.k.numel() + cache.v.numel() == HEADS * at(claimed(*caches(t))["numbers"], time)


# Growth, for every form that is found -------------------------------------------------------------

FORWARD = {"t": 1, "h": 1, "groups": 1, "b": 1, "k": 3, "v": 2}
CHUNK = 16
COMPLEX = {"s4", "s4d"}  # run in complex numbers, which are not counted
READS_FIRST = {"wkv6"}  # reads the state before it writes, so the first token adds nothing to its own row


@cache
def implemented(column: str) -> Any:
    return importlib.import_module(f"isoform.impl.{column.replace('-', '_')}")


def found(*names: str) -> list[Any]:
    """The forms of the given names, each with its operator and the step of that."""
    every = []
    for column in columns():
        for operator in operators(column):
            module = implemented(column)
            step = getattr(module, "STEPS", {}).get(operator.name)
            for form in module.FORMS[operator.name]:
                if form.__name__ in names and operator.name not in COMPLEX:
                    every.append(pytest.param(operator, form, step, id=f"{operator.name}.{form.__name__}"))
    return every


def instance(operator: Operator, length: int) -> Any:
    """Inputs of a length, without structure; entered from no state."""
    case = next(iter(operator.corners())).resized(**FORWARD | {"t": length, "chunk": CHUNK})
    plain = operator.draw(type(case)(case.operator, case.sizes, 0, "float64"))
    assert plain.state is None
    return plain


def counts(operator: Operator, form: Callable[..., Any], length: int) -> dict[str, int]:
    """Operations and bytes of a form; fused attention is taken apart."""
    x = instance(operator, length)
    with sdpa_kernel(SDPBackend.MATH):
        operations, written = count(form, **operator.tensors(x), **operator.arguments(form, x))
    assert sum(operations.values()) > 0
    return {**operations, "bytes": written}


def differences(operator: Operator, form: Callable[..., Any], order: int) -> dict[str, int]:
    """The differences of an order of every count, from one to the next of the lengths C, 2C, …"""
    every = [counts(operator, form, CHUNK * m) for m in range(1, order + 2)]
    return {kind: int(np.diff([c.get(kind, 0) for c in every], order)[0]) for kind in set().union(*every)}


@pytest.mark.parametrize(("operator", "form", "step"), found("chunkwise", "recurrent"))
def test_the_cost_is_linear_in_the_length(operator: Operator, form: Callable[..., Any], step: Any) -> None:
    assert set(differences(operator, form, 2).values()) == {0}
    first = differences(operator, form, 1)
    assert first["multiplications"] > 0 and first["additions"] > 0 and first["bytes"] > 0


every_parallel_form = pytest.mark.parametrize(("operator", "form", "step"), found("parallel", "masked", "full"))
HALVING = {"gated-linear-attention", "wkv6"}  # halves the sequence again and again, each time at a cost that is linear in it


@every_parallel_form
def test_the_cost_is_quadratic_in_the_length(operator: Operator, form: Callable[..., Any], step: Any) -> None:
    third = differences(operator, form, 3)
    assert (set(third.values()) == {0}) == (operator.name not in HALVING)


@every_parallel_form
def test_the_cost_of_a_doubled_length_is_four_times_as_much_up_to_terms_of_lower_order(
    operator: Operator, form: Callable[..., Any], step: Any
) -> None:
    """With T = 2^m it is a + b T + c T log T + d T²: the shift E to the next m has (E - 1)(E - 2)²(E - 4) = 0; d > 0."""
    every = [counts(operator, form, CHUNK * 2**m) for m in range(5)]
    for kind in set().union(*every):
        costs = np.array([c.get(kind, 0) for c in every])
        without_lower = np.convolve(costs, [1, -5, 8, -4], "valid")  # (E - 1)(E - 2)²
        assert without_lower[1] == 4 * without_lower[0]
        assert without_lower[0] > 0 or kind not in ("multiplications", "additions", "bytes")


@pytest.mark.parametrize(("operator", "form", "step"), [p for p in found("recurrent") if p.values[2]])
def test_the_recurrent_form_takes_a_step_for_every_token(operator: Operator, form: Callable[..., Any], step: Callable[..., Any]) -> None:
    one, _ = count(step, **operator.token(step, instance(operator, 1), 0))
    first, last = (counts(operator, form, n) for n in (1, 7))
    each = {kind: (last[kind] - first[kind]) / 6 for kind in one}
    assert first == {**one, "bytes": first["bytes"]}
    if all("t" in i.axes.split() for i in operator.inputs):
        assert each == one
    # what depends on no token, as the decays of retention do, is computed once
    more = {"additions": FORWARD["v"]} if operator.name in READS_FIRST else {}
    assert all(each[kind] <= one[kind] + more.get(kind, 0) for kind in one) and each["multiplications"] == one["multiplications"]


def test_every_operator_over_time_has_a_form_here() -> None:
    named = {p.values[0].name for p in found("chunkwise", "recurrent", "parallel", "masked", "full")}
    assert {"linear-attention", "delta-rule", "attention", "full-attention"} <= named
