"""What the matrix formula computes in each row, and what the mask has to be."""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Equation, Statement
from ..kernel.scripts import Chain, Direct, Each, Link, Rowwise
from ..kernel.terms import Entry, Exp, Hadamard, Ind, Index, NegInf, Num, Row, Sqrt, Stack, Sum, Term, entries, index, indicator, le, named
from .operators import MASKED, NOTE, VASWANI, T, causal, column, d_k, full, i, j, k, l, normaliser, q, row, rows, score, softmax, t, v

# softmax(QKᵀ/√d_k) V, as in the paper -----------------------------------------------------------------

S = rows(q, T) * rows(k, T).T / Sqrt(Ind(d_k))


def of_matrix(r: Index, c: Index) -> Term:
    """The entry of QKᵀ/√d_k."""
    return Entry(S, r, c)


def weight(r: Index, c: Index, last: Index) -> Term:
    """softmax([s_r1, …, s_r,last])_c for the scores s = qᵀk/√d_k."""
    total = Sum(Exp(q[r].T * k[l] / Sqrt(Ind(d_k))), l, 1, last)
    return named("w", Exp(q[r].T * k[c] / Sqrt(Ind(d_k))) / total, r, c, last)


def means(last: Index) -> Term:
    """The matrix with row i = Σ_{j≤last} softmax([s_i1, …, s_i,last])_j v_jᵀ, where last may depend on i."""
    return Stack(Sum(weight(i, j, last) * v[j].T, j, 1, last), i, 1, T)


def mean_row(last: Index) -> Term:
    """Row t of it."""
    return Sum(weight(t, j, last) * v[j].T, j, 1, last)


def product_row(weights: Term) -> Term:
    """Row t of weights · V, as a sum over the tokens."""
    return Sum(Entry(weights, t, j) * v[j].T, j, 1, T)


V = rows(v, T)
weights = softmax(of_matrix, T, T, S)
masked_weights = softmax(causal(of_matrix, NegInf()), T, T)
matrix_form = Statement(And(Equation(weights * V, means(T)), Equation(masked_weights * V, means(i))), le(0, T) & le(1, d_k))
by_columns = entries(Exp(of_matrix(row, column)) / Sum(Exp(of_matrix(l, column)), l, 1, T), row, (1, T), column, (1, T))
visible = entries(indicator(le(column, row)), row, (1, T), column, (1, T))

MATRIX_FORM = Claim(
    id="attention/matrix-form",
    title="row t of softmax(QKᵀ/√d_k) V is a mean of the values, weighed by a softmax of the scores of q_t",
    statement=matrix_form,
    sources=(
        Source(VASWANI, "equation 1; section 3.2.3 for the mask"),
        Source(NOTE, "masked self-attention: the formula for a new row, and full attention in the same notation"),
    ),
    proof=Each(
        (
            Rowwise(
                t,
                Chain(
                    (
                        Link(product_row(weights), note="row t of a product: row t of the weights, times V"),
                        Link(mean_row(T), note="the weights are the softmax of row t of QKᵀ/√d_k"),
                    ),
                    note="which is the row formula",
                ),
            ),
            Rowwise(
                t,
                Chain(
                    (
                        Link(product_row(masked_weights), note="row t of a product: row t of the weights, times V"),
                        Link(mean_row(t), note="exp(-∞) = 0: the tokens after t drop out of both sums"),
                    ),
                    note="which is the row formula for the tokens up to t",
                ),
            ),
        )
    ),
    operator=MASKED,
    near_misses=(
        variant(matrix_form, "softmax over the queries", Equation(by_columns * V, means(T))),
        variant(matrix_form, "scale after the softmax", Equation(full(T) / Sqrt(Ind(d_k)), means(T))),
        variant(matrix_form, "no scale", Equation(full(T), means(T))),
        variant(matrix_form, "mask after the softmax", Equation(Hadamard(weights, visible) * V, means(i))),
    ),
)

# The mask: -∞ or 0 before the softmax -------------------------------------------------------------------

n = index("n")
readouts = Stack(MASKED.output.subs({t: i}).T, i, 1, T)
seen = Sum(Exp(q[t].T * k[j]) * v[j], j, 1, t)
hidden_values = Sum(v[j], j, t + 1, t + n)
Z = normaliser(t, t)


def row_is(hidden: Term, value: Term) -> Equation:
    """Row t of attention over t + n tokens, with a given logit above the diagonal."""
    return Equation(Row(full(t + n, causal(score, hidden)), t).T, value)


as_written = Statement(Equation(full(T, causal(score, Num(0))), readouts), le(0, T))
zero_mask = Statement(And(row_is(NegInf(), MASKED.output), row_is(Num(0), (seen + hidden_values) / (Z + Ind(n)))), le(1, t) & le(0, n))

ZERO_MASK = Claim(
    id="attention/zero-mask",
    title="a mask of zeros before the softmax hides nothing: it must be -∞",
    statement=zero_mask,
    as_written=as_written,
    expected="refuted",
    sources=(
        Source(NOTE, "masked self-attention: the displayed matrices", "zeros above the diagonal inside softmax"),
        Source(VASWANI, "section 3.2.3", "there the mask is -∞, which is the statement that holds"),
    ),
    proof=Each(
        (
            Direct(note="exp(-∞) = 0: the n hidden tokens drop out of both sums"),
            Direct(note="exp(0) = 1: each of the n hidden tokens weighs as much as one with logit 0"),
        )
    ),
    near_misses=(
        variant(zero_mask, "-1 for -∞", row_is(Num(-1), MASKED.output)),
        variant(zero_mask, "the hidden tokens are left out of the normaliser", row_is(Num(0), (seen + hidden_values) / Z)),
        variant(zero_mask, "the hidden values are left out", row_is(Num(0), seen / (Z + Ind(n)))),
    ),
)

CLAIMS = (MATRIX_FORM, ZERO_MASK)
