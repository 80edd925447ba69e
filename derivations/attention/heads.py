"""Shapes and blocks: projections, heads side by side, the first token, and queries of another sequence."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Direct, Each
from ..kernel.terms import Block, Entry, Exp, Family, Index, Row, Sum, Term, Zero, indices, le, matrix, vectors
from .operators import FULL, MASKED, NOTE, VASWANI, T, d_k, d_v, full, i, j, k, masked, q, read, rows, score, softmax, t, v

S = indices("S")[0]
FIRST = "row t of a product is row t of its left factor, times the right one"

# Projections ----------------------------------------------------------------------------------------------

d = indices("d")[0]
x = vectors("x", d)
W_Q, W_K, W_V = matrix("W_Q", d, d_k), matrix("W_K", d, d_k), matrix("W_V", d, d_v)
X = rows(x, T)


def projected(query: Term, logit: Term, value: Term) -> And:
    """Row i of Q = X W_Q, entry (i, j) of QKᵀ, and row j of V = X W_V."""
    scores = Entry((X * W_Q) * (X * W_K).T, i, j)
    return And(Equation(Row(X * W_Q, i), query), Equation(scores, logit), Equation(Row(X * W_V, j), value))


bilinear = x[i].T * W_Q * W_K.T * x[j]
projections = Statement(projected(x[i].T * W_Q, bilinear, x[j].T * W_V), le(1, i) & le(i, T) & le(1, j) & le(j, T))

PROJECTIONS = Claim(
    id="attention/projections",
    title="a row of X W_Q is the token times W_Q, and so for keys and values; a score is x_iᵀ W_Q W_Kᵀ x_j, of the two tokens alone",
    statement=projections,
    sources=(Source(NOTE, "self-attention: Q, K and V from the same matrix"), Source(VASWANI, "section 3.2.2")),
    proof=Each((Direct(note=FIRST), Direct(note="both rows"), Direct(note=FIRST))),
    near_misses=(
        variant(projections, "the weights of the keys for those of the queries", projected(x[i].T * W_K, bilinear, x[j].T * W_V)),
        variant(projections, "the scores are symmetric", projected(x[i].T * W_Q, x[j].T * W_Q * W_K.T * x[i], x[j].T * W_V)),
        variant(projections, "one matrix for queries and keys", projected(x[i].T * W_Q, x[i].T * W_Q * W_Q.T * x[j], x[j].T * W_V)),
    ),
)

# Heads side by side ---------------------------------------------------------------------------------------

d_o, e_k, e_v = indices("d_o e_k e_v")
f, g, u = vectors("f", e_k), vectors("g", e_k), vectors("u", e_v)  # queries, keys and values of another head
W, U = matrix("W", d_v, d_o), matrix("U", e_v, d_o)  # the rows of W_O that meet each head


def head(queries: Family, keys: Family, values: Family) -> Term:
    """Row t of one head."""
    weight = Exp(queries[t].T * keys[j])
    return (Sum(weight * values[j], j, 1, t) / Sum(weight, j, 1, t)).T


one, other = head(q, k, v), head(f, g, u)
side_by_side = Block((one, other)) * Block((W,), (U,))
wide = Exp(Block((q[t].T, f[t].T)) * Block((k[j],), (g[j],)))
as_one_head = (Sum(wide * Block((v[j],), (u[j],)), j, 1, t) / Sum(wide, j, 1, t)).T * Block((W,), (U,))


def concatenated(output: Term) -> Equation:
    """[head, head] W_O."""
    return Equation(side_by_side, output)


multi_head = Statement(concatenated(one * W + other * U), le(1, t))

MULTI_HEAD = Claim(
    id="attention/multi-head",
    title="heads side by side times W_O is the sum of each head times its own rows of W_O; so for more heads, of any sizes",
    statement=multi_head,
    sources=(Source(VASWANI, "section 3.2.2", "two heads of any sizes, of which one may be more heads side by side"),),
    proof=Direct(note="a row of blocks times a column of blocks"),
    operator=MASKED,
    near_misses=(
        variant(multi_head, "one head on keys and values side by side", concatenated(as_one_head)),
        variant(multi_head, "the mean of the heads", concatenated((one * W + other * U) / 2)),
        variant(multi_head, "the first head alone", concatenated(one * W)),
    ),
)

# The first token ------------------------------------------------------------------------------------------


def first(length: Index, value: Term) -> Equation:
    """Row 1 of masked attention."""
    return Equation(Row(masked(length), 1), value)


first_token = Statement(first(T, v[1].T), le(1, T))

FIRST_TOKEN = Claim(
    id="attention/first-token",
    title="the first row of masked attention is the first value, whatever the queries and keys",
    statement=first_token,
    sources=(
        Source(NOTE, "masked self-attention: Masked(1:1) = V_1", "for T = 1; here among any T tokens"),
        Source(VASWANI, "section 3.2.3"),
    ),
    proof=Direct(note="the softmax of one number is 1"),
    operator=MASKED,
    near_misses=(
        variant(first_token, "full attention", Equation(Row(full(T), 1), v[1].T)),
        variant(first_token, "row 1 is the last value", first(T, v[T].T)),
        variant(first_token, "a mask that hides the token itself too", first(T, Zero(1, d_v))),
    ),
)

# Queries of another sequence ------------------------------------------------------------------------------


def cross(queries: Index, memory: Index) -> Term:
    """Attention of some queries to the keys and values of a memory, one row a query."""
    return softmax(score, queries, memory) * rows(v, memory)


def row_of(output: Term) -> Equation:
    """Row t for T queries and S keys."""
    return Equation(Row(cross(T, S), t), output)


def shapes(output: Term) -> And:
    """Row t, by itself and among fewer queries."""
    return And(row_of(output), Equation(Row(cross(T, S), t), Row(cross(t, S), t)))


cross_shape = Statement(shapes(read(t, S).T), le(1, t) & le(t, T) & le(1, S))

CROSS_SHAPE = Claim(
    id="attention/cross-shape",
    title="cross-attention has a row for each query, of the size of a value, whatever the length of the memory; row t reads q_t alone",
    statement=cross_shape,
    sources=(
        Source(NOTE, "cross-attention: the output has the size of Q", "the number of rows of Q, and the size of the values"),
        Source(VASWANI, "section 3.2.3, encoder-decoder attention"),
    ),
    proof=Each((Direct(note="row t of the weights, times V"), Direct(note="no other query is in it"))),
    operator=FULL,
    near_misses=(
        variant(cross_shape, "a mask between two sequences", shapes(read(t, t).T)),
        variant(cross_shape, "as many keys as queries are read", shapes(read(t, T).T)),
        variant(cross_shape, "every query reads the same", shapes(read(T, S).T)),
    ),
)

CLAIMS = (PROJECTIONS, MULTI_HEAD, FIRST_TOKEN, CROSS_SHAPE)
