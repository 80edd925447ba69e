"""Ten lines make a declaration; what makes none is refused in one sentence."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from isoform.derivations.kernel.terms import Conj, Diag, Exp, Eye, Family, Hadamard, Log, Num, Sqrt, Var, indices, norm2
from isoform.derivations.layer import LayerError, classify, derive, layer
from isoform.derivations.layer.functions import absolute, entrywise, exp, larger, over, sigmoid, softplus, tanh
from isoform.derivations.verification import prove_claim, verify_claim

d_k, d_v = indices("d_k d_v")
RIGHT: dict[str, Any] = {
    "inputs": {"q": d_k, "k": d_k, "v": d_v},
    "state": {"S": (d_v, d_k)},
    "update": lambda S, k, v: S + v * k.T,
    "read": lambda S, q: S * q,
    "source": "a paper",
}

DELTA = RIGHT | {"inputs": {"q": d_k, "k": d_k, "v": d_v, "beta": 1}, "update": lambda S, k, v, beta: S - beta * (S * k - v) * k.T}


def test_a_declaration() -> None:
    d = layer("some-layer", **RIGHT)
    assert (d.operator, d.source, d.domains) == ("some-layer", "a paper", dict.fromkeys("qkv", "real"))
    assert str(d.output) == "S_t q_t"
    assert str(d.state[d.t + 1].step_at(d.t, d.state[d.t - 1])) == "S_{t−1} + v_t k_tᵀ"
    assert d.initial_state == Var("S0", (), d_v, d_k)


def test_parameters_are_the_same_at_all_times() -> None:
    d = layer("x", **RIGHT | {"parameters": {"g": 1}, "update": lambda S, k, v, g: g * S + v * k.T})
    assert isinstance(d.inputs["g"], Var)
    assert "g^{" in str(derive(d)[1].statement.conclusion) or "g^t" in str(derive(d)[1].statement.conclusion)


def test_the_state_before_the_token_is_read_by_name() -> None:
    d = layer("x", **RIGHT | {"read": lambda S_before, q: S_before * q})
    assert str(d.output) == "S_{t−1} q_t"
    assert classify(d).read.linear


def test_a_complex_domain_makes_a_complex_state() -> None:
    inputs = {"inputs": {"a": d_k}, "domains": {"a": "complex, |a_i| <= 1"}, "state": {"h": d_k}}
    d = layer("x", **inputs, update=lambda h, a: Diag(a) * h, read=lambda h: h, source="s")
    assert d.initial_state.field == d.inputs["a"].field == "complex"


def test_states_apart_and_together() -> None:
    """States that do not use each other stay apart; those that do are one matrix."""
    apart = {"state": {"A": (d_v, d_k), "B": (d_v, d_k)}, "read": lambda A, B, q: A * q + B * q}
    alone = layer("x", **RIGHT | apart | {"update": {"A": lambda A, k, v: A + v * k.T, "B": lambda B: B}})
    assert [s.member.name for s in alone.state] == ["A", "B"]
    using = layer("x", **RIGHT | apart | {"update": {"A": lambda A, B: A + B, "B": lambda B, k, v: B + v * k.T}})
    assert using.initial_state.shape == (d_v, 2 * d_k)
    assert classify(using).kind == "general"
    above = {"state": {"A": (d_v, d_k), "n": (1, d_k)}, "read": lambda A, q: A * q}
    stacked = layer("x", **RIGHT | above | {"update": {"A": lambda A, n: A, "n": lambda n, A, v: n + v.T * A}})
    assert stacked.initial_state.shape == (d_v + 1, d_k)
    assert str(classify(stacked).updates[0]) == "general on the left"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"source": " "}, "wrong needs a source: the paper and equation that it comes from"),
        ({"state": {}}, "wrong needs a state"),
        ({"inputs": {"q": indices("t")[0]}}, "wrong has a size called 't', which is a time here; call it something else"),
        ({"domains": {"z": "real"}}, "wrong gives a domain for 'z', which is no input and no parameter of it"),
        ({"domains": {"q": "q >= 0"}}, "the domain of q in wrong starts with real or complex, as in 'real, 0 <= q <= 1', not 'q >= 0'"),
        ({"parameters": {"q": 1}}, "wrong uses the name 'q' twice among its inputs, parameters and states"),
        ({"parameters": {"S0": (d_v, d_k)}}, "wrong uses the name 'S0', which is that of a state before; call it something else"),
        ({"parameters": {"S_before": d_k}}, "wrong uses the name 'S_before', which is that of a state before; call it something else"),
        ({"update": lambda S, v: S + v * Family("k", d_k)[indices("t")[0] - 1].T}, "the update of S uses a time t from outside"),
        ({"update": lambda S, w: S}, "the update of S uses 'w', which is no input, parameter or state; there are S, k, q, v"),
        ({"read": lambda S, w: S}, "read uses 'w', which is no input, parameter or state; there are S, S_before, k, q, v"),
        ({"update": lambda S, k, v: S + k * v.T}, "the update of S does not fit together: cannot add a d_k x d_v term to a d_v x d_k term"),
        ({"update": lambda S, k: S * k}, "the update of S gives a d_v x 1 term, but the state is a d_v x d_k term"),
        ({"read": lambda S, v: S * v}, "read does not fit together: cannot multiply"),
        ({"update": lambda S, k: None}, "the update of S does not fit together: None is no term"),
        ({"update": 3}, "the update of S is 3, which is no function of inputs, parameters and states"),
        ({"inputs": {"q": 0}}, "the size of q in wrong is 0; it is a number from 1 on, made of indices(…), or a pair of such"),
        ({"inputs": {"q": 1.5}}, "the size of q in wrong is 1.5; it is a number from 1 on"),
        ({"inputs": {"q": "n"}}, "the size of q in wrong is 'n'; it is a number from 1 on"),
        ({"state": {"S": (d_v, d_k), "n": d_k}}, "update of 'wrong' needs one function for each of the states S, n, by name"),
        (
            {"state": {"S": (d_v, d_k), "n": d_k}, "update": {"S": lambda S, n, v: S + v * n.T, "n": lambda n: n}},
            "states that use each other are kept as one matrix, so they need one height or one width: S is a d_v x d_k term",
        ),
    ],
)
def test_what_makes_no_layer(change: dict[str, Any], says: str) -> None:
    with pytest.raises(LayerError) as e:
        layer("wrong", **RIGHT | change)
    assert str(e.value).startswith(says)
    assert "\n" not in str(e.value)


def test_names() -> None:
    for name in ("Wrong", "a_b", "-a", ""):
        with pytest.raises(LayerError, match="a layer's name is made of small letters"):
            layer(name, **RIGHT)


def test_a_layer_is_not_taken_for_the_columns_that_its_theorems_rest_on() -> None:
    for name in ("affine", "delta-rule"):
        with pytest.raises(LayerError, match=f"a layer cannot be called {name}, which its theorems would be confused with"):
            layer(name, **RIGHT)
    claims = derive(layer("my-delta-rule", **DELTA))
    cited = {lemma for c in claims for lemma in prove_claim(c, claims).lemmas}
    assert {lemma.partition("/")[0] for lemma in cited} == {"my-delta-rule", "affine", "delta-rule"}


def test_names_of_ours_give_way_to_those_of_the_layer() -> None:
    """Sizes and inputs may be called what the theorems call their indices."""
    n, m = indices("n m")
    d = layer(
        "x",
        inputs={"r": n, "j": n, "b": m, "i": 1},
        state={"H": (m, n)},
        update=lambda H, j, b, i: i * H + b * j.T,
        read=lambda H, r: H * r,
        source="a",
    )
    claims = derive(d)
    chunkwise = next(c for c in claims if c.id == "x/chunkwise")
    assert [c.name for c in chunkwise.statement.cuts] == ["b_"]
    assert verify_claim(claims[1], among=claims).holds
    assert verify_claim(chunkwise, among=claims).holds


def test_functions_are_what_they_are_called() -> None:
    """Exactly, in balls: at numbers, and entry by entry."""
    import math

    from isoform.derivations.evaluate.balls import Balls
    from isoform.derivations.evaluate.frame import Frame
    from isoform.derivations.evaluate.program import evaluate

    for f, g in {
        sigmoid: lambda x: 1 / (1 + math.exp(-x)),
        tanh: math.tanh,
        softplus: lambda x: math.log1p(math.exp(x)),
        absolute: abs,
        (lambda x: larger(x, 1)): lambda x: max(x, 1),
        (lambda x: over(x, Num(4))): lambda x: x / 4,
    }.items():
        for x in (-2, 0, 1, 3):
            found = evaluate(f(Num(x)), Frame(Balls(), None, {}))  # type: ignore[arg-type]
            assert abs(float(found[0, 0].real.mid()) - g(x)) < 1e-12
    columns = entrywise(lambda x, y: x * y, Var("x", (), d_k, 1), Var("c", (), 1, 1))
    assert columns.shape == entrywise(lambda x: 1, columns).shape == (d_k, 1)
    with pytest.raises(TypeError, match="columns of one height"):
        sigmoid(Eye(d_k))


def test_functions_take_plain_numbers_for_terms() -> None:
    for f in (absolute, exp, sigmoid, softplus, tanh, norm2, Conj, Diag, Exp, Log, Sqrt):
        assert [f(x) for x in (2, Fraction(1, 3))] == [f(Num(x)) for x in (2, Fraction(1, 3))]  # type: ignore[operator]
        with pytest.raises(TypeError, match=r"0\.5 is no term: numbers are int or Fraction"):
            f(0.5)  # type: ignore[operator]
    one, k = Num(1), Var("k", (), d_k, 1)
    for g in (larger, over, Hadamard):
        assert g(1, 2) == g(one, 2) == g(1, Num(2)) == g(one, Num(2))  # type: ignore[operator]
    assert over(1, 1 + norm2(k)) == over(one, 1 + norm2(k))
    assert larger(0, k) == larger(Num(0), k)
