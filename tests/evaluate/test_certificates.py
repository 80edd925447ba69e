"""Certificates: true statements hold, planted falsities do not, and what cannot be decided is said to be so."""

from __future__ import annotations

from typing import Any

import pytest

from isoform.derivations.evaluate import certify, fit
from isoform.derivations.evaluate.systems import MERSENNE
from isoform.derivations.kernel.formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Iff,
    Implies,
    Invertible,
    Less,
    LessEqual,
    NonZero,
    Statement,
)  # fmt: skip
from isoform.derivations.kernel.terms import (
    Apply,
    Block,
    Cond,
    Deriv,
    Diag,
    Entry,
    Exp,
    Expect,
    Eye,
    Ind,
    Integral,
    Inverse,
    Log,
    NegInf,
    Num,
    Power,
    Prod,
    Row,
    Rows,
    Sqrt,
    Stack,
    Sum,
    Term,
    Trace,
    Where,
    Zero,
    entries,
    indicator,
    indices,
    le,
    lt,
    matrix,
    norm2,
    recurrence,
    scalar,
    scalars,
    vector,
    vectors,
)  # fmt: skip

T, t, s, i, j, n, m, d, c, L = indices("T t s i j n m d c L")
q, k, v = vectors("q", d), vectors("k", d), vectors("v", m)
beta, gamma, p, f = scalars("beta"), scalars("gamma"), scalars("p"), scalars("f")
x, y, z, D, S, u = (scalar(name) for name in ["x", "y", "z", "D", "S", "u"])
A, B, C = matrix("A", n, n), matrix("B", n, n), matrix("C", m, n)
H0 = matrix("H0", m, d)
delta = recurrence("H", H0, lambda r, P: P * (Eye(d) - beta[r] * k[r] * k[r].T) + beta[r] * v[r] * k[r].T)
retention = recurrence("R", Zero(m, d), lambda r, P: gamma[0] * P + v[r] * k[r].T)
LENGTH = le(0, T)
AT = le(1, t) & le(t, T)
Q, K, V = (matrix(name, T, size) for name, size in (("Q", d), ("K", d), ("V", m)))


def unrolled(lo: Any = None, decreasing: bool = False, sign: int = 1) -> Term:
    lo = (lambda r: r + 1) if lo is None else lo
    factor = Eye(d) - sign * beta[s] * k[s] * k[s].T
    past = H0 * Prod(factor, s, 1, T, decreasing)
    return past + Sum(beta[j] * v[j] * k[j].T * Prod(factor, s, lo(j), T, decreasing), j, 1, T)


def parallel(power: Any, upto: Any = t) -> Term:
    return Sum(Power(gamma[0], power(j)) * (k[j].T * q[t]) * v[j], j, 1, upto)


def softmax(logits: Any, upto: Any, at: Any) -> Term:
    return Exp(logits(at)) / Sum(Exp(logits(j)), j, 1, upto)


def masked(T_: Any) -> Term:
    weights = entries(Exp(Where(le(j, i), Row(Q, i) * Row(K, j).T, NegInf())), i, (1, T_), j, (1, T_))
    ones = Stack(Num(1), i, 1, T_)
    rows = entries(Entry(weights, i, j) / (Row(weights, i) * ones), i, (1, T_), j, (1, T_))
    return rows * Rows(V, 1, T_)


orthogonal = Assumption(
    "orthonormal keys",
    ForAll(ForAll(Equation(k[i].T * k[j], Where(le(i, j) & le(j, i), Num(1), Num(0))), j, 1, T), i, 1, T),
    {k[i]: Row((Eye(d) - matrix("W", d, d) + matrix("W", d, d).T) * Inverse(Eye(d) + matrix("W", d, d) - matrix("W", d, d).T), i).T},
)

