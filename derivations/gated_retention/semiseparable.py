"""State space duality: the recurrence of Mamba-2 is gated retention, and its mask a 1-semiseparable matrix.

    h_t = a_t h_{t-1} + Δ_t B_t x_tᵀ        y_t = h_tᵀ C_t

for one head: B_t and C_t have the size N of the state, x_t and y_t are the head's channels.
"""

from __future__ import annotations

from dataclasses import replace

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Direct, Each, ForEach, Given, Hypothesis, Induction, Part
from ..kernel.terms import (
    Entry,
    Family,
    Index,
    Num,
    Prod,
    Term,
    Where,
    entries,
    equal,
    indicator,
    indices,
    le,
    recurrence,
    scalars,
    vectors,
)
from .operator import DAO, DECLARATION, H0, H, d_v, gamma, k, q, t, v

T, M = indices("T M")
r, i, j, l, s, n, m = indices("r i j l s n m")
a, delta = scalars("a"), scalars("Delta")
x = vectors("x", d_v)

# Gated retention's own H, with Mamba-2's names for what enters it: a = γ, B = k, C = q, and h is N x P = d_k x d_v.
h = recurrence("h", H0.T, lambda t, h: gamma[t] * h + delta[t] * k[t] * x[t].T)
held_input = Assumption(
    "values Δx", ForAll(Equation(v[s], delta[s] * x[s]), s, 1, M), solve={v[s]: delta[s] * x[s]}
)


def retention(queries: Family, state: Term = H[t].T) -> Formula:
    """The state is that of gated retention, transposed; and so is the output."""
    return And(Equation(h[t], state), Equation(h[t].T * q[t], H[t] * queries[t]))


dual = Statement(retention(q), le(0, t) & le(t, M), (held_input,))

SSD = Claim(
    id="gated-retention/ssd",
    title="the recurrence of Mamba-2 is gated retention: γ = a, keys B, queries C, values Δx, the state transposed",
    statement=dual,
    sources=(Source(DAO, "state space duality: A_t a number times the identity", "one head; Δ as in the discretisation B̄ = ΔB"),),
    proof=Each(
        (
            Induction(
                t,
                Direct(note="the same start"),
                Direct((Hypothesis(), Given("values Δx", {s: t + 1})), "the same update, transposed"),
            ),
            Direct((Part(1),), "the same read-out"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(dual, "the step is left out", drop="values Δx"),
        variant(dual, "keys for queries", retention(k)),
        variant(dual, "the state one token late", retention(q, H[t - 1].T)),
    ),
)

# The mask -----------------------------------------------------------------------------------------


def decay(first: Index, last: Index) -> Term:
    """What is left after the steps first..last."""
    return Prod(a[r], r, first, last)


def square(entry: Term) -> Term:
    """The T x T matrix with an entry in row i and column j."""
    return entries(entry, i, (1, T), j, (1, T))


L = square(Where(le(j, i), decay(j + 1, i), Num(0)))


def bidiagonal(gate: Term = a[i]) -> Term:
    """Ones on the diagonal, and the gates, negative, below it."""
    return square(indicator(equal(i, j)) - Where(equal(j + 1, i), gate, Num(0)))


def inverse(of: Term) -> Formula:
    """A matrix times the mask is the identity, entry by entry; so the mask is its inverse."""
    entry = Equation(Entry(of * L, i, j), indicator(equal(i, j)))
    return ForAll(ForAll(entry, j, 1, T), i, 1, T)


# Rows m <= n, columns l <= s, all on or below the diagonal.
minor = Equation(decay(s + 1, m) * decay(l + 1, n), decay(l + 1, m) * decay(s + 1, n))
below = le(0, T) & le(0, l) & le(l, s) & le(s, m) & le(m, n)
mask = Statement(And(inverse(bidiagonal()), minor), below)

MASK = Claim(
    id="gated-retention/mask",
    title="the mask is the inverse of a bidiagonal matrix, and its 2 x 2 minors on and below the diagonal vanish",
    statement=mask,
    sources=(Source(DAO, "1-semiseparable matrices", "rank at most 1 of every block below the diagonal, as its minors"),),
    proof=Each(
        (ForEach(ForEach(Direct(note="a row less a times the row above"))), Direct(note="the ranges of gates are cut at each other's ends"))
    ),
    near_misses=(
        variant(mask, "the gate of the column", And(inverse(bidiagonal(a[j])), minor)),
        variant(mask, "the gates are added", And(inverse(bidiagonal(-a[i])), minor)),
        NearMiss("a minor across the diagonal", replace(mask, where=le(0, T) & le(0, l) & le(l, s) & le(m, s) & le(l, m) & le(m, n))),
    ),
)

CLAIMS = (SSD, MASK)
