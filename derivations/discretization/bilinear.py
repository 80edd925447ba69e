"""The bilinear rule: where it comes from, how accurate it is, and that it keeps stability.

Ā = (I - ½ΔA)⁻¹ (I + ½ΔA)        B̄ = (I - ½ΔA)⁻¹ ΔB
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Iff, Invertible, Less, LessEqual, NonZero, Statement
from ..kernel.scripts import Both, Chain, Contradiction, Direct, Each, Exists, Given, Lemma, Link, Ode, Product, Sign, Using
from ..kernel.terms import Conj, Exp, Integral, Inverse, Num, Term, le, named, scalar, vectors
from .operators import (
    BILINEAR_OPERATOR,
    GU,
    HALF,
    NOTE,
    A,
    B,
    N,
    bilinear_A,
    bilinear_B,
    delta,
    euler_A,
    gbt_inverse,
    identity,
    k,
    m,
    s,
    u,
)

# Over step k the slope is the mean of A x + B u at its two ends; u_k and w_k are the input's values there.
x, w = vectors("x", N), vectors("w", m)


def trapezoid(end: Term) -> Assumption:
    """The implicit rule for step k, with the given input at the end of the step."""
    mean = HALF * (A * x[k] + B * u[k] + A * x[k + 1] + B * end)
    solved = gbt_inverse * (x[k] + HALF * delta * (A * x[k] + B * u[k] + B * end))
    return Assumption("trapezoid rule", Equation(x[k + 1], x[k] + delta * mean), solve={x[k + 1]: solved})


no_pole = Assumption("2/Δ is no eigenvalue of A", Invertible(identity - HALF * delta * A))
hold = Assumption("the input is held", Equation(w[k], u[k]), solve={w[k]: u[k]})
singular_step = {N: 1, m: 1, A: 1, delta: 2, B: 0, x[k]: 0, x[k + 1]: 1}


def explicit(control: Term) -> Formula:
    """The inverse exists, and the rule is the recurrence."""
    return And(
        Invertible(identity - HALF * delta * A),
        Equation(x[k + 1], bilinear_A * x[k] + bilinear_B * control),
    )


averaged = Statement(explicit(HALF * (u[k] + w[k])), le(0, k), (trapezoid(w[k]), no_pole))

AVERAGED = Claim(
    id="discretization/bilinear-averaged",
    title="the trapezoid rule is the bilinear recurrence with the mean of the input's two ends",
    statement=averaged,
    sources=(Source(GU, "equation 3", "Ā and B̄; the rule itself is Tustin's"),),
    proof=Each(
        (
            Exists(),
            Direct(
                (Using(Given("trapezoid rule"), left=gbt_inverse),),
                "collect x_{k+1} on the left and divide by I - ½ΔA",
            ),
        )
    ),
    operator=BILINEAR_OPERATOR,
    near_misses=(
        variant(averaged, "another rule", drop="trapezoid rule"),
        variant(averaged, "2/Δ is an eigenvalue of A", drop="2/Δ is no eigenvalue of A", at=singular_step),
        variant(averaged, "the true trapezoid rule with u_k alone", explicit(u[k])),
    ),
)

bilinear = Statement(explicit(u[k]), le(0, k), (trapezoid(w[k]), no_pole, hold))

BILINEAR = Claim(
    id="discretization/bilinear",
    title="bilinear: Ā = (I - ½ΔA)⁻¹ (I + ½ΔA), B̄ = (I - ½ΔA)⁻¹ ΔB",
    statement=bilinear,
    as_written=Statement(bilinear.conclusion, bilinear.where, (trapezoid(w[k]),)),
    expected="qualified",
    sources=(
        Source(GU, "equation 3"),
        Source(NOTE, "discrete representation: Ā = (I-Δ/2·A)⁻¹(I+Δ/2·A), B̄ = (I-Δ/2·A)⁻¹·ΔB", "only for an input held on the step"),
    ),
    proof=Each(
        (
            Exists(),
            Chain(
                (
                    Link(
                        bilinear_A * x[k] + bilinear_B * (HALF * (u[k] + w[k])),
                        (Using(Lemma("discretization/bilinear-averaged", part=1, at={k: k})),),
                        "the trapezoid rule, solved for x_{k+1}",
                    ),
                ),
                (Given("the input is held"),),
                "the mean of u_k and u_k",
            ),
        )
    ),
    operator=BILINEAR_OPERATOR,
    near_misses=(
        variant(bilinear, "another rule", drop="trapezoid rule"),
        variant(bilinear, "2/Δ is an eigenvalue of A", drop="2/Δ is no eigenvalue of A", at=singular_step),
        variant(bilinear, "an input that moves during the step", drop="the input is held"),
        NearMiss("the true trapezoid rule with u_k alone", Statement(bilinear.conclusion, bilinear.where, (trapezoid(u[k + 1]), no_pole))),
    ),
)


def after(weight: Term) -> Term:
    """The weighted exponential of the rest of a step: a remainder of Taylor's formula."""
    return Integral(weight * Exp((delta - s) * A), s, 0, delta)


