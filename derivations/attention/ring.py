"""A ring of W slots: token i goes into slot i mod W, over the token W steps before it.

Cuts 0 = b_0 <= b_1 <= ... stand for the multiples of W, at which the ring has just been filled: token b_a + c goes into slot c. What
is needed of them is that two neighbours are W apart, b_a = b_{a-1} + W; b_a <= t <= b_a + W.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Statement
from ..kernel.scripts import Chain, Direct, Each, ForEach, Hypothesis, Induction, Lemma, Link, Part, Unfold, Using
from ..kernel.terms import Exp, Family, Index, Recurrence, Sum, Term, Where, Zero, cuts, equal, indices, le, recurrence
from . import kv_cache
from .operators import MASKED, d_k, d_v, j, k, q, t, v
from .window import JIANG, W, c, recent, recent_weight

a, s = indices("a s")
b = cuts("b")


def slot(name: str, family: Family, size: Index, late: Index = 0) -> Recurrence:
    """Slot c after each token of the round that begins after b_a; before it, rounds 1..a have filled the ring."""

    def filled(n: Index, stored: Term) -> Term:
        return Where(le(c, b[n] - b[n - 1]), family[b[n - 1] + c], stored)

    rounds = recurrence(name, Zero(size, 1), filled)
    return recurrence(name, rounds[a], lambda n, stored: Where(equal(n, b[a] + c + late), family[n], stored), start=b[a])


def token(family: Family) -> Term:
    """Token b_a + c where it has come, else that of the round before."""
    return Where(le(b[a] + c, t), family[b[a] + c], family[b[a - 1] + c])


K, V = slot("K", k, d_k), slot("V", v, d_v)


def holds(slots: Recurrence, family: Family) -> ForAll:
    """The ring holds the last W tokens."""
    return ForAll(Equation(slots[t], token(family)), c, 1, W)


def sums(query: Term, key: Term, value: Term, last: Index) -> tuple[Term, Term]:
    """The weighed values of the slots 1..last, in their own order, and the weights."""
    weight = Exp(query.T * key)
    return Sum(weight * value, c, 1, last), Sum(weight, c, 1, last)


def by_rounds(weighed: Callable[[Index], Term]) -> Term:
    """The slots written in this round, then those of the round before, which are still there."""
    return Sum(weighed(b[a]), c, 1, t - b[a]) + Sum(weighed(b[a - 1]), c, t - b[a] + 1, W)


def of_token(family: Family) -> Callable[[Index], Term]:
    """A member by the round that its token is from."""
    return lambda begin: family[begin + c]


VALUES, WEIGHTS = sums(q[t], K[t], V[t], W)
RECENT_VALUES, RECENT_WEIGHTS = Sum(recent_weight() * v[j], j, 1, t), Sum(recent_weight(), j, 1, t)


def in_ring(last: Index = W) -> And:
    """A row of attention with a window, from the ring: weights, weighed values, and their quotient."""
    values, weights = sums(q[t], K[t], V[t], last)
    return And(Equation(weights, RECENT_WEIGHTS), Equation(values, RECENT_VALUES), Equation(values / weights, recent()))


def in_first_round(last: Index = s) -> Equation:
    """In the first round, the slots that are written are those of a cache; nothing is overwritten."""
    values, weights = sums(q[s], kv_cache.key(c)[s], kv_cache.value(c)[s], last)
    return Equation(values / weights, recent().subs({t: s}))


where = le(1, a) & le(b[a], t) & le(t, b[a] + W) & equal(b[a], b[a - 1] + W) & le(1, s) & le(s, W)
CONTENTS = holds(K, k), holds(V, v)
ring = Statement(And(*CONTENTS, *in_ring().args, in_first_round()), where)


def overwritten(slots: Recurrence, family: Family) -> ForEach:
    """A token goes into the slot of the one W steps before it."""
    rounds = slots.member.init
    return ForEach(
        Induction(
            t,
            Direct((Unfold(rounds),), "round a has filled the ring"),
            Direct((Hypothesis(),), "token t + 1 goes into its slot, and the others stay"),
            start=b[a],
        )
    )


def in_order(weighed: Callable[[Term, Term], Term]) -> Chain:
    """A sum over the slots is one over the tokens of the window."""

    def total(key: Callable[[Index], Term], value: Callable[[Index], Term]) -> Term:
        return by_rounds(lambda begin: weighed(Exp(q[t].T * key(begin)), value(begin)))

    return Chain(
        (
            Link(total(lambda begin: K[t], lambda begin: V[t]), note="the slots up to t - b_a are those of this round"),
            Link(total(of_token(k), of_token(v)), (Part(1), Part(2)), "what they hold"),
        ),
        note="the tokens b_a + 1, …, t, and t - W + 1, …, b_a",
    )


RING_CACHE = Claim(
    id="attention/ring-cache",
    title="a ring of W slots, token i in slot i mod W, holds the last W tokens, and attention to its slots in any order is the row with "
    "a window of W; in the first round, to the slots that are written",
    statement=ring,
    sources=(Source(JIANG, "section 2, rolling buffer cache", "b_a stands for aW: only neighbours have to be W apart"),),
    proof=Each(
        (
            overwritten(K, k),
            overwritten(V, v),
            in_order(lambda key, value: key),
            in_order(lambda key, value: key * value),
            Direct(
                (
                    Using(Part(4), left=1 / WEIGHTS),
                    Using(Part(3), left=RECENT_VALUES / WEIGHTS / RECENT_WEIGHTS, right=-1),
                ),
                "a sum has no order",
            ),
            Direct((Lemma("attention/cache-contents"), Lemma("attention/cache-contents", part=1)), "s ≤ W: the window is all there is"),
        )
    ),
    operator=MASKED,
    near_misses=(
        variant(ring, "one slot less", And(*CONTENTS, *in_ring(W - 1).args, in_first_round())),
        variant(ring, "slots that are not yet written are read", And(*CONTENTS, *in_ring().args, in_first_round(W))),
        variant(ring, "a token is stored one slot late", And(holds(slot("K", k, d_k, -1), k), CONTENTS[1])),
    ),
)

CLAIMS = (RING_CACHE,)
