"""The operator of this column.

    H_t = diag(e_t) H_{t-1} diag(a_t) + v_t k_tᵀ        y_t = H_t q_t

With e = 1, as the paper has it in the end, only the keys' channels fade. Source: Yang, Wang, Shen, Panda, Kim, "Gated
Linear Attention Transformers with Hardware-Efficient Training", arXiv 2312.06635. Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from ..kernel.formulas import Declaration
from ..kernel.terms import Diag, indices, matrix, recurrence, vectors

d_k, d_v = indices("d_k d_v")
(t,) = indices("t")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
a, e = vectors("a", d_k), vectors("e", d_v)
H0 = matrix("H0", d_v, d_k)

YANG = "Yang et al., Gated Linear Attention Transformers with Hardware-Efficient Training, arXiv 2312.06635"

H = recurrence("H", H0, lambda t, H: Diag(e[t]) * H * Diag(a[t]) + v[t] * k[t].T)

DECLARATION = Declaration(
    operator="gated-linear-attention",
    inputs={"q": q, "k": k, "v": v, "a": a, "e": e},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "a": "real, 0 <= a_i <= 1", "e": "real, 0 <= e_i <= 1"},
    source=f"{YANG}, the recurrent form with G_t = α_tᵀ β_t",
)
DECLARATIONS = (DECLARATION,)
