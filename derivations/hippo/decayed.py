"""HiPPO-LegS without 1/t, as S4 uses it: x' = -A x + B u, whose impulse response is a column of Legendre polynomials in e^{-t}.

    (e^{-tA} B)_n = √(2n+1) P_n(2e^{-t} - 1) e^{-t}

An orthonormal family of columns e_0, ..., e_{N-1} stands for the coordinates: A is the sum of the A_{nk} e_n e_kᵀ.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Direct, Given, Lemma, Ode, Using
from ..kernel.terms import Block, Exp, Ind, Num, Sqrt, Stack, Sum, Term, equal, indicator, indices, le, named, recurrence, vectors
from .polynomials import (
    HIPPO,
    MINUS_ONE,
    NOTE,
    TRAIN,
    N,
    along,
    at_end,
    by_induction,
    every_degree,
    k,
    legendre,
    n,
    norm2,
    sign,
    slope,
    t,
)
from .scaled import legs_entry

S4 = "Gu, Goel, Ré, Efficiently Modeling Long Sequences with Structured State Spaces, arXiv 2111.00396"
D, i, j = indices("D i j")


rising, falling = Exp(t), Exp(-t)


def fading(at: Term = t) -> Term:
    """2e^{-t} - 1."""
    return Num(2) * Exp(-at) + MINUS_ONE


at_start = at_end(fading(Num(0)), Num(1))
decaying = Statement(along(fading(), t, Num(-2) * Exp(-t), *at_start), every_degree)

DECAYING = Claim(
    id="hippo/legendre-decaying",
    title="d/dt P_n(2e^{-t} - 1) = -2e^{-t} P'_n(2e^{-t} - 1), and P_n is 1 at t = 0",
    statement=decaying,
    sources=(Source(HIPPO, "theorem 2", "with t the logarithm of time, run backwards"),),
    proof=by_induction(4),
    near_misses=(
        variant(decaying, "the argument grows", along(fading(), t, Num(2) * Exp(-t), *at_start)),
        variant(decaying, "half the speed", along(fading(), t, Num(-1) * Exp(-t), *at_start)),
        variant(decaying, "P_n(1) = (-1)^n", And(*at_end(fading(Num(0)), sign(n)))),
    ),
)


def in_lower(last: Any = n - 1, factor: Term = rising) -> Formula:
    """The slope in the polynomials of no higher degree."""
    lower = Ind(n) * legendre(n, fading()) + Sum(norm2(k) * legendre(k, fading()), k, 0, last)
    return Equation(slope(n, fading()), factor * lower / 2)


expanded = Statement(in_lower(), every_degree)

EXPANDED = Claim(
    id="hippo/legendre-decayed",
    title="2e^{-t} P'_n(2e^{-t} - 1) = n P_n + Σ_{k<n} (2k + 1) P_k",
    statement=expanded,
    sources=(Source(HIPPO, "appendix B.1.1, equation 8", "1 + x = 2e^{-t}"),),
    proof=Direct(
        (
            Using(
                Lemma("hippo/legendre-expansions", part=0, at={n: n}, families={"x": ((), fading())}),
                left=Exp(t) / 2,
            ),
        )
    ),
    near_misses=(
        variant(expanded, "degree n counted twice", in_lower(n)),
        variant(expanded, "without the factor e^t", in_lower(factor=Num(1))),
    ),
)

# The response in coordinates -------------------------------------------------------------------------

e = vectors("e", D)
frame = Assumption(
    "e_0, ..., e_{N-1} are orthonormal",
    ForAll(ForAll(Equation(e[i].T * e[j], indicator(equal(i, j))), j, 0, N - 1), i, 0, N - 1),
    solve={e[i]: Stack(indicator(equal(j, i + 1)), j, 1, D)},
)


def in_frame(diagonal: Any = None) -> Term:
    """A of HiPPO-LegS, in the coordinates of the frame."""
    return named("A", Sum(Sum(legs_entry(n, k, diagonal) * (e[n] * e[k].T), k, 0, N - 1), n, 0, N - 1))


start = named("B", Sum(Sqrt(norm2(n)) * e[n], n, 0, N - 1))


def response(shape: Any = legendre, decay: Term = falling) -> Term:
    """The column of √(2n+1) P_n(2e^{-t} - 1) e^{-t}."""
    return Sum(Sqrt(norm2(n)) * shape(n, fading()) * decay * e[n], n, 0, N - 1)


def linear(at: Any, _: Term) -> Term:
    """P_n(2t - 1): no decay of the argument."""
    return legendre(at, Num(2) * t + MINUS_ONE)


def laguerre(at: Any, _: Term) -> Term:
    """The Laguerre polynomial L_n(t), by its three-term recurrence."""
    first, second = Block((Num(1), Num(0))), Block((Num(0), Num(1)))

    def step(m: Any, pair: Term) -> Term:
        new = (Ind(2 * m - 1) - t) * (first * pair) - Ind(m - 1) * (second * pair)
        return Block((new / Ind(m),), (first * pair,))

    return named("L", first * recurrence("l", Block((Num(1),), (Num(0),)), step)[at], at)


def responds(A: Term, column: Term) -> Formula:
    """The impulse response of x' = -A x + B u."""
    return Equation(Exp(-t * A) * start, column)


basis = Statement(responds(in_frame(), response()), le(0, N) & le(N, D), (frame,))

BASIS = Claim(
    id="hippo/s4-basis",
    title="without 1/t, HiPPO-LegS has the impulse response (e^{-tA} B)_n = √(2n+1) P_n(2e^{-t} - 1) e^{-t}, for every N",
    statement=basis,
    sources=(
        Source(TRAIN, "section 3, the basis of LegS", "L_n(e^{-t}) e^{-t}, L_n the Legendre polynomial on [0, 1], orthonormal"),
        Source(S4, "appendix", "the same A without 1/t"),
        Source(NOTE, "S4's HiPPO matrix", "Legendre polynomials, not those of Laguerre"),
    ),
    proof=Ode(
        t,
        matrix=-in_frame(),
        by=(
            Given(frame.name),
            Lemma("hippo/legendre-decaying", part=0),
            Lemma("hippo/legendre-decaying", part=2),
            Lemma("hippo/legendre-decayed"),
        ),
    ),
    near_misses=(
        variant(basis, "any columns", drop=frame.name),
        variant(basis, "the input fades twice", responds(in_frame(), response(decay=Exp(Num(-2) * t)))),
        variant(basis, "2n + 1 on the diagonal", responds(in_frame(norm2(n)), response())),
        variant(basis, "polynomials in t", responds(in_frame(), response(linear))),
        variant(basis, "the polynomials of Laguerre", responds(in_frame(), response(laguerre)), at={N: 2, D: 2, t: 1}),
    ),
)

CLAIMS = (DECAYING, EXPANDED, BASIS)
