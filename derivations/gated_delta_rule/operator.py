"""The operator of this column.

    H_t = H_{t-1} (γ_t (I - β_t k_t k_tᵀ)) + β_t v_t k_tᵀ        y_t = H_t q_t

Source: Yang, Kautz, Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule", arXiv 2412.06464 (there α_t is
the gate). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from ..delta_rule.operator import H0, beta, k, keeps, q, t, v
from ..kernel.formulas import Declaration
from ..kernel.terms import recurrence, scalars

gamma = scalars("gamma")

YANG = "Yang, Kautz, Hatamizadeh, Gated Delta Networks: Improving Mamba2 with Delta Rule, arXiv 2412.06464"

H = recurrence("H", H0, lambda t, H: H * (gamma[t] * keeps(t)) + beta[t] * v[t] * k[t].T)

DECLARATION = Declaration(
    operator="gated-delta-rule",
    inputs={"q": q, "k": k, "v": v, "beta": beta, "gamma": gamma},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "beta": "real, 0 <= beta |k|^2 <= 2", "gamma": "real, 0 <= gamma <= 1"},
    source=f"{YANG}, the gated delta rule",
)
DECLARATIONS = (DECLARATION,)
