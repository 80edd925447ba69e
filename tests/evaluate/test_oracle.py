"""The oracle against loops written by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx

from isoform.derivations.evaluate import Environment, UnsupportedTerm, oracle, run
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import (
    Exp,
    Eye,
    Family,
    NegInf,
    Sum,
    Where,
    Zero,
    entries,
    indices,
    le,
    matrix,
    recurrence,
    scalars,
    vectors,
)  # fmt: skip

T, t, j, d, m, n = indices("T t j d m n")
q, k, v, beta = vectors("q", d), vectors("k", d), vectors("v", m), scalars("beta")
H0 = matrix("H0", m, d)
H = recurrence("H", H0, lambda r, P: P * (Eye(d) - beta[r] * k[r] * k[r].T) + beta[r] * v[r] * k[r].T)
DELTA = Declaration("delta-rule", {"q": q, "k": k, "v": v, "beta": beta}, H[t] * q[t], t, H, H0, T)
SOFTMAX = Declaration(
    "attention",
    {"q": q, "k": k, "v": v},
    Sum(Exp(Where(le(j, t), q[t].T * k[j], NegInf())) * v[j], j, 1, T) / Sum(Exp(Where(le(j, t), q[t].T * k[j], NegInf())), j, 1, T),
    t,
    length=T,
)


def data(length: int, K: int = 3, V: int = 2, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"q": (length, K), "k": (length, K), "v": (length, V), "beta": (length,)}
    return {name: rng.integers(-8, 9, shape) / 8 for name, shape in shapes.items()}


def loop(x: dict[str, Any], state: Any) -> tuple[list[Any], list[Any]]:
    exact = {name: np.vectorize(Fraction, otypes=[object])(a) for name, a in x.items()}
    states, outputs = [state], []
    for r in range(len(x["beta"])):
        b, kr, vr = exact["beta"][r], exact["k"][r], exact["v"][r]
        state = state - b * np.outer(state @ kr, kr) + b * np.outer(vr, kr)
        states.append(state)
        outputs.append(state @ exact["q"][r])
    return outputs, states


@pytest.mark.parametrize("length", [0, 1, 2, 7])
@pytest.mark.parametrize("K", [1, 3])
def test_the_delta_rule_exactly(length: int, K: int) -> None:
    x = data(length, K)
    start = np.vectorize(Fraction, otypes=[object])(np.arange(2.0 * K).reshape(2, K) / 4)
    outputs, states = loop(x, start)
    found, found_states = oracle(DELTA, x, length=length, initial_state=start)
    assert found.shape == (length, 2) and found_states.shape == (length + 1, 2, K)
    assert found.tolist() == [o.tolist() for o in outputs]
    assert found_states.tolist() == [s.tolist() for s in states]


def test_an_absent_initial_state_is_zero() -> None:
    x = data(4)
    outputs, _ = loop(x, np.array([[Fraction(0)] * 3] * 2))
    assert oracle(DELTA, x, length=4)[0].tolist() == [o.tolist() for o in outputs]


def test_the_systems_agree() -> None:
    x = data(12)
    exact = oracle(DELTA, x, length=12)[0].astype(float)
    assert np.allclose(oracle(DELTA, x, length=12, system="float64")[0], exact, rtol=1e-12, atol=1e-12)
    balls, _ = oracle(DELTA, x, length=12, system="arb")
    assert isinstance(balls[0, 0], arb)
    assert np.allclose(balls.astype(float), exact, rtol=1e-12, atol=1e-12)


def test_the_oracle_is_no_constant() -> None:
    x, y = data(6), data(6)
    y["v"][2] += 1
    a, b = oracle(DELTA, x, length=6)[0], oracle(DELTA, y, length=6)[0]
    assert (a[:2] == b[:2]).all() and (a[2:] != b[2:]).any()


def test_long_sequences_in_float64() -> None:
    x = data(1024, 16, 16)
    x["k"] /= 8
    found, states = oracle(DELTA, x, length=1024, system="float64")
    assert found.shape == (1024, 16) and states.shape == (1025, 16, 16)
    assert np.isfinite(found).all()


def test_softmax_needs_balls_and_the_length() -> None:
    x = {name: a for name, a in data(5).items() if name != "beta"}
    found, states = oracle(SOFTMAX, x, length=5, system="arb")
    assert states is None
    for r in range(5):
        w = np.exp(x["k"][: r + 1] @ x["q"][r])
        assert np.allclose(found[r].astype(float), w @ x["v"][: r + 1] / w.sum(), rtol=1e-12)
    assert np.allclose(oracle(SOFTMAX, x, length=5, system="float64")[0], found.astype(float), rtol=1e-12)
    with pytest.raises(UnsupportedTerm):
        oracle(SOFTMAX, x, length=5, system="qq")
    shorter, _ = oracle(SOFTMAX, x, length=3, system="arb")
    assert [e.str(15) for e in shorter[2]] == [e.str(15) for e in found[2]]


def test_balls_enclose_the_exact_result_and_obey_the_precision() -> None:
    x = data(3)
    exact = oracle(DELTA, x, length=3)[0]
    found, _ = oracle(DELTA, x, length=3, system="arb", prec=64)
    with ctx.workprec(64):
        assert all(b.contains(arb(e.numerator) / e.denominator) for b, e in zip(found.ravel(), exact.ravel(), strict=True))


def test_complex_data_and_constant_matrices() -> None:
    A, B, C = (Family(name, *size, field) for name, size, field in (("A", (n, n), "complex"), ("B", (n, 1), "real"), ("C", (1, n), "real")))
    u = scalars("u")
    X = recurrence("X", Zero(n, 1), lambda r, P: A() * P + B() * u[r])
    declared = Declaration("state-space", {"A": A(), "B": B(), "C": C(), "u": u}, C() * X[t], t, X, None, T)
    a = np.array([[0.5, 1j], [-0.25, 0.5 + 0.5j]])
    given = {"A": a, "B": np.array([1.0, -1.0]), "C": np.array([[1.0, 2.0]]), "u": np.array([1.0, 0.5, -2.0])}
    x, expected = np.zeros(2, complex), []
    for step in given["u"]:
        x = a @ x + given["B"] * step
        expected.append((given["C"] @ x)[0])
    exact, states = oracle(declared, given, length=3)
    assert [complex(float(re), float(im)) for re, im in exact] == expected
    assert states.shape == (4, 2)
    assert np.allclose(oracle(declared, given, length=3, system="float64")[0], expected)
    balls, _ = oracle(declared, given, length=3, system="arb")
    assert isinstance(balls[-1], acb)


def test_several_states() -> None:
    Z = recurrence("Z", Zero(1, 1), lambda r, P: P + beta[r])
    declared = Declaration("pair", {"k": k, "v": v, "q": q, "beta": beta}, Z[t] * (H[t] * q[t]), t, (H, Z), H0, T)
    x = data(3)
    outputs, (first, second) = oracle(declared, x, length=3)
    assert first.shape == (4, 2, 3) and second.shape == (4,)
    assert second[-1] == sum(Fraction(b) for b in x["beta"])
    assert (outputs == second[1:, None] * oracle(DELTA, x, length=3)[0]).all()


def test_inputs_that_do_not_fit_are_refused() -> None:
    x = data(4)
    with pytest.raises(ValueError, match="the inputs are"):
        oracle(DELTA, {name: a for name, a in x.items() if name != "beta"}, length=4)
    with pytest.raises(ValueError, match="needed"):
        oracle(DELTA, {**x, "k": x["k"][:, :2]}, length=4)
    with pytest.raises(ValueError, match="steps"):
        oracle(DELTA, x, length=5)
    with pytest.raises(ValueError, match="axes"):
        oracle(DELTA, {**x, "beta": x["k"]}, length=4)
    with pytest.raises(ValueError, match="number system"):
        oracle(DELTA, x, length=4, system="float32")
    with pytest.raises(ValueError, match="no initial state"):
        oracle(SOFTMAX, {name: x[name] for name in "qkv"}, length=4, system="arb", initial_state=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="gamma"):
        oracle(DELTA, {**x, "gamma": x["beta"]}, length=4)


def test_a_declaration_may_be_run_in_an_environment() -> None:
    values = {("q", (1,)): [1], ("k", (1,)): [2], ("v", (1,)): [3], ("beta", (1,)): 1, ("H0", ()): 0}
    e = Environment(Rationals(), {t: 1, T: 1, d: 1, m: 1}, values=values)
    assert run(DELTA, e) == Rationals().number(6)
    mask = entries(Where(le(j, n), beta[1], beta[1] * 0), n, (1, 2), j, (1, 2))
    assert run(mask, e) == Rationals().of(2, 2, [[1, 0], [1, 1]])
