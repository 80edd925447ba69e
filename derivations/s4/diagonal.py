"""A diagonal state matrix, or one with a basis of eigenvectors: Vandermonde kernels and Cauchy sums.

    Λ v_n = λ_n v_n        Σ_n v_n w_nᵀ = I

A diagonal Λ has unit vectors for v_n and w_n. Complex matrices too: w_nᵀ is no adjoint.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Invertible, NonZero, Statement
from ..kernel.scripts import (
    Chain,
    Direct,
    Each,
    Exists,
    ForEach,
    Given,
    Hypothesis,
    Induction,
    Lemma,
    Link,
    Part,
    UniqueInverse,
    Using,
)
from ..kernel.terms import (
    Exp,
    Eye,
    Ind,
    Index,
    Inverse,
    Num,
    Stack,
    Sum,
    Term,
    Zero,
    equal,
    index,
    indicator,
    indices,
    le,
    matrix,
    named,
    scalar,
    scalars,
    vectors,
)
from .systems import DSS, GU, S4D, B, C_tilde, L, Lambda, N, delta, l, m, n, one, p

i, j, r = indices("i j r")
v, w, lam = vectors("v", N, "complex"), vectors("w", N, "complex"), scalars("lambda", "complex")

# An invertible V has columns v_n, and its inverse has rows w_nᵀ.
V, unit = matrix("V", N, N, "complex"), Stack(indicator(equal(i, n)), i, 1, N)


def spectral(value: Term) -> Term:
    """The matrix with the same eigenvectors, and a number that may depend on n for an eigenvalue."""
    return Sum(value * v[n] * w[n].T, n, 1, N)


modes = Assumption(
    "eigenvectors",
    ForAll(Equation(Lambda * v[n], lam[n] * v[n]), n, 1, N),
    solve={Lambda: spectral(lam[n]), v[n]: V * unit, w[n]: Inverse(V).T * unit},
)
complete = Assumption("they span the space", Equation(spectral(Num(1)), Eye(N)))
diagonal = (modes, complete)
too_few = {N: 1, v[n]: Zero(N, 1)}


def over_modes(before: Term, after: Term, value: Term) -> Term:
    """A number for every mode, weighted by what the two sides make of its eigenvectors."""
    return Sum((before * v[n]) * (w[n].T * after) * value, n, 1, N)


# Powers ------------------------------------------------------------------------------------------


def vandermonde(lag: Index = l, value: Term | None = None) -> Formula:
    """The powers of Λ, and the kernel as a product with a Vandermonde matrix."""
    power = lam[n] ** lag if value is None else value
    return And(Equation(Lambda**l, spectral(power)), Equation(C_tilde * Lambda**l * B, over_modes(C_tilde, B, power)))


kernel = Statement(vandermonde(), le(0, l), diagonal)

KERNEL = Claim(
    id="s4/diagonal-kernel",
    title="with eigenvectors, the kernel is C Ā^l B̄ = Σ_n C_n B̄_n λ_n^l: a product with a Vandermonde matrix",
    statement=kernel,
    sources=(Source(S4D, "section 3.2, the S4D kernel", "there Ā is diagonal; here it has a basis of eigenvectors"),),
    proof=Each(
        (
            Induction(
                l,
                Direct((Using(Given(complete.name), left=-1),), "Λ⁰ = I"),
                Chain(
                    (Link(Lambda * spectral(lam[n] ** l), (Using(Hypothesis(), left=Lambda),), "one more factor"),),
                    (Given(modes.name),),
                    "mode by mode",
                ),
            ),
            Direct((Using(Part(1), left=C_tilde, right=B),), "between C and B̄"),
        )
    ),
    near_misses=(
        variant(kernel, "other vectors", drop=modes.name),
        variant(kernel, "too few of them", drop=complete.name, at=too_few),
        variant(kernel, "one power too many", vandermonde(l + 1)),
        variant(kernel, "the number of steps for its power", vandermonde(value=Ind(l) * lam[n])),
    ),
)

# The resolvent -----------------------------------------------------------------------------------

c = scalar("c", "complex")
X, Y = matrix("X", p, N, "complex"), matrix("Y", N, m, "complex")
off_modes = Assumption("c is no eigenvalue", ForAll(NonZero(c - lam[n]), n, 1, N))
fraction = ForAll(Equation(lam[n] / (c - lam[n]), c / (c - lam[n]) + Num(-1)), n, 1, N)


def cauchy(value: Term) -> Formula:
    """The resolvent exists, and is a sum over the modes; so is what it is between two matrices."""
    resolvent = Inverse(c * Eye(N) - Lambda)
    return And(
        off_modes.formula,
        fraction,
        Invertible(c * Eye(N) - Lambda),
        Equation(resolvent, spectral(value)),
        Equation(X * resolvent * Y, over_modes(X, Y, value)),
    )


sums = Statement(cauchy(Inverse(c - lam[n])), assumptions=(*diagonal, off_modes))
mode_by_mode = (Given(modes.name), Part(2), Using(Given(complete.name)))

CAUCHY = Claim(
    id="s4/cauchy-sums",
    title="with eigenvectors, X (cI - Λ)⁻¹ Y = Σ_n X_n Y_n / (c - λ_n): a product with a Cauchy matrix",
    statement=sums,
    sources=(Source(GU, "appendix C.3, the Cauchy kernel", "there Λ is diagonal, and c = g(z)"),),
    proof=Each(
        (
            ForEach(Exists()),
            ForEach(Direct()),
            Exists(inverse=spectral(Inverse(c - lam[n])), by=mode_by_mode),
            UniqueInverse(mode_by_mode),
            Direct((Using(Part(4), left=X, right=Y),), "between X and Y"),
        )
    ),
    near_misses=(
        variant(sums, "other vectors", drop=modes.name),
        variant(sums, "too few of them", drop=complete.name, at=too_few),
        variant(sums, "c is an eigenvalue", drop=off_modes.name),
        variant(sums, "the reciprocal's sign", cauchy(Inverse(lam[n] - c))),
    ),
)

# Normalised over the L taps ----------------------------------------------------------------------

a, weight = scalars("a", "complex"), scalars("c", "complex")
some_taps = le(1, L) & le(0, l) & le(0, N)


def total(of: Term) -> Term:
    """The sum of the first L powers."""
    return Sum(of**r, r, 0, L - 1)


not_periodic = Assumption("no a_n is an L-th root of unity", ForAll(NonZero(1 - a[n] ** L), n, 1, N))


def normalized(factor: Term, lag: Index = l) -> Formula:
    """The sum of a mode's powers is not zero; a kernel of normalised powers is one of powers with other weights."""
    softmax = Sum(weight[n] * (a[n] ** lag / total(a[n])), n, 1, N)
    return And(
        not_periodic.formula,
        ForAll(Equation(total(a[n]) * factor, 1), n, 1, N),
        ForAll(NonZero(total(a[n])), n, 1, N),
        ForAll(Equation(Inverse(total(a[n])), factor), n, 1, N),
        Equation(softmax, Sum(weight[n] * factor * a[n] ** l, n, 1, N)),
    )


