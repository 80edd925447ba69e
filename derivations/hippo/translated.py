"""HiPPO-LegT: the coefficients of a window, c_n(t) = √(2n+1) (1/θ) ∫_{t-θ}^t u(τ) P_n(1 - 2(t-τ)/θ) dτ, and the delay that closes them.

    A_{nk} = √(2n+1) √(2k+1) (1 for k <= n, (-1)^{n-k} for k > n)        B_n = √(2n+1)

The derivative of c speaks of u(t - θ), which is no longer there; in its place stands what the coefficients say of it.

Source: Gu, Dao, Ermon, Rudra, Ré, "HiPPO", arXiv 2008.07669, theorem 1 and appendix D.1, in the scaling of appendix D.1 with window
[t - θ, t]. Degrees are numbered from 0.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, Given, Hypothesis, Induction, Integrands, Lemma, Part, Rowwise, Using
from ..kernel.terms import Deriv, Integral, Num, Sqrt, Stack, Sum, Term, Where, entries, le, named, scalar
from .polynomials import (
    HIPPO,
    LMU,
    MINUS_ONE,
    NOTE,
    N,
    constant,
    drive,
    every_degree,
    incline,
    k,
    legendre,
    n,
    norm2,
    share,
    sign,
    sliding,
    t,
    tau,
    theta,
    wide,
)
from .scaled import coefficients, column, legs_input, row

past = (t - theta, t)
s = scalar("s")


def collected(at: Any) -> Term:
    """The integral of u P_n(1 - 2(t-τ)/θ) over the window."""
    return Integral(drive(tau) * legendre(at, sliding()), tau, *past)


def moment(at: Any) -> Term:
    """The same over θ: c_n without its factor √(2n+1)."""
    return named("m", collected(at) / theta, at)


def lower(of: Any, last: Any = n - 1) -> Term:
    """The degrees below n whose parity is another one, twice."""
    return Sum((1 - sign(n - k)) * norm2(k) * of(k), k, 0, last)


def flow(last: Any = n - 1, leaving: Term | None = None) -> Term:
    """θ times the derivative of the moment of degree n."""
    gone = sign(n) * drive(t - theta) if leaving is None else leaving
    return drive(t) - gone - lower(moment, last)


turned = Integral(drive(tau) * Deriv(legendre(n, sliding()), t), tau, *past)
spread = Integral(-(drive(tau) * lower(lambda k: legendre(k, sliding())) / theta), tau, *past)


def moves(right: Term) -> Formula:
    """The integrals of the moving basis, and the moments' derivatives."""
    return And(NonZero(theta), Equation(turned, spread), Equation(Deriv(moment(n), t), right / theta))


moving = Statement(moves(flow()), every_degree, (wide,))
at_window = {"x": ((), sliding())}

at_degree_one = {n: 1, t: 1, theta: 1, constant: 1, incline: 0, share: 1}

MOMENTS = Claim(
    id="hippo/legt-moments",
    title="the moments of a window move by those of lower degree, by what enters and by what leaves, for every degree",
    statement=moving,
    sources=(Source(HIPPO, "appendix D.1", "the derivative of c_n before u(t - θ) is replaced, with the square roots divided out"),),
    proof=Each(
        (
            Exists(),
            Integrands(
                tau,
                Direct(
                    (
                        Using(Lemma("hippo/legendre-sliding", part=1, at={n: n}), left=drive(tau)),
                        Using(Lemma("hippo/legendre-expansions", part=2, at={n: n}, families=at_window), left=-drive(tau) / theta),
                    ),
                    "2 P'_n is a sum of lower degrees",
                ),
            ),
            Direct(
                (
                    Lemma("hippo/legendre-sliding", part=3),
                    Lemma("hippo/legendre-sliding", part=5),
                    Using(Part(2), left=1 / theta),
                ),
                "the Leibniz rule: P_n is 1 at the upper end and (-1)^n at the lower one",
            ),
        )
    ),
    near_misses=(
        variant(moving, "a window of length 0", drop="θ ≠ 0", at={n: 0, theta: 0}),
        variant(moving, "what leaves has no sign", moves(flow(leaving=drive(t - theta))), at=at_degree_one),
        variant(moving, "nothing leaves", moves(flow(leaving=Num(0) * drive(t))), at=at_degree_one),
        variant(moving, "the lowest degree is left out", moves(flow(last=n - 2)), at=at_degree_one),
    ),
)

# The matrices of the paper ------------------------------------------------------------------------


def legt_matrix(above: Any = None) -> Term:
    """The N x N matrix A of HiPPO-LegT, rows and columns numbered from 0, in the sign of ẋ = -A x / θ."""
    turned = sign(row - column) if above is None else above
    entry = Sqrt(norm2(row)) * Sqrt(norm2(column)) * Where(le(column, row), Num(1), turned)
    return named("A", entries(entry, row, (0, N - 1), column, (0, N - 1)))


c = coefficients(moment)


def recalled(of: Any = moment) -> Term:
    """What the coefficients say of u(t - θ): the series at the lower end of the window."""
    return Sum(sign(k) * norm2(k) * of(k), k, 0, N - 1)


def lost(factor: Any = sign, said: Term | None = None) -> Term:
    """How the equation errs: by u(t - θ) minus what the coefficients say of it."""
    missed = drive(t - theta) - (recalled() if said is None else said)
    return Stack(Sqrt(norm2(row)) * factor(row), row, 0, N - 1) * missed / theta


def closed(A: Term | None = None) -> Term:
    """The right side of the equation of HiPPO-LegT."""
    return (legs_input() * drive(t) - (legt_matrix() if A is None else A) * c) / theta


