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
from .operators import MASKED, T, d_k, d_v, full, j, k, q, read, score, t, v

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


def recent_weight(width: Index = W) -> Term:
    """exp of the score of token j, if it is in the window of query t."""
    return Where(le(t + 1, j + width), Exp(q[t].T * k[j]), Zero(1, 1))


def recent(width: Index = W) -> Term:
    """What query t reads from the last ``width`` tokens, as far as there are any."""
    return Sum(recent_weight(width) * v[j], j, 1, t) / Sum(recent_weight(width), j, 1, t)


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


def by_age(key: Term, value: Term, width: Index = W) -> tuple[Term, Term]:
    """The weighed values and the weights of slots with these contents, as far as they are occupied."""
    weight = Where(le(c, t), Exp(q[t].T * key), Zero(1, 1))
    return Sum(weight * value, c, 1, width), Sum(weight, c, 1, width)


def cached(width: Index = W) -> Term:
    """What query t reads from the first slots."""
    values, weights = by_age(Row(K[t], c).T, Row(V[t], c).T, width)
    return values / weights


AGED, AGED_WEIGHTS = by_age(k[t + 1 - c], v[t + 1 - c])


def moves(slots: Recurrence) -> Induction:
    """A step moves every slot on by one."""
    own = Stack(indicator(equal(r, c)), r, 1, W).T

    def update(at: Index) -> Link:
        return Link(Row(slots[at].step_at(at, slots[at - 1]), c), (Using(Unfold(slots[at]), left=own),), "slot c of the update")

    first = Chain((update(1),), note="the other slots are empty")
    later = Chain((update(t + 1),), (Hypothesis(),), "slot c - 1 before")
    return Induction(t, ForEach(first), ForEach(later), start=1)


RECENT_WEIGHTS = Sum(recent_weight(), j, 1, t)


def windowed(contents: Formula, output: Term) -> And:
    """The slots hold the window, the mask shows it, and a read-out of the slots is a row of the masked product."""
    mask = Equation(Row(banded(T), t).T, recent())
    return And(contents, holds(V, v), Equation(AGED_WEIGHTS, RECENT_WEIGHTS), mask, Equation(output, recent()))


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
            Induction(W, step=Direct((Using(Hypothesis()),), "one token more"), start=1),
            Direct(note="row t of the masked product"),
            Chain(
                (Link(AGED / AGED_WEIGHTS, (Part(1), Part(2)), "what the slots hold"),),
                (Using(Part(3), left=AGED / AGED_WEIGHTS / RECENT_WEIGHTS, right=-1),),
                "the token c - 1 steps ago is token t + 1 - c",
            ),
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
