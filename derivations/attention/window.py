"""A window of the last W tokens, and the cache of W slots that it needs."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Link, Part, Unfold, Using
from ..kernel.terms import (
    Cond,
    Exp,
    Family,
    Index,
    NegInf,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    equal,
    indicator,
    indices,
    le,
    recurrence,
)
from .operators import MASKED, T, d_k, d_v, full, k, q, read, score, t, v

BELTAGY = "Beltagy, Peters, Cohan, Longformer, arXiv 2004.05150"
JIANG = "Jiang et al., Mistral 7B, arXiv 2310.06825"
W, c, r = indices("W c r")

# The mask and the cache -----------------------------------------------------------------------------------


def in_window(query: Index, key: Index, width: Index = W) -> Cond:
    """Whether a key is the query's own or one of the width - 1 before it."""
    return le(key, query) & le(query, key + width - 1)


def banded(length: Index) -> Term:
    """Attention with a mask of -∞ outside the window."""
    return full(length, lambda at, key: Where(in_window(at, key), score(at, key), NegInf()))


def recent(width: Index = W) -> Term:
    """What query t reads from the last ``width`` tokens, the newest first, as far as there are any."""
    weight = Where(le(c, t), Exp(q[t].T * k[t + 1 - c]), Zero(1, 1))
    return Sum(weight * v[t + 1 - c], c, 1, width) / Sum(weight, c, 1, width)


def line(name: str, family: Family, size: Index) -> Recurrence:
    """A cache of W slots: the new token comes first, the others move on, and the oldest is lost."""

    def step(at: Index, slots: Term) -> Term:
        return Stack(Where(equal(r, 1), family[at].T, Row(slots, r - 1)), r, 1, W)

    return recurrence(name, Stack(Zero(1, size), r, 1, W), step)


K, V = line("K", k, d_k), line("V", v, d_v)


def holds(slots: Recurrence, family: Family, late: Index = 0) -> ForAll:
    """Slot c holds the token c - 1 steps ago, if there was one."""
    token = Where(le(c, t), family[t + 1 - c - late].T, Zero(1, family.rows))
    return ForAll(Equation(Row(slots[t], c), token), c, 1, W)


def cached(width: Index = W) -> Term:
    """What query t reads from the slots that are occupied, up to a number of them."""
    weight = Where(le(c, t), Exp(q[t].T * Row(K[t], c).T), Zero(1, 1))
    return Sum(weight * Row(V[t], c).T, c, 1, width) / Sum(weight, c, 1, width)


def moves(slots: Recurrence) -> Induction:
    """A step moves every slot on by one."""
    own = Stack(indicator(equal(r, c)), r, 1, W).T
    update = Row(slots[t + 1].step_at(t + 1, slots[t]), c)
    step = Chain((Link(update, (Using(Unfold(slots[t + 1]), left=own),), "slot c of the update"),), (Hypothesis(),), "slot c - 1 before")
    return Induction(t, ForEach(Direct(note="all slots are empty")), ForEach(step))


def windowed(contents: Formula, read: Term) -> And:
    """The mask is a window, the slots hold its tokens, and a read-out of them is a row of it."""
    mask = Equation(Row(banded(T), t).T, recent())
    return And(contents, holds(V, v), mask, Equation(read, recent()))


window = Statement(windowed(holds(K, k), cached()), le(1, t) & le(t, T) & le(1, W))

WINDOW = Claim(
    id="attention/window",
    title="with a window of W tokens, row t reads the last W tokens alone, and a cache of W slots for keys and values is enough",
    statement=window,
    sources=(
        Source(BELTAGY, "section 3.1, sliding window", "causal: the window ends at the token itself"),
        Source(JIANG, "section 2, rolling buffer cache", "there slot i mod W; here the slots in the order of their age"),
    ),
    proof=Each(
        (
            moves(K),
            moves(V),
            Direct(note="token j is the one t - j steps ago"),
            Direct((Part(1), Part(2)), "the slots hold the window"),
        )
    ),
    operator=MASKED,
    near_misses=(
        variant(window, "the slots hold the tokens before", windowed(holds(K, k, 1), cached())),
        variant(window, "one slot less is read", windowed(holds(K, k), cached(W - 1))),
        variant(window, "the window is all there is", windowed(holds(K, k), read(t, t))),
    ),
)

CLAIMS = (WINDOW,)
