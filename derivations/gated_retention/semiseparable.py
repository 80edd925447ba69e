"""State space duality: the recurrence of Mamba-2 is gated retention, and its mask a 1-semiseparable matrix.

    h_t = a_t h_{t-1} + Δ_t B_t x_tᵀ        y_t = h_tᵀ C_t

for one head: B_t and C_t have the size N of the state, x_t and y_t are the head's channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..claim import Claim, NearMiss, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Direct, Each, ForEach, Hypothesis, Induction, Part
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
    matrix,
    recurrence,
    scalars,
    vectors,
)
from .operator import DAO

N, P, T = indices("N P T")
t, r, i, j, l, s, n, m = indices("t r i j l s n m")
a, delta = scalars("a"), scalars("Delta")
B, C, x = vectors("B", N), vectors("C", N), vectors("x", P)
h0 = matrix("h0", N, P)

h = recurrence("h", h0, lambda t, h: a[t] * h + delta[t] * B[t] * x[t].T)


def value(at: Index) -> Term:
    """What is written: the input times its step."""
    return delta[at] * x[at]


def retention(keys: Family, queries: Family, values: Callable[[Index], Term] = value) -> Formula:
    """The state is that of gated retention, transposed; and so is the output."""
    H = recurrence("H", h0.T, lambda t, H: a[t] * H + values(t) * keys[t].T)
    return And(Equation(h[t], H[t].T), Equation(h[t].T * C[t], H[t] * queries[t]))


dual = Statement(retention(B, C), le(0, t))

SSD = Claim(
    id="gated-retention/ssd",
    title="the recurrence of Mamba-2 is gated retention: γ = a, keys B, queries C, values Δx, the state transposed",
    statement=dual,
    sources=(Source(DAO, "state space duality: A_t a number times the identity", "one head; Δ as in the discretisation B̄ = ΔB"),),
    proof=Each(
        (
            Induction(t, Direct(note="the same start"), Direct((Hypothesis(),), "the same update, transposed")),
            Direct((Part(1),), "the same read-out"),
        )
    ),
    near_misses=(
        variant(dual, "keys and queries exchanged", retention(C, B)),
        variant(dual, "the step is left out", retention(B, C, lambda at: x[at])),
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
