"""Whether RWKV-7 can grow without a write: not where all channels have one rate; else it can.

With one rate β a transition diag(d) - β a aᵀ, |a| = 1, is symmetric, and lies between -I and I for decays and β between 0 and 1, so
every product of such has a norm of at most 1. A transition diag(d) - κ (η ⊙ κ)ᵀ with |κ| = 1 and rates η of the channels has no
eigenvalue beyond 1 either, but the product of two may: with d = 1, κ = (3/5, 4/5) and η = (1, 0), then κ = (4/5, 3/5) and η = (0, 1),
it has the trace 944/625 and the determinant 256/625, so an eigenvalue above 1.15, and every such pair of tokens makes both entries of
(1, -1) larger by 1.12 at least.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, LessEqual, Statement
from ..kernel.scripts import Given, Induction, Product, Sign, Using
from ..kernel.terms import (
    Diag,
    Eye,
    Hadamard,
    Num,
    Row,
    Stack,
    Term,
    Where,
    Zero,
    equal,
    indicator,
    indices,
    le,
    norm2,
    scalars,
    vector,
    vectors,
)
from .operators import GOOSE, H0, WKV7, G, a, b, d, d_k, d_v, t, v

r, i, m, N = indices("r i m N")
eta, mirror = vectors("eta", d_k), vectors("m", d_k)
beta = scalars("beta")
y = vector("y", d_v)
first = Stack(indicator(equal(m, 1)), m, 1, d_k)


def every(formula: Formula) -> Formula:
    """For every token."""
    return ForAll(formula, r, 1, N)


def between(x: Term) -> tuple[Formula, Formula]:
    """A number lies between 0 and 1."""
    return LessEqual(0, x), LessEqual(x, 1)


def entries_between(x: Term) -> tuple[Formula, ...]:
    """Every entry of a column does."""
    return tuple(ForAll(part, i, 1, d_k) for part in between(Row(x, i)))


no_writes = Assumption("no writes", every(Equation(v[r], Zero(d_v, 1))), solve={v[r]: Zero(d_v, 1)})
unit = Assumption(
    "a has length 1",
    every(Equation(norm2(a[r]), 1)),
    solve={a[r]: (Eye(d_k) - 2 / norm2(mirror[r]) * mirror[r] * mirror[r].T) * first},
)
one_rate = Assumption("one rate: b = -βa", every(Equation(b[r], -beta[r] * a[r])), solve={b[r]: -beta[r] * a[r]})
rates = Assumption(
    "β between 0 and 1",
    And(*(every(part) for part in between(beta[r]))),
    solve={beta[r]: Num(1) / (1 + scalars("z")[r] ** 2)},
)

# d between 0 and 1, by square roots: every such d has them.
one, angle = Num(1), Row(vectors("x", d_k)[r], m)
root, rest = vectors("w", d_k), vectors("s", d_k)
not_negative = Assumption(
    "decays are not negative: d = w ⊙ w",
    every(Equation(Diag(d[r]), Diag(root[r]) * Diag(root[r]))),
    solve={root[r]: Stack((one - angle**2) / (one + angle**2), m, 1, d_k), d[r]: Hadamard(root[r], root[r])},
)
at_most_1 = Assumption(
    "decays are at most 1: 1 - d = s ⊙ s",
    every(Equation(Eye(d_k) - Diag(d[r]), Diag(rest[r]) * Diag(rest[r]))),
    solve={rest[r]: Stack((angle + angle) / (one + angle**2), m, 1, d_k)},
)


def by_channel(name: str, *bounded: Term) -> Assumption:
    """A rate for each channel; what lies between 0 and 1."""
    within = (every(part) for x in bounded for part in entries_between(x))
    return Assumption(name, And(every(Equation(b[r], -Hadamard(eta[r], a[r]))), *within), solve={b[r]: -Hadamard(eta[r], a[r])})


def pair(one: Fraction | int, other: Fraction | int) -> Term:
    """A column of two numbers."""
    return Stack(Where(equal(m, 1), Num(one), Num(other)), m, 1, 2)


LONG, SHORT = Fraction(4, 5), Fraction(3, 5)
TWO_TOKENS: dict[Any, Any] = {
    **{"t": 2, "N": 2, "d_k": 2, "d_v": 1, H0: pair(1, -1).T, y: 1},
    **{a[1]: -pair(SHORT, LONG), eta[1]: pair(1, 0), a[2]: -pair(LONG, SHORT), eta[2]: pair(0, 1)},
    d[r]: Stack(Num(1), m, 1, d_k),
}
NO_DECAY = {root[r]: Stack(Num(1), m, 1, d_k), rest[r]: Zero(d_k, 1)}
ONE_TOKEN: dict[Any, Any] = {"t": 1, "N": 1, "d_k": 1, "d_v": 1, H0: 1, y: 1, a[1]: 1, beta[1]: 0}

shorter = LessEqual(norm2(G[t].T * y), norm2(H0.T * y))
decays = (not_negative, at_most_1)
stable = Statement(shorter, le(0, t) & le(t, N) & le(1, d_k), (no_writes, unit, *decays, one_rate, rates))
new, half = t + 1, Fraction(1, 2)
z = G[t].T * y


def moved(x: Term) -> Term:
    """S x, of the symmetric S = diag(d) - β a aᵀ of the next token."""
    return Diag(d[new]) * x - beta[new] * a[new] * (a[new].T * x)


# 2 |z|² - 2 |Sz|² = pᵀ(I + S)p + mᵀ(I - S)m with p = z - Sz and m = z + Sz
minus, plus = z - moved(z), z + moved(z)
found = a[new].T * minus
squares = (
    (norm2(Diag(root[new]) * z - Diag(root[new]) * moved(z)),),
    (norm2(minus - a[new] * found),),
    (1 - beta[new], found**2),
    (norm2(Diag(rest[new]) * z + Diag(rest[new]) * moved(z)),),
    (beta[new], (a[new].T * plus) ** 2),
)
now = tuple(Given(x.name, {r: new}) for x in (no_writes, unit, one_rate))
by_roots = tuple(Using(Given(x.name, {r: new}), left=Num(half) * side.T, right=side) for x, side in zip(decays, (minus, plus), strict=True))
by_length = Using(Given(unit.name, {r: new}), left=-(Num(half) * beta[new] ** 2 * (a[new].T * z) ** 2))

STABLE = Claim(
    id="rwkv/wkv7-stable",
    title="without writes the memory does not grow if all channels have one rate, whatever their decays; with a rate for each it can",
    statement=stable,
    as_written=Statement(shorter, stable.where, (no_writes, unit, by_channel("decays and rates by channel: b = -η ⊙ a", d[r], eta[r]))),
    as_written_at=TWO_TOKENS,
    expected="refuted",
    sources=(
        Source(
            GOOSE,
            "the stability of the transition matrices: no eigenvalue beyond 1",
            "of one transition; that of products is no consequence",
        ),
    ),
    proof=Induction(
        t,
        Sign(),
        Sign(
            (Product((norm2(H0.T * y) - norm2(z),)), *(Product(factors, half) for factors in squares)),
            by=(*now, *by_roots, by_length),
        ),
    ),
    operator=WKV7,
    near_misses=(
        variant(stable, "a has any length", drop=unit.name),
        variant(stable, "writes", drop=no_writes.name),
        variant(stable, "decays below 0", drop=not_negative.name, at=ONE_TOKEN | {d[1]: -3, rest[1]: 2}),
        variant(stable, "decays above 1", drop=at_most_1.name, at=ONE_TOKEN | {d[1]: 4, root[1]: 2}),
        variant(
            stable,
            "a rate for each channel",
            drop=one_rate.name,
            add=(by_channel("rates by channel: b = -η ⊙ a", eta[r]),),
            at=TWO_TOKENS | NO_DECAY,
        ),
        variant(stable, "a rate of any size", drop=rates.name),
    ),
)

CLAIMS = (STABLE,)
