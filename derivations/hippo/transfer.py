"""The read-out of u(t - θ) from the state of HiPPO-LegT is the Padé approximant [N-1/N] of the delay e^{-θs}, for every N.

With z = θs the state of θ ċ = -A c + B u is c = X u / q(z), where (zI + A) X = q(z) B, and what it says of u(t - θ) is C c = (p/q) u,
C_n = (-1)^n √(2n+1). In X_n = √(2n+1) z^n W_{N-1-n} the W_j obey the three-term recurrence from the highest degree down; the
members of the recursion are columns (W_j, V_j), where V_j = z W_{j-1} and V_0 = 1.
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Lemma, Rowwise, Script, Unfold, Using
from ..kernel.terms import Block, Exp, Inverse, Num, Sqrt, Stack, Sum, Term, equal, indicator, le, matrix, named, recurrence
from .bumps import BAKER, late, z
from .delays import table
from .pade import FIRST, ONES, SECOND, bessel, bessel_before, denominator, numerator
from .polynomials import HIPPO, LMU, N, k, n, norm2, sign
from .scaled import column, legs_input, row
from .translated import legt_matrix


def _step(at: Any, before: Term) -> Term:
    value, later = FIRST * before, SECOND * before
    return Block((Num(2) * norm2(N - at) * value + z * later,), (z * value,))


identity = named("I", table(indicator(equal(row, column))))
downwards = recurrence("s", ONES, _step, field="complex")


def W(at: Any) -> Term:
    """From the highest degree down: the moment of degree N - 1 - j over z^{N-1-j}."""
    return named("W", FIRST * downwards[at], at)


def V(at: Any) -> Term:
    """z W_{j-1}, and 1 for j = 0."""
    return named("V", SECOND * downwards[at], at)


def unfolded(at: Any, left: Term) -> Using:
    """The three-term recurrence."""
    return Using(Unfold(downwards[at]), left=left)


def summed(weight: Any = norm2, last: Any = n) -> Formula:
    """The series of the lower degrees at both ends of the window."""
    plain, turned = (z ** (n + s) * V(N - n - s) for s in (0, 1))
    one, other = (Sum(by(k) * weight(k) * z**k * W(N - 1 - k), k, 0, last) for by in (lambda _: Num(1), sign))
    return And(
        Equation(2 * one, W(N) + V(N) - plain - turned),
        Equation(2 * other, W(N) - V(N) + sign(n) * plain - sign(n) * turned),
    )


inside = le(0, n) & le(n, N - 1)
sums = Statement(summed(), inside)


def telescopes(end: int) -> Script:
    """One degree more, at the near end (-1) and the far one (1)."""
    turned = sign(n) if end == 1 else Num(-1)
    terms = (unfolded(N - n, turned * z**n * SECOND), unfolded(N - 1 - n, turned * z ** (n + 1) * (FIRST - end * SECOND)))
    step = Direct((Using(Hypothesis()), *terms, unfolded(N, FIRST - end * SECOND)))
    return Induction(n, base=Direct((Unfold(downwards[N]),)), step=step)


SUMS = Claim(
    id="hippo/legt-sums",
    title="the sums of (2k + 1) z^k W_{N-1-k} over the lower degrees, with and without signs, by their ends",
    statement=sums,
    sources=(Source(HIPPO, "appendix D.1", "the rows of A against a solution of the three-term recurrence"),),
    proof=Each((telescopes(-1), telescopes(1))),
    near_misses=(
        variant(sums, "the weight 2k - 1", summed(lambda k: norm2(k - 1))),
        variant(sums, "the last degree left out", summed(last=n - 1)),
    ),
)


def paired(turn: int = 1) -> Formula:
    """Downwards against upwards, at any degree."""
    near = W(N - n) * bessel(n) + turn * V(N - n) * bessel_before(n)
    far = W(N - n) * bessel(n, -z) - turn * V(N - n) * bessel_before(n, -z)
    return And(Equation(near, W(N) + V(N)), Equation(far, W(N) - V(N)))


pairs = Statement(paired(), le(0, n) & le(n, N))


def constant(turn: int, of: Term) -> Script:
    """The pairing is the same for the next degree."""
    now = unfolded(N - n, -(bessel(n, of) * FIRST + turn * bessel_before(n, of) * SECOND))
    return Induction(n, step=Direct((Using(Hypothesis()), now, unfolded(N, FIRST + turn * SECOND))))


PAIRED = Claim(
    id="hippo/legt-pairing",
    title="W_N + V_N = D_N(z) + z D_{N-1}(z) and W_N - V_N = D_N(-z) + z D_{N-1}(-z): the recurrence read in both directions",
    statement=pairs,
    sources=(Source(BAKER, "chapter 4", "a continued fraction is evaluated from either end"),),
    proof=Each((constant(1, z), constant(-1, -z))),
    near_misses=(
        variant(pairs, "the difference", paired(-1)),
        variant(pairs, "without what is later", And(Equation(W(N - n) * bessel(n), W(N) + V(N)))),
    ),
)

# The state and what it says --------------------------------------------------------------------------

state = named("X", Stack(Sqrt(norm2(row)) * z**row * W(N - 1 - row), row, 0, N - 1))
q, p = denominator(), numerator()


def read_out(by: Any = sign) -> Term:
    """The row of (-1)^n √(2n+1): the series at the far end of the window."""
    return named("C", Stack(by(row) * Sqrt(norm2(row)), row, 0, N - 1).T)


def shifted(A: Term | None = None) -> Term:
    """zI + A."""
    return z * identity + (legt_matrix() if A is None else A)


def solves(A: Term | None = None, q: Term = q, C: Term | None = None) -> Formula:
    """The state for the input q, and its read-out."""
    return And(
        Equation(shifted(A) * state, q * legs_input()),
        Equation((read_out() if C is None else C) * state, p),
    )


def ends(part: int, at: Any, left: Any) -> Using:
    """A sum by its ends."""
    return Using(Lemma("hippo/legt-sums", part=part, at={n: at, N: N}), left=left)


def both_ways(part: int, left: Any) -> tuple[Using, ...]:
    """The pairing at degree N, and q or p."""
    pairing = Using(Lemma("hippo/legt-pairing", part=part, at={n: N, N: N}), left=-left / 2)
    return pairing, Using(Lemma("hippo/pade-halves", part=part, at={N: N}), left=-left / 2)


root = Sqrt(norm2(n))
first_step = sign(N - 1) * z ** (N - 1) / 2 * SECOND
solved = Statement(solves(), le(1, N))

RESOLVENT = Claim(
    id="hippo/legt-resolvent",
    title="(zI + A) X = q(z) B and C X = p(z) for the A, B of HiPPO-LegT, with a column X of polynomials, for every N",
    statement=solved,
    sources=(Source(LMU, "equations 1 and 2", "there from p and q to A and B"), Source(HIPPO, "appendix D.1", "A and B")),
    proof=Each(
        (
            Rowwise(
                n,
                Direct(
                    (
                        ends(0, n, root / 2),
                        ends(1, n, -root * sign(n) / 2),
                        ends(1, N - 1, root * sign(n) / 2),
                        *both_ways(0, root),
                        unfolded(N - n, -root * z**n * SECOND),
                        unfolded(1, root * sign(n) * first_step),
                    ),
                    "row n of A, as sums over the degrees up to n and above it",
                ),
            ),
            Direct((ends(1, N - 1, Num(1) / 2), *both_ways(1, Num(1)), unfolded(1, first_step)), "the sum with signs"),
        )
    ),
    near_misses=(
        variant(solved, "A with the other sign", solves(Num(-1) * legt_matrix())),
        variant(solved, "A without signs", solves(legt_matrix(Num(1)))),
        variant(solved, "the near end of the window", solves(C=read_out(lambda _: Num(1)))),
        variant(solved, "q without its last term", solves(q=denominator(N - 1))),
    ),
)

R = matrix("R", N, N, "complex")


def inverted(name: str, A: Term | None = None) -> Assumption:
    """R is the inverse of a matrix."""
    return Assumption(name, Equation(R * shifted(A), identity), solve={R: Inverse(shifted(A))})


inverse = inverted("R is the inverse of zI + A")


def error(power: Any = 2 * N) -> Term:
    """What the approximant misses: a power of z times an integral."""
    return sign(N) * z**power * late(N - 1)


def approximates(C: Term | None = None, q: Term = q, p: Term = p, missed: Term | None = None, B: Term | None = None) -> Formula:
    """The read-out's transfer function is p/q, and e^{-z} q - p is of order 2N."""
    transfer = (read_out() if C is None else C) * R * (legs_input() if B is None else B)
    return And(Equation(q * transfer, p), Equation(Exp(-z) * q - p, error() if missed is None else missed))


