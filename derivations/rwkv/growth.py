"""Whether RWKV-7 can grow without a write: not where decay and rate are one number for all channels; else it can.

A transition diag(d) - κ (η ⊙ κ)ᵀ with |κ| = 1 and decays and rates between 0 and 1 has no eigenvalue beyond 1. The product of two
may: with d = 1, κ = (3/5, 4/5) and η = (1, 0), then κ = (4/5, 3/5) and η = (0, 1), it has the trace 944/625 and the determinant 256/625,
so an eigenvalue above 1.15, and every such pair of tokens makes both entries of (1, -1) larger by 1.12 at least.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, LessEqual, Statement
from ..kernel.scripts import Given, Induction, Product, Sign
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
gamma, beta = scalars("gamma"), scalars("beta")
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
one_decay = Assumption("one decay: d = γ", every(Equation(Diag(d[r]), gamma[r] * Eye(d_k))), solve={d[r]: Stack(gamma[r], m, 1, d_k)})
one_rate = Assumption("one rate: b = -βa", every(Equation(b[r], -beta[r] * a[r])), solve={b[r]: -beta[r] * a[r]})
numbers = Assumption(
    "β and γ between 0 and 1",
    And(*(every(part) for x in (gamma[r], beta[r]) for part in between(x))),
    solve={x[r]: Num(1) / (1 + scalars(n)[r] ** 2) for x, n in ((gamma, "x"), (beta, "z"))},
)
by_channel = Assumption(
    "decays and rates by channel: b = -η ⊙ a",
    And(every(Equation(b[r], -Hadamard(eta[r], a[r]))), *(every(part) for x in (d[r], eta[r]) for part in entries_between(x))),
    solve={b[r]: -Hadamard(eta[r], a[r])},
)


def pair(one: Fraction | int, other: Fraction | int) -> Term:
    """A column of two numbers."""
    return Stack(Where(equal(m, 1), Num(one), Num(other)), m, 1, 2)


LONG, SHORT = Fraction(4, 5), Fraction(3, 5)
TWO_TOKENS: dict[Any, Any] = {
    **{"t": 2, "N": 2, "d_k": 2, "d_v": 1, H0: pair(1, -1).T, y: 1},
    **{a[1]: -pair(SHORT, LONG), eta[1]: pair(1, 0), a[2]: -pair(LONG, SHORT), eta[2]: pair(0, 1)},
    d[r]: Stack(Num(1), m, 1, d_k),
}

shorter = LessEqual(norm2(G[t].T * y), norm2(H0.T * y))
stable = Statement(shorter, le(0, t) & le(t, N) & le(1, d_k), (no_writes, unit, one_decay, one_rate, numbers))
z = G[t].T * y
found = a[t + 1].T * z
beside = norm2(z - a[t + 1] * found)
faded, corrected = 1 - gamma[t + 1], 1 - beta[t + 1]
# |z|² - |z'|² = (1 - γ²) |z - aaᵀz|² + (1 - (γ - β)²) (aᵀz)², and 1 - (γ - β)² = (1 - γ + β) (1 - β + γ)
shares = [(faded, beside), (faded, gamma[t + 1], beside)]
shares += [(x, y, found**2) for x in (faded, beta[t + 1]) for y in (corrected, gamma[t + 1])]
now = tuple(Given(x.name, {r: t + 1}) for x in (no_writes, unit, one_decay, one_rate))

STABLE = Claim(
    id="rwkv/wkv7-stable",
    title="without writes the memory does not grow if decay and rate are one number for all channels; with a rate for each it can",
    statement=stable,
    as_written=Statement(shorter, stable.where, (no_writes, unit, by_channel)),
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
            (Product((norm2(H0.T * y) - norm2(z),)), *map(Product, shares)),
            by=now,
        ),
    ),
    operator=WKV7,
    near_misses=(
        variant(stable, "a has any length", drop=unit.name),
        variant(stable, "writes", drop=no_writes.name),
        variant(stable, "a decay for each channel", drop=one_decay.name),
        variant(stable, "a rate for each channel", drop=one_rate.name),
        variant(stable, "decays and rates of any size", drop=numbers.name),
    ),
)

CLAIMS = (STABLE,)
