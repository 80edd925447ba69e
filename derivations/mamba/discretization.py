"""Two discretisations under one name: the paper says zero-order hold, the released code multiplies B by Δ.

    the paper, equation 4   B̄ = ∫₀^Δ e^{sA} ds B = A⁻¹ (e^{ΔA} - I) B         the code   B̄ = Δ B

Ā = e^{ΔA} is the same in both. Per entry of the state, with z = Δ A_n: the paper's B̄ is (e^z - 1)/z times the code's.
"""

from __future__ import annotations

from fractions import Fraction

from ..claim import Claim, Source, variant
from ..discretization.impulse import SCIPY
from ..discretization.operators import HALF, MAMBA, NOTE, VAN_LOAN, m
from ..kernel.formulas import And, Equation, Formula, Implies, Less, LessEqual, Statement
from ..kernel.scripts import (
    Direct,
    Each,
    Hypothesis,
    Induction,
    Lemma,
    Ode,
    Part,
    Product,
    Sign,
    Suppose,
    Using,
)
from ..kernel.terms import (
    Diag,
    Exp,
    Eye,
    Index,
    Integral,
    Num,
    Row,
    Term,
    indices,
    le,
    matrix,
    recurrence,
    scalar,
)
from .operator import H0, ZOH_DECLARATION, A, B, H, H_zoh, N, delta, t, transition, u

GU = "Gu et al., Combining Recurrent, Convolutional, and Continuous-time Models with Linear State-Space Layers, arXiv 2110.13985"

n, r = indices("n r")
tau, step = scalar("s"), scalar("d")
M, G = matrix("A", N, N), matrix("B", N, m)
ONE, MINUS_ONE = Num(1), Num(-1)

# The hold, without a quotient -----------------------------------------------------------------------------


def gain(at: Index = t, kernel: Term | None = None) -> Term:
    """B̄ of zero-order hold at a time."""
    return Integral(Exp(tau * Diag(A)) if kernel is None else kernel, tau, 0, delta[at]) * B[at]


def in_steps(of: Term) -> Term:
    """The scan with a B̄ of its own."""
    return recurrence("h", H0, lambda at, h: transition(at) * h + of.subs({t: at}) * u[at])[t]


def from_van_loan(at: Index) -> Lemma:
    """The first block row of the exponential of Δ [[diag(A), B], [0, 0]]."""
    families = {"A": ((), Diag(A)), "B": ((), B[at]), "Delta": ((), delta[at])}
    return Lemma("discretization/van-loan", at={m: 1}, families=families)


def entry_gain(body: Term) -> Term:
    """The integral of a number over the step."""
    return Integral(body, tau, 0, delta[t])


def holds(states: Term, of_entry: Term) -> Formula:
    """The operator is the scan with B̄ an integral, and so is every entry of B̄."""
    return And(Equation(H_zoh[t], states), Equation(Row(gain(), n), of_entry * Row(B[t], n)))


some_entry = le(1, n) & le(n, N)
hold = Statement(holds(in_steps(gain()), entry_gain(Exp(tau * Row(A, n)))), le(0, t) & some_entry)

HOLD = Claim(
    id="mamba/zero-order-hold",
    title="zero-order hold for every A, 0 too: B̄_t = ∫₀^{Δ_t} e^{s diag(A)} ds B_t, entry by entry ∫₀^{Δ_t} e^{s A_n} ds B_{t,n}",
    statement=hold,
    sources=(
        Source(MAMBA, "equation 4", "(ΔA)⁻¹ (e^{ΔA} - I) ΔB, which needs A⁻¹, is this integral where A is invertible: discretization/zoh"),
        Source(VAN_LOAN, "theorem 1", "the operator as the first block row of one exponential"),
    ),
    proof=Each(
        (
            Induction(t, step=Direct((Hypothesis(), from_van_loan(t + 1)), "the exponential, block by block")),
            Direct(note="the exponential of a diagonal matrix is one of its entries"),
        )
    ),
    operator=ZOH_DECLARATION,
    near_misses=(
        variant(hold, "B̄ = ΔB, as in the released code", holds(in_steps(delta[t] * B[t]), entry_gain(Exp(tau * Row(A, n))))),
        variant(
            hold, "an integrand that stays put", holds(in_steps(gain(kernel=Exp(delta[t] * Diag(A)))), entry_gain(Exp(tau * Row(A, n))))
        ),
        variant(hold, "one rate for all entries", holds(in_steps(gain()), entry_gain(Exp(tau * Row(A, 1))))),
    ),
)

# What lies between the two ----------------------------------------------------------------------------------


def weighed(weight: Term) -> Term:
    """The integral of e^{sA}, weighed, over a step."""
    return Integral(weight * Exp(tau * M), tau, 0, step)


def expanded(second: Term, hold: Term | None = None) -> Formula:
    """A times the hold's integral; A² times the second moment; and the integral by the step, its square, and all that remains."""
    rest = M**2 * weighed((step - tau) ** 2 * HALF)
    return And(
        Equation(M * weighed(ONE) * G, Exp(step * M) * G - G if hold is None else hold),
        Equation(M**2 * weighed(tau**2), (step**2 * M - 2 * step * Eye(N)) * Exp(step * M) + 2 * weighed(ONE)),
        Equation(weighed(ONE) * G - step * G, second * G + rest * G),
    )


