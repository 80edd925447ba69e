"""Linear attention: a matrix of key-value products, read by a query.

    H_t = H_{t-1} + v_t k_tᵀ        y_t = H_t q_t

Source: Katharopoulos, Vyas, Pappas, Fleuret, "Transformers are RNNs", arXiv 2006.16236, equations 16-20 (without
the normaliser). Column convention: H is d_v x d_k.
"""

from __future__ import annotations

from dataclasses import replace

from .claim import Claim, Source, variant
from .kernel.formulas import And, Assumption, Declaration, Equation, ForAll, Formula, Statement
from .kernel.scripts import Chain, Direct, Each, Given, Hypothesis, Induction, Lemma, Link, Part, Rowwise, Unfold, Using
from .kernel.terms import (
    Apply,
    Exp,
    Eye,
    Family,
    Hadamard,
    Index,
    Num,
    Recurrence,
    Row,
    Stack,
    Sum,
    Term,
    Where,
    Zero,
    entries,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrices,
    matrix,
    named,
    norm2,
    recurrence,
    scalars,
    vectors,
)

d_k, d_v = indices("d_k d_v")
t, s, j, i, T = indices("t s j i T")
q, k, v = vectors("q", d_k), vectors("k", d_k), vectors("v", d_v)
H0 = matrix("H0", d_v, d_k)

NOTE = "08 - Transformer and Variants (a blog note)"
DAO = "Dao and Gu, Transformers are SSMs, arXiv 2405.21060"
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

# Columns ------------------------------------------------------------------------------------------

c, r = indices("c r")


def unit(n: Index) -> Term:
    """The n-th standard basis vector of the keys' space."""
    return Stack(indicator(equal(r, n)), r, 1, d_k)


def column(x: Term, n: Index) -> Term:
    """Column n of a d_v x d_k matrix."""
    return Row(x.T, n).T


# s is an index of its own: what is assumed of its key says nothing about the others.
basis_key = Assumption(
    "k_s = e_i",
    ForAll(Equation(Row(k[s], r), indicator(equal(r, i))), r, 1, d_k),
    solve={k[s]: unit(i)},
)
outer = Equation(column(v[t] * k[t].T, c), Row(k[t], c) * v[t])
one_column = Equation(column(H[s], c), column(H[s - 1], c) + indicator(equal(c, i)) * v[s])
read_one = Equation(H[t] * unit(i), column(H[t], i))
some_columns = le(1, c) & le(c, d_k) & le(1, i) & le(i, d_k)
column_writes = Statement(And(outer, one_column, read_one), le(1, t) & le(1, s) & some_columns, (basis_key,))
written_column = Link(column(H[s - 1], c) + Row(k[s], c) * v[s], (Using(Unfold(H[s]), right=unit(c)),), "column c of the update")

COLUMN_WRITES = Claim(
    id="linear-attention/column-writes",
    title="v kᵀ has the columns k_c v; the key e_i writes column i only, the query e_i reads it",
    statement=column_writes,
    sources=(Source(NOTE, "section 1.3.2: where a key puts a value"),),
    proof=Each(
        (
            Direct(note="entry by entry"),
            Chain((written_column,), (Given("k_s = e_i"),), "the key is 0 but for one entry"),
            Direct(note="the sum over the columns has one term"),
        )
    ),
    near_misses=(
        variant(
            column_writes,
            "the value times the squared key",
            And(Equation(column(v[t] * k[t].T, c), k[t].T * k[t] * v[t]), one_column, read_one),
        ),
        variant(column_writes, "any key writes one column", drop="k_s = e_i"),
        variant(column_writes, "every query reads one column", And(outer, one_column, Equation(H[t] * q[t], column(H[t], i)))),
    ),
)

# One state-space model per value channel ----------------------------------------------------------

channel = recurrence("x", Row(H0, c).T, lambda t, x: Eye(d_k) * x + k[t] * Row(v[t], c))
pick = Stack(indicator(equal(r, c)), r, 1, d_v).T
row_of_update = Link(Row(H[t], c) + Row(v[t + 1], c) * k[t + 1].T, (Using(Unfold(H[t + 1]), left=pick),), "row c of the update")


def per_channel(x: Recurrence) -> Formula:
    """Row c of the state is the state of channel c, and entry c of the output its output."""
    return And(Equation(Row(H[t], c), x[t].T), Equation(Row(H[t] * q[t], c), q[t].T * x[t]))


state_space = Statement(per_channel(channel), le(0, t) & le(1, c) & le(c, d_v))

