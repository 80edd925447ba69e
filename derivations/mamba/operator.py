"""The operators of this column, each for one channel.

The selective scan (S6), with a diagonal A given by its entries, before the gate; its state is one column of N entries:

    H_t = e^{Δ_t diag(A)} H_{t-1} + Δ_t B_t u_t        y_t = C_tᵀ H_t + D u_t

This is what the released code computes: B̄_t = Δ_t B_t. Equation 4 of the paper has zero-order hold, which is an operator of
its own, B̄_t = ∫₀^{Δ_t} e^{s diag(A)} ds B_t: the first block row of one exponential, exact for every A, without a quotient.

The causal convolution in front of it, with a weight of W entries, the last of which meets the newest input. Its state s_t are
the last W - 1 inputs, the oldest first:

    y_t = wᵀ [s_{t-1}; x_t] + b        s_t = [s_{t-1}; x_t] without its first entry        W >= 1

Sources: Gu and Dao, "Mamba", arXiv 2312.00752, algorithm 2 and section 3.4; the conventions of the convolution are those of
the released code, and of a convolution padded on the left by W - 1 zeros.
"""

from __future__ import annotations

from ..discretization.operators import MAMBA
from ..kernel.formulas import Declaration
from ..kernel.terms import (
    Block,
    Diag,
    Exp,
    Eye,
    Index,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    indices,
    le,
    recurrence,
    scalar,
    scalars,
    vector,
    vectors,
)

DAO = "Dao and Gu, Transformers are SSMs, arXiv 2405.21060"
ALI = "Ali, Zimerman, Wolf, The Hidden Attention of Mamba Models, arXiv 2403.01590"

N, W = indices("N W")
t, l = indices("t l")
A, H0 = vector("A", N), vector("H0", N)
B, C = vectors("B", N), vectors("C", N)
delta, u = scalars("Delta"), scalars("u")
D = scalar("D")


def transition(at: Index) -> Term:
    """Ā at a time: the entries of A decay for the step Δ of that time."""
    return Exp(delta[at] * Diag(A))


def write(at: Index) -> Term:
    """What a token adds to the state: B̄ u at its time."""
    return delta[at] * B[at] * u[at]


H = recurrence("H", H0, lambda t, H: transition(t) * H + write(t))


def held(at: Index) -> Term:
    """The exponential whose first block row is [Ā, B̄] of zero-order hold."""
    return Exp(delta[at] * Block((Diag(A), B[at]), (Zero(1, N), Zero(1, 1))))


first_rows = Block((Eye(N), Zero(N, 1)))
H_zoh = recurrence("H", H0, lambda t, H: first_rows * held(t) * Block((H,), (u[t],)))

SELECTIVE = {"u": u, "delta": delta, "A": A, "B": B, "C": C, "D": D}
DOMAINS = {"u": "real", "delta": "real, delta >= 0", "A": "real, A_n <= 0", "B": "real", "C": "real", "D": "real"}

DECLARATION = Declaration(
    operator="selective-scan",
    inputs=SELECTIVE,
    output=C[t].T * H[t] + D * u[t],
    t=t,
    state=H,
    initial_state=H0,
    domains=DOMAINS,
    source=f"{MAMBA}, algorithm 2, with B̄ = ΔB as in the released code",
)
ZOH_DECLARATION = Declaration(
    operator="selective-scan-zoh",
    inputs=SELECTIVE,
    output=C[t].T * H_zoh[t] + D * u[t],
    t=t,
    state=H_zoh,
    initial_state=H0,
    domains=DOMAINS,
    source=f"{MAMBA}, algorithm 2, with B̄ of equation 4",
)

weight, tail0 = vector("w", W), vector("s0", W - 1)
bias = scalar("b")
x = scalars("x")


def shifted(tail: Term, newest: Term) -> Term:
    """The tail without its oldest input, with the newest one at its end."""
    return Stack(Where(le(l, W - 2), Row(tail, l + 1), newest), l, 1, W - 1)


tail = recurrence("s", tail0, lambda t, s: shifted(s, x[t]))

CONVOLUTION = Declaration(
    operator="causal-conv1d",
    inputs={"x": x, "weight": weight, "bias": bias},
    output=Sum(Row(weight, l) * Row(tail[t - 1], l), l, 1, W - 1) + Row(weight, W) * x[t] + bias,
    t=t,
    state=tail,
    initial_state=tail0,
    domains=dict.fromkeys(("x", "weight", "bias"), "real"),
    source=f"{MAMBA}, section 3.4: the convolution of the block; causal_conv1d, width W",
)
DECLARATIONS = (DECLARATION, ZOH_DECLARATION, CONVOLUTION)
