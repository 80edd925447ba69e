"""Token shift: each channel of a token is mixed with that of the token before. It is a causal convolution of width 2.

    token shift    y_t = μ ⊙ x_t + (1 - μ) ⊙ x_{t-1}
    channel mix    o_t = σ(W_r r_t) ⊙ W_v max(W_k κ_t, 0)²        r_t and κ_t: two token shifts of x

x_0 is the token before the first, 0 where there is none. The proofs ask nothing of σ and the squared maximum.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Given, Rowwise
from ..kernel.terms import (
    Apply,
    Family,
    Hadamard,
    Index,
    Num,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    entries,
    equal,
    indices,
    le,
    matrix,
    vector,
    vectors,
)
from .operators import RWKV

D, M, T = indices("D M T")
t, i, j, n, c = indices("t i j n c")
x, z = vectors("x", D), vectors("z", D)
mu, rho = vector("mu", D), vector("rho", D)
W_r, W_k, W_v = matrix("W_r", D, D), matrix("W_k", M, D), matrix("W_v", D, M)


def shift(x: Family, at: Index, mix: Term = mu) -> Term:
    """The token shift."""
    return Hadamard(mix, x[at]) + x[at - 1] - Hadamard(mix, x[at - 1])


def by_lag(lag: Index, now: Term, before: Term, other: Term) -> Term:
    """The first at lag 0, the second at lag 1, the third beyond."""
    return Where(equal(lag, 0), now, Where(equal(lag, 1), before, other))


def mixed(x: Family, at: Index) -> Term:
    """The channel mix, for any functions in the places of σ and the squared maximum."""
    gate = Apply("sigma", (W_r * shift(x, at, rho),), D, 1)
    return Hadamard(gate, W_v * Apply("phi", (W_k * shift(x, at),), M, 1))


def toeplitz(lag: Index) -> Term:
    """The kernel of channel c in row i and column j, columns from 0 on."""
    return entries(by_lag(lag, Row(mu, c), Num(1) - Row(mu, c), Num(0)), i, (1, T), j, (0, T))


X = Stack(Row(x[j], c), j, 0, T)
Y = Stack(Row(shift(x, i), c), i, 1, T)
same = Assumption("the same token", Equation(z[t], x[t]), solve={z[t]: x[t]})
same_before = Assumption("the same token before", Equation(z[t - 1], x[t - 1]), solve={z[t - 1]: x[t - 1]})


def convolution(lag: Index = t - j, matrix: Term | None = None) -> Formula:
    """The token shift as a sum over lags and as a banded matrix on each channel; the channel mix of the same two tokens."""
    tapped = by_lag(lag, Hadamard(mu, x[j]), x[j] - Hadamard(mu, x[j]), Zero(D, 1))
    summed = Equation(shift(x, t), Sum(tapped, j, 0, t))
    by_channel = Equation((toeplitz(i - j) if matrix is None else matrix) * X, Y)
    return And(summed, by_channel, Equation(mixed(z, t), mixed(x, t)))


mix = Statement(convolution(), le(1, t) & le(0, T) & le(1, c) & le(c, D), (same, same_before))

CHANNEL_MIX = Claim(
    id="rwkv/channel-mix",
    title="the token shift is a causal convolution of width 2 on every channel; the channel mix sees a token and the one before",
    statement=mix,
    sources=(Source(RWKV, "section 3: token shift, and the channel-mixing block", "a token before the first"),),
    proof=Each(
        (
            Direct(note="two lags are not 0"),
            Rowwise(n, Direct(note="row n: two entries are not 0")),
            Direct((Given("the same token"), Given("the same token before")), "a function of two tokens"),
        )
    ),
    near_misses=(
        variant(mix, "the token before the last", convolution(t - j - 1)),
        variant(mix, "the matrix transposed", convolution(matrix=toeplitz(j - i))),
        variant(mix, "another token", drop="the same token"),
        variant(mix, "another token before", drop="the same token before"),
    ),
)

CLAIMS = (CHANNEL_MIX,)