TRUE: dict[str, Statement] = {
    "delta unrolled": Statement(Equation(delta[T], unrolled()), LENGTH),
    "retention": Statement(Equation(retention[t] * q[t], parallel(lambda r: t - r)), AT),
    "transpose": Statement(Equation((A * B).T, B.T * A.T)),
    "trace": Statement(Equation(Trace(A * B), Trace(B * A))),
    "inverse": Statement(Equation(Inverse(A * B), Inverse(B) * Inverse(A))),
    "woodbury": Statement(
        Equation(
            Inverse(Eye(n) + C.T * C), Eye(n) - C.T * Inverse(Eye(m) + C * C.T) * C,
        )
    ),
    "block inverse": Statement(
        Equation(Inverse(Block([A, B], [Zero(n, n), A])), Block([Inverse(A), -Inverse(A) * B * Inverse(A)], [Zero(n, n), Inverse(A)]))
    ),
    "hadamard with a rank-one gate": Statement(
        Equation(Diag(k[1]) * matrix("G", d, m) * Diag(v[1]), entries(
            Entry(k[1], i, 1) * Entry(v[1], j, 1) * Entry(matrix("G", d, m), i, j), i, (1, d), j, (1, m)))
    ),
    "adjoint": Statement(Equation(norm2(scalar("w", "complex") * vector("h", n, "complex")),
                                  norm2(scalar("w", "complex")) * norm2(vector("h", n, "complex")))),
    "geometric": Statement(Equation((1 - x) * Sum(Power(x, i), i, 0, T - 1), 1 - Power(x, T)), LENGTH),
    "function of a sum": Statement(Equation(Apply("f", (x + y,), 2, 1), Apply("f", (y + x,), 2, 1))),
    "solved hypothesis": Statement(
        Equation(Sum(v[j] * k[j].T, j, 1, T) * k[t], v[t]), le(1, t) & le(t, T) & le(T, d), (orthogonal,)
    ),
    "root of unity": Statement(
        Equation(Sum(Power(z, i), i, 0, L - 1), 0), le(2, L) & le(L, 6),
        (Assumption("root", Equation(Power(z, L), 1), {z: Apply("root_of_unity", (Ind(L),), 1, 1, "complex")}),),
    ),
    "softmax sums to one": Statement(Equation(Sum(softmax(lambda r: p[r], T, i), i, 1, T), 1), le(1, T)),
    "softmax is shift invariant": Statement(
        Equation(softmax(lambda r: p[r], T, t), softmax(lambda r: p[r] + x, T, t)), AT
    ),
    "exp is a homomorphism": Statement(Equation(Exp(x + y), Exp(x) * Exp(y))),
    "exp of one matrix": Statement(Equation(Exp(x * A) * Exp(y * A), Exp((x + y) * A))),
    "log": Statement(Equation(Exp(Log(x)), x), Cond(), (Assumption("positive", Less(0, x)),)),
    "square root": Statement(Equation(Sqrt(x) * Sqrt(x), x), Cond(), (Assumption("natural", LessEqual(0, x)),)),
    "masked softmax has the prefix property": Statement(Equation(Row(masked(T), t), Row(masked(t), t)), AT),
    "integral of exp": Statement(
        Equation(Integral(Exp(S * A), S, 0, D), Inverse(A) * (Exp(D * A) - Eye(n))), Cond(), (Assumption("A", Invertible(A)),)
    ),
    "derivative of exp": Statement(Equation(Deriv(Exp(S * A), S), A * Exp(S * A))),
    "derivative of an integral": Statement(
        Equation(Deriv(Integral(Exp((S - u) * A) * u, u, 0, S), S), S * Eye(n) + A * Integral(Exp((S - u) * A) * u, u, 0, S))
    ),
    "squares": Statement(LessEqual(2 * x * y, x * x + y * y)),
    "exp is convex": Statement(LessEqual(1 + x, Exp(x))),
    "cancel": Statement(Implies(NonZero(x), Equation(x / x, 1))),
    "contraction": Statement(Iff(Less(x * x, 1), And(Less(-1, x), Less(x, 1)))),
    "every step": Statement(ForAll(Equation(retention[i] * 1, gamma[0] * retention[i - 1] + v[i] * k[i].T), i, 1, T), LENGTH),
}  # fmt: skip

