"""Rows of masked attention do not depend on later tokens: directly, and by the downward induction of the note."""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Given, Hypothesis, Induction, Link, Rowwise, Using
from ..kernel.terms import (
    Exp,
    Hadamard,
    Index,
    NegInf,
    Num,
    Row,
    Rows,
    Stack,
    Sum,
    Term,
    Var,
    Where,
    Zero,
    entries,
    index,
    indicator,
    le,
    vectors,
)
from .operators import MASKED, NOTE, VASWANI, T, causal, column, d_v, full, i, j, k, masked, q, row, rows, score, softmax, t, v

# Row t of the whole is row t of the prefix ---------------------------------------------------------------

prefix_invariance = Statement(Equation(Row(masked(T), t), Row(masked(t), t)), le(1, t) & le(t, T))


def cut(term: Term) -> Term:
    """The term for the tokens up to t, 0 for the others."""
    return Where(le(j, t), term, Zero(*term.shape))


exponential = Exp(q[t].T * k[j])
seen = Sum(cut(exponential * v[j]), j, 1, T) / Sum(cut(exponential), j, 1, T)


def pair(transform: Callable[[Index], Term]) -> Equation:
    """Prefix invariance of another map."""
    return Equation(Row(transform(T), t), Row(transform(t), t))


def masked_after(last: Index) -> Term:
    """The mask multiplies the softmax of all scores."""
    visible = entries(indicator(le(column, row)), row, (1, last), column, (1, last))
    return Hadamard(softmax(score, last, last), visible) * rows(v, last)


def looking_ahead(last: Index) -> Term:
    """The mask is one token too late: row t sees the tokens up to t + 1."""
    return full(last, lambda r, c: Where(le(c, r + 1), score(r, c), NegInf()))


MASKED_PREFIX_INVARIANCE = Claim(
    id="attention/masked-prefix-invariance",
    title="row t of masked attention is the same for every continuation of the first t tokens",
    statement=prefix_invariance,
    sources=(
        Source(
            NOTE, "masked self-attention, formula (1)", "its matrices show zeros inside softmax for -∞; attention/zero-mask refutes those"
        ),
        Source(VASWANI, "section 3.2.3", "the mask keeps the auto-regressive property"),
    ),
    proof=Chain(
        (
            Link(seen.T, note="row t over all T tokens: those after t weigh exp(-∞) = 0"),
            Link(MASKED.output.T, note="both sums split at t, and their second parts are 0"),
        ),
        note="row t over the first t tokens: the last row, where the mask hides nothing",
    ),
    operator=MASKED,
    near_misses=(
        variant(prefix_invariance, "full attention", pair(full)),
        variant(prefix_invariance, "zeros before the softmax, as the note shows", pair(lambda last: full(last, causal(score, Num(0))))),
        variant(prefix_invariance, "mask after the softmax", pair(masked_after)),
        variant(prefix_invariance, "mask one token late", pair(looking_ahead)),
    ),
)

# The note's own argument: one step, then downwards -------------------------------------------------------

m, s = index("m"), index("s")
y = vectors("y", d_v)


def Y(length: Index) -> Term:
    """The outputs F(X_{1:length}) of a sequence map, one row a token: any matrices at all."""
    return Var("Y", (length,), length, d_v)


def one_step(outputs: Callable[[Index], Term]) -> ForAll:
    """A new token does not change the rows before it: outputs(m)_{1:m-1} = outputs(m-1) for m = 1..T."""
    return ForAll(ForAll(Equation(Row(outputs(m), s), Row(outputs(m - 1), s)), s, 1, m - 1), m, 1, T)


def first_rows(outputs: Callable[[Index], Term]) -> Equation:
    """outputs(T)_{1:T-i} = outputs(T-i)."""
    return Equation(Rows(outputs(T), 1, T - i), outputs(T - i))


step = Assumption("one step", one_step(Y), solve={Y(m): Stack(y[row].T, row, 1, m)})
downward = Statement(And(first_rows(Y), one_step(masked), first_rows(masked)), le(0, i) & le(i, T), (step,))
last_rows = Equation(Stack(Row(Y(T), row + i), row, 1, T - i), Y(T - i))

DOWNWARD_INDUCTION = Claim(
    id="attention/downward-induction",
    title="if one new token leaves the rows before it alone, so do i new tokens; masked attention is such a map",
    statement=downward,
    sources=(Source(NOTE, "masked self-attention: the derivation of formula (1)", "i = T is the empty case"),),
    proof=Each(
        (
            Rowwise(
                t,
                Induction(
                    i,
                    base=Direct(note="i = 0: nothing is cut off"),
                    step=Direct((Hypothesis(), Given("one step", at={m: T - i, s: t})), "rows 1..T-i first, then one token less"),
                ),
            ),
            ForEach(ForEach(Direct(note="row s < m of masked attention: token m weighs exp(-∞) = 0"))),
            Rowwise(
                t,
                Induction(
                    i,
                    base=Direct(note="i = 0: nothing is cut off"),
                    step=Direct((Using(Hypothesis()),), "rows 1..T-i first, then one token less"),
                ),
            ),
        )
    ),
    operator=MASKED,
    near_misses=(
        variant(downward, "one new token may change the old rows", drop="one step"),
        variant(downward, "the last rows instead of the first", last_rows),
        variant(downward, "full attention takes the step", one_step(full)),
        variant(downward, "full attention", first_rows(full)),
    ),
)

CLAIMS = (MASKED_PREFIX_INVARIANCE, DOWNWARD_INDUCTION)
