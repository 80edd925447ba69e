"""Softmax in one pass: sums that are kept under a running shift, and partial results that are merged.

    ℓ_n = exp(m_{n-1} - m_n) ℓ_{n-1} + exp(s_n - m_n)        u_n = exp(m_{n-1} - m_n) u_{n-1} + exp(s_n - m_n) v_n

The running maximum is one of the shifts m; it is what keeps every exponential at most 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Implies, LessEqual, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Link, Part, Product, Sign, Suppose, Unfold
from ..kernel.terms import Exp, Index, Log, Num, Recurrence, Sum, Term, Zero, indices, le, recurrence, scalar, scalars, vector
from .operators import FULL, T, d_v, i, j, k, q, v
from .updates import MILAKOV

DAO = "Dao, Fu, Ermon, Rudra, Ré, FlashAttention, arXiv 2205.14135"
m = scalars("m")
t, s, n = indices("t s n")


def logit(token: Index) -> Term:
    """The score of query i and a key."""
    return q[i].T * k[token]


Factor = Callable[[Index], Term]


def kept(at: Index) -> Term:
    """What is left of a sum when the shift moves."""
    return Exp(m[at - 1] - m[at])


def entering(at: Index) -> Term:
    """The weight of a token when it comes in."""
    return Exp(logit(at) - m[at])


def sums(rescale: Factor, weight: Factor) -> tuple[Recurrence, Recurrence]:
    """The running sum of the weights, and that of the weighed values."""
    total = recurrence("L", Num(0), lambda n, L: rescale(n) * L + weight(n))
    weighed = recurrence("U", Zero(d_v, 1), lambda n, U: rescale(n) * U + weight(n) * v[n])
    return total, weighed


def shifted(last: Index, shift: Term) -> tuple[Term, Term]:
    """The two sums over the tokens 1..last under one shift."""
    weights = Exp(logit(j) - shift)
    return Sum(weights, j, 1, last), Sum(weights * v[j], j, 1, last)


def online(rescale: Factor = kept, weight: Factor = entering) -> tuple[Formula, ...]:
    """The running sums, and their quotient."""
    total, weighed = sums(rescale, weight)
    weights, values = shifted(t, m[t])
    row = FULL.output.subs({FULL.t: i, T: t})
    return Equation(total[t], weights), Equation(weighed[t], values), Equation(weighed[t] / total[t], row)


SPLIT = "both sums split at s"
UNDER = "a sum under the old shift is rescaled to the new one"
never_below = ForAll(And(LessEqual(logit(n), m[n]), LessEqual(m[n - 1], m[n])), n, 1, T)
below = ForAll(LessEqual(logit(j), m[t]), j, 1, t)
at_most_1 = ForAll(LessEqual(Exp(logit(j) - m[t]), 1), j, 1, t)
maximum = Implies(never_below, And(below, at_most_1))
online_softmax = Statement(And(*online(), maximum), le(1, t) & le(t, T))
total, weighed = sums(kept, entering)

ONLINE_SOFTMAX = Claim(
    id="attention/online-softmax",
    title="sums kept under any running shift give softmax; a shift that never lies below a score keeps every exponential at most 1",
    statement=online_softmax,
    sources=(
        Source(MILAKOV, "section 3: the safe softmax in one pass", "the running maximum is one of the shifts"),
        Source(DAO, "algorithm 1", "there a block of keys at a time"),
    ),
    proof=Each(
        (
            Induction(t, Direct((Unfold(total[1]),), "one token"), Direct((Hypothesis(),), UNDER), start=1),
            Induction(t, Direct((Unfold(weighed[1]),), "one token"), Direct((Hypothesis(),), UNDER), start=1),
            Direct((Part(1), Part(2)), "the shift cancels in the quotient"),
            Suppose(
                Each(
                    (
                        ForEach(Induction(t, Sign(), Sign((Product((m[t + 1] - m[t],)), Product((m[t] - logit(j),)))), start=j)),
                        ForEach(Sign((Product((Exp(logit(j) - m[t]), Exp(m[t] - logit(j)) - 1)),))),
                    )
                )
            ),
        )
    ),
    operator=FULL,
    near_misses=(
        variant(online_softmax, "no rescale", And(*online(lambda at: Num(1)), maximum)),
        variant(online_softmax, "rescaled the other way round", And(*online(lambda at: Exp(m[at] - m[at - 1])), maximum)),
        variant(online_softmax, "the new token under the old shift", And(*online(weight=lambda at: Exp(logit(at) - m[at - 1])), maximum)),
        variant(online_softmax, "any shift bounds the exponentials", And(*online(), at_most_1)),
    ),
)

# Partial results ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partial:
    """What a query reads from some of the tokens, and the logarithm of the sum of their weights."""

    lse: Term
    output: Term

    def same_as(self, other: Partial) -> tuple[Formula, Formula]:
        """Whether both are the same; of the logarithms, by their exponentials."""
        return Equation(Exp(self.lse), Exp(other.lse)), Equation(self.output, other.output)


def merge(a: Partial, b: Partial) -> Partial:
    """The two parts of the tokens together."""
    weight, other = Exp(a.lse), Exp(b.lse)
    return Partial(Log(weight + other), (weight * a.output + other * b.output) / (weight + other))


def of_tokens(first: Index, last: Index) -> Partial:
    """A range of the tokens."""
    weights = Sum(Exp(logit(j)), j, first, last)
    return Partial(Log(weights), Sum(Exp(logit(j)) * v[j], j, first, last) / weights)


A, B, C = (Partial(scalar(f"l_{x}"), vector(f"o_{x}", d_v)) for x in "abc")
Merge = Callable[[Partial, Partial], Partial]


def merging(by: Merge = merge) -> And:
    """Associative, commutative, and right for two parts of the tokens."""
    together = by(of_tokens(1, s), of_tokens(s + 1, t))
    whole = Partial(of_tokens(1, t).lse, FULL.output.subs({FULL.t: i, T: t}))
    return And(*by(by(A, B), C).same_as(by(A, by(B, C))), *by(A, B).same_as(by(B, A)), *together.same_as(whole))


def mean(a: Partial, b: Partial) -> Partial:
    """Both outputs count the same."""
    return Partial(merge(a, b).lse, (a.output + b.output) / 2)


def by_logarithms(a: Partial, b: Partial) -> Partial:
    """The outputs are weighed by the logarithms."""
    weight, other = a.lse**2 + 1, b.lse**2 + 1
    return Partial(merge(a, b).lse, (weight * a.output + other * b.output) / (weight + other))


def added(a: Partial, b: Partial) -> Partial:
    """The logarithms are added, as for a product."""
    return Partial(a.lse + b.lse, merge(a, b).output)


three = (Exp(A.lse) * A.output + Exp(B.lse) * B.output + Exp(C.lse) * C.output) / (Exp(A.lse) + Exp(B.lse) + Exp(C.lse))
merged = Statement(merging(), le(1, s) & le(s + 1, t))

MERGE = Claim(
    id="attention/merge",
    title="partial results of attention merge by their log-sum-exps, in any order and any tree, into attention over all tokens",
    statement=merged,
    sources=(
        Source(DAO, "section 3.1: softmax of concatenated blocks", "said here of the outputs and their log-sum-exps"),
        Source(MILAKOV, "section 3.1: the associative and commutative operation"),
    ),
    proof=Each(
        (
            Direct(note="the sum of all three weights"),
            Chain((Link(three, note="each output with its own weight"),), note="however they are bracketed"),
            *(Direct(note="a sum has no order"),) * 2,
            *(Direct(note=SPLIT),) * 2,
        )
    ),
    operator=FULL,
    near_misses=(
        variant(merged, "the mean of the two outputs", merging(mean)),
        variant(merged, "weighed by the logarithms", merging(by_logarithms)),
        variant(merged, "logarithms added", merging(added)),
    ),
)

CLAIMS = (ONLINE_SOFTMAX, MERGE)