FALSE: dict[str, Statement] = {
    "product from j": Statement(Equation(delta[T], unrolled(lambda r: r)), LENGTH),
    "product from j+2": Statement(Equation(delta[T], unrolled(lambda r: r + 2)), LENGTH),
    "reversed product": Statement(Equation(delta[T], unrolled(decreasing=True)), LENGTH),
    "wrong sign": Statement(Equation(delta[T], unrolled(sign=-1)), LENGTH),
    "exponent off by one": Statement(Equation(retention[t] * q[t], parallel(lambda r: t - r + 1)), AT),
    "bound off by one": Statement(Equation(retention[t] * q[t], parallel(lambda r: t - r, t - 1)), AT),
    "swapped product": Statement(Equation((A * B).T, A.T * B.T)),
    "swapped inverse": Statement(Equation(Inverse(A * B), Inverse(A) * Inverse(B))),
    "transpose for adjoint": Statement(Equation(vector("h", n, "complex").T * vector("h", n, "complex"), norm2(vector("h", n, "complex")))),
    "false only at length 0": Statement(Equation(Power(x, T), Where(le(1, T), Power(x, T), Num(0))), LENGTH),
    "false only at length 1": Statement(Equation(Ind(T), Where(le(T, 1) & le(1, T), Num(2), Ind(T))), LENGTH),
    "false only at size 1": Statement(Equation(Trace(Eye(n)) * (Trace(Eye(n)) - 2), 0), le(0, n) & le(n, 2)),
    "geometric off by one": Statement(Equation((1 - x) * Sum(Power(x, i), i, 0, T), 1 - Power(x, T)), LENGTH),
    "functions are not linear": Statement(Equation(Apply("f", (x + y,), 2, 1), Apply("f", (x,), 2, 1) + Apply("f", (y,), 2, 1))),
    "dropped hypothesis": Statement(Equation(Sum(v[j] * k[j].T, j, 1, T) * k[t], v[t]), le(1, t) & le(t, T) & le(T, d)),
    "softmax without the last": Statement(Equation(Sum(softmax(lambda r: p[r], T, i), i, 1, T - 1), 1), le(1, T)),
    "full attention": Statement(Equation(softmax(lambda r: p[r], T, t), softmax(lambda r: p[r], t, t)), AT),
    "zero for the logarithm of zero": Statement(
        Equation(Sum(Exp(Where(le(j, t), p[j], NegInf())), j, 1, T), Sum(Exp(Where(le(j, t), p[j], Num(0))), j, 1, T)), AT
    ),
    "exp of two matrices": Statement(Equation(Exp(A + B), Exp(A) * Exp(B))),
    "integral with the wrong sign": Statement(
        Equation(Integral(Exp(S * A), S, 0, D), Inverse(A) * (Exp(D * A) + Eye(n))), Cond(), (Assumption("A", Invertible(A)),)
    ),
    "derivative on the wrong side": Statement(Equation(Deriv(Exp(S * A) * B, S), Exp(S * A) * B * A)),
    "derivative without the boundary term": Statement(
        Equation(Deriv(Integral(Exp((S - u) * A) * u, u, 0, S), S), A * Integral(Exp((S - u) * A) * u, u, 0, S))
    ),
    "strict on the boundary": Statement(Less(1 + x, Exp(x))),
    "squares, strictly": Statement(Less(2 * x * y, x * x + y * y)),
    "wrong bound": Statement(LessEqual(2 * x, x * x)),
    "closed interval": Statement(Iff(LessEqual(x * x, 1), And(Less(-1, x), Less(x, 1)))),
    "cancel zero": Statement(Implies(Equation(x * y, x * z), Equation(y, z))),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_true_statement_holds(name: str) -> None:
    found = certify(TRUE[name])
    assert found.holds is True, found
    assert found.draws >= 8
    assert found.counterexample is None
    assert 0 < found.acceptance <= 1


@pytest.mark.parametrize("name", FALSE)
def test_a_false_statement_does_not(name: str) -> None:
    found = certify(FALSE[name])
    assert found.holds is False, found
    assert "false at" in found.reason
    assert found.failure_probability is None


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_verdict_does_not_depend_on_the_seed(seed: int) -> None:
    assert certify(TRUE["delta unrolled"], seed=seed).holds is True
    assert certify(FALSE["reversed product"], seed=seed).holds is False
    assert certify(FALSE["false only at length 0"], seed=seed).holds is False
    assert certify(FALSE["false only at length 1"], seed=seed).holds is False


def test_the_same_seed_gives_the_same_certificate() -> None:
    for statement in (TRUE["delta unrolled"], FALSE["reversed product"], TRUE["exp is a homomorphism"]):
        assert certify(statement, seed=7) == certify(statement, seed=7)


def test_the_failure_probability_is_a_degree_over_p() -> None:
    found = certify(Statement(Equation(Power(x, 3) * y, y * Power(x, 3))))
    assert found.failure_probability == 4 / MERSENNE
    assert certify(TRUE["squares"]).failure_probability is None
    assert certify(TRUE["exp is a homomorphism"]).failure_probability is None
    delta_ = certify(TRUE["delta unrolled"])
    assert delta_.failure_probability is not None
    assert 3 * 64 / MERSENNE <= delta_.failure_probability < 1e-14
    assert "T=0..64" in delta_.sizes


def test_functions_of_functions_keep_the_probability_meaningful() -> None:
    F = recurrence("F", x, lambda r, prev: Apply("f", (prev,), 1, 1))
    found = certify(Statement(Equation(F[T], F[T] + 0), LENGTH))
    assert found.holds is True
    assert found.failure_probability is not None and 0 < found.failure_probability < 1e-9


def test_a_statement_without_a_model_is_no_success() -> None:
    absurd = Assumption("absurd", And(Less(x, 0), Less(0, x)))
    for found in (
        certify(Statement(Equation(x, x), Cond(), (absurd,))),
        certify(Statement(Equation(x, 1), Cond(), (Assumption("one", Equation(x, 1)),))),
        certify(Statement(Equation(x, x), lt(T, 0) & lt(0, T))),
        certify(Statement(Equation(Inverse(Zero(n, n)), Zero(n, n)), le(1, n))),
    ):
        assert found.holds is None
        assert found.draws == 0
        assert "no model found" in found.reason


def test_a_solution_that_breaks_its_assumption_is_rejected() -> None:
    wrong = Assumption("unit", Equation(x * x, 1), {x: Num(2)})
    found = certify(Statement(Equation(x * x, 4), Cond(), (wrong,)))
    assert found.holds is None
    assert found.rejected > 0


def test_rejections_are_counted() -> None:
    found = certify(Statement(LessEqual(0, x), Cond(), (Assumption("positive", Less(0, x)),)))
    assert found.holds is True
    assert found.rejected > 0
    assert found.acceptance == pytest.approx(found.draws / (found.draws + found.rejected))


def test_singular_draws_are_counted() -> None:
    found = certify(Statement(LessEqual(1, 1 + 0 * (1 / x))))
    assert found.holds is True
    assert found.singular > 0


def test_a_premise_that_is_never_met_is_no_success() -> None:
    found = certify(Statement(Implies(Less(x * x, 0), Equation(x, 5))))
    assert found.holds is None
    assert "premise" in found.reason


def test_undecided_is_neither() -> None:
    third = Log(Num(3)) - Log(Num(2)) - Log(Num(3)) + Log(Num(2))
    found = certify(Statement(LessEqual(third + 0 * x, 0)))
    assert found.holds is None
    assert found.undecided > 0
    assert found.draws == 0


def test_an_undecided_assumption_is_not_assumed() -> None:
    zero = Log(Num(3)) - Log(Num(2)) - Log(Num(3)) + Log(Num(2))
    found = certify(Statement(Equation(x, x), Cond(), (Assumption("zero", LessEqual(zero, 0)),)))
    assert found.holds is None
    assert found.rejected > 0 and found.draws == 0


def test_what_cannot_be_evaluated_is_reported() -> None:
    for statement, word in (
        (Statement(Equation(Expect(x, "x"), x)), "expectation"),
        (Statement(Equation(Row(V, t), Row(V, t))), "row"),
        (Statement(Equation(retention[T] * 0, Zero(m, d))), "start"),
        (Statement(Equation(NegInf(), NegInf())), "NegInf"),
    ):
        found = certify(statement)
        assert found.holds is None
        assert word in found.reason


def test_the_system_fits_the_statement() -> None:
    w = scalar("w", "complex")
    assert fit(TRUE["delta unrolled"]).name == "GF(2^61-1)"
    assert fit(TRUE["adjoint"]).name == "GF((2^61-1)^2)"
    assert fit(TRUE["root of unity"]).name == "GF((2^61-1)^2)"
    assert fit(TRUE["squares"]).name == "QQ"
    assert fit(TRUE["cancel"]).name == "QQ"
    assert fit(Statement(LessEqual(0, norm2(w)))).name == "QQ(i)"
    assert fit(TRUE["derivative of exp"]).name == "arb 128 bits"
    solved = Assumption("positive", LessEqual(0, x), {x: Exp(y)})
    assert fit(Statement(LessEqual(0, x), Cond(), (solved,))).name == "arb 128 bits"


def test_the_radius_is_reported_for_balls_alone() -> None:
    found = certify(TRUE["exp is a homomorphism"])
    assert found.radius is not None and 0 < found.radius < 1e-30
    assert certify(TRUE["trace"]).radius is None


def test_where_guards_a_division() -> None:
    guarded = Where(le(1, t), 1 / Ind(t), Num(0)) * Ind(t)
    found = certify(Statement(Equation(guarded, indicator(le(1, t))), le(0, t)))
    assert found.holds is True
    assert found.singular == 0
