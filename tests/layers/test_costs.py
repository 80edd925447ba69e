"""Counts as polynomials: as many as are counted, for all sizes from 1 on."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Expr, Integer, Symbol

from isoform.derivations import cost, registry
from isoform.derivations.evaluate.frame import Frame
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import (
    Conj,
    Diag,
    Hadamard,
    Ind,
    Inverse,
    Num,
    Row,
    Sum,
    Term,
    Where,
    free,
    index,
    indices,
    le,
    norm2,
    unnamed,
    walk,
)
from isoform.derivations.layer import costs, derive, layer
from isoform.derivations.layer.costs import polynomial
from isoform.derivations.layer.examples import EXAMPLES
from isoform.derivations.layer.functions import absolute, entrywise, exp, over, sigmoid, softplus
from isoform.derivations.verification import verify_claim

from .counted import Tally

n, m, p, i = indices("n m p i")


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


# counted one by one -------------------------------------------------------------------------------

QKV: dict[str, Any] = {"q": n, "k": n, "v": m}
ODD: dict[str, dict[str, Any]] = {
    "what is used twice": {
        "inputs": {"x": p, "u": n},
        "parameters": {"W": (n, p)},
        "state": {"h": n},
        "update": lambda h, x, u, W: Hadamard(sigmoid(W * x), h) + Hadamard(entrywise(lambda g: 1 - g, sigmoid(W * x)), u),
        "read": lambda h, u: Hadamard(h, u) / (1 + norm2(u)),
    },
    "sums and entries": {
        "inputs": {**QKV, "b": 1},
        "state": {"S": (m, n)},
        "update": lambda S, k, v, b: S + Sum(Row(k, i) * Row(k, i), i, 1, n) * v * k.T - b * (S * k) * k.T,
        "read": lambda S, q, k: S * (q - (k.T * q) * k),
    },
    "states that use each other": {
        "inputs": {**QKV, "g": 1, "b": 1},
        "state": {"M": (m, n), "N": (m, n), "c": (m, p)},
        "parameters": {"A": (p, n)},
        "update": {
            "M": lambda M, N, g: g * M + N,
            "N": lambda M, N, k, v, b, g: g * N - b * (M * k - v) * k.T,
            "c": lambda c, M, A: c - M * A.T,
        },
        "read": lambda M, c, q, A: M * q + c * (A * q),
    },
    "functions of numbers and columns": {
        "inputs": {"u": n, "d": n, "b": 1},
        "state": {"x": n},
        "update": lambda x, u, d, b: exp(d) * (1 / (1 + softplus(b))) - Diag(sigmoid(d)) * x + softplus(b) * u,
        "read": lambda x, d: over(x, entrywise(lambda y: 1 + absolute(y), d)).T * x,
    },
    "quotients and diagonals": {
        "inputs": {**QKV, "a": n, "e": m},
        "state": {"S": (m, n)},
        "update": lambda S, k, v, a, e: Diag(e) * S * Diag(a) * Diag(a) + (v * k.T) / (1 + norm2(k)),
        "read": lambda S, q, k: Inverse(1 + norm2(k)) * (S * Diag(k) * q),
    },
    "complex numbers": {
        "inputs": {"u": p, "a": n},
        "domains": {"a": "complex", "B": "complex"},
        "parameters": {"B": (n, p)},
        "state": {"x": n},
        "update": lambda x, u, a, B: Diag(a) * x + B * u - Conj(a) * (u.T * u),
        "read": lambda x: Conj(x).T * x,
    },
}
COSTED = [*EXAMPLES, *[layer(name.replace(" ", "-"), **given, source="none") for name, given in ODD.items()]]


@pytest.mark.parametrize("declaration", COSTED, ids=lambda d: d.operator)
def test_a_polynomial_is_what_a_computation_takes_number_by_number(declaration: Declaration) -> None:
    """At several sizes, each operation counted as it is made; and what is made is the update and the read-out."""
    computed, found = cost.step(declaration), costs(declaration)
    symbols = sorted({s for x in computed for e in shapes(x) for s in e.free_symbols} - {declaration.t}, key=str)
    for seed, sizes in enumerate([(1, 1, 1), (2, 3, 4), (5, 1, 2), (3, 4, 1)]):
        at = dict(zip(symbols, sizes, strict=False))
        tally = Tally({**at, declaration.t: 1}, seed)
        for x in computed:
            assert all(a.overlaps(b) for r, s in zip(tally.value(x), tally.given(x), strict=True) for a, b in zip(r, s, strict=True))
        assert {kind: e.subs(at) for kind, e in found.operations.items() if e.subs(at)} == dict(tally.counts), at
        assert found.numbers.subs(at) == sum(e[0].subs(at) * e[1].subs(at) for e in kept(declaration))


def shapes(x: Term) -> list[Expr]:
    return [e for y in walk(unnamed(x)) if isinstance(y, Term) for e in y.shape]


def kept(declaration: Declaration) -> list[tuple[Expr, Expr]]:
    starts: Any = declaration.initial_state
    return [s.shape for s in (starts if isinstance(starts, tuple) else (starts,))]


def test_one_operation_more_or_less_is_another_count() -> None:
    """The tally tells layers apart that differ by one operation for each entry, or one for each token."""
    right = layer("x", **ODD["quotients and diagonals"], source="none")
    for change in (
        lambda S, k, v, a, e: Diag(e) * S * Diag(a) + (v * k.T) / (1 + norm2(k)),
        lambda S, k, v, a, e: Diag(e) * S * Diag(a) * Diag(a) + v * k.T,
        lambda S, k, v, a, e: Diag(e) * S * Diag(a) * Diag(a) + 2 * (v * k.T) / (1 + norm2(k)),
    ):
        wrong = layer("x", **ODD["quotients and diagonals"] | {"update": change}, source="none")
        tally = Tally({m: 2, n: 3, right.t: 1})
        for x in cost.step(wrong):
            tally.value(x)
        assert {kind: int(e.subs({m: 2, n: 3})) for kind, e in costs(right).operations.items()} != dict(tally.counts)


def test_the_claim_of_an_odd_one_holds() -> None:
    odd = layer("x", **ODD["states that use each other"], source="none")
    claims = derive(odd)
    assert verify_claim(claims[-1], among=claims).holds
