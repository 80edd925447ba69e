"""Full attention knows no order: when two tokens change places, so do their rows, and no row changes.

σ is the exchange of the tokens a < b, and g(σ(j)) is written out as g(b) where j = a, g(a) where j = b, else g(j). Any permutation is
made of such exchanges, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Chain, Direct, Each, Link, Part, Using
from ..kernel.terms import Exp, Ind, Index, Row, Stack, Sum, Term, Where, equal, indices, le, lt, named
from .operators import FULL, VASWANI, Logit, T, full, i, j, normaliser, row, score, softmax, v

ZAHEER = "Zaheer et al., Deep Sets, arXiv 1703.06114"
LEE = "Lee et al., Set Transformer, arXiv 1810.00825"

a, b = indices("a b")
Member = Callable[[Index], Term]


def exchanged(of: Member, at: Index) -> Term:
    """What stands at a place once the tokens a and b have changed places."""
    return Where(equal(at, a), of(b), Where(equal(at, b), of(a), of(at)))


def moved(logit: Logit) -> Logit:
    """The logit of the tokens that stand at two places after the exchange."""
    return lambda r, c: named("s", exchanged(lambda s: exchanged(lambda u: logit(s, u), c), r), r, c)


def keys_moved(r: Index, c: Index) -> Term:
    """The logit where the keys alone have changed places."""
    return exchanged(lambda at: score(r, at), c)


def weight(at: Index) -> Term:
    """exp of the score of query i and a key."""
    return Exp(score(i, at))


def weighed(at: Index) -> Term:
    """The value of a token, times its weight."""
    return weight(at) * v[at].T


def no_order(of: Member, last: Index = T) -> Equation:
    """A sum over the tokens, up to the last one or another, is the same after the exchange."""
    return Equation(Sum(exchanged(of, j), j, 1, last), Sum(of(j), j, 1, last))


def after(logit: Logit) -> Term:
    """Full attention after the exchange, all rows at once, with these logits of the tokens at two places."""
    values = named("V'", Stack(exchanged(lambda at: v[at], row).T, row, 1, T), T)
    return named("Full'", softmax(logit, T, T) * values, T)


def same_row(new: Term, old: Term) -> Equation:
    """The row of token i, which stands at σ(i) now, is the row that it had."""
    return Equation(exchanged(lambda at: Row(new, at), i), Row(old, i))


def equivariant(rows: Equation) -> And:
    """The sums over the tokens, and the rows."""
    return And(no_order(weight), no_order(weighed), rows)


AFTER = after(moved(score))
ROWS = same_row(AFTER, full(T))
equivariance = Statement(equivariant(ROWS), le(1, a) & lt(a, b) & le(b, T) & le(1, i) & le(i, T))
WEIGHTS, VALUES = no_order(weight).lhs, no_order(weighed).lhs
PLACES = "the terms a and b change places"


def placed(of: Member) -> Equation:
    """The sum of the weights, where the place of a key is added to its score."""
    return Equation(Sum(Exp(exchanged(of, j) + Ind(j)), j, 1, T), Sum(Exp(of(j) + Ind(j)), j, 1, T))


PERMUTATION_EQUIVARIANCE = Claim(
    id="attention/permutation-equivariance",
    title="full self-attention without positions commutes with an exchange of any two tokens, and so, one exchange after the other, with "
    "every permutation",
    statement=equivariance,
    sources=(
        Source(LEE, "section 2.2 and property 1: permutation equivariant blocks", "an exchange of two tokens, any two"),
        Source(ZAHEER, "section 2.2: a sum over a set"),
        Source(VASWANI, "section 3.5: without positions, the model makes no use of the order"),
    ),
    proof=Each(
        (
            Direct(note=PLACES),
            Direct(note=PLACES),
            Chain(
                (Link(VALUES / WEIGHTS, note="the query is that of token i, wherever it stands"),),
                (
                    Using(Part(2), left=1 / WEIGHTS),
                    Using(Part(1), left=no_order(weighed).rhs / WEIGHTS / normaliser(i, T), right=-1),
                ),
                "both sums have no order",
            ),
        )
    ),
    operator=FULL,
    near_misses=(
        variant(equivariance, "masked: token i sees the tokens up to its own", And(no_order(weight, i), no_order(weighed, i), ROWS)),
        variant(equivariance, "scores with positions", And(placed(lambda at: score(i, at)), no_order(weighed), ROWS)),
        variant(equivariance, "the queries stay where they are", equivariant(same_row(after(keys_moved), full(T)))),
    ),
)

CLAIMS = (PERMUTATION_EQUIVARIANCE,)