def follows(right: Term) -> Formula:
    """The coefficients exist, and move like this."""
    return And(NonZero(theta), Equation(Deriv(c, t), right))


# where the search for a counterexample need not look far
at_zero = {N: 1, theta: 0, t: 0, constant: 0, incline: 0, share: 0}
at_one, at_two = ({N: size, t: 1, theta: 1, constant: 0, incline: 0, share: 1} for size in (1, 2))
on_a_line = {N: 2, t: 0, theta: 1, constant: 0, scalar("b_0"): 1}

erring = Statement(follows(closed() - lost()), le(1, N), (wide,))

RESIDUAL = Claim(
    id="hippo/legt-residual",
    title="the coefficients of a window obey ċ = -(1/θ) A c + (1/θ) B u up to (-1)^n √(2n+1)/θ times what the series misses of u(t-θ)",
    statement=erring,
    sources=(Source(HIPPO, "appendix D.1", "there the last term is dropped"),),
    proof=Each(
        (
            Exists(),
            Rowwise(
                n,
                Direct(
                    (Using(Lemma("hippo/legt-moments", part=2, at={n: n}), left=Sqrt(norm2(n))),),
                    "√(2n+1) times the moment of degree n",
                ),
            ),
        )
    ),
    near_misses=(
        variant(erring, "a window of length 0", drop="θ ≠ 0", at=at_zero),
        variant(erring, "the error without signs", follows(closed() - lost(lambda n: Num(1))), at=at_two),
        variant(erring, "nothing is recalled", follows(closed() - lost(said=Num(0))), at=at_one),
        variant(erring, "A without signs", follows(closed(legt_matrix(Num(1))) - lost()), at=at_two),
    ),
)


def in_unit_window(at: Any) -> Term:
    """The integral of u P_n over the window as one over [0, 1], which is there for θ = 0 too."""
    return Integral(drive(t - theta + theta * s) * legendre(at, Num(2) * s + MINUS_ONE), s, 0, 1)


def both_ways(factor: Term) -> Formula:
    """The series at the lower end of the window, from either kind of integral."""
    return And(NonZero(theta), Equation(factor * recalled(in_unit_window), recalled(collected)))


recalling = Statement(both_ways(theta), le(0, N), (wide,))
to_the_end = {"r": ((), Num(1))}

RECALLED = Claim(
    id="hippo/legt-recalled",
    title="the truncated series at t - θ is the same from integrals over [0, 1] and, over θ, from those over the window",
    statement=recalling,
    sources=(Source(HIPPO, "appendix D.1"),),
    proof=Induction(
        N,
        base=Each((Exists(), Direct())),
        step=Each(
            (
                Exists(),
                Direct(
                    (
                        Using(Hypothesis()),
                        Using(Lemma("hippo/unit-window", part=1, at={n: N}, families=to_the_end), left=sign(N) * norm2(N)),
                    ),
                    "one term more",
                ),
            )
        ),
    ),
    near_misses=(
        variant(recalling, "a window of length 0", drop="θ ≠ 0", at={N: 1, theta: 0}),
        variant(recalling, "without the factor θ", both_ways(Num(1)), at={N: 1, t: 0, theta: 2, constant: 1, incline: 0, share: 0}),
        variant(recalling, "θ squared", both_ways(theta**2), at={N: 1, t: 0, theta: 2, constant: 1, incline: 0, share: 0}),
    ),
)

reproduced = Assumption(
    "the coefficients reproduce u(t - θ)",
    Equation(recalled(in_unit_window), drive(t - theta)),
    solve={share: Num(0), incline: Where(le(2, N), scalar("b_0"), Num(0))},
)
translated = Statement(follows(closed()), le(1, N), (wide, reproduced))

LEGT = Claim(
    id="hippo/legt",
    title="HiPPO-LegT: the coefficients of a window obey ċ = -(1/θ) A c + (1/θ) B u where they reproduce u(t - θ)",
    statement=translated,
    as_written=Statement(translated.conclusion, translated.where, (wide,)),
    as_written_at=at_one,
    expected="qualified",
    sources=(
        Source(HIPPO, "theorem 1 and appendix D.1", "an approximation there: u(t - θ) is replaced by the truncated series"),
        Source(LMU, "equations 1 and 2", "the same system in another basis"),
        Source(NOTE, "HiPPO-LegT: d/dt c(t) = -(1/θ) A c(t) + (1/θ) B u(t)", "exact only where the series reproduces u(t - θ)"),
    ),
    proof=Each(
        (
            Exists(),
            Rowwise(
                n,
                Direct(
                    (
                        Using(Lemma("hippo/legt-residual", part=1, at={N: N}), row=n),
                        Using(Given(reproduced.name), left=Sqrt(norm2(n)) * sign(n) / theta),
                        Using(Lemma("hippo/legt-recalled", part=1, at={N: N}), left=-Sqrt(norm2(n)) * sign(n) / theta**2),
                    ),
                    "no error is left",
                ),
            ),
        )
    ),
    near_misses=(
        variant(translated, "a window of length 0", drop="θ ≠ 0", at=at_zero),
        variant(translated, "any history", drop=reproduced.name, at=at_one),
        variant(translated, "A without signs", follows(closed(legt_matrix(Num(1)))), at=on_a_line),
        variant(translated, "the triangular A of HiPPO-LegS", follows(closed(legt_matrix(Num(0)))), at=on_a_line),
    ),
)

CLAIMS = (MOMENTS, RESIDUAL, RECALLED, LEGT)