shares = (1 - a[n]) / (1 - a[n] ** L)
powers = Statement(normalized(shares), some_taps, (not_periodic,))

POWERS = Claim(
    id="s4/normalized-powers",
    title="powers divided by the sum of the first L of them are powers times (1-a)/(1-a^L)",
    statement=powers,
    sources=(Source(DSS, "proposition 1, the second form", "a_n = e^{λ_nΔ}; there e^{λ_nΔL} ≠ 1 too"),),
    proof=Each(
        (
            ForEach(Exists()),
            ForEach(Direct(note="the geometric sum")),
            ForEach(Exists(inverse=shares)),
            ForEach(UniqueInverse()),
            Direct((Part(4),), "mode by mode"),
        )
    ),
    near_misses=(
        variant(powers, "an L-th root of unity", drop=not_periodic.name),
        variant(powers, "one power more in the sum", normalized((1 - a[n]) / (1 - a[n] ** (L + 1)))),
        variant(powers, "the sign of the factor", normalized((a[n] - 1) / (1 - a[n] ** L))),
        variant(powers, "read one tap later", normalized(shares, l + 1)),
    ),
)

# The same with a = e^{λΔ}: a softmax over the taps, and zero-order hold.


def mode(steps: Index) -> Term:
    """What is left of a mode after some steps."""
    return Exp(Ind(steps) * delta * lam[n])


taps = Sum(mode(r), r, 0, L - 1)


def softmax_kernel(weights: Term) -> Formula:
    """No row's sum is 0; the kernel of softmax rows is that of zero-order hold with B = 1 and other weights."""
    softmax = named("softmax", mode(l) / taps, n, l)
    held = named("Bbar", (mode(1) + Num(-1)) / lam[n], n)
    return And(
        ForAll(NonZero(1 - Exp(delta * lam[n]) ** L), n, 1, N),
        ForAll(NonZero(taps), n, 1, N),
        Equation(Sum(weight[n] / lam[n] * softmax, n, 1, N), Sum(weights * held * mode(l), n, 1, N)),
    )


no_period = Assumption(
    "λ ≠ 0, and no e^{λΔ} is an L-th root of unity",
    ForAll(And(NonZero(lam[n]), NonZero(1 - Exp(delta * lam[n]) ** L)), n, 1, N),
)
dss = Statement(softmax_kernel(weight[n] / (mode(L) + Num(-1))), some_taps, (no_period,))
as_powers = {"a": ((n,), Exp(delta * lam[n])), "c": ((n,), weight[n] / lam[n])}


def normalized_powers(part: int, **at: Index) -> Lemma:
    """A part of the claim about powers, for e^{λΔ}."""
    fixed = {L: L, l: l, N: N} | {index(name): value for name, value in at.items()}
    return Lemma("s4/normalized-powers", part=part, at=fixed, families=as_powers)


SOFTMAX = Claim(
    id="s4/dss",
    title="the softmax kernel of DSS is the kernel of zero-order hold, its weights divided by e^{λΔL} - 1",
    statement=dss,
    sources=(Source(DSS, "proposition 1", "its two forms are one kernel"),),
    proof=Each(
        (
            ForEach(Exists()),
            ForEach(Exists(inverse=(one - mode(1)) / (one - mode(L)), by=(Using(normalized_powers(1, n=n)),))),
            Direct(
                (Using(normalized_powers(4)),),
                "powers of e^{λΔ}, normalised",
            ),
        )
    ),
    near_misses=(
        variant(dss, "a mode with period L", drop=no_period.name),
        variant(dss, "the same weights", softmax_kernel(weight[n])),
        variant(dss, "weights of one tap more", softmax_kernel(weight[n] / (mode(L + 1) + Num(-1)))),
        variant(dss, "the sign of the weights", softmax_kernel(weight[n] / (1 - mode(L)))),
    ),
)

CLAIMS = (KERNEL, CAUCHY, POWERS, SOFTMAX)
