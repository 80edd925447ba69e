"""The two operators of this column, as formulas for one row and as programs for all rows.

    masked    o_t = Σ_{j≤t} exp(q_tᵀk_j) v_j / Σ_{j≤t} exp(q_tᵀk_j)
    full      o_t = Σ_{j≤T} exp(q_tᵀk_j) v_j / Σ_{j≤T} exp(q_tᵀk_j)

Source: Vaswani et al., "Attention Is All You Need", arXiv 1706.03762, section 3.2. There is no scale here: q stands
for the scaled query q / √d_k.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernel.formulas import Declaration
from ..kernel.terms import Exp, Family, Index, NegInf, Stack, Sum, Term, Where, entries, indices, le, named, vectors

VASWANI = "Vaswani et al., Attention Is All You Need, arXiv 1706.03762"
NOTE = "Transformer结构 (a blog note on the architecture)"

d_k, d_v = indices("d_k d_v")
t, j, i, l, T = indices("t j i l T")
row, column = indices("r c")  # of the matrices below
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)


def normaliser(r: Index, last: Index) -> Term:
    """Z_{r,last}: the sum of exp(q_rᵀ k_j) over j = 1..last; Z_r if r is the last."""
    return named("Z", Sum(Exp(q[r].T * k[j]), j, 1, last), *((r,) if r == last else (r, last)))


def read(r: Index, last: Index) -> Term:
    """What query r reads from the tokens 1..last: the mean of their values, weighed by exp(q_rᵀ k_j)."""
    return Sum(Exp(q[r].T * k[j]) * v[j], j, 1, last) / normaliser(r, last)


MASKED = Declaration(
    operator="attention",
    inputs={"q": q, "k": k, "v": v},
    output=read(t, t),
    t=t,
    domains={"q": "real", "k": "real", "v": "real"},
    source=f"{VASWANI}, equation 1 and section 3.2.3",
)
FULL = Declaration(
    operator="full-attention",
    inputs={"q": q, "k": k, "v": v},
    output=read(t, T),
    t=t,
    length=T,
    domains={"q": "real", "k": "real", "v": "real"},
    source=f"{VASWANI}, equation 1",
)
DECLARATIONS = (MASKED, FULL)

Logit = Callable[[Index, Index], Term]


def rows(family: Family, last: Index) -> Term:
    """The matrix whose row i is the i-th member, transposed, i = 1..last."""
    return named(family.name.upper(), Stack(family[row].T, row, 1, last), last)


def softmax(logit: Logit, height: Index, width: Index, of: Term | None = None) -> Term:
    """The softmax of each row of the height x width matrix of logits, which is shown as ``of``."""
    weight = Exp(logit(row, column)) / Sum(Exp(logit(row, l)), l, 1, width)
    if of is None and logit is score:
        of = rows(q, height) * rows(k, width).T
    if of is None:
        of = entries(logit(row, column), row, (1, height), column, (1, width))
    return named("softmax", entries(weight, row, (1, height), column, (1, width)), of)


def score(r: Index, c: Index) -> Term:
    """The logit of query r and key c."""
    return q[r].T * k[c]


def causal(logit: Logit, hidden: Term) -> Logit:
    """The logits with ``hidden`` in the place of those above the diagonal: the mask comes before the softmax."""
    return lambda r, c: Where(le(c, r), logit(r, c), hidden)


def full(last: Index, logit: Logit = score) -> Term:
    """Full attention over the tokens 1..last, all rows at once."""
    attention = softmax(logit, last, last) * rows(v, last)
    return named("Full", attention, last) if logit is score else attention


def masked(last: Index) -> Term:
    """Masked attention over the tokens 1..last, all rows at once."""
    return named("Masked", full(last, causal(score, NegInf())), last)
