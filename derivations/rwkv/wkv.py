"""RWKV-4: the recurrence is a weighted average with a weight of its own for the current token, cut and resumed anywhere."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Less, LessEqual, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Part, Sign, Using
from ..kernel.terms import Exp, Ind, Index, Num, Recurrence, Sum, Term, indices, le, recurrence, substitute
from .operators import NOTE, RWKV, WKV, A, B, a0, b0, bonus, kappa, nu, t, u, w

i, s = indices("i s")


def faded(exponent: Term, steps: Index) -> Term:
    """e to the exponent, after so many steps of decay."""
    return Exp(w * Ind(steps) + exponent)


def sums(last: Index, extra: Index = 0, since: Index = 1, starts: tuple[Term, Term] = (a0, b0)) -> tuple[Term, Term]:
    """Numerator and denominator from their starts and the tokens since..last: token i has faded last - i times."""
    weight = faded(kappa[i], last - i + extra)
    above, below = (Exp(w * Ind(last - since + 1)) * start for start in starts)
    return above + Sum(weight * nu[i], i, since, last), below + Sum(weight, i, since, last)


def average(above: Term, below: Term, own: Term) -> Term:
    """The mean over the tokens up to t and token t + 1, which has a weight of its own."""
    return (above + own * nu[t + 1]) / (below + own)


def output(at: Index) -> Term:
    """What the operator puts out."""
    there: Term = substitute(WKV.output, {t: at})
    return there


own = bonus(t + 1)


def weighted(extra: Index = 0, mean: Term | None = None) -> Formula:
    """Both states as sums, and the next output as a mean, whose denominator is positive."""
    above, below = sums(t, extra)
    read = Equation(output(t + 1), mean or average(above, below, own))
    return And(Equation(A[t], above), Equation(B[t], below), Less(0, B[t] + own), read)


at_least_0 = Assumption("b_0 >= 0", LessEqual(0, b0), solve={b0: Num(1)})
wkv = Statement(weighted(), le(0, t), (at_least_0,))
one_more = Induction(t, Direct(note="no token"), Direct((Using(Hypothesis(), left=Exp(w)),), "one more token, and one more decay"))

AVERAGE = Claim(
    id="rwkv/wkv",
    title="o_t is the mean of v_1 .. v_t with weights e^{(t-1-i)w + k_i} for i < t and e^{u + k_t} for t: the quotient of two recurrences",
    statement=wkv,
    sources=(
        Source(RWKV, "equation 16; the recurrence: equations 19 to 22 of the appendix", "w there is -w here; with a state at the start"),
        Source(NOTE, "RWKV: wkv_t"),
    ),
    proof=Each(
        (
            one_more,
            one_more,
            Sign(by=(Part(2),)),
            Direct((Part(1), Part(2)), "the states before the token"),
        )
    ),
    operator=WKV,
    near_misses=(
        variant(wkv, "the bonus decays", weighted(mean=average(*sums(t), Exp(w + u + kappa[t + 1])))),
        variant(wkv, "one decay more", weighted(1)),
        variant(wkv, "one decay more in the output alone", weighted(mean=average(*sums(t, 1), own))),
        variant(wkv, "any denominator at the start", drop="b_0 >= 0"),
        variant(wkv, "no bonus", weighted(mean=average(*sums(t), Exp(kappa[t + 1])))),
    ),
)

# Cut and resumed ----------------------------------------------------------------------------------


def resumed(above: Term, below: Term, begin: Index = s) -> tuple[Recurrence, Recurrence]:
    """Both recurrences from given states at index s on."""
    return (
        recurrence("a", above, lambda t, a: Exp(w) * a + Exp(kappa[t]) * nu[t], start=begin),
        recurrence("b", below, lambda t, b: Exp(w) * b + Exp(kappa[t]), start=begin),
    )


def continues(above: Term, below: Term, begin: Index = s, first: Index = s + 1) -> Formula:
    """The resumed states are those of the whole run; the states at t are made of those at the cut and the later tokens."""
    a, b = resumed(above, below, begin)
    later_a, later_b = sums(t, since=first, starts=(above, below))
    return And(Equation(a[t], A[t]), Equation(b[t], B[t]), Equation(A[t], later_a), Equation(B[t], later_b))


split = Statement(continues(A[s], B[s]), le(0, s) & le(s, t))
same_step = Induction(t, step=Direct((Using(Hypothesis(), left=Exp(w)),), "the same step from the same state"), start=s)

SPLIT = Claim(
    id="rwkv/split-resume",
    title="a run that is cut and resumed from its two sums is the whole run, and needs nothing else of the past",
    statement=split,
    sources=(Source(RWKV, "the time-parallel mode and the time-sequential mode", "there a token at a time"),),
    proof=Each((same_step,) * 4),
    operator=WKV,
    near_misses=(
        variant(split, "resumed from the start", continues(a0, b0)),
        variant(split, "the numerator alone is handed on", continues(A[s], b0)),
        variant(split, "the token at the cut comes again", continues(A[s], B[s], s - 1)),
        variant(split, "the token at the cut is counted again", continues(A[s], B[s], first=s)),
    ),
)

CLAIMS = (AVERAGE, SPLIT)
