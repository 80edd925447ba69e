"""Counts as polynomials: as many as are counted, for all sizes from 1 on."""

from __future__ import annotations

import pytest
from sympy import Integer, Symbol

from isoform.derivations import cost, registry
from isoform.derivations.evaluate.frame import Frame
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import Ind, Num, Sum, Term, Where, free, index, indices, le
from isoform.derivations.layer import costs
from isoform.derivations.layer.costs import polynomial

n, m, i = indices("n m i")


def counted() -> dict[str, dict[str, Term]]:
    """What every declared operator takes, where it is counted."""
    found = {}
    for d in [d for name in registry.architectures() for d in registry.declarations(name)]:
        try:
            found[d.operator] = dict(cost.operations(*cost.step(d)))
            costs(d)
        except cost.Uncounted:
            found.pop(d.operator, None)
    return found


COUNTED = counted()


def value(count: Term, sizes: dict[Symbol, Integer]) -> int:
    at = Frame(Rationals(), None, {s: int(v) for s, v in sizes.items()})  # type: ignore[arg-type]
    return int(Rationals().table(evaluate(count, at))[0][0])


@pytest.mark.parametrize("operator", COUNTED)
def test_a_polynomial_is_the_count_for_all_sizes_from_one_on(operator: str) -> None:
    for kind, count in COUNTED[operator].items():
        symbols = sorted((s for s in free(count) if isinstance(s, Symbol)), key=str)
        for least in (1, 2, 5):
            sizes = {s: Integer(least + k % 2) for k, s in enumerate(symbols)}
            assert value(count, sizes) == polynomial(count).subs(sizes), (kind, sizes)


def test_most_operators_are_counted() -> None:
    assert {"linear-attention", "delta-rule", "attention", "lti", "wkv7"} <= set(COUNTED)


def declaration(operator: str) -> Declaration:
    return next(d for name in registry.architectures() for d in registry.declarations(name) if d.operator == operator)


def test_what_linear_attention_takes_and_keeps() -> None:
    d_k, d_v = index("d_k"), index("d_v")
    found = costs(declaration("linear-attention"))
    assert found.operations == {"additions": 2 * d_k * d_v - d_v, "multiplications": 2 * d_k * d_v}
    assert found.numbers == d_k * d_v


def test_a_branch_is_taken_only_where_it_holds_for_all_sizes() -> None:
    assert polynomial(Where(le(1, n), Ind(n - 1), Num(7))) == n - 1
    assert polynomial(Where(le(n, 0), Num(7), Ind(n))) == n
    assert polynomial(Sum(Num(2), i, 1, n)) == 2 * n
    assert polynomial(Sum(Num(2), i, 2, n)) == 2 * (n - 1)
    for undecided in (Where(le(2, n), Ind(n - 2), Num(0)), Where(le(m, n), Ind(n), Ind(m)), Sum(Num(1), i, 3, n), Sum(Ind(i), i, 1, n)):
        with pytest.raises(cost.Uncounted):
            polynomial(undecided)


def test_a_convolution_of_any_width_has_no_polynomial() -> None:
    with pytest.raises(cost.Uncounted, match="it depends on more than that sizes are at least 1 whether 0 <= W - 2"):
        costs(declaration("causal-conv1d"))
