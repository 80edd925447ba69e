"""Attacks on the kernel: each false statement is refused, and a true sibling is proved by the same means.

The false statements were all proved once, or crashed the kernel; the second engine, or a counterexample by hand,
shows that they are false.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from sympy import Symbol

from isoform.derivations.kernel.formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Invertible,
    LessEqual,
    NonZero,
    Statement,
)
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.scripts import (
    Direct,
    Each,
    Exists,
    ForEach,
    Given,
    Part,
    Product,
    Rowwise,
    Script,
    Sign,
    Using,
)
from isoform.derivations.kernel.terms import (
    At,
    Cond,
    Conj,
    Deriv,
    Diag,
    Entry,
    Exp,
    Expect,
    Eye,
    Ind,
    Integral,
    Inverse,
    Num,
    Prod,
    Row,
    Stack,
    Sum,
    Term,
    Trace,
    Var,
    Where,
    Zero,
    equal,
    index,
    le,
    matrix,
    recurrence,
    scalar,
    vector,
)

from .attacks import (
    ANYWHERE,
    A,
    B,
    M,
    N,
    a,
    al,
    b,
    be,
    check,
    d,
    f,
    given,
    i,
    identity,
    j,
    k,
    m,
    n,
    prover,
    s,
    t,
    u,
    v,
    x,
    y,
    z,
)

# terms alone: (false, true, conditions) -----------------------------------------------------------

soft = Sum(Exp(al[i]), i, 1, n)
inside_prime = index("tʹ")
A_over = Inverse(Exp(A) + identity)

EQUATIONS: dict[str, tuple[tuple[Any, Any], tuple[Any, Any], Cond]] = {
    "exponentials of different sums of matrices": (
        (Exp(Sum(M[i], i, 1, n)) * Exp(Sum(M[i], i, 1, m)), Exp(Sum(M[i], i, 1, n) + Sum(M[i], i, 1, m))),
        (Exp(2 * A) * Exp(3 * A), Exp(5 * A)),
        le(0, n) & le(0, m),
    ),
    "the trace of an identity of negative size": (
        (Trace(Eye(n - m)), Ind(n - m)),
        (Trace(Eye(n + m)), Ind(n + m)),
        le(0, n) & le(0, m),
    ),
    "softmax over an empty row": (
        (Sum(Exp(al[j]) / soft, j, 1, n), 1),
        (Sum(Exp(al[j]) / Sum(Exp(al[i]), i, 0, n), j, 0, n), 1),
        le(0, n),
    ),
    "a denominator that is there in one branch": (
        (Where(le(1, n), Sum(Exp(al[j]) / soft, j, 1, n), b), Where(le(1, n), Num(1), Num(0))),
        (Where(le(1, n), Sum(Exp(al[j]) / soft, j, 1, n), b), Where(le(1, n), Num(1), b)),
        le(0, n),
    ),
    "a variable of integration renamed onto another": (
        (Deriv(Integral(s * scalar("s_0"), s, 0, s), s), s * s),
        (Deriv(Integral(s * scalar("s_0"), s, 0, s), s), s * scalar("s_0")),
        ANYWHERE,
    ),
    "reflection of an exponent that is not linear": (
        (Integral(Exp(-f(s)), s, 0, 1), Integral(Exp(-s), s, 0, 1)),
        (Integral(Exp(-x * s), s, 0, 1), Exp(-x) * Integral(Exp(x * s), s, 0, 1)),
        ANYWHERE,
    ),
    "reflection of an exponent of two factors": (
        (Integral(Exp(-s * f(s)), s, 0, 1), Integral(Exp(-s), s, 0, 1)),
        (Integral(Exp(-s * f(s)), s, 0, 1), Integral(Exp(-y * f(y)), y, 0, 1)),
        ANYWHERE,
    ),
    "reflection of a power": (
        (Integral(Exp(-(s**n)), s, 0, 1), Exp(Num(-1))),
        (Integral(Exp(-(s**n)), s, 0, 1), Integral(Exp(-(y**n)), y, 0, 1)),
        le(2, n),
    ),
    "a variable under an exponential under an exponential": (
        (Integral(Exp(Exp(s)), s, 0, 2), 2 * Integral(Exp(Exp(s)), s, 0, 1)),
        (Integral(Exp(Exp(s)), s, 0, 1), Integral(Exp(Exp(y)), y, 0, 1)),
        ANYWHERE,
    ),
    "integration of a derivative by a variable of the ends": (
        (Integral(Deriv(a * s, s), a, s, s + 1), Fraction(1, 2) + 2 * s),
        (Integral(Deriv(a * s, s), a, x, x + 1), Fraction(1, 2) + x),
        ANYWHERE,
    ),
    "a complex value of a real variable": (
        (At(Deriv(Conj(s) * s, s), s, z), z + Conj(z)),
        (At(Deriv(Conj(s) * s, s), s, x), x + Conj(x)),
        ANYWHERE,
    ),
    "complex ends of an integral": (
        (Integral(Conj(s), s, 0, z), z * z / 2),
        (Integral(Conj(s), s, 0, x), x * x / 2),
        ANYWHERE,
    ),
    "a real function of a complex number": ((Conj(f(z)), f(z)), (Conj(f(x)), f(x)), ANYWHERE),
    "the expectation of an exponential of an exponential": (
        (Expect(Exp(Exp(x)), "x"), Exp(Exp(x))),
        (Expect(Exp(Exp(x)) * y, "x"), y * Expect(Exp(Exp(x)), "x")),
        ANYWHERE,
    ),
    "the expectation of a derivative": (
        (Expect(Deriv(f(s), s), "f"), Deriv(f(s), s)),
        (Expect(Deriv(y * f(s), s), "f"), y * Expect(Deriv(f(s), s), "f")),
        ANYWHERE,
    ),
    "a name that looks like a transpose": ((Var("u'", (), 1, d) * v, u.T * v), (v.T * u, u.T * v), ANYWHERE),
    "an index that looks like a sum": ((al[index("k + 1*t")], al[k + t]), (al[k + t], al[t + k] + 0), ANYWHERE),
    "two symbols of one name": (
        (Trace(matrix("Q", Symbol("d"), Symbol("d"))), Trace(matrix("Q", d, d))),
        (Trace(matrix("Q", d, d).T), Trace(matrix("Q", d, d))),
        ANYWHERE,
    ),
    "an entry of a transpose": (
        (Entry(A.T, i, j), Entry(A, i, j)),
        (Entry(A.T, i, j), Entry(A, j, i)),
        le(1, i) & le(i, d) & le(1, j) & le(j, d),
    ),
    "a row of a transpose": (
        (Row(A.T, i) * u, Row(A, i) * u),
        (Row(A.T, i) * u + 1, 1 + Row(A.T, i) * u),
        le(1, i) & le(i, d),
    ),
    "a row of a diagonal matrix": (
        (Row(Diag(u) * A, i), Row(u, j) * Row(A, i)),
        (Row(Diag(u) * A, i), Row(u, i) * Row(A, i)),
        le(1, i) & le(i, d) & le(1, j) & le(j, d),
    ),
    "a column of a product with a diagonal matrix": (
        (Entry(A * Diag(u), i, j), Row(u, i) * Entry(A, i, j)),
        (Entry(A * Diag(u), i, j), Row(u, j) * Entry(A, i, j)),
        le(1, i) & le(i, d) & le(1, j) & le(j, d),
    ),
    "a diagonal entry off the diagonal": (
        (Entry(Diag(u), i, j), Row(u, i)),
        (Entry(Diag(u), i, i), Row(u, i)),
        le(1, i) & le(i, d) & le(1, j) & le(j, d),
    ),
    "a diagonal matrix of labelled rows": (
        (Row(Diag(Stack(al[k], k, n, m)) * Stack(be[k], k, n, m), i), al[i] * be[i - n + 1]),
        (Row(Diag(Stack(al[k], k, n, m)) * Stack(be[k], k, n, m), i), al[i] * be[i]),
        le(n, i) & le(i, m),
    ),
    "a product of multiples of the identity": (
        (Prod(al[i] * identity, i, 1, n) * A, Prod(al[i], i, 2, n) * A),
        (Prod(al[i] * identity, i, 1, n) * A, Prod(al[i], i, 1, n) * A),
        le(0, n),
    ),
    "a product of multiples of the identity, and of zeros": (
        (Prod(Zero(d, d), i, 1, n), Zero(d, d)),
        (Prod(Zero(d, d), i, 1, n), identity),
        equal(n, 0),
    ),
    "a product of sums with the identity": (
        (Prod(al[i] * identity + M[i], i, 1, n), Prod(al[i], i, 1, n) * identity),
        (Prod(al[i] * identity + 0 * M[i], i, 1, n), Prod(al[i], i, 1, n) * identity),
        le(0, n),
    ),
    "an index that the facts fix": ((al[i], al[n + 1]), (al[i], al[n]), le(i, n) & le(n, i)),
    "an index that is known from one side": ((al[i], al[n]), (al[i] + al[n], al[n] + al[i]), le(i, n)),
    "indices that fix each other": ((al[i] * be[j], al[k] * be[k + 1]), (al[i] * be[j], al[k] * be[k]), equal(i, j) & equal(j, k)),
    "a shifted index that the facts fix": (
        (Sum(al[j], j, 1, i), Sum(al[j], j, 1, n)),
        (Sum(al[j], j, 1, i), Sum(al[j], j, 1, n) + al[n + 1]),
        equal(i, n + 1) & le(0, n),
    ),
    "the last row": ((Row(u, i), Row(u, i - 1)), (Row(u, i), Row(u, d)), le(2, i) & equal(i, d)),
    "half an index that the facts fix": ((al[i], al[n]), (al[i] + al[n], al[n] + al[i]), le(0, 2 * i - 3 * n) & le(2 * i - 3 * n, 0)),
    "a thirteenth power": ((x**13, x**12), (x**13, x**12 * x), ANYWHERE),
    "the diagonal matrix of a scalar": ((Diag(x) * y, y), (Diag(x) * y, x * y), ANYWHERE),
    "a product of many with a shifted index inside": (
        (Sum(Prod(M[i] * N[i + j], i, 1, n), j, 1, m), Sum(Prod(N[i + j] * M[i], i, 1, n), j, 1, m)),
        (Sum(Prod(M[i] * N[i + j], i, 1, n), j, 1, m), Sum(Prod(M[i] * identity * N[j + i], i, 1, n), j, 1, m)),
        le(0, n) & le(0, m),
    ),
    "an integral that cannot be reflected back": (
        (Integral(Exp(-s * (A + B)), s, 0, x), Integral(Exp(-s * A) * Exp(-s * B), s, 0, x)),
        (Integral(Exp(-s * (A + B)), s, 0, x), Integral(Exp(-y * (B + A)), y, 0, x)),
        ANYWHERE,
    ),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations(name: str) -> None:
    false, true, where = EQUATIONS[name]
    check(Statement(Equation(*false), where), Statement(Equation(*true), where), Direct())


@pytest.mark.parametrize(("first", "right"), [(1, True), (2, False)])
def test_a_certificate_whose_sides_have_different_axes(first: int, right: bool) -> None:
    """A vector is the column of its entries, so a product with it is the sum over all of them."""
    column = Stack(Row(u, i), i, 1, d)
    product = Equation(v.T * u, Sum(Row(v, i) * Row(u, i), i, first, d))
    script = Each((Rowwise(j), Direct((Using(Part(1), left=-v.T),))))
    statement = Statement(And(Equation(column, u), product))
    if right:
        assert prover({})(statement, script).scope == "all sizes"
    else:
        with pytest.raises(Unproved):
            prover({})(statement, script)


def test_a_row_beyond_a_diagonal_matrix() -> None:
    """A row that is not known to exist is not 0."""
    zero = Equation(Row(Diag(u), i), Zero(1, d))
    with pytest.raises(Unproved, match="is not known here"):
        prover({})(Statement(zero, le(d + 1, i)), Direct())


def test_members_of_a_family_under_a_sum_are_many_matrices() -> None:
    """A sum of u' M_i w over i = 1..n is not the one over n+1..2n, also beside functions of one matrix."""
    exists = (given("inverse", Invertible(Exp(A) + identity)),)
    w = vector("w", d)
    first = Sum(u.T * M[i] * w, i, 1, n)
    beside = u.T * A_over * v + u.T * Exp(A) * A_over * v
    whole = u.T * v

    def statement(lo: Any, hi: Any, shift: int) -> Statement:
        second = Sum(u.T * M[i + shift] * w, i, lo, hi)
        return Statement(Equation(first + beside, second + whole), le(0, n), exists)

    check(statement(n + 1, 2 * n, 0), statement(0, n - 1, 1), Direct())


