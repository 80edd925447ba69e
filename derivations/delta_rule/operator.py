"""The operator of this column.

    H_t = H_{t-1} (I - β_t k_t k_tᵀ) + β_t v_t k_tᵀ        y_t = H_t q_t

Sources: Schlag, Irie, Schmidhuber, "Linear Transformers Are Secretly Fast Weight Programmers", arXiv 2102.11174,
section 4.2; Yang, Wang, Zhang, Shen, Kim, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
arXiv 2406.06484, section 2.2. Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from fractions import Fraction

from ..kernel.formulas import Declaration
from ..kernel.terms import Eye, Index, Num, Term, indices, matrix, recurrence, scalars, vectors

d_k, d_v = indices("d_k d_v")
t, s, j = indices("t s j")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
beta = scalars("beta")
H0 = matrix("H0", d_v, d_k)
ONE, HALF = Num(1), Num(Fraction(1, 2))

YANG = "Yang et al., Parallelizing Linear Transformers with the Delta Rule over Sequence Length, arXiv 2406.06484"
SCHLAG = "Schlag et al., Linear Transformers Are Secretly Fast Weight Programmers, arXiv 2102.11174"
NOTE = "08 - Transformer and Variants (a blog note)"


def keeps(i: Index) -> Term:
    """What token i leaves of the memory: the transition I - β kkᵀ."""
    return Eye(d_k) - beta[i] * k[i] * k[i].T


H = recurrence("H", H0, lambda t, H: H * keeps(t) + beta[t] * v[t] * k[t].T)

DECLARATION = Declaration(
    operator="delta-rule",
    inputs={"q": q, "k": k, "v": v, "beta": beta},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "beta": "real, 0 <= beta |k|^2 <= 2"},
    source=f"{YANG}, section 2.2",
)
DECLARATIONS = (DECLARATION,)
