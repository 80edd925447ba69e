"""Fingerprints: the same for renamed bound names, another for any change of what is said."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from sympy import Symbol, floor

from isoform.derivations.kernel.fingerprint import canonical, fingerprint
from isoform.derivations.kernel.formulas import Assumption, Equation, ForAll, Formula, LessEqual, NonZero, Statement
from isoform.derivations.kernel.terms import (
    Apply,
    At,
    Deriv,
    Exp,
    Expect,
    Ind,
    Integral,
    Num,
    Prod,
    Rec,
    Stack,
    Sum,
    Var,
    Zero,
    index,
    indices,
    le,
    lt,
    matrix,
    recurrence,
    scalar,
    scalars,
    vectors,
)

i, j, m, n, s, t, T, d = indices("i j m n s t T d")
x, y, u, w = (scalar(name) for name in "xyuw")
a, b = scalars("a"), scalars("b")
k, v = vectors("k", d), vectors("v", d)
A, B = matrix("A", d, d), matrix("B", d, d)


def rec(bound: str, previous: str) -> Rec:
    r, p = index(bound), Var(previous, (), d, d)
    return Rec("H", t, r, p, 0, Zero(d, d), p + v[r] * k[r].T)


def claim(
    conclusion: Formula | None = None, where: Any = None, assumed: Formula | None = None, name: str = "unit", solve: Any = None
) -> Statement:
    conclusion = conclusion or Equation(rec("t", "H'"), Sum(v[j] * k[j].T, j, 1, t))
    assumed = assumed or LessEqual(a[t], 1)
    return Statement(conclusion, le(0, t) & le(t, T) if where is None else where, (Assumption(name, assumed, solve or {}),))


EQUIVALENT: dict[str, tuple[Any, Any]] = {
    "sum": (Sum(a[j], j, 1, t), Sum(a[s], s, 1, t)),
    "nested": (Sum(Sum(a[i] * b[j], i, 1, j), j, 1, t), Sum(Sum(a[n] * b[m], n, 1, m), m, 1, t)),
    "swapped names": (Sum(Sum(a[i] * b[j], i, 1, j), j, 1, t), Sum(Sum(a[j] * b[i], j, 1, i), i, 1, t)),
    "monomial order": (Sum(Sum(a[2 * i + j - t], i, 1, t), j, 1, t), Sum(Sum(a[2 * j + i - t], j, 1, t), i, 1, t)),
    "factor order": (Sum(Sum(a[i * j], i, 1, t), j, 1, t), Sum(Sum(a[n * m], n, 1, t), m, 1, t)),
    "shadowed": (Sum(a[j] * Sum(Sum(b[j + i], i, 1, t), j, 1, t), j, 1, t), Sum(a[m] * Sum(Sum(b[s + n], n, 1, t), s, 1, t), m, 1, t)),
    "stack": (Stack(v[i].T, i, 1, t), Stack(v[n].T, n, 1, t)),
    "integral": (Integral(Exp(u), u, 0, x), Integral(Exp(w), w, 0, x)),
    "derivative at": (At(Deriv(Exp(u), u), u, 0), At(Deriv(Exp(w), w), w, 0)),
    "recursion": (rec("t", "H'"), rec("s", "P")),
    "for all": (ForAll(NonZero(a[t]), t, 1), ForAll(NonZero(a[s]), s, 1)),
}


@pytest.mark.parametrize("pair", EQUIVALENT.values(), ids=EQUIVALENT)
def test_alpha_equivalent(pair: tuple[Any, Any]) -> None:
    # a recursion chooses its own bound names, so it is equal already
    assert (pair[0] == pair[1]) == isinstance(pair[0], Rec)
    assert canonical(pair[0]) == canonical(pair[1])


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "captured": (Sum(a[s], j, 1, t), Sum(a[j], j, 1, t)),
    "captured by the inner": (Sum(Sum(a[j], i, 1, t), j, 1, t), Sum(Sum(a[i], i, 1, t), j, 1, t)),
    "captured variable": (Integral(u, u, 0, 1), Integral(w, u, 0, 1)),
    "captured state": (rec("t", "H'"), Rec("H", t, t, Var("P", (), d, d), 0, Zero(d, d), Var("Q", (), d, d) + v[t] * k[t].T)),
    "shadowed level": (Sum(Sum(Sum(a[i, j], i, 1, t), j, 1, t), j, 1, t), Sum(Sum(Sum(a[i, i], i, 1, t), j, 1, t), j, 1, t)),
    "free name": (a[t], a[s]),
    "free derivative": (Deriv(x, x), Deriv(y, y)),
    "index": (a[t], a[t + 1]),
    "index sign": (a[t - j], a[j - t]),
    "index coefficient": (a[t], a[2 * t]),
    "index or number": (Ind(2), Num(2)),
    "number of indices": (a[t], a[t, t]),
    "lower end": (Sum(a[j], j, 1, t), Sum(a[j], j, 0, t)),
    "upper end": (Sum(a[j], j, 1, t), Sum(a[j], j, 1, T)),
    "upper end or none": (ForAll(NonZero(a[t]), t, 1), ForAll(NonZero(a[t]), t, 1, T)),
    "orientation": (Prod(A, j, 1, t), Prod(A, j, 1, t, True)),
    "sum or product": (Sum(x, j, 1, t), Prod(x, j, 1, t)),
    "sign": (x + y, x - y),
    "coefficient": (2 * x, 3 * x),
    "field": (scalar("x"), scalar("x", "complex")),
    "shape": (matrix("M", d, d), matrix("M", d, T)),
    "family": (a[t], b[t]),
    "function": (Apply("f", [x], 1, 1), Apply("g", [x], 1, 1)),
    "arguments": (Apply("f", [x, y], 1, 1), Apply("f", [y, x], 1, 1)),
    "expectation": (Expect(x, "x"), Expect(x, "y")),
    "order of factors": (A * B, B * A),
    "order of summands": (x + y, y + x),
    "transpose": (A, A.T),
    "recursion start": (recurrence("H", x, lambda t, p: p)[t], recurrence("H", x, lambda t, p: p, start=1)[t]),
    "recursion name": (recurrence("H", x, lambda t, p: p)[t], recurrence("G", x, lambda t, p: p)[t]),
    "recursion step": (recurrence("H", x, lambda t, p: p)[t], recurrence("H", x, lambda t, p: p + x)[t]),
    "name that looks bound": (Sum(a[j], j, 1, t), Sum(a[index("0")], j, 1, t)),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_single_changes(pair: tuple[Any, Any]) -> None:
    assert canonical(pair[0]) != canonical(pair[1])


def test_every_part_of_a_statement_counts() -> None:
    variants = [
        claim(),
        claim(conclusion=Equation(Sum(v[j] * k[j].T, j, 1, t), rec("t", "H'"))),
        claim(where=le(0, t) & lt(t, T)),
        claim(where=le(t, T) & le(0, t)),
        claim(assumed=LessEqual(a[t], 2)),
        claim(assumed=NonZero(a[t])),
        Statement(claim().conclusion, claim().where),
        Statement(claim().conclusion, claim().where, claim().assumptions * 2),
    ]
    prints = [fingerprint(c) for c in variants]
    prints += [fingerprint(claim(), as_written=c) for c in variants]
    prints += [fingerprint(claim(), near_misses=[c]) for c in variants]
    prints.append(fingerprint(claim(), near_misses=[claim(), claim()]))
    assert len(set(prints)) == len(prints)
    assert all(len(p) == 64 and int(p, 16) >= 0 for p in prints)


def test_how_an_assumption_is_named_and_solved_does_not_count() -> None:
    assert fingerprint(claim()) == fingerprint(claim(name="other", solve={a[t]: x}))
    assert claim() != claim(name="other", solve={a[t]: x})


def test_canonical_form() -> None:
    said = Statement(Equation(Sum(a[2 * j - t], j, 1, t), 0), le(1, t))
    one, scalar_shape = '[[[],"1/1"]]', '[[[],"1/1"]],[[[],"1/1"]]'
    member = f'["Var","a",[[[[["t",1]],"-1/1"],[[[0,1]],"2/1"]]],{scalar_shape},"real"]'
    sides = f'["Sum",{member},"index",{one},[[[["t",1]],"1/1"]]],["Num",[[[],"0/1"]]]'
    assert canonical(said) == f'["Statement",["Equation",{sides}],["Cond",[[[["t",1]],"1/1"],[[],"-1/1"]]],[]]'


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (Symbol("t", integer=True, positive=True), "not made by index"),
        (Symbol("t"), "not made by index"),
        (floor(t / 2), "no polynomial"),
        (1 / t, "no polynomial"),
        (2**t, "no polynomial"),
    ],
)
def test_indices_that_are_not_understood_are_refused(expr: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        canonical(a[expr])


def test_a_bound_symbol_is_made_by_index_too() -> None:
    with pytest.raises(TypeError, match="not made by index"):
        canonical(Sum(x, Symbol("j"), 1, t))


SCRIPT = """
from isoform.derivations.kernel.fingerprint import fingerprint
from isoform.derivations.kernel.formulas import Assumption, Equation, NonZero, Statement
from isoform.derivations.kernel.terms import Sum, indices, le, scalars

i, j, t, T, n, m = indices("i j t T n m")
a = scalars("a")
total = Sum(Sum(a[i * n + j * m - t + 2], i, 1, t + n + m), j, 1, t)
print(fingerprint(Statement(Equation(total, a[0]), le(0, t) & le(t, T), (Assumption("p", NonZero(a[t + n * m])),))))
"""


def _printed(seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True).stdout


def test_hash_seeds_do_not_matter() -> None:
    first, second = _printed("1"), _printed("4242")
    assert len(first.strip()) == 64
    assert first == second
