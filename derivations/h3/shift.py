"""The shift SSM: a matrix that moves every entry one place on, and so a filter over the last N inputs.

(A^l)_ij = [i = j + l], so A^N = 0        k̃_t = Σ_{l<N} c_{l+1} ⊙ k_{t-l}
"""

from __future__ import annotations

from typing import Any

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Given, Hypothesis, Induction, Lemma, Link, Part, Unfold, Using
from ..kernel.terms import Diag, Entry, Eye, Index, Num, Row, Stack, Sum, Term, Where, Zero, equal, indicator, le, recurrence
from .operator import DECLARATION, FU, NOTE, X0, N, X, d, first, i, j, k, l, n, shift, shifted, t, taps

# Its powers --------------------------------------------------------------------------------------

P = recurrence("P", Eye(N), lambda l, P: shift * P)
unit = Stack(indicator(equal(n, j)), n, 1, N)


def powers(of: Any = P, lag: Index = l, last: Index = N) -> Formula:
    """The entries of every power, and from which one on they are 0."""

    def everywhere(entry: Formula) -> Formula:
        return ForAll(ForAll(entry, j, 1, N), i, 1, N)

    return And(
        everywhere(Equation(Entry(of[l], i, j), indicator(equal(i, j + lag)))),
        everywhere(Equation(Where(le(last, l), Entry(of[l], i, j), Num(0)), 0)),
    )


nilpotent = Statement(powers(), le(0, l) & le(0, N))
moved = Link(Entry(shift * P[l], i, j), (Using(Unfold(P[l + 1]), row=i, right=unit),), "one more factor")

NILPOTENT = Claim(
    id="h3/shift-powers",
    title="the l-th power of the shift matrix moves l places on, and from the N-th on they are 0: (A^l)_ij = [i = j + l]",
    statement=nilpotent,
    sources=(Source(FU, "section 3.2, the shift matrix", "N is the size of the state"),),
    proof=Each(
        (
            Induction(l, ForEach(ForEach(Direct(note="A⁰ = I"))), ForEach(ForEach(Chain((moved,), (Hypothesis(),), "one place on")))),
            ForEach(ForEach(Direct((Part(1),), "i = j + l is beyond the last row"))),
        )
    ),
    near_misses=(
        variant(nilpotent, "one place too far", powers(lag=l + 1)),
        variant(nilpotent, "the power before is 0", powers(last=N - 1)),
        variant(nilpotent, "moved back", powers(recurrence("P", Eye(N), lambda l, P: shift.T * P))),
    ),
)


# The filter --------------------------------------------------------------------------------------

# Row i of the state is the input i - 1 steps ago, or an entry of the start that was moved t places on.
held = Where(le(i, t), k[t - i + 1].T, Row(X0, i - t))


def holds(row: Term) -> Formula:
    """The rows of the state of the shift SSM."""
    return ForAll(Equation(Row(X[t], i), row), i, 1, N)


remembered = Statement(holds(held), le(0, t))
updated = Link(Row(shift * X[t] + first * k[t + 1].T, i), (Using(Unfold(X[t + 1]), row=i),), "the update, as declared")

REMEMBERED = Claim(
    id="h3/shift-state",
    title="the state of the shift SSM is the last N inputs, the newest first; of the start, what was not moved out yet",
    statement=remembered,
    sources=(Source(FU, "section 3.2, the shift matrix", "the state holds the last inputs; here read after the update"),),
    proof=Induction(
        t,
        ForEach(Direct(note="the start, not moved")),
        ForEach(Chain((updated,), (Hypothesis(),), "every row one place on, the new input in the first")),
    ),
    operator=DECLARATION,
    near_misses=(
        variant(remembered, "an input too old", holds(Where(le(i, t), k[t - i].T, Row(X0, i - t)))),
        variant(remembered, "oldest first", holds(Where(le(i, t), k[i].T, Row(X0, i - t)))),
        variant(remembered, "the start stays", holds(Where(le(i, t), k[t - i + 1].T, Row(X0, i)))),
    ),
)

fresh_keys = Assumption("X_0 = 0", ForAll(Equation(Row(X0, i), Zero(1, d)), i, 1, N), solve={X0: Zero(N, d)})


def weighted(lag: Index, at: Index) -> Term:
    """A key weighted with the tap of its lag, as a row."""
    return k[at - lag].T * Diag(Row(taps, lag + 1).T)


def filtered(at: Index = t, last: Index = N - 1, later: Index = 0) -> Term:
    """A filter over the keys, at lags 0..last."""
    past = Where(le(l + later + 1, at), weighted(l, at - later), Zero(1, d))
    return Sum(past, l, 0, last)


def responds(answer: Term) -> Formula:
    """What the shift SSM answers."""
    return Equation(shifted(t), answer)


response = Statement(responds(filtered()), le(0, t), (fresh_keys,))

beyond = Where(le(N + 1, t), k[t - N].T * Diag(Row(taps, N).T), Zero(1, d))

RESPONSE = Claim(
    id="h3/shift",
    title="from the zero state, the shift SSM is a filter over the last N inputs: lags 0..N-1, and nothing older",
    statement=response,
    sources=(
        Source(FU, "section 3.2, the shift SSM", "y = C x"),
        Source(NOTE, "H3: what is farther than N steps is gone", "read before the update, so lags 1..N; read after it lag N is gone too"),
    ),
    proof=Direct((Lemma("h3/shift-state"), Given(fresh_keys.name)), "row i is the input i - 1 steps ago"),
    operator=DECLARATION,
    near_misses=(
        variant(response, "a start", drop=fresh_keys.name),
        variant(response, "lag N for lag N - 1", responds(filtered(last=N - 2) + beyond)),
        variant(response, "lags from 1 on", responds(filtered(later=1))),
        variant(response, "one lag too few", responds(filtered(last=N - 2))),
    ),
)

CLAIMS = (NILPOTENT, REMEMBERED, RESPONSE)
