"""The diagonal SSM: its kernel, and what becomes of what it has recorded.

K_l = cᵀ diag(a)^l b = Σ_n c_n b_n a_n^l
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Less, LessEqual, NonZero, Statement
from ..kernel.scripts import Direct, Each, Exists, ForEach, Given, Hypothesis, Induction, Part, Product, Rowwise, Sign, Using
from ..kernel.terms import Conj, Diag, Ind, Index, Num, Row, Rows, Stack, Sum, Term, le, named, scalar, scalars, vector
from .operator import DECLARATION, FU, NOTE, S0, M, S, a, b, j, l, n, shifted, t, v

# The state ---------------------------------------------------------------------------------------


def recorded(last: Index = t, age: Index = t - j, start: Index = t) -> Formula:
    """The start and every product of a value and a shifted key, each as old as it is."""
    written = Sum(v[j] * (Diag(a) ** age * b * shifted(j)), j, 1, last)
    return Equation(S[t], Diag(a) ** start * S0 + written)


state = Statement(recorded(), le(0, t))

STATE = Claim(
    id="h3/diagonal-state",
    title="the state of the diagonal SSM is the start and every v k̃ᵀ, each times a power of diag(a) by its age",
    statement=state,
    sources=(Source(FU, "section 3.2 and algorithm 1", "the diagonal SSM on the products of values and shifted keys"),),
    proof=Induction(t, Direct(note="nothing recorded"), Direct((Hypothesis(),), "one step older, one product more")),
    operator=DECLARATION,
    near_misses=(
        variant(state, "a step older", recorded(age=t - j + 1)),
        variant(state, "the last product is left out", recorded(last=t - 1)),
        variant(state, "the start does not fade", recorded(start=Num(0).value)),
    ),
)

# The kernel --------------------------------------------------------------------------------------

alpha, beta, gamma = (vector(name, M, "complex") for name in ("a", "b", "c"))


def weight(of: Term, power: Index = l) -> Term:
    """What is left of mode n after some steps."""
    return Row(of, n) ** power


def kernel(power: Index = l) -> Term:
    """The kernel as a sum over the modes."""
    return Sum(Row(gamma, n) * Row(beta, n) * weight(alpha, power), n, 1, M)


def keeps(value: Term, *more: Formula) -> Formula:
    """The kernel of a diagonal SSM, and what its weights are."""
    rows = Equation(Rows(beta, 1, M), beta)
    return And(rows, Equation(named("K", gamma.T * Diag(alpha) ** l * beta, l), value), *more)


unfaded = ForAll(Equation(Conj(weight(alpha)) * weight(alpha), 1), n, 1, M)
w = scalars("w", "complex")
on_circle = Assumption(
    "|a_n| = 1",
    ForAll(Equation(Conj(Row(alpha, n)) * Row(alpha, n), 1), n, 1, M),
    solve={alpha: Stack(w[n] / Conj(w[n]), n, 1, M)},
)
HALVED = {M: 1, l: 1, alpha: Fraction(1, 2), beta: 1, gamma: 1}
opposite = {M: 2, l: 1, alpha: [1, -1], beta: [1, 1], gamma: [1, 1]}
not_refreshed = Statement(keeps(kernel(), unfaded), le(0, l), (on_circle,))

DIAGONAL = Claim(
    id="h3/diagonal",
    title="the kernel of the diagonal SSM is Σ c b a^l over its modes; what it has recorded keeps its weight where |a| = 1",
    statement=not_refreshed,
    as_written=Statement(not_refreshed.conclusion, not_refreshed.where),
    as_written_at=HALVED,
    expected="qualified",
    sources=(
        Source(FU, "section 3.2, the diagonal SSM", "the kernel, for any a"),
        Source(
            NOTE, "H3: the diagonal SSM remembers, what it has recorded is not refreshed", "its weight is a^l: see h3/fading for |a| < 1"
        ),
    ),
    proof=Each(
        (
            Rowwise(n, Direct(note="row by row")),
            Direct((Using(Part(1), left=-gamma.T * Diag(alpha) ** l),), "diag(a)^l b, mode by mode"),
            ForEach(Induction(l, Direct(), Direct((Hypothesis(), Given(on_circle.name)), "one factor of modulus 1 more"))),
        )
    ),
    near_misses=(
        variant(not_refreshed, "|a| < 1", drop=on_circle.name, at=HALVED),
        variant(not_refreshed, "one power more", keeps(kernel(l + 1), unfaded)),
        variant(not_refreshed, "c left out", keeps(Sum(Row(beta, n) * weight(alpha), n, 1, M), unfaded)),
        variant(not_refreshed, "the kernel is never 0", keeps(kernel(), unfaded, NonZero(kernel())), at=opposite),
    ),
)

# Inside the unit circle --------------------------------------------------------------------------

one = Num(1)
mode = scalar("a", "complex")
modulus = named("r", Conj(mode) * mode)
root = scalar("w", "complex")
inside = Assumption("|a| < 1", Less(modulus, 1), solve={mode: root * root / (1 + Conj(root) * root)})
alive = Assumption("a ≠ 0", NonZero(mode))


def faded(more: Term = one) -> Term:
    """A weight's squared modulus times what grows like the number of steps."""
    left: Term = modulus**l
    return left * (modulus + Ind(l) * (more - modulus))


def fades(bound: Term = modulus, more: Term = one) -> Formula:
    """A weight that is never 0, at most 1 in modulus, and at most of the order 1/l."""
    return And(
        NonZero(mode**l),
        LessEqual(modulus**l, 1),
        LessEqual(faded(more), bound),
    )


fading = Statement(fades(), le(0, l), (inside, alive))
older = one - modulus**l

FADING = Claim(
    id="h3/fading",
    title="for 0 < |a| < 1 the weight a^l of what was recorded is never 0 and tends to 0: |a|^2l (r + l(1-r)) <= r, r = |a|²",
    statement=fading,
    sources=(Source(FU, "section 3.2, the diagonal SSM", "the recorded state fades; the rate is Bernoulli's inequality"),),
    proof=Induction(
        l,
        Each((Exists(), Sign(), Sign())),
        Each(
            (
                Exists(),
                Sign((Product((modulus, older)), Product((one - modulus,)))),
                # r - r^{l+1}(r + (l+1)(1-r)) = r (r - r^l (r + l(1-r))) + r (1-r) (1-r^l)
                Sign((Product((modulus, modulus - faded())), Product((modulus, one - modulus, older)))),
            )
        ),
    ),
    near_misses=(
        variant(fading, "|a| >= 1", drop=inside.name),
        variant(fading, "a = 0", drop=alive.name),
        variant(fading, "twice as fast", fades(more=Num(2))),
        variant(fading, "half of the bound", fades(bound=modulus * modulus)),
    ),
)

CLAIMS = (STATE, DIAGONAL, FADING)
