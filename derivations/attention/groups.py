"""Grouped queries: the heads of a group share keys and values, each repeated in place for all heads of its group.

Cuts 0 = b_0 <= b_1 <= ... end the groups: group a has the heads b_{a-1} + 1, ..., b_a. With g heads in each, b_a = a·g, and head i
reads group i // g where both are counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, ForAll, Statement
from ..kernel.scripts import Direct, Each, ForEach, Hypothesis, Induction, Part, Unfold
from ..kernel.terms import Exp, Family, Index, Recurrence, Sum, Term, Where, Zero, cuts, indices, le, lt, recurrence, vectors
from .operators import VASWANI, d_k, d_v, i, j, t

AINSLIE = "Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models, arXiv 2305.13245"
SHAZEER = "Shazeer, Fast Transformer Decoding: One Write-Head is All You Need, arXiv 1911.02150"

a, G, h = indices("a G h")
b = cuts("b")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)  # of a head, or a group, at a time

Place = Callable[[Index], Index]


def ended(n: Index) -> Index:
    """The last head of group n."""
    return b[n]


def own(n: Index) -> Index:
    """Group n has the keys and values n."""
    return n


def repeated(name: str, family: Family, size: Index, head: Index, ends: Place, member: Place) -> Recurrence:
    """What a head reads at token j, once groups 1..n have been laid out: group n fills the heads up to its end."""

    def lay(n: Index, before: Term) -> Term:
        return Where(lt(ends(n - 1), head) & le(head, ends(n)), family[member(n), j], before)

    return recurrence(name, Zero(size, 1), lay)


def laid_out(ends: Place = ended, head: Index = i, member: Place = own) -> tuple[Recurrence, Recurrence]:
    """The keys and the values of a head."""
    return repeated("K", k, d_k, head, ends, member), repeated("V", v, d_v, head, ends, member)


def read(key: Term, value: Term) -> Term:
    """What head i reads at token t, from keys and values of the tokens j."""
    weight = Exp(q[i, t].T * key)
    return Sum(weight * value, j, 1, t) / Sum(weight, j, 1, t)


def every(term: Term, other: Term) -> ForAll:
    """For every token."""
    return ForAll(Equation(term, other), j, 1, t)


def grouped(layout: tuple[Recurrence, Recurrence], key: Term = k[a, j], value: Term = v[a, j]) -> tuple[ForAll, ForAll, Equation]:
    """Head i has the keys and values of group a, and reads them."""
    keys, values = (slot[G] for slot in layout)
    return every(keys, k[a, j]), every(values, v[a, j]), Equation(read(keys, values), read(key, value))


def as_heads(ends: Place = own) -> ForAll:
    """With one head a group, head a has its own keys."""
    return every(laid_out(ends, a)[0][G], k[a, j])


def one_group(last: Index = b[1]) -> ForAll:
    """With one group, all heads have its keys."""
    return ForAll(every(laid_out(head=h)[0][1], k[1, j]), h, 1, last)


def layout(of: Recurrence) -> Induction:
    """Group a fills its heads, and the groups after it leave them alone."""
    first = ForEach(Direct((Unfold(of[a]),), "group a fills its heads"))
    others = ForEach(Direct((Unfold(of[G + 1]), Hypothesis()), "group G + 1 has later heads"))
    return Induction(G, first, others, start=a)


KEYS, VALUES = laid_out()
where = le(1, t) & le(1, a) & le(a, G) & lt(b[a - 1], i) & le(i, b[a])
groups = Statement(And(*grouped((KEYS, VALUES)), as_heads(), one_group()), where)

GROUPED_QUERIES = Claim(
    id="attention/grouped-queries",
    title="grouped queries are multi-head attention with each group's keys and values repeated for all its heads; one head a group is "
    "multi-head attention, one group multi-query attention",
    statement=groups,
    sources=(
        Source(AINSLIE, "section 2.2, grouped-query attention", "groups of any sizes; with g heads in each, head i reads group i // g"),
        Source(SHAZEER, "multi-query attention", "one group"),
        Source(VASWANI, "section 3.2.2, multi-head attention", "a group for each head"),
    ),
    proof=Each(
        (
            layout(KEYS),
            layout(VALUES),
            Direct((Part(1), Part(2)), "head i of group a has its keys and values"),
            layout(laid_out(own, a)[0]),
            ForEach(ForEach(Direct((Unfold(laid_out(head=h)[0][1]),), "the one group fills all heads"))),
        )
    ),
    near_misses=(
        variant(
            groups, "head after head: i mod G for i // g", And(*grouped(laid_out(member=lambda n: i - b[n - 1]))), at={G: 2, a: 1, i: 2}
        ),
        variant(groups, "a group begins one head late", And(*grouped(laid_out(lambda n: b[n] + 1)))),
        variant(groups, "the keys are shared by all groups", And(*grouped((KEYS, VALUES), k[1, j]))),
        variant(groups, "one head a group, shared keys", And(*grouped((KEYS, VALUES)), as_heads(ended))),
    ),
)

CLAIMS = (GROUPED_QUERIES,)
