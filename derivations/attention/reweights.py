"""What an appended token does to the weights of the tokens before it: they shrink together, for one and the same query."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Less, Statement
from ..kernel.scripts import Direct, Each, Given, Product, Sign
from ..kernel.terms import Exp, Index, Num, Term, le, named, vector
from .operators import MASKED, NOTE, VASWANI, T, d_k, i, j, k, l, normaliser, q, t

x = vector("x", d_k)
fixed = Assumption("one query for all tokens", ForAll(Equation(q[i], x), i, 1, T), solve={q[i]: x})


def weight(token: Index, at: Index) -> Term:
    """The weight of a token for the query at a time."""
    return named("a", Exp(q[at].T * k[token]) / normaliser(at, at), at, token)


def Z(at: Index) -> Term:
    """The normaliser of the query at a time."""
    return normaliser(at, at)


factor = Z(t) / Z(t + 1)
by = (Given(fixed.name),)


def reweighted(rate: Term) -> Equation:
    """An old weight after one more token."""
    return Equation(weight(j, t + 1), weight(j, t) * rate)


def history(shrinks: Formula, ratios: Formula) -> Formula:
    """The old weights are multiplied by one number, which lies between 0 and 1, so their ratios stay."""
    return And(shrinks, Equation(factor, 1 - weight(t + 1, t + 1)), Less(0, factor), Less(factor, 1), ratios)


def ratio(token: Index, at: Index) -> Term:
    """The weight of a token over that of token l."""
    return weight(token, at) / weight(l, at)


shrinks, ratios = reweighted(factor), Equation(ratio(j, t + 1), ratio(j, t))
same_loss = Equation(weight(j, t + 1) - weight(j, t), weight(l, t + 1) - weight(l, t))
reweights = Statement(history(shrinks, ratios), le(1, j) & le(j, t) & le(1, l) & le(l, t) & le(t + 1, T), (fixed,))

REWEIGHTS_HISTORY = Claim(
    id="attention/reweights-history",
    title="for one query, an appended token multiplies every old weight by the same Z_t/Z_{t+1} < 1, so their ratios stay",
    statement=reweights,
    as_written=Statement(reweights.conclusion, reweights.where),
    expected="qualified",
    sources=(
        Source(NOTE, "full attention in the same notation: a new token changes the softmax", "a later token has a query of its own"),
        Source(VASWANI, "equation 1"),
    ),
    proof=Each(
        (
            Direct(by, "the same exponential over another normaliser"),
            Direct(by, "Z_{t+1} = Z_t + exp(xᵀ k_{t+1})"),
            Sign(),
            Sign((Product((Exp(x.T * k[t + 1]) / Z(t + 1),)),), by),
            Direct(by, "the normalisers cancel"),
        )
    ),
    operator=MASKED,
    near_misses=(
        variant(reweights, "a query of its own for every token", drop=fixed.name),
        variant(reweights, "old weights stay", history(reweighted(Num(1)), ratios)),
        variant(reweights, "every old weight loses the same amount", history(same_loss, ratios)),
        variant(reweights, "the new token keeps its ratio too", history(shrinks, Equation(ratio(t + 1, t + 1), ratio(j, t)))),
    ),
)

CLAIMS = (REWEIGHTS_HISTORY,)
