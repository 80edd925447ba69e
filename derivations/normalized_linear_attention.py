"""Linear attention with a normaliser, of queries and keys that are features already.

    N_t = N_{t-1} + v_t k_tᵀ    n_t = n_{t-1} + k_t        y_t = N_t q_t / n_tᵀ q_t

Source: Katharopoulos et al., arXiv 2006.16236, equations 16-20, here from any initial state; S_t and z_t there.
"""

from __future__ import annotations

from .claim import Claim, Source, variant
from .kernel.formulas import And, Declaration, Equation, Formula, Statement
from .kernel.scripts import Direct, Each, Hypothesis, Induction, Part
from .kernel.terms import Block, Eye, Num, Term, Zero, le, matrix, recurrence
from .linear_attention.operator import KATHAROPOULOS, d_k, d_v, k, q, t, v

N0, n0 = matrix("N0", d_v, d_k), matrix("n0", d_k, 1)
N = recurrence("N", N0, lambda t, N: N + v[t] * k[t].T)
n = recurrence("n", n0, lambda t, n: n + k[t])

DECLARATION = Declaration(
    operator="normalized-linear-attention",
    inputs={"q": q, "k": k, "v": v},
    output=Num(1) / (n[t].T * q[t]) * (N[t] * q[t]),
    t=t,
    state=(N, n),
    initial_state=(N0, n0),
    domains={"q": "features: real, n_tᵀq_t != 0", "k": "features: real", "v": "real"},
    source=f"{KATHAROPOULOS}, equations 16-20",
)

# Values with a 1 appended: the normaliser is one more row of the state ----------------------------

W = recurrence("W", Block((N0,), (n0.T,)), lambda t, W: W + Block((v[t],), (Eye(1),)) * k[t].T)


def rows(state: Term, normaliser: Term) -> Formula:
    """The state of both, and what a query reads of it."""
    return And(Equation(W[t], Block((state,), (normaliser.T,))), Equation(W[t] * q[t], Block((state * q[t],), (normaliser.T * q[t],))))


appended = Statement(rows(N[t], n[t]), le(0, t))

APPENDED = Claim(
    id="normalized-linear-attention/normalizer-row",
    title="linear attention on values with a 1 appended has N above n for its state, and reads the numerator above the denominator",
    statement=appended,
    sources=(Source(KATHAROPOULOS, "equations 18 to 20", "the two states as one, from any initial state"),),
    proof=Each(
        (
            Induction(t, Direct(note="the start"), Direct((Hypothesis(),), "one more token")),
            Direct((Part(1),), "the read-out, row by row"),
        )
    ),
    operator=DECLARATION,
    near_misses=(
        variant(appended, "the normaliser without the current token", rows(N[t], n[t - 1])),
        variant(appended, "a normaliser that starts at 0", rows(N[t], recurrence("m", Zero(d_k, 1), lambda t, m: m + k[t])[t])),
        variant(appended, "the state without the current token", rows(N[t - 1], n[t])),
    ),
)

CLAIMS = (APPENDED,)
DECLARATIONS = (DECLARATION,)