SIXTH, EIGHTH = Num(Fraction(1, 6)), Num(Fraction(1, 8))
second = identity + delta * A + HALF * delta**2 * A**2
third = second + SIXTH * delta**3 * A**3
R_3 = named("R3", A**3 * after(HALF * s**2))
R_4 = named("R4", A**4 * after(SIXTH * s**3))
series = Statement(And(Equation(Exp(delta * A), second + R_3), Equation(Exp(delta * A), third + R_4)))

SERIES = Claim(
    id="discretization/exponential-series",
    title="e^{ΔA} is its series to the second and to the third order, with the remainder as an integral",
    statement=series,
    sources=(Source("Rudin, Principles of Mathematical Analysis, 3rd ed.", "theorem 5.15", "with the remainder as an integral"),),
    proof=Each((Ode(delta, matrix=A), Ode(delta, matrix=A))),
    near_misses=(
        variant(series, "one order further on", And(Equation(Exp(delta * A), second + R_4), Equation(Exp(delta * A), third + R_4))),
        variant(series, "another weight", Equation(Exp(delta * A), third + A**4 * after(s**3))),
    ),
)


def errors(constant: Fraction = Fraction(1, 12), power: int = 3, euler: Fraction = Fraction(-1, 2)) -> Formula:
    """What the two rules miss of e^{ΔA}: a leading term, and a remainder one order smaller."""
    rest = EIGHTH * delta**4 * A**4 * gbt_inverse - R_4
    return And(
        Invertible(identity - HALF * delta * A),
        Equation(bilinear_A - Exp(delta * A), constant * delta**power * A**power + named("O4", rest)),
        Equation(euler_A - Exp(delta * A), euler * delta**2 * A**2 - R_3),
    )


order = Statement(errors(), assumptions=(no_pole,))
to_second, to_third = (Lemma("discretization/exponential-series", part=n) for n in (0, 1))

ORDER = Claim(
    id="discretization/bilinear-order",
    title="bilinear Ā = e^{ΔA} + A³Δ³/12 + O(Δ⁴), Euler I + ΔA = e^{ΔA} - A²Δ²/2 + O(Δ³), with the remainders in full",
    statement=order,
    sources=(
        Source(GU, "equation 3", "Ā is the Padé approximant [1/1] of the exponential"),
        Source("Hairer and Wanner, Solving Ordinary Differential Equations II", "section IV.3, Padé approximations to the exponential"),
    ),
    proof=Each(
        (
            Exists(),
            Direct((Using(to_third, left=-1),), "Ā = I + ΔA + ½Δ²A² + ¼Δ³A³ + …, and ¼ - ⅙ = 1/12"),
            Direct((Using(to_second, left=-1),), "e^{ΔA} to the second order"),
        )
    ),
    near_misses=(
        variant(order, "2/Δ is an eigenvalue of A", drop="2/Δ is no eigenvalue of A", at={N: 1, A: 1, delta: 2}),
        variant(order, "the bilinear rule one order better", errors(power=4)),
        variant(order, "another constant", errors(Fraction(1, 6))),
        variant(order, "Euler too large", errors(euler=Fraction(1, 2))),
    ),
)

# For one eigenvalue λ of A, with z = Δλ/2.
eigenvalue = scalar("lambda", "complex")
z = named("z", HALF * delta * eigenvalue)
real_part_twice = eigenvalue + Conj(eigenvalue)
one = Num(1)
factor = (one + z) / (one - z)
forward_step = Assumption("Δ > 0", Less(0, delta))


def modulus2(of: Term) -> Term:
    """The squared modulus of a complex number."""
    return Conj(of) * of


def damped(left: Formula, of: Term) -> Formula:
    """The continuous mode decays exactly where the factor exists and is inside the unit circle."""
    return Iff(left, And(NonZero(one - z), Less(modulus2(of), 1)))


decays = Less(real_part_twice, 0)
stable = Statement(damped(decays, factor), assumptions=(forward_step,))
distance = modulus2(Inverse(one - z))

STABLE = Claim(
    id="discretization/bilinear-stability",
    title="Re λ < 0 exactly where the bilinear factor (1 + z)/(1 - z), z = Δλ/2, has modulus below 1",
    statement=stable,
    sources=(Source("Hairer and Wanner, Solving Ordinary Differential Equations II", "section IV.3, A-stability"),),
    proof=Both(
        Each(
            (
                # |1 - z|² = 1 - 2 Re z + |z|²
                Exists((Product((1,)), Product((delta, -real_part_twice), Fraction(1, 2)), Product((modulus2(z),)))),
                # 1 - |w|² = -4 Re z / |1 - z|²
                Sign((Product((delta, -real_part_twice, distance)),)),
            )
        ),
        Contradiction("premise 2", (Product((delta, real_part_twice, distance)),)),
    ),
    operator=BILINEAR_OPERATOR,
    near_misses=(
        variant(stable, "backwards in time", drop="Δ > 0"),
        variant(stable, "the boundary counted in", damped(LessEqual(real_part_twice, 0), factor)),
        variant(stable, "Euler's factor", Iff(decays, Less(modulus2(one + 2 * z), 1))),
        variant(stable, "numerator and denominator swapped", Iff(decays, And(NonZero(one + z), Less(modulus2((one - z) / (one + z)), 1)))),
    ),
)

CLAIMS = (AVERAGED, BILINEAR, SERIES, ORDER, STABLE)
