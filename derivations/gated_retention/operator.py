"""The operator of this column.

    H_t = γ_t H_{t-1} + v_t k_tᵀ        y_t = H_t q_t

Sources: Sun et al., "You Only Cache Once", arXiv 2405.05254 (gated retention); Dao and Gu, "Transformers are
SSMs", arXiv 2405.21060 (the same scalar decay). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from ..kernel.formulas import Declaration
from ..kernel.terms import indices, matrix, recurrence, scalars, vectors

d_k, d_v = indices("d_k d_v")
(t,) = indices("t")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
gamma = scalars("gamma")
H0 = matrix("H0", d_v, d_k)

YOCO = "Sun et al., You Only Cache Once: Decoder-Decoder Architectures for Language Models, arXiv 2405.05254"
DAO = "Dao and Gu, Transformers are SSMs, arXiv 2405.21060"
NOTE = "08 - Transformer and Variants (a blog note)"

H = recurrence("H", H0, lambda t, H: gamma[t] * H + v[t] * k[t].T)

DECLARATION = Declaration(
    operator="gated-retention",
    inputs={"q": q, "k": k, "v": v, "gamma": gamma},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "gamma": "real, 0 <= gamma <= 1"},
    source=f"{YOCO}, gated retention",
)
DECLARATIONS = (DECLARATION,)
