"""The memory column by column, and row by row: where a key writes, and one state-space model per value channel."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Link, Part, Unfold, Using
from ..kernel.terms import Eye, Index, Recurrence, Row, Stack, Term, Zero, equal, indicator, indices, le, recurrence
from .operator import DAO, H0, NOTE, H, d_k, d_v, i, k, q, s, t, v

c, r = indices("c r")


def unit(n: Index) -> Term:
    """The n-th standard basis vector of the keys' space."""
    return Stack(indicator(equal(r, n)), r, 1, d_k)


def column(x: Term, n: Index) -> Term:
    """Column n of a d_v x d_k matrix."""
    return Row(x.T, n).T


# s is an index of its own: what is assumed of its key says nothing about the others.
basis_key = Assumption(
    "k_s = e_i",
    ForAll(Equation(Row(k[s], r), indicator(equal(r, i))), r, 1, d_k),
    solve={k[s]: unit(i)},
)
outer = Equation(column(v[t] * k[t].T, c), Row(k[t], c) * v[t])
one_column = Equation(column(H[s], c), column(H[s - 1], c) + indicator(equal(c, i)) * v[s])
read_one = Equation(H[t] * unit(i), column(H[t], i))
some_columns = le(1, c) & le(c, d_k) & le(1, i) & le(i, d_k)
column_writes = Statement(And(outer, one_column, read_one), le(1, t) & le(1, s) & some_columns, (basis_key,))
written_column = Link(column(H[s - 1], c) + Row(k[s], c) * v[s], (Using(Unfold(H[s]), right=unit(c)),), "column c of the update")

COLUMN_WRITES = Claim(
    id="linear-attention/column-writes",
    title="v kᵀ has the columns k_c v; the key e_i writes column i only, the query e_i reads it",
    statement=column_writes,
    sources=(Source(NOTE, "section 1.3.2: where a key puts a value"),),
    proof=Each(
        (
            Direct(note="entry by entry"),
            Chain((written_column,), (Given("k_s = e_i"),), "the key is 0 but for one entry"),
            Direct(note="the sum over the columns has one term"),
        )
    ),
    near_misses=(
        variant(
            column_writes,
            "the value times the squared key",
            And(Equation(column(v[t] * k[t].T, c), k[t].T * k[t] * v[t]), one_column, read_one),
        ),
        variant(column_writes, "any key writes one column", drop="k_s = e_i"),
        variant(column_writes, "every query reads one column", And(outer, one_column, Equation(H[t] * q[t], column(H[t], i)))),
    ),
)

# One state-space model per value channel ----------------------------------------------------------

channel = recurrence("x", Row(H0, c).T, lambda t, x: Eye(d_k) * x + k[t] * Row(v[t], c))
pick = Stack(indicator(equal(r, c)), r, 1, d_v).T
row_of_update = Link(Row(H[t], c) + Row(v[t + 1], c) * k[t + 1].T, (Using(Unfold(H[t + 1]), left=pick),), "row c of the update")


def per_channel(x: Recurrence) -> Formula:
    """Row c of the state is the state of channel c, and entry c of the output its output."""
    return And(Equation(Row(H[t], c), x[t].T), Equation(Row(H[t] * q[t], c), q[t].T * x[t]))


state_space = Statement(per_channel(channel), le(0, t) & le(1, c) & le(c, d_v))

STATE_SPACE = Claim(
    id="linear-attention/as-state-space",
    title="each value channel is a state-space model with Ā = I, B̄_t = k_t, C_t = q_tᵀ",
    statement=state_space,
    sources=(Source(DAO, "linear attention as a state-space model whose A is the identity"),),
    proof=Each(
        (
            Induction(
                t,
                Direct(note="the same start"),
                Chain((row_of_update,), (Hypothesis(),), "the update of the channel"),
            ),
            Direct((Part(1),), "row c of the read-out"),
        )
    ),
    near_misses=(
        variant(
            state_space,
            "the key and the value of the step before",
            per_channel(recurrence("x", Row(H0, c).T, lambda t, x: x + k[t - 1] * Row(v[t - 1], c))),
        ),
        variant(state_space, "C is the key", And(state_space.conclusion.args[0], Equation(Row(H[t] * q[t], c), k[t].T * channel[t]))),
        variant(state_space, "the start is forgotten", per_channel(recurrence("x", Zero(d_k, 1), lambda t, x: x + k[t] * Row(v[t], c)))),
    ),
)

CLAIMS = (COLUMN_WRITES, STATE_SPACE)
