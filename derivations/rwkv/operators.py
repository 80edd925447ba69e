"""The three operators of this column.

    wkv     a_t = e^w a_{t-1} + e^{k_t} v_t,  b_t = e^w b_{t-1} + e^{k_t}        o_t = (a_{t-1} + e^{u+k_t} v_t) / (b_{t-1} + e^{u+k_t})
    wkv6    H_t = H_{t-1} diag(a_t) + v_t k_tᵀ                                   o_t = (H_{t-1} + v_t (u ⊙ k_t)ᵀ) q_t
    wkv7    H_t = H_{t-1} (diag(d_t) + a_t b_tᵀ) + v_t k_tᵀ                      o_t = H_t q_t

The first is for one channel: k, v, w and u are numbers, w <= 0 the log-decay, which the paper writes -w. The others have
a d_v x d_k matrix for their state, the papers' transposed, queries q that RWKV calls receptances r, and decays e^{w_t}.

Sources: Peng et al., "RWKV: Reinventing RNNs for the Transformer Era", arXiv 2305.13048; Peng et al., "Eagle and Finch: RWKV
with Matrix-Valued States and Dynamic Recurrence", arXiv 2404.05892; Peng et al., "RWKV-7 Goose with Expressive Dynamic State
Evolution", arXiv 2503.14456.
"""

from __future__ import annotations

from ..kernel.formulas import Declaration
from ..kernel.terms import Diag, Exp, Hadamard, Index, Term, indices, matrix, recurrence, scalar, scalars, vector, vectors

RWKV = "Peng et al., RWKV: Reinventing RNNs for the Transformer Era, arXiv 2305.13048"
FINCH = "Peng et al., Eagle and Finch: RWKV with Matrix-Valued States and Dynamic Recurrence, arXiv 2404.05892"
GOOSE = "Peng et al., RWKV-7 Goose with Expressive Dynamic State Evolution, arXiv 2503.14456"
NOTE = "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)"

d_k, d_v = indices("d_k d_v")
(t,) = indices("t")

# RWKV-4, one channel ------------------------------------------------------------------------------

kappa, nu = scalars("k"), scalars("v")
w, u = scalar("w"), scalar("u")
a0, b0 = scalar("a0"), scalar("b0")

A = recurrence("a", a0, lambda t, a: Exp(w) * a + Exp(kappa[t]) * nu[t])
B = recurrence("b", b0, lambda t, b: Exp(w) * b + Exp(kappa[t]))


def bonus(at: Index) -> Term:
    """The weight of the current token."""
    return Exp(u + kappa[at])


WKV = Declaration(
    operator="wkv",
    inputs={"k": kappa, "v": nu, "w": w, "u": u},
    output=(A[t - 1] + bonus(t) * nu[t]) / (B[t - 1] + bonus(t)),
    t=t,
    state=(A, B),
    initial_state=(a0, b0),
    domains={"k": "real", "v": "real", "w": "real, <= 0", "u": "real"},
    source=f"{RWKV}, equation 16, and its recurrence in the appendix on RNN cells; w there is -w here",
)

# RWKV-6 and RWKV-7, one head ----------------------------------------------------------------------

q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
a, b, d = vectors("a", d_k), vectors("c", d_k), vectors("d", d_k)  # cuts are named b
first = vector("u", d_k)
H0 = matrix("H0", d_v, d_k)

F = recurrence("H", H0, lambda t, H: H * Diag(a[t]) + v[t] * k[t].T)

WKV6 = Declaration(
    operator="wkv6",
    inputs={"q": q, "k": k, "v": v, "a": a, "u": first},
    output=(F[t - 1] + v[t] * Hadamard(first, k[t]).T) * q[t],
    t=t,
    state=F,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real", "a": "real, 0 <= a_i <= 1", "u": "real"},
    source=f"{FINCH}, the time mixing of Finch; a = e^w with w <= 0, q = r",
)


def transition(at: Index) -> Term:
    """What token t makes of the state: a diagonal and a matrix of rank one."""
    return Diag(d[at]) + a[at] * b[at].T


G = recurrence("H", H0, lambda t, H: H * transition(t) + v[t] * k[t].T)

WKV7 = Declaration(
    operator="wkv7",
    inputs={"q": q, "k": k, "v": v, "d": d, "a": a, "b": b},
    output=G[t] * q[t],
    t=t,
    state=G,
    initial_state=H0,
    domains=dict.fromkeys(("q", "k", "v", "a", "b"), "real") | {"d": "real, 0 <= d_i <= 1"},
    source=f"{GOOSE}, the weighted key-value state evolution; d = e^w with w <= 0, q = r, there a = -κ̂ and b = κ̂ ⊙ a",
)
DECLARATIONS = (WKV, WKV6, WKV7)