def test_a_product_at_a_bound_index_reserved_for_recursions() -> None:
    def family(q: Any) -> Any:
        return recurrence("G", Num(0), lambda t, state: state + al[q])

    own = recurrence("G", Num(0), lambda t, state: state + al[t])

    def claim(i: Symbol, right: Term) -> Statement:
        return Statement(ForAll(Equation(Sum(family(k)[n], k, i, i), right), i, 0, 5), le(0, n))

    check(claim(inside_prime, own[n]), claim(j, family(j)[n]), ForEach(Direct()))


# signs -------------------------------------------------------------------------------------------

SIGNS: dict[str, tuple[Formula, Formula, tuple[Assumption, ...], Script]] = {
    "a complex exponent of an exponent": (
        LessEqual(0, Exp(Exp(z)) + Exp(Exp(Conj(z)))),
        LessEqual(0, Exp(Exp(x)) + Exp(Exp(y))),
        (),
        Sign(),
    ),
    "the square of a complex quotient": (
        LessEqual(0, Inverse(1 + Exp(z)) ** 2 + Inverse(1 + Exp(Conj(z))) ** 2),
        LessEqual(0, Inverse(1 + Exp(x)) ** 2 + Inverse(1 + Exp(y)) ** 2),
        (given("one", NonZero(1 + Exp(z))), given("other", NonZero(1 + Exp(Conj(z))))),
        Sign(),
    ),
    "a matrix that is not zero": (NonZero(A), NonZero(Exp(x)), (), Exists()),
    "an outer product that is not zero": (NonZero(u * v.T), NonZero(1 + x * x), (), Exists()),
    "an identity of size 0 tells nothing": (
        Invertible(x * Eye(n)),
        Invertible(2 * A),
        (given("multiple", Invertible(x * identity)), given("matrix", Invertible(A))),
        Exists(),
    ),
    "a coefficient that is rounded": (
        LessEqual(0, a * a - (2 + Fraction(1, 10**17)) * a * b + b * b),
        LessEqual(0, a * a - 2 * a * b + b * b),
        (given("order", LessEqual(b, a)),),
        Sign((Product((a - b, a - b), Fraction(1)),)),
    ),
}


