"""The derivative of a softmax in its logits, J = diag(p) - p pᵀ: when it is bounded below, and that it vanishes with 1 - p_m."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, LessEqual, Statement
from ..kernel.scripts import Direct, Each, Product, Sign
from ..kernel.terms import At, Deriv, Exp, Ind, Index, Num, Sum, Term, indices, le, scalar, scalars
from .operators import VASWANI

T, i, j, n, m = indices("T i j n m")
s, u = scalars("s"), scalars("u")  # the logits, and a direction
eps, R = scalar("epsilon"), scalar("R")

in_range = Assumption(
    "logits in [-R, R]",
    And(ForAll(LessEqual(-R, s[j]), j, 1, T), ForAll(LessEqual(s[j], R), j, 1, T)),
    solve={R: Sum(s[j] ** 2 + 1, j, 1, T)},
)
Z = Sum(Exp(s[n]), n, 1, T)


def weight(token: Index) -> Term:
    """The softmax of the logits."""
    return Exp(s[token]) / Z


def slope(token: Index) -> Term:
    """How a weight moves when the logits move along u."""
    moved = Exp(s[token] + eps * u[token]) / Sum(Exp(s[n] + eps * u[n]), n, 1, T)
    return At(Deriv(moved, eps), eps, 0)


mean = Sum(weight(j) * u[j], j, 1, T)
form = Sum(u[i] * weight(i) * (u[i] - mean), i, 1, T)  # uᵀ J u
trace = Sum(weight(j) * (1 - weight(j)), j, 1, T)


def without(token: Index, body: Term) -> Term:
    """A sum over all tokens j but one."""
    return Sum(body, j, 1, token - 1) + Sum(body, j, token + 1, T)


def jacobian(of: Term, least: Term, factor: int = 2) -> Formula:
    """J along u, J ⪰ 0, a bound of the trace by one weight, and the least weight."""
    bound = LessEqual(trace, factor * (1 - weight(m)))
    return And(Equation(slope(i), of), LessEqual(0, form), bound, LessEqual(1, weight(i) * least))


row = weight(i) * (u[i] - mean)
span = Num(1) + Ind(T - 1) * Exp(Num(2) * R)
gradient = Statement(jacobian(row, span), le(1, i) & le(i, T) & le(1, m) & le(m, T), (in_range,))
rest = without(m, weight(j))

APART = {"T": 2, "i": 2, "m": 1, ("s", (1,)): 1, ("s", (2,)): -1, R: 1}

SCALE_GRADIENT = Claim(
    id="attention/scale-gradient",
    title="the gradient of softmax, diag(p) - ppᵀ ⪰ 0, has a trace of at most 2(1 - p_m); weights stay off 0 while logits stay in a range",
    statement=gradient,
    as_written=Statement(gradient.conclusion, gradient.where),
    expected="qualified",
    sources=(
        Source(
            VASWANI,
            "section 3.2.1: 1/√d_k against extremely small gradients",
            "at first the logits have variance 1; nothing keeps them so",
        ),
    ),
    proof=Each(
        (
            Direct(note="the quotient rule"),
            Sign((Product((Sum(weight(j) * (u[j] - mean) ** 2, j, 1, T),)),)),
            Sign((Product((rest, rest)), Product((without(m, weight(j) ** 2),)))),
            Sign(
                (
                    Product((1 / Z, Ind(T - 1), Exp(R), Exp(R + s[i]) - 1)),
                    Product((1 / Z, without(i, Exp(s[j]) * (Exp(R - s[j]) - 1)))),
                )
            ),
        )
    ),
    near_misses=(
        variant(gradient, "logits of any size", drop=in_range.name),
        variant(gradient, "J without the mean", jacobian(weight(i) * u[i], span)),
        variant(gradient, "half the bound of the trace", jacobian(row, span, 1)),
        variant(gradient, "a range of R for 2R", jacobian(row, Num(1) + Ind(T - 1) * Exp(R)), at=APART),
    ),
)

CLAIMS = (SCALE_GRADIENT,)
