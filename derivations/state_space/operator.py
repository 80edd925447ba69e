"""The operator of this column, and the sizes, indices and sources that its claims share."""

from __future__ import annotations

from ..kernel.formulas import Declaration
from ..kernel.terms import indices, matrix, recurrence, vector, vectors

GU = "Gu, Goel, Ré, Efficiently Modeling Long Sequences with Structured State Spaces, arXiv 2111.00396"
NOTE = "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)"

N, m, p = indices("N m p")
k, l, j, s, L = indices("k l j s L")
x0 = vector("x0", N)
C, D = matrix("C", p, N), matrix("D", p, m)

Abar, Bbar = matrix("Abar", N, N), matrix("Bbar", N, m)
u = vectors("u", m)

x = recurrence("x", x0, lambda k, x: Abar * x + Bbar * u[k])
textbook = recurrence("w", x0, lambda k, w: Abar * w + Bbar * u[k - 1])

DECLARATION = Declaration(
    operator="lti",
    inputs={"u": u, "Abar": Abar, "Bbar": Bbar, "C": C, "D": D},
    output=C * x[k] + D * u[k],
    t=k,
    state=x,
    initial_state=x0,
    domains=dict.fromkeys(("u", "Abar", "Bbar", "C", "D"), "real or complex"),
    source=f"{GU}, equation 3, with D apart",
)
DECLARATIONS = (DECLARATION,)
y = DECLARATION.output
