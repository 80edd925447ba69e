"""Costs, counted from the terms by the conventions of ``derivations.cost``: the recurrence, and the convolution by transforms."""

from __future__ import annotations

from fractions import Fraction

from .. import cost
from ..attention.room import keeps
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Implies, LessEqual, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Product, Sign, Suppose, Using
from ..kernel.terms import Diag, Ind, Num, Recurrence, Sum, Term, indices, le, named, recurrence, scalar, scalars, vector
from .operator import DECLARATION, GU, Abar, N, j, k, l, m, p, x

COOLEY = "Cooley, Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series, Math. Comp. 19 (1965)"

T, n, q = indices("T n q")

# A fast transform ---------------------------------------------------------------------------------

# A transform of 2n numbers c_0, c_1, ... has the values of one polynomial at 2n points, which come in pairs z and -z. The even
# and the odd ones make polynomials of n numbers each, which z² is put into.
z, c = scalar("z", "complex"), scalars("c", "complex")
even, odd = scalar("e", "complex"), scalar("o", "complex")
PAIR = (even + z * odd, even - z * odd)


def polynomial(point: Term, first: int = 0, step: int = 1, last: object = n - 1) -> Term:
    """The value at a point of the polynomial of every step-th number from the first on."""
    return Sum(point**j * c[step * j + first], j, 0, last)


def halves(sign: int, odd_at: Term) -> Term:
    """What the two halves make of z, or of -z."""
    return polynomial(z**2, 0, 2) + sign * z * polynomial(odd_at, 1, 2)


def transform(kind: str) -> Recurrence:
    """The operations of 2^q values from 2^q numbers: two transforms of half the size, and their values in pairs."""
    each = named(kind, cost.operations(*PAIR)[kind], *PAIR)
    return recurrence("F", Num(0), lambda q, F: 2 * F + Num(2) ** (q - 1) * each)


MULTIPLIED, ADDED = transform(cost.MULTIPLICATIONS), transform(cost.ADDITIONS)


def fast(odd_at: Term, additions: Term) -> Formula:
    """Two halves make a transform, and what it takes."""
    return And(
        Equation(polynomial(z, last=2 * n - 1), halves(1, odd_at)),
        Equation(polynomial(-z, last=2 * n - 1), halves(-1, odd_at)),
        Equation(2 * MULTIPLIED[q], Ind(q) * Num(2) ** q),
        Equation(ADDED[q], additions),
    )


fft = Statement(fast(z**2, Ind(q) * Num(2) ** q), le(0, n) & le(0, q))
one_more_pair = Direct((Using(Hypothesis()),), "two numbers more")

FFT = Claim(
    id="state-space/fft",
    title="a transform of 2^q numbers takes q 2^q / 2 complex multiplications and q 2^q additions: two of half the size, and pairs",
    statement=fft,
    sources=(Source(COOLEY, "the case r = 2", "the values of a polynomial at z and -z; the points are 2^q-th roots of unity"),),
    proof=Each(
        (
            Induction(n, Direct(note="no number"), one_more_pair),
            Induction(n, Direct(note="no number"), one_more_pair),
            Induction(q, Direct(note="one number is its own transform"), Direct((Using(Hypothesis(), left=2),), "twice as many")),
            Induction(q, Direct(note="one number is its own transform"), Direct((Using(Hypothesis(), left=2),), "twice as many")),
        )
    ),
    near_misses=(
        variant(fft, "the odd half at z", fast(z, Ind(q) * Num(2) ** q)),
        variant(fft, "one addition for two values", fast(z**2, Ind(q) * Num(2) ** (q - 1))),
        variant(fft, "as many operations as numbers", fast(z**2, Num(2) ** q), at={n: 1, q: 2}),
    ),
)

# Recurrence and convolution -----------------------------------------------------------------------

DENSE = cost.step(DECLARATION)
a = vector("a", N)
DIAGONAL = tuple(y.subs({Abar: Diag(a)}) for y in DENSE)
steps, size, inputs, outputs = Ind(T), Ind(N), Ind(m), Ind(p)
taps, drive = scalars("K"), scalars("w")
ANSWER = Sum(taps[l] * drive[k - l], l, 0, k - 1)  # one input, one output, tap by tap


def over_all(computed: tuple[Term, ...], kind: str) -> Term:
    """The operations of a kind in all T steps."""
    return Sum(named(kind, cost.operations(*computed)[kind], *computed), k, 1, T)


def takes(computed: tuple[Term, ...], multiplications: Term, additions: Term) -> tuple[Equation, ...]:
    """All T steps of a recurrence take so many operations each."""
    return (
        Equation(over_all(computed, cost.MULTIPLICATIONS), steps * multiplications),
        Equation(over_all(computed, cost.ADDITIONS), steps * additions),
    )


def by_transforms(bound: Term, longest: Term = steps * 4) -> Formula:
    """Three transforms of 2^q numbers, 2^q products of spectra, and as many to divide by 2^q."""
    multiplied = 3 * MULTIPLIED[q] + 2 * Num(2) ** q
    return Implies(LessEqual(Num(2) ** q, longest), LessEqual(multiplied, bound))


full = (size + outputs) * (size + inputs), (size + outputs) * (size + inputs - 1)
dense = takes(DENSE, *full)
diagonal = takes(DIAGONAL, size + size * inputs + outputs * (size + inputs), size * inputs + outputs * (size + inputs - 1))
kept = keeps(x[k], numbers=size)
directly = Equation(2 * over_all((ANSWER,), cost.MULTIPLICATIONS), steps * (steps + 1))
fewest = (Ind(q) * 6 + 8) * steps
fast_bound = by_transforms(fewest)

counted = Statement(And(*dense, *diagonal, kept, directly, fast_bound), le(0, T) & le(1, N) & le(1, m) & le(0, p) & le(0, q))
transforms = Using(Lemma("state-space/fft", part=2, at={q: q, n: 0}), left=Num(Fraction(-3, 2)))
slack = 4 * steps - Num(2) ** q

COST = Claim(
    id="state-space/cost",
    title="T steps take T (N + p)(N + m) products, T (N + N m + p (N + m)) for a diagonal Ā, and keep N numbers; a convolution given its "
    "kernel takes T (T + 1)/2 directly, and at most (6q + 8) T by transforms of 2^q <= 4T numbers",
    statement=counted,
    sources=(
        Source(GU, "section 3.2 and table 1", "as written; convolution: one channel, with 2T - 1 <= 2^q < 4T"),
        Source(COOLEY, "operations of a transform", "complex ones"),
    ),
    proof=Each(
        (
            *(Direct(note="the same at every step"),) * 4,
            Direct(note="the state"),
            Induction(T, Direct(note="no step"), Direct((Using(Hypothesis()),), "k products at step k")),
            Suppose(Sign((Product((Ind(q), slack), Fraction(3, 2)), Product((slack,), Fraction(2))), (transforms,))),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(counted, "a diagonal Ā costs as much", And(*dense, *takes(DIAGONAL, *full), kept, directly, fast_bound)),
        variant(counted, "T products directly", And(*dense, *diagonal, kept, Equation(directly.lhs, 2 * steps), fast_bound)),
        variant(counted, "a number of operations in proportion to T", And(*dense, *diagonal, kept, directly, by_transforms(steps * 14))),
        variant(
            counted,
            "transforms of any size",
            And(*dense, *diagonal, kept, directly, by_transforms(fewest, Num(2) ** q)),
            at={T: 1, N: 1, m: 1, p: 1, q: 3},
        ),
    ),
)

CLAIMS = (FFT, COST)