@pytest.mark.parametrize("name", SIGNS)
def test_signs(name: str) -> None:
    false, true, assumptions, script = SIGNS[name]
    check(Statement(false, ANYWHERE, assumptions), Statement(true, ANYWHERE, assumptions), script)


def test_a_certificate_in_floating_point() -> None:
    order = (given("order", LessEqual(b, a)),)
    statement = Statement(LessEqual(0, a * a - (2 + Fraction(1, 10**17)) * a * b + b * b), ANYWHERE, order)
    with pytest.raises(Unproved, match="exact number"):
        prover({})(statement, Sign((Product((a - b, a - b), 1.0),)))  # type: ignore[arg-type]


# rules -------------------------------------------------------------------------------------------

multiple_is_zero = given("multiple", Equation(x * identity, Zero(d, d)))

RULES: dict[str, tuple[Formula, Formula, tuple[Assumption, ...], Cond, Script]] = {
    "a multiple of an identity of size 0": (
        Equation(x, 0), Equation(x * identity + identity, identity), (multiple_is_zero,), ANYWHERE, Direct((Using(Given("multiple")),)),
    ),
    "a zeroth power has no factor to replace": (
        Equation(Sum((u.T * M[i] * v) ** n, i, k, k), 0),
        Equation(Sum((u.T * M[i] * v) ** 2, i, k, k), 0),
        (given("null", Equation(M[k] * v, Zero(d, 1))),),
        le(0, n),
        Direct((Given("null"),)),
    ),
    "what commutes at one point": (
        Equation(Deriv(Deriv(Exp(A + s * s * B), s), s), 2 * B * Exp(A)),
        Equation(Deriv(Deriv(Exp(s * s * B), s), s), 2 * B),
        (given("point", Equation(s, 0)),),
        ANYWHERE,
        Direct((Given("point"),)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    false, true, assumptions, where, script = RULES[name]
    check(Statement(false, where, assumptions), Statement(true, where, assumptions), script)


def test_a_multiple_of_an_identity_is_no_rule_for_scalars() -> None:
    statement = Statement(Equation(x, 0), ANYWHERE, (multiple_is_zero,))
    with pytest.raises(ValueError, match="size 0"):
        prover({})(statement, Direct((Given("multiple"),)))
