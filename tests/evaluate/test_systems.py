"""Number systems: balls enclose, degrees bound, floats agree, and nothing outside is imported."""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import acb, acb_mat, ctx, nmod_poly

import isoform.derivations.evaluate as engine
from isoform.derivations.evaluate import Environment, Singular, evaluate
from isoform.derivations.evaluate.balls import Balls
from isoform.derivations.evaluate.degrees import Degree, Degrees
from isoform.derivations.evaluate.floats import Floats
from isoform.derivations.evaluate.systems import MERSENNE, Gaussian, Prime, Rationals
from isoform.derivations.kernel.terms import (
    Conj,
    Deriv,
    Exp,
    Eye,
    Integral,
    Inverse,
    Log,
    Power,
    Sqrt,
    Sum,
    index,
    matrix,
    norm2,
    recurrence,
    scalar,
    scalars,
)  # fmt: skip

BALLS = Balls(128)
s, u, x = scalar("s"), scalar("u"), scalar("x")
ALLOWED = {"__future__", "abc", "collections", "contextlib", "dataclasses", "fractions", "functools", "random", "types", "typing"}


def ball(term: Any, values: Any, index_: Any = None) -> Any:
    return evaluate(term, Environment(BALLS, index_ or {}, values=values))


def test_the_engine_imports_no_kernel_module_but_the_language() -> None:
    for path in Path(engine.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {a.name.split(".")[0] for a in node.names} <= {"flint", "sympy", "numpy"}, path
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] in ALLOWED | {"flint", "sympy"}, path
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert node.module in ("kernel", "kernel.terms", "kernel.formulas"), path
                assert node.module != "kernel" or [a.name for a in node.names] in (["terms"], ["formulas"]), path


@pytest.mark.parametrize(
    ("f", "exact"),
    [
        (Exp(s), lambda: acb(Fraction_(3, 4)).exp()),
        (s**5, lambda: 5 * acb(Fraction_(3, 4)) ** 4),
        (Log(s), lambda: 1 / acb(Fraction_(3, 4))),
        (Sqrt(s), lambda: 1 / (2 * acb(Fraction_(3, 4)).sqrt())),
        (1 / (s - 1), lambda: acb(-16)),
        (Exp(s * s), lambda: acb(Fraction_(3, 2)) * acb(Fraction_(9, 16)).exp()),
    ],
)
def test_derivatives(f: Any, exact: Any) -> None:
    value = ball(Deriv(f, s), {("s", ()): Fraction(3, 4)})[0, 0]
    with ctx.workprec(128):
        assert value.overlaps(exact())
        assert not value.overlaps(exact() + acb("1e-25"))
        assert float(value.rad()) < 1e-28


def Fraction_(p: int, q: int) -> Any:
    from flint import fmpq

    return fmpq(p, q)


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (Exp(s), lambda z, a: z.exp()),
        (1 / (1 + s * s), lambda z, a: 1 / (1 + z * z)),
        (Sqrt(s + 1), lambda z, a: (z + 1).sqrt(analytic=a)),
        (Exp(8 * s), lambda z, a: (8 * z).exp()),
        (1 / (s + Fraction(1, 100)), lambda z, a: 1 / (z + acb(1) / 100)),
    ],
)
def test_integrals_against_an_independent_integrator(f: Any, g: Any) -> None:
    value = ball(Integral(f, s, Num_(0), x), {("x", ()): 2})[0, 0]
    with ctx.workprec(128):
        expected = acb.integral(g, 0, 2)
        assert value.overlaps(expected)
        assert not value.overlaps(expected + acb("1e-25"))


def Num_(n: int) -> Any:
    return x * 0 + n


def test_an_integral_is_oriented() -> None:
    value = ball(Integral(s, s, x, Num_(0)), {("x", ()): 2})[0, 0]
    with ctx.workprec(128):
        assert value.overlaps(acb(-2))


def test_a_function_that_is_not_analytic_is_not_integrated_or_differentiated() -> None:
    for term in (Integral(1 / s, s, -1 * x, x), Integral(Log(s), s, Num_(0), x), Deriv(Sqrt(s - 1), s)):
        with pytest.raises(Singular):
            ball(term, {("x", ()): 1, ("s", ()): 1})


def test_an_integral_does_not_cross_a_branch_cut() -> None:
    w = scalar("w", "complex")
    with pytest.raises(Singular):
        ball(Integral(Log(w * s - 1), s, -1 * x, x), {("x", ()): 1, ("w", ()): (0, 1)})
    assert ball(Integral(Log(w * s + 1), s, -1 * x, x), {("x", ()): 1, ("w", ()): (0, 1)})[0, 0].is_finite()


def test_the_aliasing_of_a_derivative_is_enclosed() -> None:
    """On the circle s^51 looks like s: the derivative at 0 is 0 only within the error bound."""
    value = ball(Deriv(2**110 * s**51, s), {("s", ()): 0})[0, 0]
    assert value.contains(0)
    assert float(value.rad()) < 1e-28


def test_a_conjugate_under_a_derivative() -> None:
    z = scalar("z", "complex")
    f = norm2(Exp(z * s))
    given = {("s", ()): Fraction(1, 2), ("z", ()): (1, 2)}
    value = ball(Deriv(f, s), given)[0, 0]
    with ctx.workprec(128):
        assert value.overlaps(2 * acb(1).exp())
    half = ball(Deriv(Conj(Exp(z * s)), s) - Conj(z) * Conj(Exp(z * s)), given)[0, 0]
    with ctx.workprec(128):
        assert half.overlaps(acb(0))