STATE_SPACE = Claim(
    id="linear-attention/as-state-space",
    title="each value channel is a state-space model with Ā = I, B̄_t = k_t, C_t = q_tᵀ",
    statement=state_space,
    sources=(Source(DAO, "linear attention as a state-space model whose A is the identity"),),
    proof=Each(
        (
            Induction(
                t,
                Direct(note="the same start"),
                Chain((row_of_update,), (Hypothesis(),), "the update of the channel"),
            ),
            Direct((Part(1),), "row c of the read-out"),
        )
    ),
    near_misses=(
        variant(
            state_space,
            "the key and the value of the step before",
            per_channel(recurrence("x", Row(H0, c).T, lambda t, x: x + k[t - 1] * Row(v[t - 1], c))),
        ),
        variant(state_space, "C is the key", And(state_space.conclusion.args[0], Equation(Row(H[t] * q[t], c), k[t].T * channel[t]))),
        variant(
            state_space, "the start is forgotten", per_channel(recurrence("x", Zero(d_k, 1), lambda t, x: x + k[t] * Row(v[t], c)))
        ),
    ),
)

# Features and a normaliser ------------------------------------------------------------------------

m = indices("m")[0]
rho = scalars("rho")


def phi(of: Term) -> Term:
    """A feature map, any function."""
    return Apply("phi", (of,), m, 1)


S = recurrence("S", Zero(d_v, m), lambda t, S: S + v[t] * phi(k[t]).T)
z = recurrence("z", Zero(m, 1), lambda t, z: z + phi(k[t]))


def feature_sums(first: object = 1) -> Formula:
    """The state and the normaliser as sums over the keys."""
    return And(Equation(S[t], Sum(v[j] * phi(k[j]).T, j, first, t)), Equation(z[t], Sum(phi(k[j]), j, first, t)))


features = Statement(feature_sums(), le(0, t))
one_more = Induction(t, Direct(note="no token"), Direct((Hypothesis(),), "one more token"))

FEATURES = Claim(
    id="linear-attention/feature-state",
    title="with a feature map, the state and the normaliser are sums over the keys",
    statement=features,
    sources=(Source(KATHAROPOULOS, "equations 10, 11 and 16 to 19"),),
    proof=Each((one_more, one_more)),
    near_misses=(
        variant(features, "the first token is left out", feature_sums(2)),
        variant(features, "features of the sum", And(features.conclusion.args[0], Equation(z[t], phi(Sum(k[j], j, 1, t))))),
    ),
)


def similarity(n: Index) -> Term:
    """φ(query_t)ᵀ φ(key_n)."""
    return phi(q[t]).T * phi(k[n])


def normaliser_is(what: Term) -> Assumption:
    """The reciprocal ρ_t of a number; it has one where it is not 0."""
    return Assumption("the normaliser is not 0", Equation(rho[t] * what, 1), solve={rho[t]: Num(1) / what})


mean = Equation(rho[t] * S[t] * phi(q[t]), Sum(rho[t] * similarity(j) * v[j], j, 1, t))
sum_to_one = Equation(Sum(rho[t] * similarity(j), j, 1, t), 1)
normalized = Statement(And(mean, sum_to_one), le(0, t), (normaliser_is(z[t].T * phi(q[t])),))
state_and_normaliser = (Lemma("linear-attention/feature-state", part=0), Lemma("linear-attention/feature-state", part=1))

NORMALIZED = Claim(
    id="linear-attention/normalized",
    title="S_t φ(q_t) / z_tᵀφ(q_t) is a mean of the values, weighed in proportion to φ(q_t)ᵀφ(k_j), where z_tᵀφ(q_t) is not 0",
    statement=normalized,
    sources=(Source(KATHAROPOULOS, "equations 4, 9 and 20", "any feature map, also a signed one"),),
    proof=Each(
        (
            Direct(state_and_normaliser, "the state, unrolled"),
            Chain(
                (Link(rho[t] * (z[t].T * phi(q[t])), state_and_normaliser, "the normaliser, unrolled"),),
                (Given("the normaliser is not 0"),),
                "its reciprocal",
            ),
        )
    ),
    near_misses=(
        variant(normalized, "any factor", drop="the normaliser is not 0"),
        variant(
            normalized,
            "signed features: z_t is not 0",
            drop="the normaliser is not 0",
            add=(replace(normaliser_is(norm2(z[t])), name="z_t is not 0"),),
        ),
        variant(normalized, "the current token is left out", And(mean, Equation(Sum(rho[t] * similarity(j), j, 1, t - 1), 1))),
    ),
)

CLAIMS = (STATE, READOUT, PARALLEL, WITH_STATE, NO_SOFTMAX, ADDITIVE, COLUMN_WRITES, STATE_SPACE, FEATURES, NORMALIZED)
