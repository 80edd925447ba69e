"""The operator of this column.

    H_t = H_{t-1} + v_t k_tᵀ        y_t = H_t q_t

Source: Katharopoulos, Vyas, Pappas, Fleuret, "Transformers are RNNs", arXiv 2006.16236, equations 16-20 (without
the normaliser). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from ..kernel.formulas import Assumption, Declaration, Equation
from ..kernel.terms import Zero, indices, matrix, recurrence, vectors

d_k, d_v = indices("d_k d_v")
t, s, j, i, T = indices("t s j i T")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
H0 = matrix("H0", d_v, d_k)

NOTE = "08 - Transformer and Variants (a blog note)"
DAO = "Dao and Gu, Transformers are SSMs, arXiv 2405.21060"
KATHAROPOULOS = "Katharopoulos et al., Transformers are RNNs, arXiv 2006.16236"

H = recurrence("H", H0, lambda t, H: H + v[t] * k[t].T)

DECLARATION = Declaration(
    operator="linear-attention",
    inputs={"q": q, "k": k, "v": v},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real"},
    source=f"{KATHAROPOULOS}, equations 16-20",
)
DECLARATIONS = (DECLARATION,)

fresh_start = Assumption("H_0 = 0", Equation(H0, Zero(d_v, d_k)), solve={H0: Zero(d_v, d_k)})
