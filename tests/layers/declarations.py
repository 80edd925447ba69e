"""The layers of the literature as the tests call them, and a few more of other kinds."""

from dataclasses import dataclass, field

from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import Diag, indices
from isoform.derivations.layer import examples
from isoform.derivations.layer.declare import layer
from isoform.derivations.layer.functions import entrywise

d_k, d_v, n = indices("d_k d_v n")


@dataclass(frozen=True, eq=False)
class Example:
    """A declaration, and how it is called."""

    declaration: Declaration
    heads: bool = True
    logs: dict = field(default_factory=dict)

    @property
    def call(self):
        return {"heads": self.heads, "logs": self.logs}


KDA, COMBA = (Example(d, logs=examples.LOGS[d.operator]) for d in (examples.KDA, examples.COMBA))
LONGHORN, TWO_STEPS, TITANS, MLSTM = map(Example, (examples.LONGHORN, examples.TWO_STEPS, examples.TITANS, examples.MLSTM))
GRU, LRU = (Example(d, heads=False) for d in (examples.GRU, examples.LRU))
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
EXAMPLES = (KDA, COMBA, LONGHORN, TWO_STEPS, TITANS, MLSTM, LRU, GRU, HGRN2, SISO)
