"""Layers in about ten lines each, as a user writes them: of every kind, and one that is not affine."""

from dataclasses import dataclass, field

from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import Diag, indices
from isoform.derivations.layer.declare import layer
from isoform.derivations.layer.functions import absolute, entrywise, larger, over, sigmoid, tanh

d_k, d_v, n = indices("d_k d_v n")
QKV = {"q": d_k, "k": d_k, "v": d_v}


@dataclass(frozen=True, eq=False)
class Example:
    """A declaration, and how it is called."""

    declaration: Declaration
    heads: bool = True
    logs: dict = field(default_factory=dict)

    @property
    def call(self):
        return {"heads": self.heads, "logs": self.logs}


KDA = Example(
    layer(
        "kimi-delta-attention",
        inputs={**QKV, "a": d_k, "beta": 1},
        state={"H": (d_v, d_k)},
        update=lambda H, k, v, a, beta: H * Diag(a) - beta * (H * Diag(a) * k - v) * k.T,
        read=lambda H, q: H * q,
        domains={"a": "real, 0 <= a_i <= 1", "beta": "real, 0 <= beta |k|^2 <= 1"},
        source="Kimi Linear, arXiv 2510.26692",
    ),
    logs={"a": "g"},
)
LONGHORN = Example(
    layer(
        "longhorn",
        inputs={**QKV, "beta": 1},
        state={"H": (d_v, d_k)},
        update=lambda H, k, v, beta: H - beta / (1 + beta * (k.T * k)) * (H * k - v) * k.T,
        read=lambda H, q: H * q,
        domains={"beta": "real, 0 <= beta |k|^2 <= 4"},
        source="Liu et al., Longhorn, arXiv 2407.14207, the implicit step",
    )
)
HGRN2 = Example(
    layer(
        "hgrn2",
        inputs={"q": d_k, "f": d_k, "v": d_v},
        state={"H": (d_v, d_k)},
        update=lambda H, f, v: H * Diag(f) + v * entrywise(lambda x: 1 - x, f).T,
        read=lambda H, q: H * q,
        domains={"f": "real, 0 <= f_i <= 1"},
        source="Qin et al., HGRN2, arXiv 2404.07904",
    )
)
MLSTM = Example(
    layer(
        "mlstm",
        inputs={**QKV, "f": 1, "i": 1},
        state={"C": (d_v, d_k), "n": d_k},
        update={"C": lambda C, k, v, f, i: f * C + i * v * k.T, "n": lambda n, k, f, i: f * n + i * k},
        read=lambda C, n, q: over(C * q, larger(absolute(n.T * q), 1)),
        domains={"f": "real, 0 <= f <= 1", "i": "real, 0 <= i <= 4", "q": "real, |q| <= 1", "k": "real, |k| <= 1"},
        source="Beck et al., xLSTM, arXiv 2405.04517, the mLSTM cell without its stabiliser",
    )
)
DELTA_PRODUCT = Example(
    layer(
        "delta-product",
        inputs={"q": d_k, "k": d_k, "v": d_v, "beta": 1, "p": d_k, "w": d_v, "eta": 1},
        state={"H": (d_v, d_k)},
        update=lambda H, k, v, beta, p, w, eta: (H - beta * (H * k - v) * k.T) - eta * ((H - beta * (H * k - v) * k.T) * p - w) * p.T,
        read=lambda H, q: H * q,
        domains={"beta": "real, 0 <= beta |k|^2 <= 2", "eta": "real, 0 <= eta |p|^2 <= 2"},
        source="Siems et al., DeltaProduct, arXiv 2502.10297, with two steps a token",
    )
)
TITANS = Example(
    layer(
        "titans-momentum",
        inputs={**QKV, "a": 1, "m": 1, "theta": 1},
        state={"M": (d_v, d_k), "S": (d_v, d_k)},
        update={
            "S": lambda M, S, k, v, m, theta: m * S - theta * (M * k - v) * k.T,
            "M": lambda M, S, k, v, a, m, theta: a * M + (m * S - theta * (M * k - v) * k.T),
        },
        read=lambda M, q: M * q,
        domains={"a": "real, 0 <= a <= 1", "m": "real, 0 <= m <= 1/2", "theta": "real, 0 <= theta |k|^2 <= 1/2"},
        source="Behrouz et al., Titans, arXiv 2501.00663, a linear memory with momentum and forgetting",
    )
)
SISO = Example(
    layer(
        "one-channel",
        inputs={"u": 1},
        parameters={"A": (n, n), "B": n, "C": (1, n), "D": 1},
        state={"x": n},
        update=lambda x, u, A, B: A * x + B * u,
        read=lambda x, u, C, D: C * x + D * u,
        domains={"A": "real, |A| <= 1"},
        source="Gu et al., S4, arXiv 2111.00396, equation 3",
    ),
    heads=False,
)
GRU = Example(
    layer(
        "small-gru",
        inputs={"x": n, "g": n},
        parameters={"U": (n, n), "R": (n, n)},
        state={"h": n},
        update=lambda h, x, g, U, R: h + entrywise(lambda z, c, h: z * (c - h), sigmoid(g + R * h), tanh(x + U * h), h),
        read=lambda h: h,
        domains={"U": "real, |U| <= 1", "R": "real, |R| <= 1"},
        source="Cho et al., arXiv 1406.1078, without its reset gate",
    ),
    heads=False,
)
EXAMPLES = (KDA, LONGHORN, HGRN2, MLSTM, DELTA_PRODUCT, TITANS, SISO, GRU)
