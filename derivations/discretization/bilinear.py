"""The bilinear rule: where it comes from, how accurate it is, and that it keeps stability.

Ā = (I - ½ΔA)⁻¹ (I + ½ΔA)        B̄ = (I - ½ΔA)⁻¹ ΔB
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Iff, Invertible, Less, LessEqual, NonZero, Statement
from ..kernel.scripts import Both, Chain, Contradiction, Direct, Each, Exists, Given, Lemma, Link, Product, Sign, Using
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


def remainder(weight: Term) -> Term:
    """The integral of a weighted exponential over a step."""
    return Integral(weight * Exp(s * A), s, 0, delta)


def errors(bilinear_error: Term, euler_error: Term, constant: Fraction = Fraction(1, 12)) -> Formula:
    """The errors of the two rules, and the sizes of their leading terms."""
    return And(
        Invertible(identity - HALF * delta * A),
        Equation(bilinear_A - Exp(delta * A), gbt_inverse * bilinear_error),
        Equation(Integral(parabola, s, 0, delta), constant * delta**3),
        Equation(euler_A - Exp(delta * A), -euler_error),
        Equation(Integral(delta - s, s, 0, delta), HALF * delta**2),
    )


# Exact errors in the place of orders: the weights vanish at the ends of the step, and e^{sA} = identity + O(Δ) on it.
parabola = HALF * s * (delta - s)
bilinear_error, euler_error = A**3 * remainder(parabola), A**2 * remainder(delta - s)
order = Statement(errors(bilinear_error, euler_error), assumptions=(no_pole,))

ORDER = Claim(
    id="discretization/bilinear-order",
    title="bilinear Ā = e^{ΔA} + A³Δ³/12 + O(Δ⁴), Euler I + ΔA = e^{ΔA} - A²Δ²/2 + O(Δ³)",
    statement=order,
    sources=(
        Source(GU, "equation 3", "Ā is the Padé approximant [1/1] of the exponential"),
        Source("Davis and Rabinowitz, Methods of Numerical Integration, 2nd ed.", "chapter 4", "Peano kernel of the trapezoid rule"),
    ),
    proof=Each(
        (
            Exists(),
            Direct(
                (
                    Using(Lemma("discretization/exponential-moments", part=1), left=-HALF * delta * A * gbt_inverse),
                    Using(Lemma("discretization/exponential-moments", part=2), left=HALF * gbt_inverse),
                ),
                "½ s (Δ - s) by its two moments",
            ),
            Direct(note="the leading error A³Δ³/12"),
            Direct(
                (
                    Using(Lemma("discretization/exponential-moments", part=0), left=delta * A),
                    Using(Lemma("discretization/exponential-moments", part=1), left=-1),
                ),
                "Δ - s by its two moments",
            ),
            Direct(note="the leading error -A²Δ²/2"),
        )
    ),
    near_misses=(
        variant(order, "2/Δ is an eigenvalue of A", drop="2/Δ is no eigenvalue of A", at={N: 1, A: 1, delta: 2}),
        variant(order, "the bilinear rule one order better", errors(A**4 * remainder(parabola), euler_error)),
        variant(order, "another constant", errors(bilinear_error, euler_error, Fraction(1, 6))),
        variant(order, "Euler too large", errors(bilinear_error, -euler_error)),
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

CLAIMS = (AVERAGED, BILINEAR, ORDER, STABLE)