def test_balls_do_not_decide_what_they_cannot() -> None:
    with BALLS.context():
        third = BALLS.number(Fraction(1, 3))
        assert BALLS.equal(third, third).holds is True
        assert BALLS.less(third, third, False) is None
        assert BALLS.less(BALLS.number(0), BALLS.number(0), False) is True
        assert BALLS.less(BALLS.number(0), BALLS.number(0), True) is False
        assert BALLS.nonzero(BALLS.add(third, BALLS.scale(BALLS.number(-1), third))) is None
        wide = acb_mat(1, 1, [acb("0.3 +/- 0.1")])
        assert BALLS.equal(wide, third).holds is None
        assert BALLS.equal(acb_mat(1, 1, [acb("nan")]), third).holds is None
        assert BALLS.equal(wide, BALLS.number(1)).holds is False
        with pytest.raises(Singular):
            BALLS.inverse(acb_mat(1, 1, [acb("0 +/- 0.1")]))
        with pytest.raises(Singular):
            BALLS.log(BALLS.number(0))
        with pytest.raises(Singular):
            BALLS.sqrt(BALLS.number(-1))
        assert BALLS.numbers(BALLS.sqrt(BALLS.number(0))) == ((0,),)


@pytest.mark.parametrize("system", [Prime(), Rationals(), Gaussian(Prime()), Gaussian(Rationals()), BALLS, Floats()])
def test_every_system_has_empty_matrices(system: Any) -> None:
    with system.context():
        a, b = system.zeros(2, 0), system.zeros(0, 3)
        assert system.shape(system.mul(a, b)) == (2, 3)
        assert system.shape(system.transpose(a)) == (0, 2)
        assert system.shape(system.inverse(system.zeros(0, 0))) == (0, 0)
        assert system.shape(system.block([[system.eye(2), a], [system.zeros(1, 2), system.zeros(1, 0)]])) == (3, 2)
        assert system.shape(system.stack([], 4)) == (0, 4)
        assert system.shape(system.diag(system.zeros(0, 1))) == (0, 0)
        assert system.text(system.number(3)).startswith("3")


def test_floats_agree_with_balls() -> None:
    rng = np.random.default_rng(0)
    given = rng.normal(size=(4, 4))
    A = matrix("A", 4, 4)
    e = Environment(Floats(), {}, values={("A", ()): given})
    expected = np.linalg.eigvals(given)
    assert np.allclose(np.linalg.det(evaluate(Exp(A), e)), np.exp(expected.sum().real))
    assert np.allclose(evaluate(Inverse(Exp(A)) * Exp(A), e), np.eye(4))


def test_roots_of_unity_are_primitive() -> None:
    for system in (Gaussian(Prime()), BALLS):
        with system.context():
            for n in (1, 2, 3, 4, 5, 6, 8, 12):
                root = system.root_of_unity(n)
                powers = [system.equal(system.power(root, p), system.number(1)).holds for p in range(1, n + 1)]
                assert powers == [False] * (n - 1) + [True]


def test_degrees_bound_the_true_degree() -> None:
    """The entries on a random line are polynomials whose degree can be read off."""
    n, i = index("n"), index("i")
    A, B, a = matrix("A", n, n), matrix("B", n, n), scalars("a")
    term = Power(A, 3) * B + Sum(a[i] * a[i + 1] * Eye(n), i, 1, 4) * A
    bound = evaluate(term, Environment(Degrees(), {n: 3}))
    assert bound == Degree(3, 3, 4)
    assert _degree_on_a_line(term, {n: 3}) == 4


def test_degrees_of_an_inverse() -> None:
    n = index("n")
    A, B = matrix("A", n, n), matrix("B", n, n)
    found = evaluate(Inverse(A) * B, Environment(Degrees(), {n: 3}))
    assert (found.rows, found.cols, found.num, found.den) == (3, 3, 3, 3)
    assert evaluate(Inverse(Inverse(A)), Environment(Degrees(), {n: 2})).num >= 1


def test_a_sum_is_over_the_least_common_multiple_of_what_was_divided_by() -> None:
    """x_t = x_{t-1} - x_{t-1} a_t / b_t has one divisor for each token, not two for each that it had before."""
    a, b = scalars("a"), scalars("b")
    x = recurrence("x", scalar("x0"), lambda t, before: before - before * (a[t] * Inverse(b[t])))
    found = [evaluate(x[n], Environment(Degrees(), {})) for n in (1, 2, 40)]
    assert [(d.num, d.den) for d in found] == [(2, 1), (3, 2), (41, 40)]
    once, twice = (evaluate(Inverse(b[1]) * y, Environment(Degrees(), {})) for y in (a[1], Inverse(b[1])))
    assert (once.den, twice.den) == (1, 2)


def _degree_on_a_line(term: Any, index_: Any) -> int:
    """Interpolate an entry of the term at points x0 + l x1 of GF(p)."""
    rng = Random(1)
    lines: dict[Any, tuple[int, int]] = {}
    found = []
    for l in range(12):
        values: dict[Any, Any] = {}
        for key, shape in {("A", ()): 9, ("B", ()): 9, **{("a", (k,)): 1 for k in range(1, 6)}}.items():
            entries = []
            for c in range(shape):
                p, q = lines.setdefault((key, c), (rng.randrange(MERSENNE), rng.randrange(MERSENNE)))
                entries.append((p + l * q) % MERSENNE)
            values[key] = entries[0] if shape == 1 else [entries[3 * r : 3 * r + 3] for r in range(3)]
        found.append(int(evaluate(term, Environment(Prime(), index_, values=values))[0, 1]))
    total = nmod_poly([0], MERSENNE)
    for l, y in enumerate(found):
        basis = nmod_poly([y], MERSENNE)
        for o in range(12):
            if o != l:
                basis *= nmod_poly([-o, 1], MERSENNE) * pow(l - o, -1, MERSENNE)
        total += basis
    return int(total.degree())
