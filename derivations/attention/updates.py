"""What one appended token does to a row of full attention, and the running softmax that follows from it."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Iff, Statement
from ..kernel.scripts import Both, Chain, Direct, Each, Given, Hypothesis, Induction, Link, Unfold, Using
from ..kernel.terms import Exp, Index, Row, Sum, Term, Zero, le, recurrence
from .operators import FULL, NOTE, VASWANI, T, d_v, full, i, j, k, normaliser, q, t, v

MILAKOV = "Milakov, Gimelshein, Online normalizer calculation for softmax, arXiv 1805.02867"

old, new = FULL.output.subs({t: i}), FULL.output.subs({t: i, T: T + 1})
gain = Exp(q[i].T * k[T + 1])


def Z(last: Index) -> Term:
    """The normaliser of query i over the tokens 1..last."""
    return normaliser(i, last)


unnormalised = Sum(Exp(q[i].T * k[j]) * v[j], j, 1, T)
grown = (unnormalised + gain * v[T + 1]) / Z(T + 1)
rescaled = (Z(T) * old + gain * v[T + 1]) / Z(T + 1)
GROWN = "both sums gain one term, that of token T + 1"
RESCALED = "the old sum is Z_T times the old row"

# Full attention moves every old row towards the new value -------------------------------------------------

old_row, new_row = Row(full(T), i), Row(full(T + 1), i)


def moved(rate: Term) -> Equation:
    """The new row lies at ``rate`` on the way from the old one to v_{T+1}ᵀ."""
    return Equation(new_row, old_row + rate * (v[T + 1].T - old_row))


added = Equation(new_row, old_row + gain / Z(T + 1) * v[T + 1].T)
kept = Equation(new_row, old_row)
stays = Iff(kept, Equation(v[T + 1].T, old_row))
not_invariant = Statement(And(moved(gain / Z(T + 1)), stays), le(1, i) & le(i, T))

FULL_NOT_PREFIX_INVARIANT = Claim(
    id="attention/full-not-prefix-invariant",
    title="an appended token moves each old row of full attention towards its value; only a row equal to it stays",
    statement=not_invariant,
    sources=(Source(NOTE, "full attention in the same notation: every row has to be updated"), Source(VASWANI, "equation 1")),
    proof=Each(
        (
            Chain(
                (
                    Link(new.T, note="row i is what query i reads"),
                    Link(grown.T, note=GROWN),
                    Link(rescaled.T, note=RESCALED),
                ),
                note="Z_T = Z_{T+1} - exp(q_iᵀ k_{T+1})",
            ),
            Both(
                Direct((Using(Given("premise"), left=Z(T + 1) / gain),), "divide the change by its factor, which is not 0"),
                Direct((Using(Given("premise"), left=gain / Z(T + 1)),), "nothing to move towards"),
            ),
        )
    ),
    operator=FULL,
    near_misses=(
        variant(not_invariant, "full attention is prefix invariant", kept),
        variant(not_invariant, "the weight under the old normaliser", moved(gain / Z(T))),
        variant(not_invariant, "the new value is added, the old row not moved", added),
    ),
)

# Running softmax ------------------------------------------------------------------------------------------

running = recurrence("O", Zero(d_v, 1), lambda n, O: Z(n - 1) / Z(n) * O + Exp(q[i].T * k[n]) / Z(n) * v[n])
unscaled = recurrence("O", Zero(d_v, 1), lambda n, O: O + Exp(q[i].T * k[n]) / Z(n) * v[n])
append = Equation(new, Z(T) / Z(T + 1) * old + gain / Z(T + 1) * v[T + 1])
append_update = Statement(And(append, Equation(running[T], old)), le(1, i) & le(1, T))

APPEND_UPDATE = Claim(
    id="attention/append-update",
    title="a row of attention is updated by a rescaling and one new value, so it can be computed token by token",
    statement=append_update,
    sources=(
        Source(NOTE, "full attention in the same notation: a new column changes the softmax and adds a term"),
        Source(MILAKOV, "section 3", "without the running maximum"),
    ),
    proof=Each(
        (
            Chain((Link(grown, note=GROWN), Link(rescaled, note=RESCALED)), note="the old row and the new value, each with its weight"),
            Induction(
                T,
                start=1,
                base=Direct((Unfold(running[1]),), "one token: its weight is 1"),
                step=Direct((Hypothesis(),), "the update above"),
            ),
        )
    ),
    operator=FULL,
    near_misses=(
        variant(append_update, "no rescale", Equation(new, old + gain / Z(T + 1) * v[T + 1])),
        variant(append_update, "a running softmax without rescale", Equation(unscaled[T], old)),
        variant(append_update, "the new weight under the old normaliser", Equation(new, Z(T) / Z(T + 1) * old + gain / Z(T) * v[T + 1])),
    ),
)

CLAIMS = (FULL_NOT_PREFIX_INVARIANT, APPEND_UPDATE)
