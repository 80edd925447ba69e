"""How far RWKV-4 is linear attention: where the bonus undoes one decay, as normalised retention with keys e^k and queries 1."""

from __future__ import annotations

from typing import cast

from sympy import Integer

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Implies, Less, NonZero, Statement
from ..kernel.instances import Families, instantiate
from ..kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Lemma, Part, Sign, Suppose, Unfold, Using
from ..kernel.terms import Exp, Num, Rec, Recurrence, Term, le, substitute
from ..linear_attention.operator import d_k, d_v
from ..normalized_linear_attention import DECLARATION as NORMALIZED
from ..retention.operator import H as RETENTION
from .operators import NOTE, RWKV, WKV, A, B, a0, b0, bonus, kappa, nu, t, u, w
from .wkv import at_least_0, output

ONE = Num(1)
own = bonus(t + 1)
quotient = A[t + 1] / B[t + 1]


def of_numbers(x: Term, families: Families) -> Term:
    """A term of another column with heads of size 1 and these numbers in their place."""
    small = substitute(x, {width: Integer(1) for width in (d_k, d_v)})
    return cast(Equation, instantiate(Statement(Equation(small, small)), families).conclusion).lhs


def normalized(x: Term) -> Term:
    """Normalised linear attention with queries 1, keys e^k, and this column's values and start."""
    families = {"q": ((t,), ONE), "k": ((t,), Exp(kappa[t])), "v": ((t,), nu[t]), "N0": ((), a0), "n0": ((), b0)}
    return of_numbers(x, families)


def retained(value: Term, start: Term, key: Term | None = None, gate: Term | None = None) -> Term:
    """The state of retention with keys e^k and the decay e^w, from a start and with these values."""
    key, gate = Exp(kappa[t]) if key is None else key, Exp(w) if gate is None else gate
    return of_numbers(RETENTION[t], {"gamma": ((), gate), "k": ((t,), key), "v": ((t,), value), "H0": ((), start)})


N, n = (Recurrence(cast(Rec, normalized(state[t]))) for state in NORMALIZED.state)


undone = Assumption("the bonus undoes one decay: u = -w", Equation(u, -w), solve={u: -w})


def linear(read: Term = quotient, key: Term | None = None, gate: Term | None = None) -> Formula:
    """Retention keeps both sums; the output is their quotient; without decay that is normalised linear attention."""
    output_there = substitute(normalized(NORMALIZED.output), {t: t + 1})
    plain = And(Equation(N[t], A[t]), Equation(n[t], B[t]), Equation(output_there, output(t + 1)))
    return And(
        Equation(retained(nu[t], a0, key, gate), A[t]),
        Equation(retained(ONE, b0, key, gate), B[t]),
        Less(0, B[t + 1]),
        Equation(output(t + 1), read),
        Implies(Equation(w, 0), plain),
    )


as_linear = Statement(linear(), le(0, t), (at_least_0, undone))
unrolled = Lemma("rwkv/wkv", part=1)
one_more = Direct((Using(Hypothesis(), left=Exp(w)),), "the same token, and the same decay")
ingredients = (Given(undone.name), unrolled, Lemma("rwkv/wkv"))
both = (Unfold(N[t + 1]), Unfold(n[t + 1]), Part(1), Part(2))
no_decay = Induction(t, Direct(note="the same start"), Direct((Hypothesis(), Given("premise")), "the same token, no decay"))

# Two tokens from the zero state, which fades, and no bonus.
FADING = {t: 1, a0: 0, b0: 0, w: -1, u: 0}

AS_LINEAR_ATTENTION = Claim(
    id="rwkv/as-linear-attention",
    title="WKV whose bonus undoes one decay is normalised retention with keys e^k and queries 1; without decay, linear attention",
    statement=as_linear,
    as_written=Statement(as_linear.conclusion, as_linear.where, (at_least_0,)),
    as_written_at=FADING,
    expected="qualified",
    sources=(
        Source(NOTE, "RWKV: the weighted sums as linear attention", "u = -w here, u = w in the paper's sign; no weight reads a query"),
        Source(RWKV, "section 3: the WKV operator beside the attention free transformer, whose weights have no query either"),
    ),
    proof=Each(
        (
            Induction(t, Direct(note="the same start"), one_more),
            Induction(t, Direct(note="the same start"), one_more),
            Sign(by=(unrolled,)),
            Direct(ingredients, "both sides times e^w"),
            Suppose(
                Each(
                    (
                        no_decay,
                        no_decay,
                        Direct((*both, *ingredients, Given("premise")), "the quotient, with a bonus of 1"),
                    )
                )
            ),
        )
    ),
    operator=WKV,
    near_misses=(
        variant(as_linear, "any bonus", drop=undone.name),
        variant(as_linear, "any denominator at the start", drop=at_least_0.name),
        variant(as_linear, "the keys themselves", linear(key=kappa[t])),
        variant(as_linear, "no decay of the sums", linear(gate=ONE)),
        variant(as_linear, "the sums before the token", linear(read=A[t] / (B[t] + own))),
    ),
)

# Exactly then -------------------------------------------------------------------------------------

apart = Exp(kappa[t + 1]) * (Exp(w + u) - 1) * (nu[t + 1] * B[t] - A[t]) / B[t + 1] / (B[t] + own)
differs = NonZero(nu[t + 1] * B[t] - A[t])


def gap(difference: Term = apart, premise: Formula | None = None) -> Formula:
    """How far the output is from the quotient after the token, and when it is the quotient."""
    premise = And(Equation(output(t + 1), quotient), differs) if premise is None else premise
    positive = Less(0, B[t] + own), Less(0, B[t + 1])
    return And(*positive, Equation(output(t + 1) - quotient, difference), Implies(premise, Equation(Exp(w + u), 1)))


bonus_gap = Statement(gap(), le(0, t), (at_least_0,))
others = B[t + 1] * (B[t] + own) * Exp(-kappa[t + 1]) / (nu[t + 1] * B[t] - A[t])

ONE_VALUE = {t: 0, a0: 0, b0: 0, nu[1]: 0, kappa[1]: 0, w: 0, u: 1}

BONUS = Claim(
    id="rwkv/bonus",
    title="output and quotient of the sums differ by a multiple of e^{w+u} - 1: they agree exactly where the bonus undoes one decay",
    statement=bonus_gap,
    sources=(Source(RWKV, "equation 16: the vector u", "where the value differs from the mean of those before; there w is -w"),),
    proof=Each(
        (
            Sign(by=(unrolled,)),
            Sign(by=(unrolled,)),
            Direct((Unfold(A[t + 1]), Unfold(B[t + 1]), unrolled, Lemma("rwkv/wkv")), "over a common denominator"),
            Suppose(
                Direct((Using(Given("premise 1"), left=others), Using(Part(3), left=-others)), "what else is in the difference is not 0")
            ),
        )
    ),
    operator=WKV,
    near_misses=(
        variant(bonus_gap, "the difference without e^w", gap(substitute(apart, {w: Num(0)}))),
        variant(bonus_gap, "the difference with the other sign", gap(-apart)),
        variant(bonus_gap, "values that differ alone", gap(premise=differs)),
        variant(bonus_gap, "any values", gap(premise=Equation(output(t + 1), quotient)), at=ONE_VALUE),
        variant(bonus_gap, "any denominator at the start", drop=at_least_0.name),
    ),
)

CLAIMS = (AS_LINEAR_ATTENTION, BONUS)
