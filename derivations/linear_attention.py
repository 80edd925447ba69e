"""Linear attention: a matrix of key-value products, read by a query.

    H_t = H_{t-1} + v_t k_tᵀ        y_t = H_t q_t

Source: Katharopoulos, Vyas, Pappas, Fleuret, "Transformers are RNNs", arXiv 2006.16236, equations 16-20 (without
the normaliser). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from .claim import Claim, Source, variant
from .kernel.formulas import Assumption, Declaration, Equation, Statement
from .kernel.scripts import Chain, Direct, Given, Induction, Lemma, Link, Rowwise
from .kernel.terms import (
    Exp,
    Family,
    Hadamard,
    Stack,
    Sum,
    Term,
    Zero,
    entries,
    indicator,
    indices,
    le,
    lt,
    matrix,
    named,
    recurrence,
    vectors,
)

d_k, d_v = indices("d_k d_v")
t, j, i, T = indices("t j i T")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
H0 = matrix("H0", d_v, d_k)

KATHAROPOULOS = "Katharopoulos et al., Transformers are RNNs, arXiv 2006.16236"

H = recurrence("H", H0, lambda t, H: H + v[t] * k[t].T)

DECLARATION = Declaration(
    operator="linear-attention",
    inputs={"q": q, "k": k, "v": v},
    output=H[t] * q[t],
    t=t,
    state=H,
    initial_state=H0,
    domains={"q": "real", "k": "real", "v": "real"},
    source=f"{KATHAROPOULOS}, equations 16-20",
)
DECLARATIONS = (DECLARATION,)

fresh_start = Assumption("H_0 = 0", Equation(H0, Zero(d_v, d_k)), solve={H0: Zero(d_v, d_k)})


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

# Training computes all outputs at once, as a masked matrix product.
parallel = Statement(Equation(Hadamard(Q * K.T, M) * V, outputs), le(0, T), (fresh_start,))
strict_mask = named("M", entries(indicator(lt(j, i)), i, (1, T), j, (1, T)))

PARALLEL = Claim(
    id="linear-attention/parallel",
    title="the masked matrix product computes the recurrence",
    statement=parallel,
    sources=(Source(KATHAROPOULOS, "section 3.3"),),
    proof=Rowwise(t, Direct((Lemma("linear-attention/state"), Given("H_0 = 0")), "row t: the mask cuts the sum at t")),
    near_misses=(
        variant(parallel, "mask transposed", Equation(Hadamard(Q * K.T, M.T) * V, outputs)),
        variant(parallel, "strict mask", Equation(Hadamard(Q * K.T, strict_mask) * V, outputs)),
        variant(parallel, "no mask", Equation(Q * K.T * V, outputs)),
        variant(parallel, "a state at the start", drop="H_0 = 0"),
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
    proof=Rowwise(t, Direct((Lemma("linear-attention/state"), Given("H_0 = 0")))),
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

CLAIMS = (STATE, READOUT, PARALLEL, NO_SOFTMAX)
