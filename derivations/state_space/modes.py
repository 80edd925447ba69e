"""Other coordinates, complex modes in pairs, and the size of a single mode."""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Invertible, Less, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, Given, Hypothesis, Induction, Part, Unfold, Using
from ..kernel.terms import Block, Conj, Eye, Inverse, Num, Recurrence, Sqrt, Sum, Term, Zero, le, matrix, named, recurrence, scalar, vector
from .convolution import tap
from .operator import DECLARATION, GU, Abar, Bbar, C, D, N, j, k, l, m, p, u, x, x0, y

GUPTA = "Gu, Gupta, Goel, Ré, On the Parameterization and Initialization of Diagonal State Space Models, arXiv 2206.11893"
ONE, TWO, HALF = Num(1), Num(2), Num(Fraction(1, 2))
ORVIETO = "Orvieto et al., Resurrecting Recurrent Neural Networks for Long Sequences, arXiv 2303.06349"

# Other coordinates --------------------------------------------------------------------------------

# F is Ā in the coordinates V⁻¹ x.
V, F = matrix("V", N, N), matrix("F", N, N)
inverse = Inverse(V)
regular = Assumption("V is invertible", Invertible(V))
turned = Assumption("V F = Ā V", Equation(V * F, Abar * V), solve={F: inverse * Abar * V})


def states(start: Term = inverse * x0) -> Recurrence:
    """The states in other coordinates."""
    return recurrence("z", start, lambda k, z: F * z + inverse * Bbar * u[k])


def same_system(z: Recurrence, read: Term = C * V) -> Formula:
    """The coordinates exist, the states are the turned ones, and outputs and kernel are the same."""
    return And(
        Invertible(V),
        Equation(z[k], inverse * x[k]),
        Equation(read * z[k] + D * u[k], y),
        Equation(F**l, inverse * Abar**l * V),
        Equation(read * F**l * (inverse * Bbar), tap(l)),
    )


similar = Statement(same_system(states()), le(0, k) & le(0, l), (regular, turned))
one_factor = (Using(Hypothesis(), left=F), Using(Given(turned.name), left=inverse, right=inverse * Abar**l * V))

