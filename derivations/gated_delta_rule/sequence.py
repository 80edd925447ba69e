"""Many writes: the state as a sum, and the products of transitions in closed form."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..delta_rule.operator import beta, j, k, keeps, s, t, v
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Hypothesis, Induction, Lemma, Using
from ..kernel.terms import Index, Prod, Sum, Term, le
from .operator import DECLARATION, H0, YANG, H, gamma


def fading(first: Index, last: Index = t) -> Term:
    """What the gates first..last leave."""
    return Prod(gamma[s], s, first, last)


def kept(first: Index, last: Index = t, *, decreasing: bool = False) -> Term:
    """What a range of tokens leaves of the memory, the earliest token's transition leftmost."""
    return Prod(gamma[s] * keeps(s), s, first, last, decreasing)


def write(at: Index) -> Term:
    """What a token writes."""
    return beta[at] * v[at] * k[at].T


def unrolled_by(gates: Term, transitions: Term, start: Term) -> Formula:
    """Gates apart from transitions, and the state as a sum of the writes, each times the transitions."""
    return And(
        Equation(kept(j + 1), gates * Prod(keeps(s), s, j + 1, t)),
        Equation(H[t], start + Sum(write(j) * transitions, j, 1, t)),
    )


unrolled = Statement(unrolled_by(fading(j + 1), kept(j + 1), H0 * kept(1)), le(0, j) & le(j, t))
one_more = Direct((Using(Hypothesis(), right=gamma[t + 1] * keeps(t + 1)),), "one more gate and transition")
right = Lemma("affine/right", part=1, families={"R": ((t,), gamma[t] * keeps(t)), "U": ((t,), write(t))})

UNROLLED = Claim(
    id="gated-delta-rule/unrolled",
    title="the state is the sum of the writes, each through the gates and transitions after it; the gates come out as a number",
    statement=unrolled,
    sources=(Source(YANG, "the recurrence, expanded", "there from the state at the start of a chunk"),),
    proof=Each((Induction(t, step=one_more, start=j), Direct((right,), "the transitions on the right"))),
    operator=DECLARATION,
    near_misses=(
        variant(unrolled, "a write passes its own transition", unrolled_by(fading(j + 1), kept(j), H0 * kept(1))),
        variant(unrolled, "transitions in reversed order", unrolled_by(fading(j + 1), kept(j + 1, decreasing=True), H0 * kept(1))),
        variant(unrolled, "a gate too many comes out", unrolled_by(fading(j), kept(j + 1), H0 * kept(1))),
        variant(unrolled, "the start does not fade", unrolled_by(fading(j + 1), kept(j + 1), H0 * Prod(keeps(s), s, 1, t))),
    ),
)

CLAIMS = (UNROLLED,)
