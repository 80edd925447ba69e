"""Layers of the literature that have no column here, each declared in about ten lines; S is d_v x d_k, and y = S q where not said.

KDA            S (diag(a) (I - β k kᵀ)) + β v kᵀ                      decay by channel, then the delta rule
COMBA          γ S - β (S k - v) kᵀ                                   what a key finds is read before the memory fades
LONGHORN       S - δ (S k - v) kᵀ, δ = β / (1 + β |k|²)               the implicit step of the delta rule
TWO_STEPS      DeltaProduct with two Householder matrices a token
TITANS         (1 - α) M + N, with N = η N - θ (M k - v) kᵀ           momentum; two states that use each other
MLSTM          f C + i v kᵀ and f n + i k, read C q / max(|nᵀq|, 1)   a normaliser: not linear in the states
LRU            diag(λ) x + B u, read C x + D u                        complex numbers, the same at every token
GRU            (1 - z) ⊙ h + z ⊙ tanh(W u + U (r ⊙ h))                not affine
"""

from __future__ import annotations

from ..kernel.terms import Diag, Eye, Hadamard, indices, norm2
from .declare import layer
from .functions import absolute, larger, sigmoid, tanh

d_k, d_v = indices("d_k d_v")
N, p, d = indices("N p d")
QKV = {"q": d_k, "k": d_k, "v": d_v}
STATE = {"S": (d_v, d_k)}
RATE = "real, 0 <= beta |k|^2 <= 2"

KDA = layer(
    "kda",
    inputs={**QKV, "a": d_k, "beta": 1},
    domains={"a": "real, 0 <= a_i <= 1", "beta": RATE},
    state=STATE,
    update=lambda S, k, v, a, beta: S * (Diag(a) * (Eye(d_k) - beta * k * k.T)) + beta * v * k.T,
    read=lambda S, q: S * q,
    source="Kimi Team, Kimi Linear: An Expressive, Efficient Attention Architecture, arXiv 2510.26692, Kimi Delta Attention",
)

COMBA = layer(
    "comba",
    inputs={**QKV, "gamma": 1, "beta": 1},
    domains={"gamma": "real, 0 <= gamma <= 1", "beta": RATE},
    state=STATE,
    update=lambda S, k, v, gamma, beta: gamma * S - beta * (S * k - v) * k.T,
    read=lambda S, q: S * q,
    source="Hu et al., Comba: Improving Bilinear RNNs with Closed-loop Control, arXiv 2506.02475, without its output correction",
)

LONGHORN = layer(
    "longhorn",
    inputs={**QKV, "b": 1},
    state=STATE,
    update=lambda S, k, v, b: S - sigmoid(b) / (1 + sigmoid(b) * norm2(k)) * (S * k - v) * k.T,
    read=lambda S, q: S * q,
    source="Liu et al., Longhorn: State Space Models are Amortized Online Learners, arXiv 2407.14207, one rate; all of kkᵀ",
)

TWO_STEPS = layer(
    "two-steps",
    inputs={**QKV, "beta": 1, "l": d_k, "w": d_v, "eta": 1},
    domains={"beta": RATE, "eta": "real, 0 <= eta |l|^2 <= 2"},
    state=STATE,
    update=lambda S, k, v, beta, l, w, eta: (S * (Eye(d_k) - beta * k * k.T) + beta * v * k.T) * (Eye(d_k) - eta * l * l.T) + eta * w * l.T,
    read=lambda S, q: S * q,
    source="Siems et al., DeltaProduct, arXiv 2502.10297, two Householder matrices a token",
)

TITANS = layer(
    "titans",
    inputs={**QKV, "alpha": 1, "eta": 1, "theta": 1},
    domains={"alpha": "real, 0 <= alpha <= 1", "eta": "real, 0 <= eta <= 1/2", "theta": "real, 0 <= theta |k|^2 <= 1"},
    state={"M": (d_v, d_k), "N": (d_v, d_k)},
    update={
        "M": lambda M, N, k, v, alpha, eta, theta: (1 - alpha) * M + (eta * N - theta * (M * k - v) * k.T),
        "N": lambda M, N, k, v, eta, theta: eta * N - theta * (M * k - v) * k.T,
    },
    read=lambda M, q: M * q,
    source="Behrouz, Zhong, Mirrokni, Titans: Learning to Memorize at Test Time, arXiv 2501.00663, equations 9 to 14, a linear memory",
)

MLSTM = layer(
    "mlstm",
    inputs={**QKV, "f": 1, "i": 1},
    domains={"f": "real, 0 <= f <= 1", "i": "real, 0 <= i <= 4", "q": "real, |q| <= 1", "k": "real, |k| <= 1"},
    state={"C": (d_v, d_k), "n": d_k},
    update={"C": lambda C, k, v, f, i: f * C + i * v * k.T, "n": lambda n, k, f, i: f * n + i * k},
    read=lambda C, n, q: C * q / larger(absolute(n.T * q), 1),
    source="Beck et al., xLSTM: Extended Long Short-Term Memory, arXiv 2405.04517, equations 19 to 27, without the output gate",
)

LRU = layer(
    "lru",
    inputs={"u": p},
    parameters={"lam": N, "B": (N, p), "C": (d, N), "D": (d, p)},
    domains={"lam": "complex, |lam_i| <= 1", "B": "complex", "C": "complex"},
    state={"x": N},
    update=lambda x, u, lam, B: Diag(lam) * x + B * u,
    read=lambda x, u, C, D: C * x + D * u,
    source="Orvieto et al., Resurrecting Recurrent Neural Networks for Long Sequences, arXiv 2303.06349, before the real part is taken",
)

GRU = layer(
    "gru",
    inputs={"u": p},
    parameters={f"{m}_{gate}": (d, size) for gate in ("z", "r", "n") for m, size in (("W", p), ("U", d))},
    state={"h": d},
    update=lambda h, u, W_z, U_z, W_r, U_r, W_n, U_n: (
        Hadamard(sigmoid(W_z * u + U_z * h), h)
        + Hadamard(sigmoid(-(W_z * u + U_z * h)), tanh(W_n * u + Hadamard(sigmoid(W_r * u + U_r * h), U_n * h)))
    ),
    read=lambda h: h,
    source="Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, arXiv 1406.1078, with the reset gate after the "
    "product, as torch.nn.GRU computes it; without biases",
)

LOGS = {"kda": {"a": "g"}, "comba": {"gamma": "g"}}
"""Decays beside a matrix of rank one, which a chunk form is given by their logarithms, by operator."""
EXAMPLES = (KDA, COMBA, LONGHORN, TWO_STEPS, TITANS, MLSTM, LRU, GRU)