SIMILARITY = Claim(
    id="state-space/similarity",
    title="(V⁻¹ Ā V, V⁻¹ B̄, C V, D) has the outputs and the kernel of (Ā, B̄, C, D), from V⁻¹ x_0",
    statement=similar,
    sources=(Source(GU, "section 3.1, lemma 3.1", "there (V⁻¹ A V, V⁻¹ B, C V) before the discretisation; here after it"),),
    proof=Each(
        (
            Exists(),
            Induction(
                k,
                Direct(note="the start, turned"),
                Direct(
                    (Hypothesis(), Using(Given(turned.name), left=inverse, right=inverse * x[k])),
                    "V V⁻¹ = I before the state",
                ),
            ),
            Direct((Part(2),), "V V⁻¹ = I"),
            Induction(l, Direct(note="V⁻¹ V = I"), Direct(one_factor, "V V⁻¹ = I between the factors")),
            Direct((Using(Part(4), left=C * V, right=inverse * Bbar),), "V V⁻¹ = I on both sides"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(similar, "a singular V", drop=regular.name, at={V: Zero(N, N), F: Zero(N, N)}),
        variant(similar, "another transition", drop=turned.name),
        variant(similar, "the start as it was", same_system(states(x0))),
        variant(similar, "C as it was", same_system(states(), C)),
    ),
)

# Complex modes in pairs ---------------------------------------------------------------------------

# A real system closed under conjugation: the modes z, and their conjugates. R, G, E are its half, v its real inputs.
R, G, E = matrix("R", N, N, "complex"), matrix("G", N, m, "complex"), matrix("E", p, N, "complex")
z0 = vector("z0", N, "complex")
half = recurrence("z", z0, lambda k, z: R * z + G * u[k], field="complex")
none = Zero(N, N)


def closed(corner: Term) -> Recurrence:
    """The states of both halves, one above the other."""
    whole, write = Block((R, none), (none, corner)), Block((G,), (Conj(G),))
    return recurrence("w", Block((z0,), (Conj(z0),)), lambda k, w: whole * w + write * u[k], field="complex")


def paired(answer: Term, lower: Term, read: Term) -> Formula:
    """The lower half is the conjugate of the upper one, the output real, and twice the real part of one half's."""
    w = closed(lower)
    output = Block((E, read)) * w[k] + D * u[k]
    return And(
        Equation(w[k], Block((half[k],), (Conj(half[k]),))),
        Equation(output, answer),
        Equation(Conj(output), output),
    )


def real_part(of: Term) -> Term:
    """Re z."""
    return HALF * (of + Conj(of))


conjugates = Conj(R), Conj(E)
answer = TWO * real_part(E * half[k]) + D * u[k]
pairs = Statement(paired(answer, *conjugates), le(0, k))
lower_half = Using(Unfold(half[k + 1]), left=Block((none,), (-Eye(N),)), conjugate=True)
conjugated = Using(Part(1), left=Block((E, Conj(E))), conjugate=True)

PAIRS = Claim(
    id="state-space/conjugate-pairs",
    title="a system whose modes come in conjugate pairs answers real inputs by 2 Re of one half of them",
    statement=pairs,
    sources=(
        Source(GUPTA, "half of the modes, and twice the real part"),
        Source(ORVIETO, "section 3.2: complex eigenvalues come in pairs"),
    ),
    proof=Each(
        (
            Induction(k, Direct(note="the starts are conjugate"), Direct((Hypothesis(), lower_half), "block by block; inputs are real")),
            Direct((Part(1),), "a number and its conjugate"),
            Direct((Part(1), conjugated), "the sum of a number and its conjugate is real"),
        )
    ),
    near_misses=(
        variant(pairs, "the real part once", paired(real_part(E * half[k]) + D * u[k], *conjugates)),
        variant(pairs, "D twice", paired(TWO * real_part(E * half[k] + D * u[k]), *conjugates)),
        variant(pairs, "the modes twice, without conjugation", paired(answer, R, Conj(E))),
        variant(pairs, "both halves read alike", paired(answer, Conj(R), E)),
    ),
)

# The size of a mode -------------------------------------------------------------------------------

# x_k = λ x_{k-1} + γ u_k with uncorrelated inputs of variance 1 has the variances v_k = |λ|² v_{k-1} + γ².
eigenvalue = scalar("lambda", "complex")
v, v0 = scalar("v"), scalar("v0")
modulus2 = Conj(eigenvalue) * eigenvalue
gain = named("gamma", Sqrt(ONE - modulus2))
inside = Assumption("|λ| < 1", Less(modulus2, 1))


def steady(gamma: Term, decay: Term) -> Formula:
    """The variances tend to 1, their only fixed point; from 0 they are the energy of the kernel so far."""
    variances = recurrence("v", v0, lambda k, v: modulus2 * v + gamma**2)
    weight = gamma * eigenvalue ** (k - j)
    return And(
        Equation(variances[k], 1 + decay**k * (v0 - 1)),
        Equation(Sum(Conj(weight) * weight, j, 1, k), 1 - decay**k),
        NonZero(ONE - decay),
        Equation(v - (modulus2 * v + gamma**2), (1 - decay) * (v - 1)),
    )


stationary = Statement(steady(gain, modulus2), le(0, k), (inside,))

STATIONARY = Claim(
    id="state-space/stationary-norm",
    title="γ = √(1 - |λ|²) makes 1 the stationary variance of a mode: v = |λ|² v + γ² only for v = 1, and v_k - 1 = |λ|^{2k} (v_0 - 1)",
    statement=stationary,
    sources=(Source(ORVIETO, "section 3.4, normalisation", "uncorrelated inputs of variance 1, by their variances"),),
    proof=Each(
        (
            Induction(k, Direct(note="the start"), Direct((Hypothesis(),), "γ² = 1 - |λ|²")),
            Induction(k, Direct(note="no input"), Direct((Using(Hypothesis(), left=modulus2),), "one input more")),
            Exists(),
            Direct(note="so 1 is the only fixed point"),
        )
    ),
    near_misses=(
        variant(stationary, "|λ| = 1: any variance stays", drop=inside.name, at={eigenvalue: 1}),
        variant(stationary, "γ = 1 - |λ|²", steady(ONE - modulus2, modulus2)),
        variant(stationary, "λ² in the place of |λ|²", steady(gain, eigenvalue**2)),
    ),
)

CLAIMS = (SIMILARITY, PAIRS, STATIONARY)
