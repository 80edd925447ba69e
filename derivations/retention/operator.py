"""The operator of this column.

    H_t = γ H_{t-1} + v_t k_tᵀ        y_t = H_t q_t

Source: Sun et al., "Retentive Network: A Successor to Transformer for Large Language Models", arXiv 2307.08621,
section 2.1 (without the group norm and its normalisations). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from ..kernel.formulas import Declaration
from ..kernel.terms import indices, matrix, recurrence, scalar, vectors

d_k, d_v = indices("d_k d_v")
(t,) = indices("t")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
gamma = scalar("gamma")
H0 = matrix("H0", d_v, d_k)

SUN = "Sun et al., Retentive Network: A Successor to Transformer for Large Language Models, arXiv 2307.08621"
NOTE = "08 - Transformer and Variants (a blog note)"

H = recurrence("H", H0, lambda t, H: gamma * H + v[t] * k[t].T)

DECLARATION = Declaration(
    operator="retention",
    inputs={"q": q, "k": k, "v": v, "gamma": gamma},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "gamma": "real, 0 <= gamma <= 1"},
    source=f"{SUN}, equation 6",
)
DECLARATIONS = (DECLARATION,)
