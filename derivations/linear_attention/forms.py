"""The recurrence, the sum that it is, and the masked product that computes all outputs at once."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Formula, Statement
from ..kernel.scripts import Chain, Direct, Each, Given, Induction, Lemma, Link, Rowwise
from ..kernel.terms import Exp, Family, Hadamard, Num, Stack, Sum, Term, Where, entries, indicator, le, lt, matrices, named, recurrence
from .operator import DECLARATION, H0, KATHAROPOULOS, NOTE, H, T, d_k, d_v, fresh_start, i, j, k, q, t, v


def writes(first: object, last: object) -> Term:
    """The sum of the key-value products of a range of tokens."""
    return Sum(v[j] * k[j].T, j, first, last)


# H_t is what was there at the start plus everything that was written since.
state = Statement(Equation(H[t], H0 + writes(1, t)), le(0, t))

STATE = Claim(
    id="linear-attention/state",
    title="the state is the sum of the key-value products",
    statement=state,
    sources=(Source(KATHAROPOULOS, "equation 18", "with an initial state, without the feature map"),),
    proof=Induction(t),
    operator=DECLARATION,
    near_misses=(
        variant(state, "the last token is left out", Equation(H[t], H0 + writes(1, t - 1))),
        variant(state, "the first token is left out", Equation(H[t], H0 + writes(2, t))),
        variant(state, "the initial state is forgotten", Equation(H[t], writes(1, t))),
    ),
)

# A query weighs the values by its products with the keys.
readout = Statement(Equation(H[t] * q[t], H0 * q[t] + Sum((k[j].T * q[t]) * v[j], j, 1, t)), le(0, t))

READOUT = Claim(
    id="linear-attention/readout",
    title="reading the state weighs the values by key-query products",
    statement=readout,
    sources=(Source(KATHAROPOULOS, "equation 20"),),
    proof=Chain(
        (Link((H0 + writes(1, t)) * q[t], (Lemma("linear-attention/state"),), "the state, unrolled"),),
        note="the product with q distributes over the sum",
    ),
    operator=DECLARATION,
    near_misses=(
        variant(
            readout,
            "the query of the written token",
            Equation(H[t] * q[t], H0 * q[t] + Sum((k[j].T * q[j]) * v[j], j, 1, t)),
        ),
        variant(readout, "the current token is not read", Equation(H[t] * q[t], H0 * q[t] + Sum((k[j].T * q[t]) * v[j], j, 1, t - 1))),
    ),
)


def rows(family: Family) -> Term:
    """The matrix whose row i is the i-th member, transposed."""
    return named(family.name.upper(), Stack(family[i].T, i, 1, T))


Q, K, V = rows(q), rows(k), rows(v)
M = named("M", entries(indicator(le(j, i)), i, (1, T), j, (1, T)))
outputs = Stack((H[i] * q[i]).T, i, 1, T)

seen = Where(le(j, t), q[t].T * k[j], Num(0))
row_by_row = Rowwise(
    t,
    Chain(
        (
            Link(Sum(seen * v[j].T, j, 1, T), note="row t of the masked product"),
            Link(Sum((q[t].T * k[j]) * v[j].T, j, 1, t), note="the mask cuts the sum at t"),
            Link((writes(1, t) * q[t]).T, note="the query comes out of the sum"),
        ),
        (Lemma("linear-attention/state"), Given("H_0 = 0")),
        "the sum is the state",
    ),
)

# Training computes all outputs at once, as a masked matrix product.
parallel = Statement(Equation(Hadamard(Q * K.T, M) * V, outputs), le(0, T), (fresh_start,))
strict_mask = named("M", entries(indicator(lt(j, i)), i, (1, T), j, (1, T)))

PARALLEL = Claim(
    id="linear-attention/parallel",
    title="the masked matrix product computes the recurrence",
    statement=parallel,
    sources=(Source(KATHAROPOULOS, "section 3.3"),),
    proof=row_by_row,
    operator=DECLARATION,
    near_misses=(
        variant(parallel, "mask transposed", Equation(Hadamard(Q * K.T, M.T) * V, outputs)),
        variant(parallel, "strict mask", Equation(Hadamard(Q * K.T, strict_mask) * V, outputs)),
        variant(parallel, "no mask", Equation(Q * K.T * V, outputs)),
        variant(parallel, "a state at the start", drop="H_0 = 0"),
    ),
)


# The same from any state: what was there at the start is read by every query.
with_state = Statement(Equation(Hadamard(Q * K.T, M) * V + Q * H0.T, outputs), le(0, T))

WITH_STATE = Claim(
    id="linear-attention/parallel-with-state",
    title="the masked matrix product, from any initial state",
    statement=with_state,
    sources=(Source(KATHAROPOULOS, "section 3.3", "with an initial state"),),
    proof=Rowwise(
        t,
        Chain(
            (Link((writes(1, t) * q[t] + H0 * q[t]).T, note="row t: the mask cuts the sum at t, the query comes out of it"),),
            (Lemma("linear-attention/state"),),
            "the sum and the initial state are the state",
        ),
    ),
    operator=DECLARATION,
    near_misses=(
        variant(with_state, "the initial state read by the keys", Equation(Hadamard(Q * K.T, M) * V + K * H0.T, outputs)),
        variant(with_state, "the initial state left out", Equation(Hadamard(Q * K.T, M) * V, outputs)),
    ),
)


def causal_attention(weight: object) -> Term:
    """Causal attention with a weight for a score, masked after the scores, without scale."""
    score = q[i].T * k[j]
    return entries(weight(score), i, (1, T), j, (1, T))  # type: ignore[operator]


def softmax_weight(score: Term) -> Term:
    """The softmax over the visible keys of row i."""
    return Exp(score) / Sum(Exp(q[i].T * k[j]), j, 1, i)


identity = causal_attention(lambda score: score)
no_softmax = Statement(Equation(Hadamard(identity, M) * V, outputs), le(0, T), (fresh_start,))

NO_SOFTMAX = Claim(
    id="linear-attention/no-softmax",
    title="causal attention whose softmax is the identity is linear attention",
    statement=no_softmax,
    sources=(Source(KATHAROPOULOS, "section 3.2", "mask after the scores, no scale, no normaliser"),),
    proof=row_by_row,
    operator=DECLARATION,
    near_misses=(
        variant(
            no_softmax,
            "softmax itself",
            Equation(Hadamard(causal_attention(softmax_weight), M) * V, outputs),
        ),
        variant(no_softmax, "a state at the start", drop="H_0 = 0"),
        variant(no_softmax, "mask left out", Equation(identity * V, outputs)),
    ),
)

# Any writes ---------------------------------------------------------------------------------------

outer_products = Lemma("affine/additive", part=1, families={"U": ((t,), v[t] * k[t].T)})
D = matrices("D", d_v, d_k)
any_writes = Lemma("affine/additive", part=1, families={"U": ((t,), D[t])})
additive = recurrence("H", H0, lambda t, H: H + D[t])


def anything(first: object = 1, last: object = t) -> Formula:
    """The state and its read-out, for any writes; linear attention writes v_t k_tᵀ."""
    total = H0 + Sum(D[j], j, first, last)
    return And(Equation(additive[t], total), Equation(additive[t] * q[t], total * q[t]), Equation(H[t], H0 + writes(1, t)))


additive_memory = Statement(anything(), le(0, t))

ADDITIVE = Claim(
    id="linear-attention/additive-memory",
    title="without a reflection the state is the sum of the writes, whatever they are, and a query reads the sum",
    statement=additive_memory,
    sources=(Source(NOTE, "section 1.3.1: H_t = D_1 + ... + D_t, y_t = (D_1 + ... + D_t) q_t", "with an initial state"),),
    proof=Each(
        (
            Direct((any_writes,), "the affine update without transitions"),
            Direct((any_writes,), "and its product with q"),
            Direct((outer_products,), "the case D = v kᵀ"),
        )
    ),
    near_misses=(
        variant(additive_memory, "the last write is left out", anything(last=t - 1)),
        variant(additive_memory, "the first write is left out", anything(first=2)),
    ),
)

CLAIMS = (STATE, READOUT, PARALLEL, WITH_STATE, NO_SOFTMAX, ADDITIVE)
