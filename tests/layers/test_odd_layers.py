"""Layers that nobody thought of: what is derived of them holds, whatever they look like."""

from __future__ import annotations

from typing import Any

import pytest

from isoform.derivations.kernel.terms import Diag, Eye, Hadamard, Num, indices
from isoform.derivations.layer import classify, derive, layer
from isoform.derivations.layer.functions import exp, sigmoid, tanh
from isoform.derivations.verification import prove_claim, verify_claim

m, n, p = indices("m n p")
QKV: dict[str, Any] = {"q": n, "k": n, "v": m}
MATRIX = {"S": (m, n)}
ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "a number for a state": (
        "scalar",
        {"inputs": {"u": 1, "a": 1}, "state": {"h": 1}, "update": lambda h, u, a: a * h + (1 - a) * u, "read": lambda h: h},
    ),
    "nothing written": (
        "diagonal",
        {"inputs": {"a": n, "q": n}, "state": MATRIX, "update": lambda S, a: S * Diag(a), "read": lambda S, q: S * q},
    ),
    "a system that never changes": (
        "general",
        {
            "inputs": {"u": p},
            "parameters": {"A": (n, n), "B": (n, p), "C": (m, n)},
            "state": {"h": n},
            "update": lambda h, u, A, B: A * h + B * u,
            "read": lambda h, C: C * h,
        },
    ),
    "a matrix at each token": (
        "general",
        {"inputs": {**QKV, "A": (n, n)}, "state": MATRIX, "update": lambda S, A, k, v: S * A + v * k.T, "read": lambda S, q: S * q},
    ),
    "from both sides": (
        "sum of products",
        {
            "inputs": {**QKV, "a": n, "e": m},
            "state": MATRIX,
            "update": lambda S, a, e, k, v: Diag(e) * S + S * Diag(a) + v * k.T,
            "read": lambda S, q: S * q,
        },
    ),
    "read before, with a bonus": (
        "diagonal",
        {
            "inputs": {**QKV, "a": n},
            "parameters": {"u": n},
            "state": MATRIX,
            "update": lambda S, a, k, v: S * Diag(a) + v * k.T,
            "read": lambda S_before, q, v, k, u: (S_before + v * Hadamard(u, k).T) * q,
        },
    ),
    "a number that is always 0": (
        "not read",
        {"inputs": {"u": 1}, "state": {"h": 1}, "update": lambda h: 0 * h, "read": lambda h, u: h + u},
    ),
    "nothing kept": ("not read", {"inputs": QKV, "state": MATRIX, "update": lambda S, k, v: v * k.T, "read": lambda S, q: S * q}),
    "corrections from both sides": (
        "rank one",
        {
            "inputs": {**QKV, "b": 1},
            "state": MATRIX,
            "update": lambda S, k, v, b: (Eye(m) - b * v * v.T) * S * (Eye(n) - b * k * k.T) + v * k.T,
            "read": lambda S, q: S * q,
        },
    ),
    "the other layout": (
        "rank one",
        {
            "inputs": {**QKV, "b": 1, "g": 1},
            "state": {"S": (n, m)},
            "update": lambda S, k, v, b, g: g * S + b * k * (v - (g * S).T * k).T,
            "read": lambda S, q: S.T * q,
        },
    ),
    "turned round at every token": (
        "scalar",
        {"inputs": QKV, "state": MATRIX, "update": lambda S, k, v: v * k.T - S, "read": lambda S, q: S * q},
    ),
    "halved at every token": (
        "scalar",
        {"inputs": QKV, "state": MATRIX, "update": lambda S, k, v: S / Num(2) + v * k.T, "read": lambda S, q: S * q},
    ),
    "turned round by half of a matrix": (
        "diagonal",
        {
            "inputs": {**QKV, "a": n},
            "state": MATRIX,
            "update": lambda S, k, v, a: v * k.T - S * (Diag(a) / Num(2)),
            "read": lambda S, q: S * q,
        },
    ),
    "a state called as in the theorems": (
        "identity",
        {"inputs": QKV, "state": {"H": (m, n)}, "update": lambda H, k, v: H + v * k.T, "read": lambda H, q: H * q},
    ),
    "a gate and what it leaves": (
        "scalar",
        {
            "inputs": {**QKV, "g": 1},
            "state": MATRIX,
            "update": lambda S, k, v, g: sigmoid(g) * S + (1 - sigmoid(g)) * v * k.T,
            "read": lambda S, q: S * q,
        },
    ),
    "gates by their logarithms": (
        "diagonal",
        {"inputs": {**QKV, "g": n}, "state": MATRIX, "update": lambda S, k, v, g: S * Diag(exp(g)) + v * k.T, "read": lambda S, q: S * q},
    ),
    "momentum of a column": (
        "low rank",
        {
            "inputs": {"u": n, "c": n, "a": 1, "b": 1},
            "state": {"x": n, "w": n},
            "update": {"x": lambda x, w, u, a: x + a * w + u, "w": lambda w, b, u: b * w + u},
            "read": lambda x, c: c.T * x,
        },
    ),
    "a learner with a bend": (
        "not affine",
        {"inputs": QKV, "state": {"W": (m, n)}, "update": lambda W, k, v: W - (tanh(W * k) - v) * k.T, "read": lambda W, q: tanh(W * q)},
    ),
}
QUICK = {
    "turned round by half of a matrix",
    "a state called as in the theorems",
    "a number for a state",
    "nothing kept",
    "a number that is always 0",
    "from both sides",
    "a learner with a bend",
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.deep]) for n in ODD])
def test_their_theorems_are_proved(name: str) -> None:
    kind, given = ODD[name]
    odd = layer("odd", **given, source="none")
    assert classify(odd).kind == kind
    claims = derive(odd)
    for claim in claims:
        assert prove_claim(claim, claims).scope == "all sizes"


@pytest.mark.deep
@pytest.mark.parametrize("name", ODD)
def test_their_theorems_hold(name: str) -> None:
    claims = derive(layer("odd", **ODD[name][1], source="none"))
    assert {c.id: (r.holds, r.reason) for c in claims for r in [verify_claim(c, among=claims)]} == {c.id: (True, "") for c in claims}