delayed = Statement(approximates(), le(1, N), (inverse,))
to_diagonal = tuple(
    Using(Lemma("hippo/pade-diagonal", part=part, at={n: N - 1}), left=left / 2) for part, left in ((0, Num(-1)), (1, Num(1)))
)
in_halves = tuple(Using(Lemma("hippo/pade-halves", part=part, at={N: N}), left=left / 2) for part, left in ((0, Exp(-z)), (1, Num(-1))))

PADE = Claim(
    id="hippo/legt-pade",
    title="what HiPPO-LegT says of u(t - θ) is the Padé approximant [N-1/N] of e^{-z}, z = θs: C (zI + A)⁻¹ B = p/q, for every N",
    statement=delayed,
    sources=(
        Source(LMU, "equations 1 and 2", "there A and B are made from the approximant"),
        Source(BAKER, "section 1.2", "deg p = N - 1, deg q = N, and the error's integral"),
    ),
    proof=Each(
        (
            Direct(
                (
                    Using(Lemma("hippo/legt-resolvent", at={N: N}), left=-(read_out() * R)),
                    Using(Given(inverse.name), left=read_out(), right=state),
                    Using(Lemma("hippo/legt-resolvent", part=1, at={N: N})),
                )
            ),
            Direct(
                (*in_halves, *to_diagonal, Using(Lemma("hippo/bump-integrals", part=3, at={n: N - 1}), left=sign(N) * z ** (2 * N) / 2))
            ),
        )
    ),
    near_misses=(
        variant(delayed, "any R", drop=inverse.name),
        variant(
            delayed, "A with the other sign", drop=inverse.name, add=(inverted("R is the inverse of zI - A", Num(-1) * legt_matrix()),)
        ),
        variant(delayed, "the approximant [N/N]", approximates(q=bessel(N), p=bessel(N, -z))),
        variant(delayed, "one order further", approximates(missed=error(2 * N + 1))),
        variant(delayed, "B with the other sign", approximates(B=Num(-1) * legs_input())),
    ),
)

CLAIMS = (SUMS, PAIRED, RESOLVENT, PADE)