def moment(part: int, left: Term) -> Using:
    """A moment of the exponential, times a term."""
    return Using(Lemma("discretization/exponential-moments", part=part, families={"Delta": ((), step)}), left=left, right=G)


expansion = Statement(expanded(step**2 * HALF * M))
by_moments = (moment(0, -(HALF * step**2 * M)), moment(1, step), Using(Part(2), left=-HALF, right=G))

EXPANSION = Claim(
    id="mamba/hold-expansion",
    title="A times the hold's integral is e^{ΔA} - I; the hold's B̄ is ΔB + ½Δ²AB + A² ∫₀^Δ ½(Δ-s)² e^{sA} ds B, for every A",
    statement=expansion,
    sources=(Source(MAMBA, "equation 4", "Taylor's formula with the integral for its remainder, of order Δ³"),),
    proof=Each((Direct((moment(0, Eye(N)),)), Ode(step), Direct(by_moments, "the square (Δ-s)² multiplied out"))),
    near_misses=(
        variant(expansion, "without the half", expanded(step**2 * M)),
        variant(expansion, "no term of second order", expanded(M - M)),
        variant(expansion, "the identity is not subtracted", expanded(step**2 * HALF * M, Exp(step * M) * G)),
    ),
)
# They differ ------------------------------------------------------------------------------------------------

rate, written = Row(A, n), Row(B[t], n)
z = delta[t] * rate
paper, code = Row(gain(), n), Row(delta[t] * B[t], n)


def above(x: Term) -> Term:
    """e^x - 1 - x, which is never negative."""
    return Exp(x) + MINUS_ONE - x


def ratio(numerator: Term) -> Formula:
    """One is (e^z - 1)/z times the other; their difference is that of e^z and its tangent, and never 0."""
    same_sign = And(Less(0, delta[t]), Less(0, written**2))
    gap = rate * written * (paper - code)
    return And(
        Equation(z * paper, numerator * code),
        Equation(gap, above(z) * written**2),
        Implies(And(*same_sign.args, Less(0, rate)), Less(0, gap)),
        Implies(And(*same_sign.args, Less(rate, 0)), Less(0, gap)),
    )


differ = Statement(ratio(Exp(z) + MINUS_ONE), le(0, t) & some_entry)
as_written = Statement(Equation(H_zoh[t], H[t]), le(0, t))
families = {"A": ((), rate), "B": ((), written), "d": ((), delta[t])}
by_expansion = Lemma("mamba/hold-expansion", at={N: 1, m: 1}, families=families)
by_tangent = (Using(by_expansion, left=written),)
w, v = HALF * z, -HALF * z
square = written**2
rising = Sign(
    (
        Product((z, z, square), Fraction(1, 4)),
        Product((z, above(w), square)),
        Product((above(w), above(w), square)),
        Product((above(w), square), Fraction(2)),
    ),
    by_tangent,
)
falling = Sign(
    (
        Product((Exp(z), delta[t], -rate, delta[t], -rate, square), Fraction(1, 4)),
        Product((Exp(z), delta[t], -rate, above(v), square)),
        Product((Exp(z), above(v), above(v), square)),
        Product((above(w), square), Fraction(2)),
    ),
    by_tangent,
)

DECAYING = {N: 1, A: -1}

DIFFER = Claim(
    id="mamba/discretization",
    title="the paper's B̄ is zero-order hold's, (e^z - 1)/z times the released code's ΔB in each entry, z = Δ A_n: not equal for z ≠ 0",
    statement=differ,
    as_written=as_written,
    as_written_at=DECAYING,
    expected="refuted",
    sources=(
        Source(
            MAMBA, "equation 4: B̄ = (ΔA)⁻¹ (e^{ΔA} - I) ΔB", "right about zero-order hold, for invertible A; not what its code computes"
        ),
        Source(
            "mamba_ssm, selective_scan_ref",
            "deltaB_u = delta · B · u",
            "no zero-order hold: Euler's B̄ beside the hold's Ā",
        ),
        Source(
            SCIPY,
            "(e^{ΔA}, e^{ΔA} B Δ, C, C B Δ)",
            "other matrices, since read before the update, but for constant Δ, B, C the code's outputs: discretization/impulse-invariance",
        ),
        Source(
            NOTE,
            "zero-order hold: Ā and B̄; Mamba: Δ, B and C vary in time",
            "right about zero-order hold, for invertible A; that is the paper's Mamba, not the code's",
        ),
    ),
    proof=Each(
        (
            Direct((Using(by_expansion, left=delta[t]),), "A times the hold's integral"),
            Direct(by_tangent, "A times the hold's integral"),
            Suppose(rising),
            Suppose(falling),
        )
    ),
    operator=ZOH_DECLARATION,
    near_misses=(
        variant(differ, "the other way round: z/(e^z - 1)", Equation((Exp(z) + MINUS_ONE) * paper, z * code), at=DECAYING),
        variant(differ, "the ratio e^z", Equation(paper, Exp(z) * code), at=DECAYING),
        variant(differ, "the difference of second order only", Equation(paper - code, delta[t] ** 2 * HALF * rate * written), at=DECAYING),
        variant(differ, "the two are equal", Equation(paper, code), at=DECAYING),
        variant(differ, "the paper's B̄ is the larger one", Implies(And(Less(0, delta[t]), Less(0, written)), LessEqual(code, paper))),
    ),
)

CLAIMS = (HOLD, EXPANSION, DIFFER)
