"""The three rules as operators: the block row (Ā, B̄) as a term in A, B and Δ."""

from __future__ import annotations

from fractions import Fraction

from ..kernel.formulas import Declaration
from ..kernel.terms import Block, Exp, Eye, Integral, Inverse, Num, Term, Zero, index, indices, matrix, named, scalar, vector, vectors

GU = "Gu, Goel, Ré, Efficiently Modeling Long Sequences with Structured State Spaces, arXiv 2111.00396"
MAMBA = "Gu, Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces, arXiv 2312.00752"
LSSL = "Gu et al., Combining Recurrent, Convolutional, and Continuous-time Models with Linear State-Space Layers, arXiv 2110.13985"
VAN_LOAN = "Van Loan, Computing Integrals Involving the Matrix Exponential, IEEE Trans. Autom. Control 23 (1978)"
NOTE = "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)"
HALF = Num(Fraction(1, 2))

N, m = indices("N m")
k = index("k")
A, B = matrix("A", N, N), matrix("B", N, m)
identity = Eye(N)
delta = scalar("Delta")
s = scalar("s")
x0 = vector("x0", N)
u = vectors("u", m)


def held_integral(step: Term = delta) -> Term:
    """The integral of e^{sA} over a step."""
    return Integral(Exp(s * A), s, 0, step)


generator = Block((A, B), (Zero(m, N), Zero(m, m)))
gbt_inverse = Inverse(identity - HALF * delta * A)
bilinear_A = named("Abar", gbt_inverse * (identity + HALF * delta * A))
bilinear_B = named("Bbar", gbt_inverse * (delta * B))
euler_A, euler_B = identity + delta * A, delta * B
backward_inverse = Inverse(identity - delta * A)


def declared(operator: str, output: Term, source: str) -> Declaration:
    """An operator without a time axis: its output is the block row (Ā, B̄)."""
    return Declaration(
        operator=operator,
        inputs={"A": A, "B": B, "delta": delta},
        output=output,
        t=k,
        domains={"A": "real or complex", "B": "real or complex", "delta": "real"},
        source=source,
    )


# The first block row of one exponential: exact for every A, and nothing is divided by.
ZOH_OPERATOR = declared("zoh", Block((identity, Zero(N, m))) * Exp(delta * generator), f"{MAMBA}, equation 4; {VAN_LOAN}, theorem 1")
BILINEAR_OPERATOR = declared("bilinear", Block((bilinear_A, bilinear_B)), f"{GU}, equation 3")
EULER_OPERATOR = declared("euler", Block((euler_A, euler_B)), f"{LSSL}, equation 3 at α = 0")
BACKWARD_OPERATOR = declared("backward-euler", Block((backward_inverse, backward_inverse * (delta * B))), f"{LSSL}, equation 3 at α = 1")
IMPULSE_OPERATOR = declared("impulse", Block((Exp(delta * A), delta * B)), f"{MAMBA}, its released code; impulse invariance")
# A line between two inputs: u is itself an integral, of the difference. The last factor makes (φ₁, φ₂) ΔB of it (φ₁ - φ₂, φ₂) ΔB.
ramp = Block((delta * A, delta * B, Zero(N, m)), (Zero(m, N), Zero(m, m), Eye(m)), (Zero(m, N), Zero(m, m), Zero(m, m)))
ends = Block((identity, Zero(N, m), Zero(N, m)), (Zero(m, N), Eye(m), Zero(m, m)), (Zero(m, N), -Eye(m), Eye(m)))
FOH_OPERATOR = declared(
    "foh",
    Block((identity, Zero(N, m), Zero(N, m))) * Exp(ramp) * ends,
    f"Franklin, Powell, Workman, Digital Control of Dynamic Systems, section 6.3.2; {VAN_LOAN}, theorem 1",
)
DECLARATIONS = (ZOH_OPERATOR, BILINEAR_OPERATOR, EULER_OPERATOR, BACKWARD_OPERATOR, IMPULSE_OPERATOR, FOH_OPERATOR)
