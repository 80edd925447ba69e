"""The operator of this column: one value channel of one head of an H3 layer, without the projections.

    X_t = A X_{t-1} + e_1 k_tᵀ          k̃_t = Σ_i c_i ⊙ (row i of X_t)
    S_t = diag(a) S_{t-1} + b v_t k̃_tᵀ        o_t = cᵀ S_t q_t

The shift SSM, one for every key channel: its state X_t holds the last N keys, the newest in row 1; row i of ``taps`` weighs
lag i - 1. The diagonal SSM, one for all products of a key and a value channel: its state S_t has a row for every mode. A
head with several value channels is as many of these, with the same queries, keys and parameters; heads of width 1 have
o_t = q_t ⊙ SSM_diag(SSM_shift(k) ⊙ v)_t. Both are read after the update; a skip D is one more at lag 0.

Source: Fu, Dao et al., "Hungry Hungry Hippos", arXiv 2212.14052, section 3.2 and algorithm 1.
"""

from __future__ import annotations

from ..kernel.formulas import Declaration
from ..kernel.terms import (
    Diag,
    Index,
    Row,
    Stack,
    Sum,
    Term,
    entries,
    equal,
    indicator,
    indices,
    matrix,
    named,
    recurrence,
    scalars,
    vector,
    vectors,
)

FU = "Fu, Dao et al., Hungry Hungry Hippos: Towards Language Modeling with State Space Models, arXiv 2212.14052"
NOTE = "A note on state-space models, HiPPO, S4, H3, RetNet, RWKV and Mamba (in Chinese)"

N, M, d = indices("N M d")
t, i, j, l, n = indices("t i j l n")
q, k, v = vectors("q", d), vectors("k", d), scalars("v")
taps = matrix("taps", N, d)
a, b, c = vector("a", M), vector("b", M), vector("c", M)
X0, S0 = matrix("X0", N, d), matrix("S0", M, d)

shift = named("A", entries(indicator(equal(i, j + 1)), i, (1, N), j, (1, N)))
first = named("e1", Stack(indicator(equal(i, 1)), i, 1, N))
X = recurrence("X", X0, lambda t, X: shift * X + first * k[t].T)


def shifted(at: Index) -> Term:
    """What the shift SSM answers, as a row."""
    return Sum(Row(X[at], i) * Diag(Row(taps, i).T), i, 1, N)


S = recurrence("S", S0, lambda t, S: Diag(a) * S + v[t] * b * shifted(t))

DECLARATION = Declaration(
    operator="h3",
    inputs={"q": q, "k": k, "v": v, "taps": taps, "a": a, "b": b, "c": c},
    output=c.T * S[t] * q[t],
    t=t,
    state=(X, S),
    initial_state=(X0, S0),
    domains={"q": "real", "k": "real", "v": "real", "taps": "real", "a": "real or complex", "b": "real or complex", "c": "real or complex"},
    source=f"{FU}, section 3.2 and algorithm 1",
)
DECLARATIONS = (DECLARATION,)
